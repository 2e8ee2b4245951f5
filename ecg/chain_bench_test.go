package ecg_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/ecg"
)

// hospital is a table like the demo's: people by age, postcode, sex, race and
// day of birth, nearly all of them different.
func hospital(b *testing.B, people int) *anonymize.Table {
	b.Helper()
	rng := rand.New(rand.NewPCG(50, 5))
	var columns []anonymize.Column
	leaves := make([][]uint32, 5)
	for c, tree := range []struct {
		name    string
		values  int
		factors []int
	}{
		{"age", 100, []int{5, 10, 20}},
		{"zip", 3000, []int{10, 100, 1000}},
		{"sex", 2, nil},
		{"race", 5, nil},
		{"day", 36500, []int{73, 365, 3650}},
	} {
		var paths [][]string
		for v := range tree.values {
			path := []string{fmt.Sprint(v)}
			for _, f := range tree.factors {
				path = append(path, fmt.Sprintf("%d/%d", v/f, f))
			}
			paths = append(paths, path)
		}
		h, err := anonymize.NewHierarchy(paths)
		if err != nil {
			b.Fatal(err)
		}
		columns = append(columns, anonymize.Column{Name: tree.name, Hierarchy: h})
		for range people {
			v := rng.IntN(tree.values)
			if tree.name != "day" {
				v = min(v, rng.IntN(tree.values))
			}
			leaves[c] = append(leaves[c], uint32(v))
		}
	}
	table, err := anonymize.NewTable(columns, leaves, nil)
	if err != nil {
		b.Fatal(err)
	}
	return table
}

// BenchmarkTailor is the assessment of a first query of a chain, beside the one
// refinement that any answer needs.
func BenchmarkTailor(b *testing.B) {
	for _, people := range []int{50_000, 200_000} {
		table := hospital(b, people)
		present := anonymize.NewPartition(table)
		b.Run(fmt.Sprintf("people=%d/refine", people), func(b *testing.B) {
			for b.Loop() {
				if _, err := present.Refine(b.Context(),
					anonymize.Refinement{Columns: []int{0, 1, 2}, Requirements: fivePeople}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("people=%d/tailor", people), func(b *testing.B) {
			candidates := 0
			for b.Loop() {
				a := tailored(b, present)
				candidates = 0
				for _, s := range a.Stages {
					candidates += s.Considered
				}
			}
			b.ReportMetric(float64(candidates), "candidates")
		})
		shown := tailored(b, present).Partition
		b.Run(fmt.Sprintf("people=%d/again", people), func(b *testing.B) {
			for b.Loop() {
				tailored(b, shown)
			}
		})
	}
}

// tailored asks for age and sex in a filter and the postcode in the answer.
func tailored(b *testing.B, present *anonymize.Partition) *ecg.Assessment {
	b.Helper()
	chain := &ecg.Chain{Present: present, Requirements: fivePeople, Gate: ecg.HighestRisk(5)}
	stages := ecg.Compose([]string{"p"}, []ecg.Use{
		{Place: ecg.Scan, Table: "p", Attribute: "age"},
		{Place: ecg.Scan, Table: "p", Attribute: "sex"},
		{Place: ecg.Projection, Table: "p", Attribute: "zip"},
	}, "")[0]
	a, err := ecg.Tailor(b.Context(), chain, stages, chain.Gate, 0)
	if err != nil {
		b.Fatal(err)
	}
	return a
}

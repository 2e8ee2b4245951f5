package anonymize_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// hospitalTable is a table of patients, one row each, with birth date, age,
// sex, race and zip code, and a diagnosis beside it.
func hospitalTable(tb testing.TB, patients int) (*anonymize.Table, anonymize.Sensitive) {
	tb.Helper()
	r := rand.New(rand.NewPCG(3, 5))
	today := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	values := make([][]string, 5)
	diagnosis := make([]uint32, patients)
	for i := range patients {
		age := min(99, int(22*(r.ExpFloat64()+r.ExpFloat64())))
		area := int(min(199, r.ExpFloat64()*40))
		row := []string{
			today.AddDate(-age, 0, -r.IntN(365)-1).Format("2006-01-02"), strconv.Itoa(age),
			strconv.Itoa(r.IntN(2)), strconv.Itoa(int(min(4, r.ExpFloat64()))),
			fmt.Sprintf("%05d", 10000+area%12*7000+area/12*37+area%10),
		}
		for c, v := range row {
			values[c] = append(values[c], v)
		}
		diagnosis[i] = uint32(min(19, r.ExpFloat64()*5))
	}
	builders := []interface {
		Build(values []string, withNull bool) (*anonymize.Hierarchy, error)
	}{
		anonymize.Dates{
			Levels: []string{"month", "year", "decade"}, Lower: "1900-01-01",
			Upper: "2029-12-31",
		},
		anonymize.Interval{Widths: []float64{5, 10, 20, 40}, Upper: 119, Integer: true},
		anonymize.Prefix{Keep: []int{0}},
		anonymize.Prefix{Keep: []int{0}},
		anonymize.Prefix{Keep: []int{4, 3, 2, 1}},
	}
	columns, leaves := make([]anonymize.Column, len(builders)), make([][]uint32, len(builders))
	for c, b := range builders {
		h, err := b.Build(slices.Compact(slices.Sorted(slices.Values(values[c]))), false)
		if err != nil {
			tb.Fatal(err)
		}
		columns[c] = anonymize.Column{Name: strconv.Itoa(c), Hierarchy: h}
		for _, v := range values[c] {
			leaf, _ := h.Code(v)
			leaves[c] = append(leaves[c], leaf)
		}
	}
	t, err := anonymize.NewTable(columns, leaves, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return t, anonymize.Sensitive{Name: "diagnosis", CodeOfRow: diagnosis}
}

// BenchmarkFirstAnswers is the work behind a chain's first answers about
// 50,000 patients: age, sex and zip code, then age and birth date.
func BenchmarkFirstAnswers(b *testing.B) {
	t, diagnosis := hospitalTable(b, 50_000)
	for _, diverse := range []bool{false, true} {
		requirements := blockK(5)
		if diverse {
			requirements = append(requirements, anonymize.BlockDistinctL{L: 2, Of: diagnosis})
		}
		first := anonymize.Refinement{Columns: []int{1, 2, 4}, Requirements: requirements}
		second := anonymize.Refinement{Columns: []int{0, 1}, Requirements: requirements}
		after := refined(b, anonymize.NewPartition(t), first)
		for _, ask := range []struct {
			name string
			of   *anonymize.Partition
			what anonymize.Refinement
		}{{"first", anonymize.NewPartition(t), first}, {"second", after, second}} {
			b.Run(fmt.Sprintf("%s/diverse=%v", ask.name, diverse), func(b *testing.B) {
				var p *anonymize.Partition
				for b.Loop() {
					p = refined(b, ask.of, ask.what)
				}
				b.ReportMetric(p.Loss(ask.what.Columns), "loss")
				b.ReportMetric(float64(p.Blocks()), "blocks")
			})
		}
	}
}

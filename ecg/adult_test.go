package ecg_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/ecg"
	"github.com/hiatus-tailor/tailor/internal/refdata"
)

// adultColumns are the quasi-identifiers of the reference workloads.
const adultColumns = 7

// adult reads the reference table.
func adult(t testing.TB) *anonymize.Table {
	t.Helper()
	sheet := readSheet(t, "arx/adult/adult.csv")
	var columns []anonymize.Column
	for _, name := range sheet.Header()[:adultColumns] {
		f, err := os.Open(refdata.Path(t, "arx/adult/adult_hierarchy_"+name+".csv"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		h, err := anonymize.ReadHierarchy(f, ';')
		if err != nil {
			t.Fatal(err)
		}
		columns = append(columns, anonymize.Column{Name: name, Hierarchy: h})
	}
	table, err := sheet.Encode(columns, "")
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func readSheet(t testing.TB, name string) *anonymize.Sheet {
	t.Helper()
	f, err := os.Open(refdata.Path(t, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sheet, err := anonymize.ReadSheet(f, ';')
	if err != nil {
		t.Fatal(err)
	}
	return sheet
}

var fivePeople = []anonymize.Requirement{anonymize.BlockK{K: 5}}

// ask has the tailor answer a query whose attributes stand one in a place.
func ask(
	t testing.TB, present *anonymize.Partition, attributes []string, score float64,
) *ecg.Assessment {
	t.Helper()
	var uses []ecg.Use
	for i, name := range attributes {
		uses = append(uses, ecg.Use{Place: ecg.Place(i % 5), Table: "adult", Attribute: name})
	}
	chain := &ecg.Chain{Present: present, Requirements: fivePeople, Gate: ecg.HighestRisk(5)}
	a, err := ecg.Tailor(t.Context(), chain, ecg.Compose([]string{"adult"}, uses, "")[0],
		chain.Gate, score)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestTailorLosesNoMoreThanGeneralizingEverything asks 200 random queries, and
// the first 40 of them under the race detector: make test begins without it.
func TestTailorLosesNoMoreThanGeneralizingEverything(t *testing.T) {
	table := adult(t)
	rng := rand.New(rand.NewPCG(5, 2026))
	saved, better := 0.0, 0
	queries := 200
	if raceDetector {
		queries = 40
	}
	var chain *anonymize.Partition
	for q := range queries {
		if q%20 == 0 {
			chain = anonymize.NewPartition(table)
		}
		var attributes []string
		var columns []int
		for _, c := range rng.Perm(adultColumns)[:1+rng.IntN(4)] {
			attributes = append(attributes, table.Columns()[c].Name)
			columns = append(columns, c)
		}
		all, err := chain.Refine(t.Context(), anonymize.Refinement{
			Columns:      columns,
			Requirements: fivePeople,
		})
		if err != nil {
			t.Fatal(err)
		}
		a := ask(t, chain, attributes, 0)
		if a.Loss > all.Loss(columns) {
			t.Errorf("query %d over %v loses %.4f, all at once %.4f", q, attributes, a.Loss,
				all.Loss(columns))
		}
		if a.Partition.MinBlock() < 5 {
			t.Errorf("query %d leaves a block of %d", q, a.Partition.MinBlock())
		}
		if a.Loss < all.Loss(columns) {
			better++
		}
		saved += all.Loss(columns) - a.Loss
		if again := ask(t, a.Partition, attributes, 0); again.Partition != a.Partition ||
			again.Loss != a.Loss {
			t.Errorf("query %d: asking again changes the partition", q)
		}
		chain = a.Partition
	}
	t.Logf("mean loss saved by the choice: %.4f a query, in %d of %d", saved/float64(queries), better,
		queries)
}

func TestWorkloadsAsChains(t *testing.T) {
	table := adult(t)
	mean := 0.0
	for i := range 4 {
		f, err := os.Open(refdata.Path(t, fmt.Sprintf("workloads/adult7-%d.txt", i)))
		if err != nil {
			t.Fatal(err)
		}
		w, err := anonymize.ReadWorkload(f, table)
		_ = f.Close()
		if err != nil {
			t.Fatal(err)
		}
		chain, loss := anonymize.NewPartition(table), 0.0
		for _, query := range w {
			var attributes []string
			for _, c := range query {
				attributes = append(attributes, table.Columns()[c].Name)
			}
			a := ask(t, chain, attributes, 0)
			chain, loss = a.Partition, loss+a.Loss/float64(len(w))
		}
		t.Logf("workload %d: mean loss %.4f, smallest block %d", i, loss, chain.MinBlock())
		if chain.MinBlock() < 5 {
			t.Errorf("workload %d: a block of %d", i, chain.MinBlock())
		}
		mean += loss / 4
	}
	t.Logf("mean loss %.4f", mean)
	if mean > 0.039 {
		t.Errorf("mean loss %.4f; was 0.0374", mean)
	}
}

package anonymize_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// largestShare is the most that a subject owns of the rows of some tuples.
func largestShare(t *anonymize.Table, tuples []uint32) float64 {
	owned, rows, most := make(map[uint32]int), 0, 0
	for _, tuple := range tuples {
		for _, row := range t.RowsOf(tuple) {
			rows++
			owned[t.Subject(row)]++
			most = max(most, owned[t.Subject(row)])
		}
	}
	return float64(most) / float64(rows)
}

// visits is a table in which a few subjects have many rows.
func visits(t *testing.T, seed uint64) *anonymize.Table {
	d := newRandomRows(t, seed, true)
	r := rand.New(rand.NewPCG(seed, 7))
	for row := range d.subjects {
		if r.IntN(3) == 0 {
			d.subjects[row] = uint32(r.IntN(4))
		}
	}
	return d.table(t, nil)
}

func TestNoSubjectDominatesABlock(t *testing.T) {
	dominated := 0
	for seed := range min(rootTables(), 8) {
		table := visits(t, seed)
		bound := anonymize.BlockMaxShare{Share: 0.25}
		p := root(t, table, anonymize.RootPlan{Requirements: append(blockK(3), bound)})
		free := root(t, table, anonymize.RootPlan{Requirements: blockK(3)})
		if p.Blocks() < 4 {
			t.Errorf("seed %d: only %d blocks", seed, p.Blocks())
		}
		for b := range uint32(p.Blocks()) {
			if share := largestShare(table, p.Tuples(b)); share > bound.Share {
				t.Fatalf("seed %d: a subject owns %.2f of block %d", seed, share, b)
			}
		}
		for b := range uint32(free.Blocks()) {
			if largestShare(table, free.Tuples(b)) > bound.Share {
				dominated++
			}
		}
	}
	if dominated == 0 {
		t.Error("without the bound nobody dominates either: not a test")
	}
}

func TestMaxShareAgreesWithItsDefinitionAndIsMonotone(t *testing.T) {
	for _, severalRows := range []bool{false, true} {
		table := newRandomRows(t, 2, severalRows).table(t, nil)
		checker, err := anonymize.BlockMaxShare{Share: 0.2}.Bind(table)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(1, 5))
		met, failed := 0, 0
		for range 2000 {
			tuples := randomTuples(r, table)
			got := checker.Meets(tuples)
			if want := largestShare(table, tuples) <= 0.2; got != want {
				t.Fatalf("says %v where the largest share is %g", got, largestShare(table, tuples))
			}
			cut := r.IntN(len(tuples) + 1)
			if checker.Meets(tuples[:cut]) && checker.Meets(tuples[cut:]) && !got {
				t.Fatal("two blocks meet it, both together do not")
			}
			if got {
				met++
			} else {
				failed++
			}
		}
		if met < 20 || failed < 20 {
			t.Errorf("%d met and %d failed: not a test", met, failed)
		}
	}
}

func TestMaxShareRefusesWhatSwitchesItOff(t *testing.T) {
	table := newRandomRows(t, 5, true).table(t, nil)
	for _, share := range []float64{0, -1, 1.5, math.NaN()} {
		if _, err := (anonymize.BlockMaxShare{Share: share}).Bind(table); err == nil {
			t.Errorf("a share of %g is accepted", share)
		}
	}
	var unmet *anonymize.UnmetError
	_, err := anonymize.Root(context.Background(), table,
		anonymize.RootPlan{Requirements: append(blockK(2), anonymize.BlockMaxShare{Share: 1e-6})})
	if !errors.As(err, &unmet) {
		t.Errorf("a share that the whole table exceeds: %v", err)
	}
}

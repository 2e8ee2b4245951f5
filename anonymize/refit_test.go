package anonymize_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// steps is a table with one column of values 0..99 in steps of 10 and 50, one
// row for each of the given values.
func steps(t testing.TB, values ...uint32) *anonymize.Table {
	t.Helper()
	paths := make([][]string, 100)
	for v := range paths {
		paths[v] = []string{fmt.Sprint(v), fmt.Sprint("tens ", v/10), fmt.Sprint("fifties ", v/50)}
	}
	h, err := anonymize.NewHierarchy(paths)
	if err != nil {
		t.Fatal(err)
	}
	table, err := anonymize.NewTable([]anonymize.Column{{Name: "v", Hierarchy: h}}, [][]uint32{values}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// labelOf is the label of the first row with a value.
func labelOf(t testing.TB, p *anonymize.Partition, value uint32) string {
	t.Helper()
	for tuple := range uint32(p.Table().Tuples()) {
		if p.Table().Leaf(0, tuple) == value {
			return p.Label(p.BlockOf()[tuple], 0)
		}
	}
	t.Fatalf("no tuple %d", value)
	return ""
}

func TestRefitRules(t *testing.T) {
	old := refined(t, anonymize.NewPartition(steps(t, 1, 2, 3, 21, 22, 23, 71, 72, 73)),
		anonymize.Refinement{Columns: []int{0}, Requirements: blockK(3)})
	if old.Blocks() != 3 {
		t.Fatalf("%d blocks to start from", old.Blocks())
	}
	for _, c := range []struct {
		claim  string
		values []uint32
		labels map[uint32]string
		report anonymize.RefitReport
	}{
		{
			"the same table keeps its blocks",
			[]uint32{1, 2, 3, 21, 22, 23, 71, 72, 73},
			map[uint32]string{1: "tens 0", 21: "tens 2", 71: "tens 7"},
			anonymize.RefitReport{Known: 9},
		},
		{
			"a new value inside a label joins its block",
			[]uint32{1, 2, 3, 21, 22, 23, 71, 72, 73, 25},
			map[uint32]string{25: "tens 2", 1: "tens 0"},
			anonymize.RefitReport{Known: 9, Placed: 1},
		},
		{
			"a lone value outside every label widens the label that loses least",
			[]uint32{1, 2, 3, 21, 22, 23, 71, 72, 73, 99},
			map[uint32]string{99: "fifties 1", 71: "fifties 1", 21: "tens 2"},
			anonymize.RefitReport{Known: 9, Beyond: 1},
		},
		{
			"enough values outside every label wait together",
			[]uint32{1, 2, 3, 21, 22, 23, 71, 72, 73, 97, 98, 99},
			map[uint32]string{99: "tens 9", 71: "tens 7"},
			anonymize.RefitReport{Known: 9, Beyond: 3},
		},
		{
			"a block that fell short joins its closest sibling",
			[]uint32{1, 2, 21, 22, 23, 71, 72, 73},
			map[uint32]string{1: "fifties 0", 21: "fifties 0", 71: "tens 7"},
			anonymize.RefitReport{Known: 8, Joined: 1},
		},
	} {
		t.Run(c.claim, func(t *testing.T) {
			p, report, err := anonymize.Refit(old, steps(t, c.values...), blockK(3))
			if err != nil {
				t.Fatal(err)
			}
			if report != c.report {
				t.Errorf("report is %+v, want %+v", report, c.report)
			}
			for value, want := range c.labels {
				if got := labelOf(t, p, value); got != want {
					t.Errorf("%d is shown as %q, want %q", value, got, want)
				}
			}
			if refined(t, p, anonymize.Refinement{Columns: []int{0}, Requirements: blockK(3)}) != p {
				t.Error("a finished refinement starts again in the new epoch")
			}
		})
	}
	t.Run("a table that is too small is refused", func(t *testing.T) {
		var unmet *anonymize.UnmetError
		if _, _, err := anonymize.Refit(old, steps(t, 1, 2), blockK(3)); !errors.As(err, &unmet) {
			t.Errorf("refitted on two subjects: %v", err)
		}
	})
}

func TestRefitKeepsRequirementsAndKnownNeighbours(t *testing.T) {
	for seed := range seeds() {
		d := newRandomRows(t, seed, seed%2 == 1)
		r := rand.New(rand.NewPCG(seed, 5))
		order := r.Perm(len(d.leaves[0]))
		half := len(order) * 2 / 3
		old := anonymize.NewPartition(d.table(t, order[:half]))
		must := blockK(3)
		for _, columns := range d.randomChain(seed) {
			next, err := old.Refine(context.Background(), anonymize.Refinement{Columns: columns, Requirements: must})
			if err != nil {
				t.Fatal(err)
			}
			old = next
		}
		p, report, err := anonymize.Refit(old, d.table(t, order[len(order)-half:]), must)
		if err != nil {
			t.Fatal(err)
		}
		if p.MinBlock() < 3 {
			t.Fatalf("seed %d: smallest block has %d subjects", seed, p.MinBlock())
		}
		if n := report.Known + report.Placed + report.Beyond; n != p.Table().Tuples() {
			t.Fatalf("seed %d: %d tuples of %d are accounted for", seed, n, p.Table().Tuples())
		}
		same, again, err := anonymize.Refit(p, p.Table(), must)
		if err != nil || again.Known != p.Table().Tuples() || !slices.Equal(p.BlockOf(), same.BlockOf()) {
			t.Fatalf("seed %d: the same table does not keep its blocks: %+v, %v", seed, again, err)
		}
	}
}

// TestWhatRefitJoinedIsNotCutAgain refines before and after stricter
// requirements: nobody is told apart by both partitions whom one leaves with
// fewer than k, in the common refinement of both.
func TestWhatRefitJoinedIsNotCutAgain(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 6))
	for trial := range 30 {
		values := make([]uint32, 60+r.IntN(60))
		for i := range values {
			values[i] = uint32(r.IntN(100))
		}
		table := steps(t, values...)
		before := refined(t, anonymize.NewPartition(table), anonymize.Refinement{Columns: []int{0}, Requirements: blockK(3)})
		fitted, report, err := anonymize.Refit(before, table, blockK(4+trial%3))
		if err != nil {
			t.Fatal(err)
		}
		data, err := fitted.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if fitted, err = anonymize.UnmarshalPartition(table, data); err != nil {
			t.Fatal(err)
		}
		for _, then := range [][]anonymize.Requirement{blockK(4 + trial%3), blockK(3)} {
			after := refined(t, fitted, anonymize.Refinement{Columns: []int{0}, Requirements: then})
			people := make(map[[2]uint32]int)
			for tuple, block := range after.BlockOf() {
				people[[2]uint32{before.BlockOf()[tuple], block}] += len(table.RowsOf(uint32(tuple)))
			}
			for _, n := range people {
				if n < 3 {
					t.Fatalf("trial %d: %d people alone together, after %d blocks joined", trial, n, report.Joined)
				}
			}
		}
		if exact, err := fitted.Exactly([]int{0}, blockK(1)); err == nil && report.Joined > 0 {
			t.Errorf("trial %d: values are shown of joined blocks: %d blocks", trial, exact.Blocks())
		}
	}
}

package anonymize_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// randomRows is a small random relation whose rows can be put in any order.
type randomRows struct {
	columns   []anonymize.Column
	leaves    [][]uint32
	subjects  []uint32 // nil: every row is a subject
	sensitive []uint32
}

func newRandomRows(t testing.TB, seed uint64, severalRows bool) *randomRows {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 42))
	d := &randomRows{}
	rows := 50 + r.IntN(500)
	for c := range 2 + r.IntN(4) {
		n := 2 + r.IntN(20)
		paths := make([][]string, n)
		for v := range n {
			paths[v] = []string{fmt.Sprint(v), fmt.Sprint("s", v/2), fmt.Sprint("m", v/6)}
		}
		h, err := anonymize.NewHierarchy(paths)
		if err != nil {
			t.Fatal(err)
		}
		d.columns = append(d.columns, anonymize.Column{Name: fmt.Sprint("c", c), Hierarchy: h})
		values := make([]uint32, rows)
		for i := range values {
			values[i] = uint32(min(r.IntN(n), r.IntN(n)))
		}
		d.leaves = append(d.leaves, values)
	}
	d.sensitive = make([]uint32, rows)
	for i := range rows {
		d.sensitive[i] = uint32(r.IntN(6))
		if severalRows {
			d.subjects = append(d.subjects, uint32(i*2/5))
		}
	}
	if severalRows {
		r.Shuffle(rows, func(i, j int) { d.subjects[i], d.subjects[j] = d.subjects[j], d.subjects[i] })
	}
	return d
}

// table encodes the rows in the given order; nil keeps them.
func (d *randomRows) table(t testing.TB, order []int) *anonymize.Table {
	t.Helper()
	pick := func(values []uint32) []uint32 {
		if order == nil || values == nil {
			return values
		}
		out := make([]uint32, len(order))
		for i, from := range order {
			out[i] = values[from]
		}
		return out
	}
	var leaves [][]uint32
	for _, values := range d.leaves {
		leaves = append(leaves, pick(values))
	}
	table, err := anonymize.NewTable(d.columns, leaves, pick(d.subjects))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// randomChain is a few sets of columns.
func (d *randomRows) randomChain(seed uint64) [][]int {
	r := rand.New(rand.NewPCG(seed, 43))
	var sets [][]int
	for range 5 {
		sets = append(sets, r.Perm(len(d.columns))[:1+r.IntN(len(d.columns))])
	}
	return sets
}

// seeds is how many random tables a property is tried on: more with
// TAILOR_SOAK=1.
func seeds() uint64 {
	if os.Getenv("TAILOR_SOAK") == "1" {
		return 3000
	}
	return 40
}

// everyChain runs a property after each step of random chains.
func everyChain(
	t *testing.T, property func(t *testing.T, d *randomRows, before, after *anonymize.Partition,
		r anonymize.Refinement),
) {
	t.Helper()
	for seed := range seeds() {
		d := newRandomRows(t, seed, seed%2 == 1)
		p := anonymize.NewPartition(d.table(t, nil))
		for _, columns := range d.randomChain(seed) {
			r := anonymize.Refinement{Columns: columns, Requirements: blockK(3)}
			next := refined(t, p, r)
			property(t, d, p, next, r)
			p = next
		}
	}
}

func TestRefineNeverMerges(t *testing.T) {
	everyChain(t, func(t *testing.T, _ *randomRows, before, after *anonymize.Partition,
		_ anonymize.Refinement,
	) {
		for b := range uint32(after.Blocks()) {
			tuples := after.Tuples(b)
			for _, tuple := range tuples {
				if before.BlockOf()[tuple] != before.BlockOf()[tuples[0]] {
					t.Fatalf("block %d holds tuples of two earlier blocks", b)
				}
			}
		}
	})
}

func TestRefineRaisesNoLoss(t *testing.T) {
	everyChain(t, func(t *testing.T, d *randomRows, before, after *anonymize.Partition,
		_ anonymize.Refinement,
	) {
		for c := range d.columns {
			if was, is := before.Loss([]int{c}), after.Loss([]int{c}); is > was+1e-12 {
				t.Fatalf("loss of column %d rises from %g to %g", c, was, is)
			}
		}
	})
}

func TestLabelsCoverTheirValuesAndNothingNarrowerDoes(t *testing.T) {
	everyChain(t, func(t *testing.T, d *randomRows, _, p *anonymize.Partition,
		_ anonymize.Refinement,
	) {
		for c, column := range d.columns {
			for b := range uint32(p.Blocks()) {
				node := p.Cover(b, c)
				tuples := p.Tuples(b)
				agreeBelow := node.Level > 0
				for _, tuple := range tuples {
					leaf := p.Table().Leaf(c, tuple)
					if column.Hierarchy.Generalize(leaf, node.Level) != node.Group {
						t.Fatalf("label of block %d does not cover a value in column %d", b, c)
					}
					first := p.Table().Leaf(c, tuples[0])
					agreeBelow = agreeBelow && column.Hierarchy.Generalize(leaf, node.Level-1) ==
						column.Hierarchy.Generalize(first, node.Level-1)
				}
				if agreeBelow {
					t.Fatalf("a narrower label would cover block %d in column %d", b, c)
				}
			}
		}
	})
}

func TestRefiningAgainAlongTheSameColumnsFindsNothing(t *testing.T) {
	everyChain(t, func(t *testing.T, _ *randomRows, _, after *anonymize.Partition,
		r anonymize.Refinement,
	) {
		if refined(t, after, r) != after {
			t.Fatal("refining twice differs from refining once")
		}
		r.Columns = r.Columns[:1]
		if refined(t, after, r) != after {
			t.Fatal("a subset of finished columns was refined again")
		}
	})
}

// subjectsOf counts distinct subjects from the rows.
func subjectsOf(p *anonymize.Partition, block uint32) int {
	seen := make(map[uint32]bool)
	for row, tuple := range p.Table().TupleOfRow() {
		if p.BlockOf()[tuple] == block {
			seen[p.Table().Subject(uint32(row))] = true
		}
	}
	return len(seen)
}

func TestSubjectsAreCountedNotRows(t *testing.T) {
	everyChain(t, func(t *testing.T, _ *randomRows, _, p *anonymize.Partition,
		_ anonymize.Refinement,
	) {
		least := p.Table().Subjects()
		for b := range uint32(p.Blocks()) {
			n := subjectsOf(p, b)
			if n != p.Subjects(b) || n < 3 {
				t.Fatalf("block %d has %d subjects, says %d, needs 3", b, n, p.Subjects(b))
			}
			least = min(least, n)
		}
		if p.MinBlock() != least {
			t.Fatalf("smallest block is %d, says %d", least, p.MinBlock())
		}
	})
	t.Run("one subject with many rows is one subject", func(t *testing.T) {
		d := newRandomRows(t, 1, false)
		d.subjects = make([]uint32, len(d.leaves[0]))
		for row := range d.subjects {
			d.subjects[row] = uint32(row % 2)
		}
		_, err := anonymize.NewPartition(d.table(t, nil)).Refine(context.Background(),
			anonymize.Refinement{Columns: []int{0}, Requirements: blockK(3)})
		var unmet *anonymize.UnmetError
		if !errors.As(err, &unmet) {
			t.Fatalf("two subjects pass for three: %v", err)
		}
	})
}

func TestSameRowsInAnyOrderGiveTheSamePartition(t *testing.T) {
	for seed := range seeds() {
		d := newRandomRows(t, seed, seed%2 == 1)
		order := rand.New(rand.NewPCG(seed, 44)).Perm(len(d.leaves[0]))
		p, q := anonymize.NewPartition(d.table(t, nil)), anonymize.NewPartition(d.table(t, order))
		for _, columns := range d.randomChain(seed) {
			r := anonymize.Refinement{Columns: columns, Requirements: blockK(3)}
			p, q = refined(t, p, r), refined(t, q, r)
		}
		for i, from := range order {
			a := p.BlockOf()[p.Table().TupleOfRow()[from]]
			if b := q.BlockOf()[q.Table().TupleOfRow()[i]]; a != b {
				t.Fatalf("seed %d: a row is in block %d or %d, depending on the order of rows", seed, a, b)
			}
		}
	}
}

func TestRefinementsThatMakeNoSenseFail(t *testing.T) {
	p := anonymize.NewPartition(newRandomRows(t, 2, false).table(t, nil))
	n := len(p.Table().Columns())
	for claim, r := range map[string]anonymize.Refinement{
		"no columns":           {Requirements: blockK(2)},
		"a column that is not": {Columns: []int{n}, Requirements: blockK(2)},
		"a column twice":       {Columns: []int{0, 0}, Requirements: blockK(2)},
		"weights of other columns": {
			Columns: []int{0}, Weights: []float64{1, 1},
			Requirements: blockK(2),
		},
		"a weight of zero": {Columns: []int{0}, Weights: []float64{0}, Requirements: blockK(2)},
		"a short outlook":  {Columns: []int{0}, Outlook: []float64{1}, Requirements: blockK(2)},
		"k of zero":        {Columns: []int{0}, Requirements: blockK(0)},
		"no k":             {Columns: []int{0}},
	} {
		if _, err := p.Refine(context.Background(), r); err == nil {
			t.Errorf("%s is accepted", claim)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := p.Refine(ctx, anonymize.Refinement{Columns: []int{0}, Requirements: blockK(2)})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled refinement goes on: %v", err)
	}
}

func TestEmptyTableHasNoBlocksAndNoLoss(t *testing.T) {
	d := newRandomRows(t, 3, false)
	for c := range d.leaves {
		d.leaves[c] = nil
	}
	p := anonymize.NewPartition(d.table(t, nil))
	if p.Blocks() != 0 || p.MinBlock() != 0 || p.Loss([]int{0}) != 0 {
		t.Errorf("blocks %d, smallest %d, loss %g", p.Blocks(), p.MinBlock(), p.Loss([]int{0}))
	}
	var unmet *anonymize.UnmetError
	if _, err := p.Refine(context.Background(),
		anonymize.Refinement{Columns: []int{0}, Requirements: blockK(2)}); !errors.As(err, &unmet) {
		t.Errorf("nobody passes for two: %v", err)
	}
}

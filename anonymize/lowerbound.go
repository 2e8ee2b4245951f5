package anonymize

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// LowerBound is a loss that no partition into blocks of at least k subjects
// falls below ([Partition.Loss] along all columns): each row has the narrowest
// labels under which k subjects fall, whatever that leaves to the others. k is
// at least 1. It is 0 for a table without rows, and fails with an [*UnmetError]
// if the whole table has fewer than k subjects.
//
// It tries the combinations of levels for each set of tuples that they leave
// together, but for those that cannot be better than what is known: seconds for
// tens of thousands of tuples and ten columns, and in the worst case as many
// looks at each tuple as there are combinations of levels.
func LowerBound(ctx context.Context, t *Table, k int) (float64, error) {
	if k < 1 {
		return 0, errors.New("lower bound: k must be at least 1")
	}
	if t.Rows() == 0 {
		return 0, nil
	}
	all := make([]int, len(t.columns))
	for c := range all {
		all[c] = c
	}
	// Labels of blocks are a start: what costs more needs no look.
	p, err := NewPartition(t).Refine(ctx, Refinement{
		Columns:      all,
		Requirements: []Requirement{BlockK{K: k}},
	})
	if err != nil {
		return 0, fmt.Errorf("lower bound: %w", err)
	}
	b := &boxSearch{
		ground: p.ground, k: k, census: newCensus(p.ground),
		lowest: make([]float64, t.Tuples()), sorted: make([][]uint32, len(all)+1),
	}
	for _, c := range all {
		b.scales = append(b.scales, newScale(t.columns[c].Hierarchy, 1))
		for pos := range b.lowest {
			b.lowest[pos] += t.columns[c].Hierarchy.Share(p.Cover(p.blockOf[p.ground.tupleAt[pos]], c))
		}
	}
	everything := make([]uint32, t.Tuples())
	for pos := range everything {
		everything[pos] = uint32(pos)
	}
	if err := b.narrow(ctx, everything, 0, 0); err != nil {
		return 0, fmt.Errorf("lower bound: %w", err)
	}
	total := 0.0
	for pos, price := range b.lowest {
		total += price * float64(p.ground.rows[pos])
	}
	return total / float64(len(all)) / float64(t.Rows()), nil
}

// boxSearch looks for the cheapest box of each position: one node for each
// column, with at least k subjects in all of them.
type boxSearch struct {
	ground *ground
	scales []scale
	k      int
	census *census
	lowest []float64  // position -> price of the cheapest box so far
	sorted [][]uint32 // column -> positions, scratch
}

// narrow tries the nodes of a column, and of those after it, over positions that
// the nodes of the columns before it hold, at the price of these.
func (b *boxSearch) narrow(
	ctx context.Context, positions []uint32, column int, price float64,
) error {
	if column == len(b.scales) {
		for _, pos := range positions {
			b.lowest[pos] = min(b.lowest[pos], price)
		}
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	g, h := b.ground, b.scales[column].hierarchy
	sorted := append(b.sorted[column][:0], positions...)
	b.sorted[column] = sorted
	slices.SortFunc(sorted, func(x, y uint32) int {
		return cmp.Or(cmp.Compare(g.leaf(column, x), g.leaf(column, y)), cmp.Compare(x, y))
	})
	for level := range h.Height() {
		groupOf := h.levels[level].groupOf
		for from := 0; from < len(sorted); {
			group, to := groupOf[g.leaf(column, sorted[from])], from+1
			for to < len(sorted) && groupOf[g.leaf(column, sorted[to])] == group {
				to++
			}
			inside := sorted[from:to]
			from = to
			first, last := g.leaf(column, inside[0]), g.leaf(column, inside[len(inside)-1])
			if level > 0 && groupBelow(h, level, first, last) {
				continue // a narrower node holds the same
			}
			cost := price + h.Share(Node{Level: level, Group: group})
			if b.hopeless(inside, cost) || b.census.count(inside) < b.k {
				continue
			}
			if err := b.narrow(ctx, inside, column+1, cost); err != nil {
				return err
			}
		}
	}
	return nil
}

// groupBelow says whether two leaves are in one group of the level below.
func groupBelow(h *Hierarchy, level int, first, last uint32) bool {
	return h.levels[level-1].groupOf[first] == h.levels[level-1].groupOf[last]
}

// hopeless says whether no position has a box that costs more than this.
func (b *boxSearch) hopeless(positions []uint32, cost float64) bool {
	for _, pos := range positions {
		if b.lowest[pos] > cost {
			return false
		}
	}
	return true
}

package utility

import (
	"cmp"
	"context"
	"slices"
)

// Frequent is a set of codes that many records hold together.
type Frequent struct {
	Items   []Item // ascending
	Support int    // records
}

// FrequentSets mines all sets of at most maxSize codes that at least
// minSupport records hold, both at least 1: depth first over intersections of
// record sets ([Zaki2000]). Sets come most frequent first, shorter and then
// smaller first among equals. The search ends after limit sets; complete is
// false if there may be more. It stops with the error of ctx.
//
// Cost: records/64 steps per candidate set.
func FrequentSets(
	ctx context.Context, h Holders, minSupport, maxSize, limit int,
) (sets []Frequent, complete bool, err error) {
	m := &miner{ctx: ctx, min: minSupport, maxSize: maxSize, limit: limit}
	var roots []candidate
	for it := range h {
		if n := h[it].Len(); n >= minSupport && n > 0 {
			roots = append(roots, candidate{Item(it), h[it], n})
		}
	}
	m.extend(nil, roots)
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	slices.SortFunc(m.sets, func(a, b Frequent) int {
		return cmp.Or(
			cmp.Compare(b.Support, a.Support),
			cmp.Compare(len(a.Items), len(b.Items)),
			slices.Compare(a.Items, b.Items),
		)
	})
	return m.sets, len(m.sets) < limit, nil
}

// candidate is a set of codes, told by its last code, with its records.
type candidate struct {
	last    Item
	records Bitset
	support int
}

type miner struct {
	ctx                 context.Context
	min, maxSize, limit int
	sets                []Frequent
}

// extend reports prefix with each of its continuations, and goes deeper.
func (m *miner) extend(prefix []Item, continuations []candidate) {
	for i, c := range continuations {
		if len(m.sets) >= m.limit || m.ctx.Err() != nil {
			return
		}
		items := append(slices.Clone(prefix), c.last)
		m.sets = append(m.sets, Frequent{items, c.support})
		if len(items) == m.maxSize {
			continue
		}
		var next []candidate
		both := make(Bitset, len(c.records))
		for _, other := range continuations[i+1:] {
			if n := both.And(c.records, other.records); n >= m.min {
				next = append(next, candidate{other.last, both, n})
				both = make(Bitset, len(c.records))
			}
		}
		m.extend(items, next)
	}
}

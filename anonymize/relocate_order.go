package anonymize

import (
	"cmp"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// arrange orders the blocks of a draft: those of one parent together, and of
// these such as are alike. A block stands where one of its tuples does, drawn
// anew each round, in the order of the highest levels of all columns, then of
// the next lower ones; which column comes first is drawn as well.
func (r *relocation) arrange(d *draft, round uint64) []uint32 {
	random := rand.New(rand.NewPCG(round, 1<<32))
	type place struct {
		key           uint64
		parent, block uint32
	}
	places := make([]place, len(d.ends))
	stands := make([]uint32, len(d.ends))
	for b := range places {
		positions := d.block(uint32(b))
		stands[b] = positions[random.IntN(len(positions))]
		places[b].parent, places[b].block = d.parent[b], uint32(b)
	}
	columns := random.Perm(len(r.columns))
	room := 64
	for below, more := 2, true; more && room > 0; below++ {
		more = false
		for _, i := range columns {
			c := r.columns[i]
			h := r.s.ground.table.columns[c].Hierarchy
			level := h.Height() - below
			if level < 0 {
				continue
			}
			more = true
			if room -= bits.Len32(h.mostSiblings(level)); room < 0 {
				break
			}
			for b := range places {
				places[b].key |= uint64(h.sibling(r.s.ground.leaf(c, stands[b]), level)) << room
			}
		}
	}
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.parent, b.parent), cmp.Compare(a.key, b.key),
			cmp.Compare(a.block, b.block))
	})
	order := make([]uint32, len(places))
	for i, p := range places {
		order[i] = p.block
	}
	return order
}

// sibling numbers the group of a leaf, at a level below the root, among those
// with the same parent.
func (h *Hierarchy) sibling(leaf uint32, level int) uint32 {
	parent := h.levels[level+1].groupOf[leaf]
	first := h.levels[level+1].groups[parent].first
	return h.levels[level].groupOf[leaf] - h.levels[level].groupOf[first]
}

// mostSiblings is the highest number that sibling gives at a level.
func (h *Hierarchy) mostSiblings(level int) uint32 {
	most := uint32(0)
	for _, parent := range h.levels[level+1].groups {
		most = max(most, h.sibling(parent.last, level))
	}
	return most
}

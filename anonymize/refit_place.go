package anonymize

import "slices"

// shape is a combination of levels that the labels of some blocks have.
type shape struct {
	levels []int
	blocks map[string]placing // groups at these levels -> block
}

// placing is a block and the sum of the shares of its labels.
type placing struct {
	block uint32
	share float64
}

// placeAll finds blocks for the tuples that the old table did not have.
func (f *fitting) placeAll(report *RefitReport) {
	if len(f.strange) == 0 {
		return
	}
	shapes := f.shapes()
	var beyond []uint32
	leaves := make([]uint32, len(f.ground.table.columns))
	for _, pos := range f.strange {
		for c := range leaves {
			leaves[c] = f.ground.leaf(c, pos)
		}
		if b, ok := f.narrowest(shapes, leaves); ok {
			f.members[b] = append(f.members[b], pos)
			report.Placed++
		} else {
			beyond = append(beyond, pos)
		}
	}
	report.Beyond = len(beyond)
	if len(beyond) > 0 && f.suits(beyond) {
		f.members, f.merged = append(f.members, beyond), append(f.merged, false)
		f.lo, f.hi = append(f.lo, nil), append(f.hi, nil)
		b := uint32(len(f.members) - 1)
		for _, pos := range beyond {
			f.widenTo(b, pos)
		}
		return
	}
	for _, pos := range beyond {
		b := f.nearest([]uint32{pos}, gone)
		f.members[b] = append(f.members[b], pos)
		f.widenTo(b, pos)
	}
}

func (f *fitting) widenTo(b, pos uint32) {
	leaves := make([]uint32, len(f.ground.table.columns))
	for c := range leaves {
		leaves[c] = f.ground.leaf(c, pos)
	}
	f.widen(b, leaves)
}

// shapes indexes the blocks by the levels and groups of their labels. Of
// blocks with the same labels it keeps the first.
func (f *fitting) shapes() []shape {
	var list []shape
	index := make(map[string]int)
	columns := f.ground.table.columns
	levels, groups := make([]uint32, len(columns)), make([]uint32, len(columns))
	for b := range f.lo {
		if f.lo[b] == nil {
			continue
		}
		share := 0.0
		for c := range columns {
			n := columns[c].Hierarchy.Cover(f.lo[b][c], f.hi[b][c])
			levels[c], groups[c] = uint32(n.Level), n.Group
			share += columns[c].Hierarchy.Share(n)
		}
		at, ok := index[tupleKey(levels)]
		if !ok {
			at = len(list)
			index[tupleKey(levels)] = at
			s := shape{blocks: make(map[string]placing)}
			for _, l := range levels {
				s.levels = append(s.levels, int(l))
			}
			list = append(list, s)
		}
		if _, taken := list[at].blocks[tupleKey(groups)]; !taken {
			list[at].blocks[tupleKey(groups)] = placing{uint32(b), share}
		}
	}
	return list
}

// narrowest is the block whose labels cover the leaves and have the least
// share of their domains; of equals the first.
func (f *fitting) narrowest(shapes []shape, leaves []uint32) (block uint32, ok bool) {
	best := placing{}
	groups := make([]uint32, len(leaves))
	for _, s := range shapes {
		for c, v := range leaves {
			groups[c] = f.ground.table.columns[c].Hierarchy.Generalize(v, s.levels[c])
		}
		p, found := s.blocks[tupleKey(groups)]
		if found && (!ok || p.share < best.share || p.share == best.share && p.block < best.block) {
			best, ok = p, true
		}
	}
	return best.block, ok
}

// nearest is the block, other than not, for which the loss over all columns of
// itself and the given positions together grows the least. There is one that
// is not empty, or covers old tuples.
func (f *fitting) nearest(positions []uint32, not uint32) uint32 {
	columns := f.ground.table.columns
	lo, hi := make([]uint32, len(columns)), make([]uint32, len(columns))
	for c := range columns {
		lo[c], hi[c] = f.ground.bounds(c, positions)
	}
	rows := f.rows(positions)
	best, least, populated := gone, 0.0, false
	for b := range f.members {
		if uint32(b) == not || f.lo[b] == nil || len(f.members[b]) == 0 && populated {
			continue
		}
		have := f.rows(f.members[b])
		growth := 0.0
		for c := range columns {
			h := columns[c].Hierarchy
			now := h.Share(h.Cover(f.lo[b][c], f.hi[b][c]))
			then := h.Share(h.Cover(min(lo[c], f.lo[b][c]), max(hi[c], f.hi[b][c])))
			growth += then*(have+rows) - now*have
		}
		first := have > 0 && !populated // blocks that hold somebody go before empty ones
		if best == gone || first || growth < least {
			best, least = uint32(b), growth
			populated = populated || have > 0
		}
	}
	return best
}

func (f *fitting) rows(positions []uint32) float64 {
	n := uint32(0)
	for _, pos := range positions {
		n += f.ground.rows[pos]
	}
	return float64(n)
}

// repairSmall lets blocks that fall short join others until all are fit. The
// table as a whole is, so that this ends with one block at the latest.
func (f *fitting) repairSmall(report *RefitReport) {
	for b := range f.members {
		for len(f.members[b]) > 0 && !f.suits(f.members[b]) {
			to := f.nearest(f.members[b], uint32(b))
			f.members[b] = append(f.members[b], f.members[to]...)
			slices.Sort(f.members[b])
			for c := range f.lo[b] {
				f.lo[b][c] = min(f.lo[b][c], f.lo[to][c])
				f.hi[b][c] = max(f.hi[b][c], f.hi[to][c])
			}
			f.members[to], f.merged[b] = nil, true
			f.lo[to], f.hi[to] = nil, nil
			report.Joined++
		}
	}
}

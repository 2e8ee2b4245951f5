package anonymize

import (
	"cmp"
	"math/bits"
	"slices"
)

// sort puts the entries in the order of their blocks, then of their leaves,
// column by column. Neighbours then generalize to the same classes, so that
// grouping walks through memory instead of jumping about in it; and what
// depends on the order of classes no longer depends on that of the rows.
func (e *entries) sort(columns []Column) {
	order := e.order(columns)
	place := make([]uint32, len(order))
	for to, from := range order {
		place[from] = uint32(to)
	}
	ofRow := make([]uint32, len(e.ofRow))
	for r, entry := range e.ofRow {
		ofRow[r] = place[entry]
	}
	e.ofRow = ofRow
	leaves := make([][]uint32, len(e.leaves))
	for c := range leaves {
		leaves[c] = permuted(e.leaves[c], order)
	}
	e.leaves = leaves
	if e.block != nil {
		e.block = permuted(e.block, order)
	}
}

func permuted(values, order []uint32) []uint32 {
	out := make([]uint32, len(order))
	for to, from := range order {
		out[to] = values[from]
	}
	return out
}

// order lists the entries in order: by radix sort where a key of 64 bits holds
// block and leaves, else by comparison.
func (e *entries) order(columns []Column) []uint32 {
	order := make([]uint32, len(e.leaves[0]))
	for i := range order {
		order[i] = uint32(i)
	}
	width := bits.Len(uint(max(e.blocks-1, 0)))
	for _, c := range columns {
		width += bits.Len(uint(c.Hierarchy.Leaves() - 1))
	}
	if width > 64 {
		slices.SortFunc(order, e.compare)
		return order
	}
	keys := make([]uint64, len(order))
	for i, b := range e.block {
		keys[i] = uint64(b)
	}
	for c, column := range columns {
		shift := bits.Len(uint(column.Hierarchy.Leaves() - 1))
		for i, leaf := range e.leaves[c] {
			keys[i] = keys[i]<<shift | uint64(leaf)
		}
	}
	return radixSort(keys, order, width)
}

func (e *entries) compare(a, b uint32) int {
	if e.block != nil && e.block[a] != e.block[b] {
		return cmp.Compare(e.block[a], e.block[b])
	}
	for _, leaves := range e.leaves {
		if leaves[a] != leaves[b] {
			return cmp.Compare(leaves[a], leaves[b])
		}
	}
	return 0
}

// radixSort sorts order by keys, of which the lowest width bits count, from
// the lowest digit up. Both slices are used up.
func radixSort(keys []uint64, order []uint32, width int) []uint32 {
	const digit = 11
	otherKeys, otherOrder := make([]uint64, len(keys)), make([]uint32, len(order))
	for shift := 0; shift < width; shift += digit {
		var start [1 << digit]uint32
		for _, key := range keys {
			start[key>>shift&(1<<digit-1)]++
		}
		total := uint32(0)
		for d, n := range start {
			start[d] = total
			total += n
		}
		for i, key := range keys {
			d := key >> shift & (1<<digit - 1)
			otherKeys[start[d]], otherOrder[start[d]] = key, order[i]
			start[d]++
		}
		keys, otherKeys = otherKeys, keys
		order, otherOrder = otherOrder, order
	}
	return order
}

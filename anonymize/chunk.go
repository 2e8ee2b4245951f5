package anonymize

import (
	"math/bits"
	"sync/atomic"
)

// chunk is a run of adjacent columns whose leaves fit together into few bits.
// The codes of its columns are stored as one number per entry, so that one
// table lookup generalizes all of them at once.
type chunk struct {
	first, last int // columns, last exclusive
	codes       []uint32
	heights     []uint8
	columns     []*Hierarchy
	shifts      []uint
	width       uint                       // bits of a code
	tables      []atomic.Pointer[[]uint32] // by combination of levels: code -> number of the group
}

const (
	chunkBits   = 11  // a table of 2,048 numbers, 8 KB
	chunkCombos = 512 // bounds the tables of a chunk to 4 MB
)

// newChunks packs columns greedily, in order. The base partition, if any, is a
// chunk of its own that is never generalized.
func newChunks(e *entries, columns []Column) []*chunk {
	var chunks []*chunk
	for first := 0; first < len(columns); {
		last, width, combos := first, uint(0), 1
		for last < len(columns) {
			h := columns[last].Hierarchy
			w := uint(bits.Len(uint(h.Leaves() - 1)))
			if last > first && (width+w > chunkBits || combos*h.Height() > chunkCombos) {
				break
			}
			width, combos = width+w, combos*h.Height()
			last++
		}
		chunks = append(chunks, newChunk(e, columns, first, last, width, combos))
		first = last
	}
	return chunks
}

func newChunk(e *entries, columns []Column, first, last int, width uint, combos int) *chunk {
	k := &chunk{
		first: first, last: last, width: width,
		codes:  make([]uint32, len(e.leaves[0])),
		tables: make([]atomic.Pointer[[]uint32], combos),
	}
	shift := uint(0)
	for c := first; c < last; c++ {
		h := columns[c].Hierarchy
		k.columns = append(k.columns, h)
		k.heights = append(k.heights, uint8(h.Height()))
		k.shifts = append(k.shifts, shift)
		for i, leaf := range e.leaves[c] {
			k.codes[i] |= leaf << shift
		}
		shift += uint(bits.Len(uint(h.Leaves() - 1)))
	}
	return k
}

// groups is the number of combinations of groups at a node.
func (k *chunk) groups(v levels) uint64 {
	n := uint64(1)
	for i, h := range k.columns {
		n *= uint64(h.Groups(int(v[k.first+i])))
	}
	return n
}

// table maps a code to the number of its combination of groups at a node. It
// is built once per combination of levels and shared by all goroutines.
func (k *chunk) table(v levels) []uint32 {
	if len(k.columns) == 1 {
		return k.columns[0].GroupOf(int(v[k.first]))
	}
	combo := 0
	for i, height := range k.heights {
		combo = combo*int(height) + int(v[k.first+i])
	}
	if t := k.tables[combo].Load(); t != nil {
		return *t
	}
	t := k.build(v)
	k.tables[combo].Store(&t)
	return t
}

// build numbers combinations of groups, the first column counting most.
func (k *chunk) build(v levels) []uint32 {
	t := make([]uint32, 1<<k.width)
	stride := uint32(1)
	for i := len(k.columns) - 1; i >= 0; i-- {
		h := k.columns[i]
		groupOf := h.GroupOf(int(v[k.first+i]))
		mask := uint32(1)<<uint(bits.Len(uint(len(groupOf)-1))) - 1
		for code := range t {
			if leaf := uint32(code) >> k.shifts[i] & mask; int(leaf) < len(groupOf) {
				t[code] += groupOf[leaf] * stride
			}
		}
		stride *= uint32(h.Groups(int(v[k.first+i])))
	}
	return t
}

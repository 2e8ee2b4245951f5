package disassociate

import (
	"math/bits"
	"slices"
)

// columns holds a few records by code: one bitset of records per code. The
// operations of VERPART are intersections of these. A columns is scratch space
// of one worker, reset for each cluster.
type columns struct {
	rows    int
	words   int // of a bitset
	items   []Item
	bits    []uint64 // column by column
	support []int32

	column []int32  // item -> its column, where stamp says so
	stamp  []uint32 // item -> the reset that its column belongs to
	resets uint32
}

func newColumns(codes int) *columns {
	return &columns{column: make([]int32, codes), stamp: make([]uint32, codes)}
}

// reset empties the columns and makes room for records.
func (c *columns) reset(rows int) {
	c.rows, c.words = rows, (rows+63)/64
	c.items, c.bits, c.support = c.items[:0], c.bits[:0], c.support[:0]
	c.resets++
	if c.resets == 0 { // wrapped round: old stamps could be mistaken for new
		clear(c.stamp)
		c.resets = 1
	}
}

// add says that a record holds an item. It is called once for each pair.
func (c *columns) add(row int, it Item) {
	if c.stamp[it] != c.resets {
		c.stamp[it] = c.resets
		c.column[it] = int32(len(c.items))
		c.items = append(c.items, it)
		c.support = append(c.support, 0)
		c.bits = slices.Grow(c.bits, c.words)[:len(c.bits)+c.words]
		clear(c.bits[len(c.bits)-c.words:])
	}
	col := c.column[it]
	c.bits[int(col)*c.words+row/64] |= 1 << (row % 64)
	c.support[col]++
}

// of is the bitset of a column.
func (c *columns) of(col int32) []uint64 {
	return c.bits[int(col)*c.words : (int(col)+1)*c.words]
}

// nonEmpty is the number of records with at least one of the items of a list
// of columns.
func (c *columns) nonEmpty(cols []int32) int {
	n := 0
	for w := range c.words {
		var any uint64
		for _, col := range cols {
			any |= c.bits[int(col)*c.words+w]
		}
		n += bits.OnesCount64(any)
	}
	return n
}

// intersect stores a∩b in dst and returns its size.
func intersect(dst, a, b []uint64) int {
	n := 0
	for w := range dst {
		dst[w] = a[w] & b[w]
		n += bits.OnesCount64(dst[w])
	}
	return n
}

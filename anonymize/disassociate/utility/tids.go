package utility

import (
	"math/bits"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate"
)

// Item numbers a code of a data set.
type Item = disassociate.Item

// Bitset is a set of records.
type Bitset []uint64

// NewBitset is the empty set of records below n.
func NewBitset(n int) Bitset { return make(Bitset, (n+63)/64) }

// Add adds a record.
func (b Bitset) Add(record int) { b[record/64] |= 1 << (record % 64) }

// Len is the number of records in the set.
func (b Bitset) Len() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// And stores a∩c in b and returns its size.
func (b Bitset) And(a, c Bitset) int {
	n := 0
	for i := range b {
		b[i] = a[i] & c[i]
		n += bits.OnesCount64(b[i])
	}
	return n
}

// Or adds the records of another set.
func (b Bitset) Or(a Bitset) {
	for i := range b {
		b[i] |= a[i]
	}
}

// Holders lists, for each item, the records that hold it; nil where it was
// left out.
type Holders []Bitset

// HoldersOf indexes the codes of a data set that at least minSupport records
// hold. It takes as many bits as such codes times records.
func HoldersOf(d *disassociate.Dataset, minSupport int) Holders {
	support := make([]int, len(d.Codes()))
	for r := range d.Len() {
		for _, it := range d.Items(r) {
			support[it]++
		}
	}
	h := make(Holders, len(support))
	for it, n := range support {
		if n >= minSupport {
			h[it] = NewBitset(d.Len())
		}
	}
	for r := range d.Len() {
		for _, it := range d.Items(r) {
			if h[it] != nil {
				h[it].Add(r)
			}
		}
	}
	return h
}

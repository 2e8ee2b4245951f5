package verify

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate/published"
)

// setCheck decides k^m-anonymity of a chunk by the definition: every set of at
// most m codes that one sub-record holds is held by at least k sub-records. It
// searches the sets depth first and leaves out those that cannot be rarer than
// a set already looked at. It is scratch space of one worker.
type setCheck struct {
	k, m  int
	words int // of a set of sub-records
}

// narrower is what a code makes of a set of sub-records.
type narrower struct {
	holders []uint64
	size    int
}

// hold says whether a chunk is k^m-anonymous.
func (s *setCheck) hold(chunk *published.Chunk) bool {
	enough := true
	for i := range chunk.Sub {
		enough = enough && chunk.Sub[i].Count >= s.k
	}
	if enough {
		return true // every sub-record is there k times, and all its subsets
	}
	rows := chunk.NonEmpty()
	s.words = (rows + 63) / 64
	codes := make([]narrower, len(chunk.Codes))
	for i := range codes {
		codes[i].holders = make([]uint64, s.words)
	}
	row := 0
	for i := range chunk.Sub {
		for range chunk.Sub[i].Count {
			for _, it := range chunk.Sub[i].Items {
				at, _ := slices.BinarySearch(chunk.Codes, it)
				codes[at].holders[row/64] |= 1 << (row % 64)
			}
			row++
		}
	}
	all := make([]uint64, s.words)
	for row := range rows {
		all[row/64] |= 1 << (row % 64)
	}
	return s.extend(narrower{all, rows}, codes, s.m)
}

// extend checks the sets made of a set, whose holders are given, and one to
// left of further codes.
//
// Of the codes that narrow the holders down to the same, one is enough, and
// those that do not narrow them need not be looked at. The holders that a code
// takes away only get fewer when others are gone already; so a set with left
// more codes keeps at least its holders less the left largest losses. The
// codes with the largest losses come first, so that the search ends where the
// others cannot take enough away.
func (s *setCheck) extend(set narrower, codes []narrower, left int) bool {
	next := make([]narrower, 0, len(codes))
	store := make([]uint64, len(codes)*s.words)
	for i := range codes {
		holders := store[i*s.words : (i+1)*s.words]
		size := 0
		for w := range holders {
			holders[w] = set.holders[w] & codes[i].holders[w]
			size += bits.OnesCount64(holders[w])
		}
		if size > 0 && size < s.k {
			return false
		}
		if size > 0 && size < set.size {
			next = append(next, narrower{holders, size})
		}
	}
	if left == 1 {
		return true
	}
	slices.SortFunc(next, func(a, b narrower) int {
		return cmp.Or(cmp.Compare(a.size, b.size), slices.Compare(a.holders, b.holders))
	})
	next = slices.CompactFunc(next, func(a, b narrower) bool {
		return slices.Equal(a.holders, b.holders)
	})
	for i := range next {
		kept := set.size
		for _, n := range next[i:min(i+left, len(next))] {
			kept -= set.size - n.size
		}
		if kept >= s.k {
			return true
		}
		if !s.extend(next[i], next[i+1:], left-1) {
			return false
		}
	}
	return true
}

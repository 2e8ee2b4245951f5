package anonymize_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// plainList is the antichain of the minimal (or, mirrored, maximal) elements,
// kept and searched one by one.
type plainList struct {
	elements [][]uint8
	below    func(a, b []uint8) bool // a is nearer to the start than b, or equal
}

func (l *plainList) covers(v []uint8) bool {
	return slices.ContainsFunc(l.elements, func(e []uint8) bool { return l.below(e, v) })
}

func (l *plainList) insert(v []uint8) {
	if l.covers(v) {
		return
	}
	l.elements = slices.DeleteFunc(l.elements, func(e []uint8) bool { return l.below(v, e) })
	l.elements = append(l.elements, slices.Clone(v))
}

func below(a, b []uint8) bool {
	for i := range a {
		if a[i] > b[i] {
			return false
		}
	}
	return true
}

func TestPrefixTreesAgreeWithPlainLists(t *testing.T) {
	for seed := range 3 * toys(t) {
		random := rand.New(rand.NewPCG(uint64(seed), 7))
		heights := make([]uint8, 1+random.IntN(5))
		for i := range heights {
			heights[i] = uint8(1 + random.IntN(5))
		}
		node := func() []uint8 {
			v := make([]uint8, len(heights))
			for i, h := range heights {
				v[i] = uint8(random.IntN(int(h)))
			}
			return v
		}
		tree := anonymize.NewAntichain(heights)
		up := &plainList{below: below}
		down := &plainList{below: func(a, b []uint8) bool { return below(b, a) }}
		for range 120 {
			v := node()
			if random.IntN(2) == 0 {
				tree.InsertUp(v)
				up.insert(v)
			} else {
				tree.InsertDown(v)
				down.insert(v)
			}
			q := node()
			if tree.CoversUp(q) != up.covers(q) || tree.CoversDown(q) != down.covers(q) {
				t.Fatalf("seed %d: tree and list disagree on %v", seed, q)
			}
			if u, d := tree.Elements(); u != len(up.elements) || d != len(down.elements) {
				t.Fatalf("seed %d: %d and %d elements, want %d and %d", seed, u, d, len(up.elements),
					len(down.elements))
			}
		}
	}
}

package anonymize

import (
	"fmt"
	"math"
)

// Lattice is the generalization lattice of a table: every combination of one
// level per column. It is never stored; only its heights are.
type Lattice struct {
	heights []uint8
}

// maxHeight bounds the levels of one hierarchy, so that a level fits a byte.
const maxHeight = 255

// newLattice fails with a *[ProblemError] on a hierarchy of more than 255
// levels.
func newLattice(columns []Column) (Lattice, error) {
	l := Lattice{heights: make([]uint8, len(columns))}
	for i, c := range columns {
		h := c.Hierarchy.Height()
		if h > maxHeight {
			return l, &ProblemError{
				What: fmt.Sprintf("hierarchy of column %q has %d levels, at most %d are possible", c.Name, h,
					maxHeight),
				Remedy: "leave out levels",
			}
		}
		l.heights[i] = uint8(h)
	}
	return l, nil
}

// Heights is the number of levels of each column.
func (l Lattice) Heights() []int { return toInts(l.heights) }

// Size is the number of nodes, [math.MaxUint64] where it is larger than that.
func (l Lattice) Size() uint64 {
	size := uint64(1)
	for _, h := range l.heights {
		if size > math.MaxUint64/uint64(h) {
			return math.MaxUint64
		}
		size *= uint64(h)
	}
	return size
}

// levels is a node of the lattice: one level per column.
type levels []uint8

func (l Lattice) bottom() levels { return make(levels, len(l.heights)) }

// below says whether a is a specialization of b or b itself.
func (a levels) below(b levels) bool {
	for i := range a {
		if a[i] > b[i] {
			return false
		}
	}
	return true
}

// rank is the distance from the bottom.
func (a levels) rank() int {
	sum := 0
	for _, l := range a {
		sum += int(l)
	}
	return sum
}

// lastRaised is the position of the last column above level 0, or 0. Every
// node but the bottom has exactly one parent that differs from it in that
// column alone; visiting only the children at or after it meets each node of
// the lattice once, without a set of visited nodes.
func (a levels) lastRaised() int {
	for i := len(a) - 1; i > 0; i-- {
		if a[i] > 0 {
			return i
		}
	}
	return 0
}

func toInts(a levels) []int {
	out := make([]int, len(a))
	for i, l := range a {
		out[i] = int(l)
	}
	return out
}

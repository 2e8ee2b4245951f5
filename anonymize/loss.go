package anonymize

import (
	"fmt"
	"math"
)

// Loss is the loss metric of [Iyengar2002]: a cell costs the share of the
// domain that its label covers beyond the value itself, (values covered - 1) /
// (values - 1), a suppressed cell costs 1. The loss of each column is rounded
// down to ten decimals, as published figures are.
//
// In interval and date hierarchies the covered share counts units of the range
// ([Hierarchy.Share]).
type Loss struct{ Aggregate Aggregate }

func (m Loss) String() string { return fmt.Sprintf("loss (%v)", m.Aggregate) }

func (m Loss) bind(b *binding) (quality, error) {
	kept := costTables(b, func(c, _ int, n Node) float64 {
		return b.columns()[c].Hierarchy.loss(n)
	})
	q := newCellwise(b, kept, flatCosts(b, 1), m.Aggregate)
	q.finish = func(mean float64) float64 { return math.Floor(mean*1e10+1e-6) / 1e10 }
	return q, nil
}

// loss of a cell that is shown as a node, in [0, 1].
func (h *Hierarchy) loss(n Node) float64 {
	if h.Leaves() < 2 {
		return 0
	}
	first, last := h.Range(n)
	covered, values := float64(last-first), float64(h.Leaves())
	share := h.Share(n)
	if covered == 0 || share == 0 {
		return 0
	}
	if math.Abs(share*values-(covered+1)) < tolerance*values {
		return covered / (values - 1) // enumerated: the share counts leaves
	}
	return share
}

// Precision is 1 - Prec of [Sweeney2002]: a cell costs its level over the
// highest level of its column, a suppressed cell costs 1.
type Precision struct{}

func (Precision) String() string { return "precision" }

func (Precision) bind(b *binding) (quality, error) {
	kept := costTables(b, func(c, _ int, n Node) float64 {
		top := b.columns()[c].Hierarchy.Height() - 1
		return float64(n.Level) / float64(max(top, 1))
	})
	return newCellwise(b, kept, flatCosts(b, 1), Arithmetic), nil
}

// ModificationRate (MR) is the share of cells whose text is no longer that of
// the original.
type ModificationRate struct{}

func (ModificationRate) String() string { return "modification rate" }

func (ModificationRate) bind(b *binding) (quality, error) {
	changed := func(c, leaf int, label string) float64 {
		if b.columns()[c].Hierarchy.Label(Node{Group: uint32(leaf)}) == label {
			return 0
		}
		return 1
	}
	kept := costTables(b, func(c, leaf int, n Node) float64 {
		return changed(c, leaf, b.columns()[c].Hierarchy.Label(n))
	})
	withheld := flatCosts(b, 1)
	for c := range withheld {
		for leaf := range withheld[c] {
			withheld[c][leaf] = changed(c, leaf, Top)
		}
	}
	q := newCellwise(b, kept, withheld, Arithmetic)
	q.byLeaf = true
	return q, nil
}

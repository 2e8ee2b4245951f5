package anonymize

import (
	"fmt"
	"slices"
)

// placed is a value of a computed hierarchy on its way in: its text, the
// number that orders it, and its label at each level between leaf and root.
type placed struct {
	text  string
	at    float64
	nodes []span
}

// span is a computed node: a range of the domain with its label.
type span struct {
	low, high      float64 // inclusive low, exclusive high, in units of the domain
	label          string
	representative string
}

// newComputed builds a hierarchy from placed values. levels is the number of
// levels between the leaves and the root, which spans the domain d: shares are
// measured against its extent in units. A NULL leaf is added where withNull is set
// ([Hierarchy.WithNull]); there may then be no values.
func newComputed(
	values []placed, levels int, root span, withNull bool, d domain,
) (*Hierarchy, error) {
	if len(values) == 0 && !withNull {
		return nil, &HierarchyError{Level: -1, Reason: "no values"}
	}
	slices.SortFunc(values, func(a, b placed) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return 0
	})
	n := len(values)
	h := &Hierarchy{codes: make(map[string]uint32, n), null: -1, units: true, domain: d}
	leaves := level{groupOf: make([]uint32, n), groups: make([]group, n)}
	for i, v := range values {
		if _, twice := h.codes[v.text]; twice {
			return nil, &HierarchyError{Line: i + 1, Level: 0, Reason: "a value stands twice"}
		}
		h.codes[v.text] = uint32(i)
		leaves.groupOf[i] = uint32(i)
		leaves.groups[i] = group{
			first: uint32(i), last: uint32(i), label: v.text, representative: v.text,
			hasRepr: true, low: v.at, high: v.at + d.step,
		}
	}
	h.levels = append(h.levels, leaves)
	for l := range levels {
		h.levels = append(h.levels, computedLevel(values, l, root))
	}
	h.levels = append(h.levels, level{
		groupOf: make([]uint32, n),
		groups: []group{{
			last: uint32(max(n, 1) - 1), label: Top, representative: root.representative,
			hasRepr: root.representative != "", share: 1,
			low: root.low, high: root.high,
		}},
	})
	if withNull {
		h = h.WithNull()
	}
	return h, nil
}

func computedLevel(values []placed, l int, root span) level {
	lv := level{groupOf: make([]uint32, len(values))}
	for i, v := range values {
		s := v.nodes[l]
		if k := len(lv.groups); k == 0 || lv.groups[k-1].label != s.label {
			lv.groups = append(lv.groups, group{
				first: uint32(i), label: s.label, representative: s.representative,
				hasRepr: s.representative != "", share: min(1, (s.high-s.low)/(root.high-root.low)),
				low: max(s.low, root.low), high: min(s.high, root.high),
			})
		}
		lv.groups[len(lv.groups)-1].last = uint32(i)
		lv.groupOf[i] = uint32(len(lv.groups) - 1)
	}
	return lv
}

// checkMultiples asserts that each width is a multiple of the one before, so
// that the levels nest.
func checkMultiples(widths []float64) error {
	for i, w := range widths {
		if !(w > 0) {
			return &HierarchyError{Level: i + 1, Reason: "a width must be above 0"}
		}
		if i > 0 && (w <= widths[i-1] || !isMultiple(w, widths[i-1])) {
			return &HierarchyError{
				Level:  i + 1,
				Reason: fmt.Sprintf("width %g is not a multiple of the width %g before it", w, widths[i-1]),
			}
		}
	}
	return nil
}

func isMultiple(a, b float64) bool {
	q := a / b
	r := float64(int64(q + 0.5))
	return q-r < 1e-9 && r-q < 1e-9
}

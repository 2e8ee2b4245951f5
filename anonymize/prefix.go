package anonymize

import (
	"slices"
	"strings"
)

// Prefix describes a hierarchy over codes of text: level i keeps the first
// Keep[i-1] characters and masks the rest with "*", so "35233" reads "352**"
// with 3 kept. Codes of different length keep their length at every level
// below the root.
type Prefix struct{ Keep []int }

// Build makes the hierarchy over the given values. withNull adds a leaf for
// SQL NULL. It fails with a *[HierarchyError] if Keep does not fall from level
// to level or reaches below 0.
func (p Prefix) Build(values []string, withNull bool) (*Hierarchy, error) {
	for i, k := range p.Keep {
		if k < 0 || (i > 0 && k >= p.Keep[i-1]) {
			return nil, &HierarchyError{Level: i + 1, Reason: "kept characters must fall from level to " +
				"level, not below 0"}
		}
	}
	type code struct {
		text   string
		labels []string // of the levels
	}
	sorted := make([]code, len(values))
	for i, v := range values {
		sorted[i] = code{v, make([]string, len(p.Keep))}
		for l, keep := range p.Keep {
			sorted[i].labels[l] = mask(v, keep)
		}
	}
	// The groups of every level are contiguous: by the label of the widest level first.
	slices.SortFunc(sorted, func(a, b code) int {
		for l := len(p.Keep) - 1; l >= 0; l-- {
			if c := strings.Compare(a.labels[l], b.labels[l]); c != 0 {
				return c
			}
		}
		return strings.Compare(a.text, b.text)
	})
	all := make([]placed, len(sorted))
	for i, c := range sorted {
		all[i] = placed{text: c.text, at: float64(i), nodes: make([]span, len(p.Keep))}
		for l, label := range c.labels {
			all[i].nodes[l] = span{label: label, representative: label}
		}
	}
	h, err := newComputed(all, len(p.Keep),
		span{high: float64(max(1, len(sorted))), representative: Top}, withNull, domain{})
	if err != nil {
		return nil, err
	}
	h.units = false // codes have no measure: leaves are counted
	h.countShares()
	return h, nil
}

// mask keeps the first characters of a code and replaces each other by "*".
func mask(code string, keep int) string {
	runes := []rune(code)
	for i := keep; i < len(runes); i++ {
		runes[i] = '*'
	}
	return string(runes)
}

package anonymize

import "maps"

// WithNull returns the hierarchy extended by a leaf for SQL NULL, the last one,
// shown as [Null] at every level below the root and covered by the root alone.
// Where the hierarchy has such a leaf, it is returned as it is. The domain
// grows by one value, so shares are counted anew where they count leaves.
func (h *Hierarchy) WithNull() *Hierarchy {
	if h.null >= 0 {
		return h
	}
	n := uint32(h.Leaves())
	e := &Hierarchy{codes: maps.Clone(h.codes), null: int64(n)}
	levels := h.levels
	if len(levels) == 1 { // a single leaf is its own root: the root moves up
		levels = append(append([]level(nil), levels...), levels[0])
	}
	for l, lv := range levels {
		w := level{
			groupOf: append(append([]uint32(nil), lv.groupOf...), 0),
			groups:  append([]group(nil), lv.groups...),
		}
		if l == len(levels)-1 {
			w.groups[0].last, w.groups[0].share = n, 1
			w.groups[0].label, w.groups[0].representative = Top, Top
		} else {
			w.groupOf[n] = uint32(len(w.groups))
			w.groups = append(w.groups, group{first: n, last: n, label: Null})
			rescale(w.groups, float64(n))
		}
		e.levels = append(e.levels, w)
	}
	return e
}

// rescale counts the shares of an enumerated level over one more value. Shares
// of ranges stay: NULL lies outside of every range.
func rescale(groups []group, values float64) {
	for i := range groups {
		covered := float64(groups[i].last-groups[i].first) + 1
		if groups[i].share*values == covered {
			groups[i].share = covered / (values + 1)
		}
	}
}

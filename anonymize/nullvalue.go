package anonymize

import "maps"

// WithNull returns the hierarchy extended by a leaf for SQL NULL, the last one,
// shown as [Null] at every level below the root and covered by the root alone.
// Where the hierarchy has such a leaf, it is returned as it is.
//
// The domain of an enumerated hierarchy grows by one value: shares are counted
// anew, and the root, which now covers more than the list, reads [Top]. Shares
// that count the units of a range stay, as NULL lies outside of every range.
func (h *Hierarchy) WithNull() *Hierarchy {
	if h.null >= 0 {
		return h
	}
	n := uint32(h.Leaves())
	e := &Hierarchy{codes: maps.Clone(h.codes), null: int64(n), units: h.units, domain: h.domain}
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
			w.groups[0].last = n
		} else {
			w.groupOf[n] = uint32(len(w.groups))
			w.groups = append(w.groups, group{first: n, last: n, label: Null})
		}
		e.levels = append(e.levels, w)
	}
	if !e.units {
		root := &e.levels[len(levels)-1].groups[0]
		root.label, root.representative = Top, Top
		e.countShares()
	}
	return e
}

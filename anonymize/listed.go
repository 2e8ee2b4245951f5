package anonymize

// Listed builds a hierarchy from a code list: one path per value, as
// [NewHierarchy] takes them. It asserts that every one of values is listed;
// the error says which by position, not by content. withNull adds a leaf for
// SQL NULL behind all others.
func Listed(paths [][]string, values []string, withNull bool) (*Hierarchy, error) {
	h, err := NewHierarchy(paths)
	if err != nil {
		return nil, err
	}
	for i, v := range values {
		if _, ok := h.codes[v]; !ok {
			return nil, &HierarchyError{Line: i + 1, Level: 0, Reason: "a value of the column is not in the list"}
		}
	}
	if withNull {
		h.appendNull()
	}
	return h, nil
}

// appendNull adds a leaf for NULL behind all others: alone at every level but
// the root. A hierarchy of one value gains a root first.
func (h *Hierarchy) appendNull() {
	leaf := uint32(h.Leaves())
	h.null = int64(leaf)
	root := len(h.levels) - 1
	if root == 0 {
		h.levels = append(h.levels, level{
			groupOf: []uint32{0},
			groups:  []group{{label: Top, representative: Top, hasRepr: true}},
		})
		root = 1
	}
	for l := range h.levels {
		lv := &h.levels[l]
		if l == root {
			lv.groupOf = append(lv.groupOf, 0)
			lv.groups[0].last = leaf
			continue
		}
		lv.groupOf = append(lv.groupOf, uint32(len(lv.groups)))
		lv.groups = append(lv.groups, group{first: leaf, last: leaf, label: Null})
	}
	h.countShares()
}

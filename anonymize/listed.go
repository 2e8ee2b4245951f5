package anonymize

// Listed builds a hierarchy from a code list: one path per value, as
// [NewHierarchy] takes them. It asserts that every one of values is listed;
// the error says which by position, not by content. withNull adds a leaf for
// SQL NULL ([Hierarchy.WithNull]).
func Listed(paths [][]string, values []string, withNull bool) (*Hierarchy, error) {
	h, err := NewHierarchy(paths)
	if err != nil {
		return nil, err
	}
	for i, v := range values {
		if _, ok := h.codes[v]; !ok {
			return nil, &HierarchyError{Line: i + 1, Level: 0, Reason: "a value of the column is not in " +
				"the list"}
		}
	}
	if withNull {
		h = h.WithNull()
	}
	return h, nil
}

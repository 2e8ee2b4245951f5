package anonymize

import "slices"

// ShownClasses counts the equivalence classes that a reader sees where each
// tuple of a table is shown under a label in each column, and the subjects of
// the smallest of them; 0 and 0 for a table without rows. Blocks and tuples
// that are shown alike are one class. It asks once for each tuple and column.
func ShownClasses(
	t *Table, label func(tuple uint32, column int) string,
) (classes, smallestClass int) {
	if t.Rows() == 0 {
		return 0, 0
	}
	alike := t.Everyone()
	for c := range t.columns {
		codes := make(map[string]uint32)
		alike = alike.split(func(tuple int) uint32 {
			text := label(uint32(tuple), c)
			code, known := codes[text]
			if !known {
				code = uint32(len(codes))
				codes[text] = code
			}
			return code
		})
	}
	return alike.Len(), int(slices.Min(alike.Subjects()))
}

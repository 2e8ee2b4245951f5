package anonymize

import "encoding/binary"

// ShownClasses counts the equivalence classes that a reader sees where each
// tuple of a table is shown under a label in each column, and the subjects of
// the smallest of them; 0 and 0 for a table without rows. Blocks and tuples
// that are shown alike are one class. It asks once for each tuple and column.
func ShownClasses(t *Table, label func(tuple uint32, column int) string) (classes, smallestClass int) {
	texts := make([]map[string]uint32, len(t.columns))
	for c := range texts {
		texts[c] = make(map[string]uint32)
	}
	key := make([]byte, 4*len(t.columns))
	index := make(map[string]uint32)
	classOf := make([]uint32, t.Tuples())
	for tuple := range classOf {
		for c := range t.columns {
			text := label(uint32(tuple), c)
			code, known := texts[c][text]
			if !known {
				code = uint32(len(texts[c]))
				texts[c][text] = code
			}
			binary.LittleEndian.PutUint32(key[4*c:], code)
		}
		class, known := index[string(key)]
		if !known {
			class = uint32(len(index))
			index[string(key)] = class
		}
		classOf[tuple] = class
	}
	return len(index), smallest(t, classOf, len(index))
}

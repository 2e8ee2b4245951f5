package anonymize

import "encoding/binary"

// SmallestClass is the number of subjects in the smallest equivalence class
// that would be seen if the given columns were shown as they are on top of
// this partition: rows that share a block and every value. It is 0 for a table
// without rows and costs one hash probe a tuple.
func (p *Partition) SmallestClass(columns []int) int {
	t := p.Table()
	key := make([]byte, 4*(len(columns)+1))
	class := make(map[string]uint32)
	classOf := make([]uint32, t.Tuples())
	for tuple, block := range p.BlockOf() {
		binary.LittleEndian.PutUint32(key, block)
		for i, c := range columns {
			binary.LittleEndian.PutUint32(key[4*(i+1):], t.Leaf(c, uint32(tuple)))
		}
		number, ok := class[string(key)]
		if !ok {
			number = uint32(len(class))
			class[string(key)] = number
		}
		classOf[tuple] = number
	}
	return smallest(t, classOf, len(class))
}

// smallest counts the subjects of classes of tuples and returns the least
// count.
func smallest(t *Table, classOf []uint32, classes int) int {
	subjects := make([]int, classes)
	type member struct{ class, subject uint32 }
	seen := make(map[member]struct{})
	for tuple, class := range classOf {
		rows := t.RowsOf(uint32(tuple))
		if t.RowPerSubject() {
			subjects[class] += len(rows)
			continue
		}
		for _, r := range rows {
			m := member{class, t.Subject(r)}
			if _, counted := seen[m]; !counted {
				seen[m] = struct{}{}
				subjects[class]++
			}
		}
	}
	least := 0
	for i, n := range subjects {
		if i == 0 || n < least {
			least = n
		}
	}
	return least
}

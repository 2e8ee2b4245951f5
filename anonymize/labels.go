package anonymize

// Labels are what a release shows. A label is the narrowest hierarchy node
// over a block ([Partition.Cover]): it depends on the values of the block only
// through which node that is, so that an outlier inside the node does not
// show. The same holds for the representative of a label.

// Label is the text shown for a block in a column.
func (p *Partition) Label(block uint32, column int) string {
	return p.Table().columns[column].Hierarchy.Label(p.Cover(block, column))
}

// Representative is the value of the column's own type that stands for a block
// where text will not do, such as the middle of the range that the label
// names. ok is false where the label has none, see [Hierarchy.Representative].
func (p *Partition) Representative(block uint32, column int) (value string, ok bool) {
	return p.Table().columns[column].Hierarchy.Representative(p.Cover(block, column))
}

// Mean is the mean over the rows of a block of the numbers behind the leaves
// of a column. number gives the number of a leaf; leaves for which it says no,
// such as NULL, are left out, and ok is false where all are.
//
// A mean depends on all values of the block, not on its label alone: a reader
// who knows all but one of the values can work out that one. It is a
// representative to be asked for, never a default. A mean of a column that the
// block shows exactly adds nothing.
func (p *Partition) Mean(block uint32, column int, number func(leaf uint32) (float64, bool)) (mean float64, ok bool) {
	sum, rows := 0.0, uint32(0)
	for _, pos := range p.members.of(block) {
		if v, known := number(p.ground.leaf[column][pos]); known {
			n := p.ground.rows[pos]
			sum += v * float64(n)
			rows += n
		}
	}
	if rows == 0 {
		return 0, false
	}
	return sum / float64(rows), true
}

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

package anonymize

import "fmt"

// Divided is the partition of a table by blocks that its rows have been found by parts of
// the table, numbered from 0, none of them empty. It fails where rows of one tuple are in
// two blocks, or there are not as many rows.
func Divided(t *Table, blockOfRow []uint32, blocks int) (*Partition, error) {
	if len(blockOfRow) != t.Rows() {
		return nil, fmt.Errorf("blocks of %d rows for a table of %d", len(blockOfRow), t.Rows())
	}
	g := newGround(t)
	blockAt := make([]uint32, len(g.tupleAt))
	for pos, tuple := range g.tupleAt {
		rows := t.RowsOf(tuple)
		blockAt[pos] = blockOfRow[rows[0]]
		for _, row := range rows {
			if blockOfRow[row] != blockAt[pos] {
				return nil, fmt.Errorf("rows of tuple %d are in two blocks", tuple)
			}
		}
	}
	return assemble(g, blockAt, blocks, nil), nil
}

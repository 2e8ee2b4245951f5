package anonymize

import (
	"errors"
	"fmt"
)

// Column is one quasi-identifier of a [Table].
type Column struct {
	Name      string
	Hierarchy *Hierarchy
}

// Table holds the quasi-identifiers of a relation, dictionary-encoded and
// reduced to distinct tuples. It is immutable and safe for concurrent use.
type Table struct {
	columns      []Column
	tuples       [][]uint32 // [column][tuple] -> leaf
	tupleOfRow   []uint32
	subjectOfRow []uint32 // nil: every row is a subject of its own
	subjects     int
	rowsOf       csr // tuple -> rows
}

// csr is a compressed list of lists: items[start[i]:start[i+1]] belong to i.
type csr struct {
	start []uint32
	items []uint32
}

func (c *csr) of(i uint32) []uint32 { return c.items[c.start[i]:c.start[i+1]] }

// NewTable reduces rows to distinct tuples. leaves[c][r] is the leaf of row r
// in columns[c].Hierarchy. subjectOfRow numbers the subject of each row
// densely from 0; nil says that every row is a subject of its own. Tuples are
// numbered in order of first appearance. The slices are kept, not copied.
//
// It costs one hash probe a row and fails on a leaf outside its hierarchy, on
// columns of different length and on a table without columns.
func NewTable(columns []Column, leaves [][]uint32, subjectOfRow []uint32) (*Table, error) {
	rows, err := checkLeaves(columns, leaves)
	if err != nil {
		return nil, err
	}
	tuples, tupleOfRow := reduce(columns, leaves, rows)
	return newTable(columns, tuples, tupleOfRow, subjectOfRow)
}

// NewTableOf is NewTable for rows that refer to tuples: leaves[c][t] is the leaf of
// tuple t, and row r has tuple tupleOfRow[r]. It costs one hash probe a tuple. Where the
// tuples are distinct and each has a row, leaves is kept; tupleOfRow is the table's.
func NewTableOf(
	columns []Column, leaves [][]uint32, tupleOfRow, subjectOfRow []uint32,
) (*Table, error) {
	tuples, err := checkLeaves(columns, leaves)
	if err != nil {
		return nil, err
	}
	const unused = ^uint32(0)
	number := make([]uint32, tuples)
	for t := range number {
		number[t] = unused
	}
	for row, t := range tupleOfRow {
		if int(t) >= tuples {
			return nil, fmt.Errorf("row %d has tuple %d of %d", row+1, t, tuples)
		}
		number[t] = 0
	}
	var used []uint32
	for t := range number {
		if number[t] != unused {
			used = append(used, uint32(t))
		}
	}
	if len(used) < tuples {
		leaves = pick(leaves, used)
	}
	distinct, of := reduce(columns, leaves, len(used))
	for i, t := range used {
		number[t] = of[i]
	}
	for row, t := range tupleOfRow {
		tupleOfRow[row] = number[t]
	}
	return newTable(columns, distinct, tupleOfRow, subjectOfRow)
}

// checkLeaves returns how many leaves each column has.
func checkLeaves(columns []Column, leaves [][]uint32) (int, error) {
	if len(columns) == 0 {
		return 0, errors.New("a table needs at least one quasi-identifier")
	}
	if len(leaves) != len(columns) {
		return 0, fmt.Errorf("%d columns but %d lists of values", len(columns), len(leaves))
	}
	rows := len(leaves[0])
	for c := range columns {
		if len(leaves[c]) != rows {
			return 0, fmt.Errorf("column %q has %d values, column %q has %d",
				columns[c].Name, len(leaves[c]), columns[0].Name, rows)
		}
		values := uint32(columns[c].Hierarchy.Leaves())
		for r, leaf := range leaves[c] {
			if leaf >= values {
				return 0, fmt.Errorf("column %q, row %d: value is not in the hierarchy", columns[c].Name, r+1)
			}
		}
	}
	return rows, nil
}

func newTable(
	columns []Column, tuples [][]uint32, tupleOfRow, subjectOfRow []uint32,
) (*Table, error) {
	rows := len(tupleOfRow)
	t := &Table{
		columns: columns, tuples: tuples,
		tupleOfRow: tupleOfRow, subjectOfRow: subjectOfRow, subjects: rows,
	}
	if subjectOfRow != nil {
		if len(subjectOfRow) != rows {
			return nil, fmt.Errorf("%d rows but %d subjects of rows", rows, len(subjectOfRow))
		}
		t.subjects = distinct(subjectOfRow)
	}
	t.indexRows()
	return t, nil
}

// pick is the leaves at some places.
func pick(leaves [][]uint32, places []uint32) [][]uint32 {
	out := make([][]uint32, len(leaves))
	for c := range leaves {
		out[c] = make([]uint32, len(places))
		for i, place := range places {
			out[c][i] = leaves[c][place]
		}
	}
	return out
}

func distinct(codes []uint32) int {
	seen := make(map[uint32]struct{}, len(codes))
	for _, c := range codes {
		seen[c] = struct{}{}
	}
	return len(seen)
}

// reduce finds the distinct tuples, and that of each row, by hashing mixed-radix keys.
// Keys beyond 62 bits are replaced by their numbers on the way. Where all rows are
// distinct, the tuples are the leaves.
func reduce(
	columns []Column, leaves [][]uint32, rows int,
) (tuples [][]uint32, tupleOfRow []uint32) {
	keys := make([]uint64, rows)
	index := newKeyIndex(min(rows, 1<<14))
	space := uint64(1)
	for c := range leaves {
		values := uint64(columns[c].Hierarchy.Leaves())
		if space > keyLimit/values {
			for r, key := range keys {
				id, _ := index.number(key)
				keys[r] = uint64(id)
			}
			space = uint64(index.count)
			index.reset(rows)
		}
		space *= values
		for r, leaf := range leaves[c] {
			keys[r] = keys[r]*values + uint64(leaf)
		}
	}
	tupleOfRow = make([]uint32, rows)
	var firsts []uint32
	for r, key := range keys {
		tuple, fresh := index.number(key)
		if fresh {
			firsts = append(firsts, uint32(r))
		}
		tupleOfRow[r] = tuple
	}
	if len(firsts) == rows {
		return leaves, tupleOfRow
	}
	return pick(leaves, firsts), tupleOfRow
}

// indexRows builds the list of rows of each tuple by a counting sort.
func (t *Table) indexRows() {
	n := len(t.tuples[0])
	t.rowsOf.start = make([]uint32, n+1)
	for _, tuple := range t.tupleOfRow {
		t.rowsOf.start[tuple+1]++
	}
	for i := range n {
		t.rowsOf.start[i+1] += t.rowsOf.start[i]
	}
	t.rowsOf.items = make([]uint32, len(t.tupleOfRow))
	next := make([]uint32, n)
	copy(next, t.rowsOf.start)
	for r, tuple := range t.tupleOfRow {
		t.rowsOf.items[next[tuple]] = uint32(r)
		next[tuple]++
	}
}

// Columns returns the quasi-identifiers in order. Not to be changed.
func (t *Table) Columns() []Column { return t.columns }

// Column returns the position of a quasi-identifier by name, or -1.
func (t *Table) Column(name string) int {
	for i := range t.columns {
		if t.columns[i].Name == name {
			return i
		}
	}
	return -1
}

// Rows is the number of rows.
func (t *Table) Rows() int { return len(t.tupleOfRow) }

// Tuples is the number of distinct tuples.
func (t *Table) Tuples() int { return len(t.tuples[0]) }

// Subjects is the number of distinct subjects.
func (t *Table) Subjects() int { return t.subjects }

// Leaf is the value of a tuple in a column.
func (t *Table) Leaf(column int, tuple uint32) uint32 { return t.tuples[column][tuple] }

// TupleOfRow maps each row to its tuple. Not to be changed.
func (t *Table) TupleOfRow() []uint32 { return t.tupleOfRow }

// RowsOf lists the rows of a tuple in ascending order. Not to be changed.
func (t *Table) RowsOf(tuple uint32) []uint32 { return t.rowsOf.of(tuple) }

// Subject is the number of the subject that a row is about.
func (t *Table) Subject(row uint32) uint32 {
	if t.subjectOfRow == nil {
		return row
	}
	return t.subjectOfRow[row]
}

// RowPerSubject says whether every row is a subject of its own, so that rows
// may be counted in place of subjects.
func (t *Table) RowPerSubject() bool { return t.subjectOfRow == nil }

// withSubjects is the same table with other subjects.
func (t *Table) withSubjects(subjectOfRow []uint32) (*Table, error) {
	if len(subjectOfRow) != t.Rows() {
		return nil, fmt.Errorf("%d rows but %d subjects of rows", t.Rows(), len(subjectOfRow))
	}
	s := *t
	s.subjectOfRow, s.subjects = subjectOfRow, distinct(subjectOfRow)
	return &s, nil
}

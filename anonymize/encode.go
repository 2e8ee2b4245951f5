package anonymize

import (
	"fmt"
	"sync"
)

// ValueError says that a cell holds a value that the hierarchy of its column
// does not know. It never quotes the value.
type ValueError struct {
	Column string
	Line   int // of the file, counted from 1
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("line %d: the value of column %q is not in its hierarchy", e.Line, e.Column)
}

// Encode reduces the sheet to a table over the columns of the given names. An
// empty cell that the hierarchy does not list as a value is NULL: a value of
// its own that no other shares a node with except the root; where the hierarchy
// has no leaf for it, the table gets a hierarchy extended by one
// ([Hierarchy.WithNull]). subject names the column that tells whom a row is
// about; "" says that every row is a subject of its own.
//
// It fails with a *[ProblemError] on an unknown column, on a sheet without rows
// and on no columns at all, and with a *[ValueError] on a value that is missing
// in its hierarchy. It costs one hash probe a cell; columns are encoded in
// parallel.
func (s *Sheet) Encode(columns []Column, subject string) (*Table, error) {
	if len(columns) == 0 {
		return nil, &ProblemError{"no quasi-identifiers", "name at least one column with its hierarchy"}
	}
	if s.Rows() == 0 {
		return nil, &ProblemError{"the table is empty", "give a table with at least one row"}
	}
	positions := make([]int, len(columns))
	for i, c := range columns {
		var err error
		if positions[i], err = s.Find(c.Name); err != nil {
			return nil, err
		}
	}
	encoded := append([]Column(nil), columns...)
	leaves := make([][]uint32, len(columns))
	faults := make([]error, len(columns))
	var wait sync.WaitGroup
	for i := range columns {
		wait.Go(func() {
			leaves[i], encoded[i].Hierarchy, faults[i] = s.encodeColumn(positions[i], columns[i].Hierarchy)
		})
	}
	wait.Wait()
	for _, err := range faults {
		if err != nil {
			return nil, err
		}
	}
	subjects, err := s.subjects(subject)
	if err != nil {
		return nil, err
	}
	return NewTable(encoded, leaves, subjects)
}

func (s *Sheet) encodeColumn(column int, h *Hierarchy) ([]uint32, *Hierarchy, error) {
	leaves := make([]uint32, s.Rows())
	for r, cell := range s.cells[column] {
		leaf, ok := h.Code(cell)
		if !ok && cell == "" {
			if leaf, ok = h.NullCode(); !ok {
				return s.encodeColumn(column, h.WithNull())
			}
		}
		if !ok {
			return nil, nil, &ValueError{Column: s.header[column], Line: s.Line(r)}
		}
		leaves[r] = leaf
	}
	return leaves, h, nil
}

// subjects numbers the subject of each row.
func (s *Sheet) subjects(name string) ([]uint32, error) {
	if name == "" {
		return nil, nil
	}
	return s.Number(name)
}

// Number numbers the distinct values of a column densely from 0, in order of
// first appearance. It fails with a *[ProblemError] on an unknown column.
func (s *Sheet) Number(name string) ([]uint32, error) {
	column, err := s.Find(name)
	if err != nil {
		return nil, err
	}
	codes := make([]uint32, s.Rows())
	index := make(map[string]uint32)
	for r, cell := range s.cells[column] {
		code, known := index[cell]
		if !known {
			code = uint32(len(index))
			index[cell] = code
		}
		codes[r] = code
	}
	return codes, nil
}

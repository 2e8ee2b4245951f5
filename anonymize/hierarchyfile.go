package anonymize

import (
	"errors"
	"io"
	"slices"
	"unicode/utf8"
)

// ReadHierarchy reads a hierarchy from CSV without a header: one line a value,
// the value itself in the first column, its label at level j in column j. The
// delimiter is as in [ReadSheet].
//
// It fails with a *[CSVError] on a faulty file and with a *[HierarchyError]
// where the lines make no hierarchy (see [NewHierarchy]).
func ReadHierarchy(r io.Reader, delimiter rune) (*Hierarchy, error) {
	paths, err := ReadPaths(r, delimiter)
	if err != nil {
		return nil, err
	}
	return NewHierarchy(paths)
}

// ReadPaths reads what [ReadHierarchy] makes a hierarchy of: each line's cells.
func ReadPaths(r io.Reader, delimiter rune) ([][]string, error) {
	records, err := newRecords(r, delimiter)
	if err != nil {
		return nil, err
	}
	records.FieldsPerRecord = -1 // NewHierarchy names the line and both lengths
	var paths [][]string
	for {
		record, err := records.Read()
		if errors.Is(err, io.EOF) {
			return paths, nil
		}
		if err != nil {
			return nil, err
		}
		for c, cell := range record {
			if !utf8.ValidString(cell) {
				return nil, notUTF8(len(paths)+1, c)
			}
		}
		paths = append(paths, slices.Clone(record))
	}
}

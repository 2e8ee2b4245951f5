package anonymize

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"
)

// Sheet is a CSV file, or a table from elsewhere, as read: a header and, per column, one cell a
// row.
type Sheet struct {
	header    []string
	cells     [][]string // [column][row]
	lines     []uint32   // row -> line of the file
	delimiter rune
}

// CSVError says where a CSV file is at fault. It never quotes a cell.
type CSVError struct {
	Line   int // counted from 1, 0 if unknown
	Reason string
}

func (e *CSVError) Error() string {
	if e.Line == 0 {
		return "csv: " + e.Reason
	}
	return fmt.Sprintf("csv line %d: %s", e.Line, e.Reason)
}

// ReadSheet reads a CSV file (RFC 4180) in UTF-8 whose first line is the header.
// A delimiter of 0 takes the first of semicolon, tab and comma that the first
// line holds. A byte order mark is skipped. Equal cells share memory.
//
// It fails with a *[CSVError] on faulty quoting, on lines of different length or
// old line ends, on records beyond [MaxRecord], on another encoding, on a
// missing or repeated column name and on a file without a header; a file of a
// header alone is a sheet without rows. A file in which a column without a name
// stands first, as an index, is accepted.
func ReadSheet(r io.Reader, delimiter rune) (*Sheet, error) {
	return ReadColumns(r, delimiter, nil)
}

// ReadColumns is [ReadSheet] for those columns that choose says true for, all
// if it is nil. Other columns have no cells and take no memory. An error of
// choose is returned before any row is read.
func ReadColumns(
	r io.Reader, delimiter rune, choose func(header []string) ([]bool, error),
) (*Sheet, error) {
	records, err := newRecords(r, delimiter)
	if err != nil {
		return nil, err
	}
	header, err := records.Read()
	if errors.Is(err, io.EOF) {
		return nil, &CSVError{Reason: "the file is empty"}
	}
	if err != nil {
		return nil, err
	}
	s, err := newSheet(header)
	if err != nil {
		return nil, err
	}
	s.delimiter = records.Comma
	var chosen []bool
	if choose != nil {
		if chosen, err = choose(s.header); err != nil {
			return nil, err
		}
	}
	add := s.adder(chosen)
	for {
		record, err := records.Read()
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return nil, err
		}
		line, _ := records.FieldPos(0)
		if foreign := add(record, line); foreign >= 0 {
			return nil, notUTF8(line, foreign)
		}
	}
}

// notUTF8 is the fault of a cell in another encoding.
func notUTF8(line, column int) error {
	return &CSVError{Line: line, Reason: fmt.Sprintf(
		"column %d is not in UTF-8, perhaps in Windows-1252; convert the file (iconv -f WINDOWS-1252 "+
			"-t UTF-8)", column+1)}
}

// CollectSheet is a sheet of rows from elsewhere, each with a cell for every
// column. Cells are copied; equal cells share memory. Lines count the rows from
// 1. It fails as [ReadSheet] does on a missing or repeated column name.
func CollectSheet(header []string, rows iter.Seq[[]string]) (*Sheet, error) {
	s, err := newSheet(header)
	if err != nil {
		return nil, err
	}
	add := s.adder(nil)
	for row := range rows {
		add(row, s.Rows()+1) // in the encoding that the connection has
	}
	return s, nil
}

func newSheet(header []string) (*Sheet, error) {
	s := &Sheet{header: slices.Clone(header), cells: make([][]string, len(header))}
	return s, s.checkHeader()
}

// adder returns what adds a row: its cells in the columns that are chosen, all
// if none are. It tells the column of a new value that is not in UTF-8, or -1.
func (s *Sheet) adder(chosen []bool) func(record []string, line int) (foreign int) {
	interned := make([]map[string]string, len(s.header))
	for c := range interned {
		if chosen == nil || chosen[c] {
			interned[c] = make(map[string]string)
		}
	}
	return func(record []string, line int) int {
		foreign := -1
		s.lines = append(s.lines, uint32(line))
		for c, known := range interned {
			if known == nil {
				continue
			}
			text, old := known[record[c]]
			if !old {
				text = strings.Clone(record[c])
				known[text] = text
				if !utf8.ValidString(text) {
					foreign = c
				}
			}
			s.cells[c] = append(s.cells[c], text)
		}
		return foreign
	}
}

func (s *Sheet) checkHeader() error {
	seen := make(map[string]bool)
	for c, name := range s.header {
		switch {
		case !utf8.ValidString(name):
			return notUTF8(1, c)
		case name == "" && c > 0:
			return &CSVError{Line: 1, Reason: fmt.Sprintf("column %d has no name", c+1)}
		case seen[name]:
			return &CSVError{Line: 1, Reason: fmt.Sprintf(
				"column %d has the name of a column before it", c+1)}
		}
		seen[name] = true
	}
	return nil
}

// Header lists the names of the columns. Not to be changed.
func (s *Sheet) Header() []string { return s.header }

// Delimiter is the character between cells, as given or found; 0 where the
// sheet comes from elsewhere.
func (s *Sheet) Delimiter() rune { return s.delimiter }

// Rows is the number of rows, the header not counted.
func (s *Sheet) Rows() int { return len(s.lines) }

// Cells are the cells of a column, one a row; none for a column that was not
// read. Not to be changed.
func (s *Sheet) Cells(column int) []string { return s.cells[column] }

// Line is the line of the file on which a row starts, counted from 1.
func (s *Sheet) Line(row int) int { return int(s.lines[row]) }

// Find returns the position of a column by name. It fails with a
// *[ProblemError] where there is none.
func (s *Sheet) Find(name string) (int, error) {
	if c := slices.Index(s.header, name); c >= 0 {
		return c, nil
	}
	return 0, &ProblemError{
		What:   fmt.Sprintf("the file has no column %q", name),
		Remedy: "name a column of its first line",
	}
}

package anonymize

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
)

// Sheet is a CSV file, or a table from elsewhere, as read: a header and, per column, one cell a row.
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

// ReadSheet reads a CSV file (RFC 4180) whose first line is the header. A
// delimiter of 0 takes the first of semicolon, tab and comma that the first
// line holds. A byte order mark is skipped. Equal cells share memory.
//
// It fails with a *[CSVError] on faulty quoting, on lines of different length,
// on a missing or repeated column name and on a file without a header; a file
// of a header alone is a sheet without rows. A file in which a column without
// a name stands first, as an index, is accepted.
func ReadSheet(r io.Reader, delimiter rune) (*Sheet, error) {
	records, err := newRecords(r, delimiter)
	if err != nil {
		return nil, err
	}
	header, err := records.Read()
	if err != nil {
		return nil, csvFault(err)
	}
	s, err := newSheet(header)
	if err != nil {
		return nil, err
	}
	s.delimiter = records.Comma
	add := s.adder()
	for {
		record, err := records.Read()
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return nil, csvFault(err)
		}
		line, _ := records.FieldPos(0)
		add(record, line)
	}
}

// CollectSheet is a sheet of rows from elsewhere, each with a cell for every
// column. Cells are copied; equal cells share memory. Lines count the rows from
// 1. It fails as [ReadSheet] does on a missing or repeated column name.
func CollectSheet(header []string, rows iter.Seq[[]string]) (*Sheet, error) {
	s, err := newSheet(header)
	if err != nil {
		return nil, err
	}
	add := s.adder()
	for row := range rows {
		add(row, s.Rows()+1)
	}
	return s, nil
}

func newSheet(header []string) (*Sheet, error) {
	s := &Sheet{header: slices.Clone(header), cells: make([][]string, len(header))}
	return s, s.checkHeader()
}

// adder returns what adds a row.
func (s *Sheet) adder() func(record []string, line int) {
	interned := make([]map[string]string, len(s.header))
	for c := range interned {
		interned[c] = make(map[string]string)
	}
	return func(record []string, line int) {
		s.lines = append(s.lines, uint32(line))
		for c, cell := range record {
			text, known := interned[c][cell]
			if !known {
				text = strings.Clone(cell)
				interned[c][text] = text
			}
			s.cells[c] = append(s.cells[c], text)
		}
	}
}

// newRecords is the CSV reader of tables and hierarchies.
func newRecords(r io.Reader, delimiter rune) (*csv.Reader, error) {
	buffered := bufio.NewReaderSize(r, 1<<16)
	if mark, err := buffered.Peek(3); err == nil && bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		if _, err := buffered.Discard(3); err != nil {
			return nil, csvFault(err)
		}
	}
	if delimiter == 0 {
		delimiter = guessDelimiter(buffered)
	}
	records := csv.NewReader(buffered)
	records.Comma = delimiter
	records.ReuseRecord = true
	return records, nil
}

func guessDelimiter(r *bufio.Reader) rune {
	start, _ := r.Peek(1 << 16) // a short file gives what there is
	line, _, _ := bytes.Cut(start, []byte("\n"))
	for _, delimiter := range ";\t" {
		if bytes.ContainsRune(line, delimiter) {
			return delimiter
		}
	}
	return ','
}

// csvFault turns an error of the reader into one that says where.
func csvFault(err error) error {
	var parse *csv.ParseError
	switch {
	case errors.Is(err, io.EOF):
		return &CSVError{Reason: "the file is empty"}
	case errors.As(err, &parse):
		return &CSVError{Line: parse.StartLine, Reason: parse.Err.Error()}
	}
	return &CSVError{Reason: err.Error()}
}

func (s *Sheet) checkHeader() error {
	seen := make(map[string]bool)
	for c, name := range s.header {
		switch {
		case name == "" && c > 0:
			return &CSVError{Line: 1, Reason: fmt.Sprintf("column %d has no name", c+1)}
		case seen[name]:
			return &CSVError{Line: 1, Reason: fmt.Sprintf("column %d has the name of a column before it", c+1)}
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

// Cells are the cells of a column, one a row. Not to be changed.
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

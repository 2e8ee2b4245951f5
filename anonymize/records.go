package anonymize

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
)

// MaxRecord is how long a record of a CSV file may be, in bytes. It bounds what
// a file without line ends, or with a quote that nobody closes, makes a reader
// keep before it fails.
const MaxRecord = 64 << 20

// records is the CSV reader of tables and hierarchies.
type records struct {
	*csv.Reader
	guard *guard
}

// newRecords skips a byte order mark of UTF-8 and fails on files that are
// something else than text in UTF-8, as far as their first bytes tell.
func newRecords(r io.Reader, delimiter rune) (*records, error) {
	start := bufio.NewReader(r)
	if err := foreign(start); err != nil {
		return nil, err
	}
	g := &guard{source: start, line: 1, record: 1}
	buffered := bufio.NewReaderSize(g, recordBuffer)
	if delimiter == 0 {
		delimiter = guessDelimiter(buffered)
	}
	if g.fault != nil { // guessing has looked ahead
		return nil, g.fault
	}
	reader := csv.NewReader(buffered)
	reader.Comma = delimiter
	reader.ReuseRecord = true
	return &records{reader, g}, nil
}

// recordBuffer is how much is read at a time.
const recordBuffer = 1 << 16

// Read returns io.EOF after the last record; all other errors are a
// *[CSVError].
func (r *records) Read() ([]string, error) {
	record, err := r.Reader.Read()
	var parse *csv.ParseError
	switch {
	case r.guard.fault != nil: // the reader may have failed on what it got until then
		return nil, r.guard.fault
	case err == nil:
		return record, nil
	case errors.Is(err, io.EOF):
		return nil, io.EOF
	case errors.As(err, &parse):
		return nil, &CSVError{Line: parse.StartLine, Reason: parse.Err.Error()}
	}
	return nil, &CSVError{Reason: err.Error()}
}

// marks are the first bytes of files that are no CSV in UTF-8.
var marks = []struct{ start, reason string }{
	{"\xff\xfe\x00\x00", "the file is in UTF-32; convert it to UTF-8 (iconv -f UTF-32 -t UTF-8)"},
	{"\xff\xfe", "the file is in UTF-16; convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)"},
	{"\xfe\xff", "the file is in UTF-16; convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)"},
	{"\x1f\x8b", "the file is compressed by gzip; give it a name that ends in .gz"},
	{"\x28\xb5\x2f\xfd", "the file is compressed by zstd; give it a name that ends in .zst"},
	{"PK\x03\x04", "the file is a ZIP archive or a spreadsheet; export it as CSV"},
	{"PAR1", "the file is in Parquet format; export it as CSV"},
}

// foreign recognizes what is no CSV, and skips a byte order mark.
func foreign(r *bufio.Reader) error {
	start, _ := r.Peek(4) // a short file gives what there is
	for _, m := range marks {
		if bytes.HasPrefix(start, []byte(m.start)) {
			return &CSVError{Reason: m.reason}
		}
	}
	if bytes.HasPrefix(start, []byte("\xef\xbb\xbf")) {
		if _, err := r.Discard(3); err != nil {
			return &CSVError{Reason: err.Error()}
		}
	}
	return nil
}

func guessDelimiter(r *bufio.Reader) rune {
	start, _ := r.Peek(recordBuffer) // a short file gives what there is
	line, _, _ := bytes.Cut(start, []byte("\n"))
	for _, delimiter := range ";\t" {
		if bytes.ContainsRune(line, delimiter) {
			return delimiter
		}
	}
	return ','
}

// guard lets a CSV reader see only what may be a CSV file: no NUL, no lines
// that end in CR alone, no record beyond [MaxRecord]. It hands records out whole,
// since the reader doubles its buffers while a record grows.
type guard struct {
	source io.Reader
	held   [][]byte // what was read and not handed out yet
	size   int      // bytes of held
	ready  int      // of those, how many belong to records that have ended
	spare  []byte   // a block to read into
	line   int      // the line that held ends in
	record int      // the line on which the record starts that has not ended
	// quoted and carriage say whether held ends within quotes, or in a CR outside.
	quoted, carriage, ended bool
	fault                   error
}

func (g *guard) Read(p []byte) (int, error) {
	for g.ready == 0 && g.fault == nil && !g.ended {
		g.fill()
	}
	switch {
	case g.ready > 0:
	case g.fault != nil:
		return 0, g.fault
	default:
		return 0, io.EOF
	}
	first := g.held[0]
	n := copy(p, first[:min(g.ready, len(first))])
	g.ready -= n
	g.size -= n
	if g.held[0] = first[n:]; n == len(first) {
		g.held = g.held[1:]
		g.spare = first[:0]
	}
	return n, nil
}

// fill reads once more, into what room there is behind what is held: a source may give a
// byte at a time.
func (g *guard) fill() {
	room := g.room()
	n, err := g.source.Read(room)
	block := room[:n]
	g.ended = err == io.EOF
	if g.look(block, g.ended); g.fault != nil {
		return
	}
	if end := lastRecord(block, g.quoted); end > 0 {
		g.ready = g.size + end
		g.record = g.line - bytes.Count(block[end:], []byte("\n"))
	}
	if g.size += n; n > 0 {
		last := &g.held[len(g.held)-1]
		*last = (*last)[:len(*last)+n]
	}
	switch {
	case g.ended:
		g.ready = g.size
	case err != nil:
		g.fault = &CSVError{Line: g.line, Reason: err.Error()}
	case g.size-g.ready > MaxRecord:
		g.fault = &CSVError{Line: g.record, Reason: fmt.Sprintf(
			"a record is longer than %d MiB: a quote is not closed, or the lines have no ends",
			MaxRecord>>20,
		)}
	}
}

// room is free space behind the last block that is held, or a new one's.
func (g *guard) room() []byte {
	if n := len(g.held); n > 0 {
		if last := g.held[n-1]; cap(last)-len(last) >= recordBuffer/8 {
			return last[len(last):cap(last)]
		}
	}
	block := g.spare
	if g.spare = nil; cap(block) < recordBuffer/2 {
		block = make([]byte, 0, recordBuffer)
	}
	g.held = append(g.held, block)
	return block[:cap(block)]
}

// lastRecord is where the last record of a block ends, 0 for nowhere. quoted
// says whether the block ends within quotes.
func lastRecord(block []byte, quoted bool) int {
	for {
		at := bytes.LastIndexByte(block, '\n')
		if bytes.Count(block[at+1:], []byte(`"`))%2 == 1 {
			quoted = !quoted
		}
		if at < 0 || !quoted {
			return at + 1
		}
		block = block[:at]
	}
}

// look finds NUL and lone CR in what is read next.
func (g *guard) look(p []byte, last bool) {
	if at := bytes.IndexByte(p, 0); at >= 0 {
		g.fault = &CSVError{
			Line: g.line + bytes.Count(
				p[:at], []byte("\n"),
			), Reason: "there is a NUL byte: the file is in UTF-16 without a mark, or no text",
		}
		return
	}
	if g.carriage && len(p) > 0 && p[0] != '\n' {
		g.oldLines()
		return
	}
	rest := p
	for len(rest) > 0 {
		at := bytes.IndexByte(rest, '\r')
		if at < 0 {
			break
		}
		g.pass(rest[:at])
		rest = rest[at+1:]
		if !g.quoted && len(rest) > 0 && rest[0] != '\n' {
			g.oldLines()
			return
		}
	}
	if len(p) > 0 {
		g.pass(rest)
		g.carriage = !g.quoted && p[len(p)-1] == '\r'
	}
	if last && g.carriage {
		g.oldLines()
	}
}

// pass counts what a piece of the file has of lines and quotes. A quote within
// quotes is written as two, which leave quoted as it was.
func (g *guard) pass(piece []byte) {
	g.line += bytes.Count(piece, []byte("\n"))
	if bytes.Count(piece, []byte(`"`))%2 == 1 {
		g.quoted = !g.quoted
	}
}

func (g *guard) oldLines() {
	g.fault = &CSVError{
		Line: g.line, Reason: "a line ends in CR alone, as on old Macintosh computers; " +
			"convert the line ends to LF (tr '\\r' '\\n')",
	}
}

package proxy

import (
	"hash/maphash"
	"strings"
	"sync"
	"time"

	"github.com/hiatus-tailor/tailor/internal/audit"
)

// Of a statement that passes and is run over and over, a session leaves this
// many records of their own in each interval. Further runs are counted and
// come in one record, so that traffic at a program's pace costs the audit log
// no more than a person's.
const (
	recordsOfAShape = 100
	tallyInterval   = 10 * time.Second
	maxShapes       = 256
	maxTallied      = 512 << 10 // of texts
)

// statementStats counts the runs of statements that passed. Statements have one shape
// where they differ in literals and blanks only. It is safe for concurrent use.
type statementStats struct {
	seed   maphash.Seed
	mu     sync.Mutex
	shapes map[uint64]*fingerprint
	bytes  int // of their statements
}

// fingerprint is what is known of the runs of one fingerprint in this interval.
type fingerprint struct {
	recorded  int // have records of their own
	open      int // are under way and will be counted
	runs      int // beyond those
	rows      int64
	duration  time.Duration
	started   time.Time
	statement string
}

// counts says whether a run is counted here; it wants a record of its own if
// not.
func (t *statementStats) counts(l *statementInfo, now time.Time) *fingerprint {
	key := l.shapeIn(t)
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.shapes[key]
	if s == nil {
		if len(t.shapes) >= maxShapes {
			return nil
		}
		if t.shapes == nil {
			t.shapes = make(map[uint64]*fingerprint)
		}
		s = &fingerprint{}
		t.shapes[key] = s
	}
	if s.recorded < recordsOfAShape {
		s.recorded++
		return nil
	}
	if s.runs == 0 && s.open == 0 {
		if t.bytes+len(l.text)-len(s.statement) > maxTallied {
			return nil
		}
		t.bytes += len(l.text) - len(s.statement)
		s.started, s.statement = now, l.text
	}
	s.open++
	return s
}

// ended counts a run that passed, and takes back one that did not.
func (t *statementStats) ended(s *fingerprint, passed bool, rows int64, duration time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.open--
	if passed {
		s.runs++
		s.rows += rows
		s.duration += duration
	}
}

// sum is what the counted runs of a shape come to.
type sum struct {
	record  *audit.Record
	outcome audit.Outcome
}

// take ends an interval and returns a record of each shape with counted runs.
func (t *statementStats) take(
	now time.Time, record func(started time.Time, statement string) *audit.Record,
) []sum {
	t.mu.Lock()
	defer t.mu.Unlock()
	var sums []sum
	for key, s := range t.shapes {
		if s.runs > 0 {
			r := record(s.started, s.statement)
			r.Runs = s.runs
			sums = append(sums, sum{r, audit.Outcome{
				Verdict: audit.Passed, Rows: s.rows,
				Duration: s.duration,
			}})
		}
		if s.open == 0 {
			t.bytes -= len(s.statement)
			delete(t.shapes, key)
			continue
		}
		*s = fingerprint{open: s.open, started: now, statement: s.statement}
	}
	return sums
}

// key is a hash of a text without its numbers, quoted strings and blanks. A
// text whose quoting takes more than a look is hashed as it is.
func (t *statementStats) key(text string) uint64 {
	var h maphash.Hash
	h.SetSeed(t.seed)
	var chunk [128]byte
	n := 0
	last := byte(' ') // that was hashed
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' || c == '$' || c == '"' || c == '/' || c == '-' && last == '-':
			return maphash.String(t.seed, text)
		case c == '\'':
			end := strings.IndexByte(text[i+1:], '\'')
			if end < 0 {
				return maphash.String(t.seed, text)
			}
			i += end + 1
		case c >= '0' && c <= '9' && !inWord(last):
			for i+1 < len(text) && (text[i+1] >= '0' && text[i+1] <= '9' || text[i+1] == '.') {
				i++
			}
			c = '0'
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
			if last == ' ' {
				continue
			}
			c = ' '
		}
		if n == len(chunk) {
			_, _ = h.Write(chunk[:])
			n = 0
		}
		chunk[n], last = c, c
		n++
	}
	_, _ = h.Write(chunk[:n])
	return h.Sum64()
}

// inWord says whether a digit behind a byte belongs to a name.
func inWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' ||
		c >= 0x80
}

// maxVerb is longer than any of the verbs that alike knows, with what may stand
// behind it.
const maxVerb = 32

// alike says whether runs of a text can be summed: what it does is in the text,
// and not in a literal, or under a name, that the sum leaves out.
func alike(text string) bool {
	first, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	if len(first) > maxVerb {
		return false
	}
	first = strings.TrimRight(first, ";\n\t")
	var lower [maxVerb]byte // strings.ToLower would make a string of each text
	for i, c := range []byte(first) {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	switch string(lower[:len(first)]) {
	case "select", "insert", "update", "delete", "values", "table", "with", "begin", "start", "commit",
		"end", "rollback",
		"show", "set", "reset", "savepoint", "release", "":
		return true
	}
	return false
}

package audit

import (
	"strings"
	"sync"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/internal/sqltext"
)

// SQL says what the log keeps of a statement's text.
type SQL string

// The ways to keep a text. With Full, values that clients write into their
// statements stand in the log; the console and reports remove them still.
const (
	SQLRedacted SQL = "redacted" // with $1, $2, … in place of literals
	SQLFull     SQL = "full"
	SQLNone     SQL = "none" // only its fingerprint
)

// unreadable stands for a text that could not be freed of its literals.
const unreadable = "(not shown: the text could not be parsed)"

// Bounds of the texts that are given to the parser, which a deeply nested one
// could crash: no tighter than the planner's, so that whatever is released is
// recorded with its text.
const (
	maxReadable       = 256 << 10
	maxReadableTokens = 8000
)

// MostShown is how long a text that [Shown] returns is at most, in bytes.
const MostShown = maxReadable + 1

// Shown is as much of a statement's text as its record may show or say that it is too
// long for. It keeps nothing of a longer one.
func Shown(statement string) string {
	if len(statement) <= MostShown {
		return statement
	}
	return strings.Clone(statement[:MostShown])
}

// notHeld stands for the text of a record that waited behind too many long ones.
const notHeld = "(not shown: too many long statements at once)"

// longestName is that of a PostgreSQL identifier, in bytes.
const longestName = 63

// redact fills SQL and Fingerprint.
func (r *Record) redact(mode SQL, known *texts) {
	text := r.statement
	r.statement = ""
	if text == "" {
		return
	}
	of := known.describe(text)
	r.Fingerprint = of.fingerprint
	switch mode {
	case SQLFull:
		r.SQL = shortened(strings.ToValidUTF8(text, "�"), maxReadable)
	case SQLNone:
	default:
		r.SQL = of.normal
	}
}

// texts keeps what was found of statements, which tools send again and again:
// to parse one takes as long as to encode its record and to write it. It is
// safe for concurrent use.
type texts struct {
	mu    sync.Mutex
	kept  map[string]described
	bytes int
}

// described is a statement without its literals, and its fingerprint, empty
// where it cannot be parsed.
type described struct{ normal, fingerprint string }

// Bounds of texts; where there are more, all are dropped.
const (
	mostKept      = 1024
	mostKeptBytes = 2 << 20
	longestKept   = 4 << 10
)

func (t *texts) describe(text string) described {
	if len(text) > longestKept {
		return describe(text)
	}
	t.mu.Lock()
	d, ok := t.kept[text]
	t.mu.Unlock()
	if ok {
		return d
	}
	d = describe(text)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kept == nil || len(t.kept) >= mostKept || t.bytes >= mostKeptBytes {
		t.kept, t.bytes = make(map[string]described), 0
	}
	t.kept[strings.Clone(text)] = d
	t.bytes += len(text) + len(d.normal)
	return d
}

func describe(text string) described {
	if text == notHeld {
		return described{normal: text}
	}
	normal, readable := WithoutLiterals(text)
	if !readable {
		return described{normal: normal}
	}
	fingerprint, err := pg.Fingerprint(text)
	if err != nil {
		fingerprint = ""
	}
	return described{normal, fingerprint}
}

// WithoutLiterals is the text with $1, $2, … in place of its literals, and
// false where it cannot be parsed; then nothing of it is returned.
func WithoutLiterals(text string) (string, bool) {
	if len(text) > maxReadable || sqltext.Slow(text) {
		return unreadable, false
	}
	if len(text) > maxReadableTokens { // a token has a byte at least
		if tokens, err := pg.Scan(text); err != nil || len(tokens.Tokens) > maxReadableTokens {
			return unreadable, false
		}
	}
	normal, err := pg.Normalize(text)
	if err == nil {
		normal, err = withoutRest(normal)
	}
	if err != nil {
		return unreadable, false
	}
	return normal, true
}

// asName is a name that a client gave, as long as PostgreSQL would take it.
func asName(s string) string { return shortened(strings.ToValidUTF8(s, "�"), longestName) }

// shortened is at most as many bytes of a text.
func shortened(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}

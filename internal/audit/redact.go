package audit

import (
	"fmt"
	"strings"

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

// longestName is that of a PostgreSQL identifier, in bytes.
const longestName = 63

// redact fills SQL and Fingerprint.
func (r *Record) redact(mode SQL) {
	text := r.statement
	r.statement = ""
	if text == "" {
		return
	}
	normal, readable := WithoutLiterals(text)
	if print, err := fingerprint(text, readable); err == nil {
		r.Fingerprint = print
	}
	switch mode {
	case SQLFull:
		r.SQL = shortened(strings.ToValidUTF8(text, "�"), maxReadable)
	case SQLNone:
	default:
		r.SQL = normal
	}
}

// WithoutLiterals is the text with $1, $2, … in place of its literals, and
// false where it cannot be parsed; then nothing of it is returned.
func WithoutLiterals(text string) (string, bool) {
	if len(text) > maxReadable || sqltext.Slow(text) {
		return unreadable, false
	}
	if tokens, err := pg.Scan(text); err != nil || len(tokens.Tokens) > maxReadableTokens {
		return unreadable, false
	}
	normal, err := pg.Normalize(text)
	if err != nil {
		return unreadable, false
	}
	return normal, true
}

func fingerprint(text string, readable bool) (string, error) {
	if !readable {
		return "", fmt.Errorf("no fingerprint: %s", unreadable)
	}
	return pg.Fingerprint(text)
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

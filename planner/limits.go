package planner

import (
	"slices"
	"strings"
	"unicode/utf8"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/internal/sqltext"
)

// The parser is a C library on a C stack, which a deeply nested expression
// overflows, and no Go code can recover from that. Its tree is never deeper
// than a small multiple of the number of tokens, so both are bounded before it
// is called. Only the scanner, which does not recurse, sees longer texts.
const (
	maxTextBytes = 256 << 10
	maxTokens    = 8000
)

// What a short text can stand for is bounded too: "*" over "*" multiplies.
const (
	// maxColumns is PostgreSQL's own limit for one target list.
	maxColumns = 1664
	// maxColumnsOverall bounds the columns of all levels together.
	maxColumnsOverall = 100_000
	maxRewrittenBytes = 4 << 20
	// releaseBytes is the room that the name of a release takes at most.
	releaseBytes = 60
)

// scanBounded splits a statement into tokens, or refuses it as too large. text is
// the one to parse: the statement, byte for byte in the same places, as
// [withoutCommentsInStrings] leaves it.
func scanBounded(statement string) (text string, tokens []*pg.ScanToken, err error) {
	if len(statement) > maxTextBytes {
		return "", nil, sqlstate.New(sqlstate.ProgramLimitExceeded,
			"the statement is too long for one that names a protected table (%d bytes, at most %d)",
			len(statement), maxTextBytes).
			WithHint("Load long lists of values into a temporary table and join with it.")
	}
	if sqltext.Slow(statement) {
		return "", nil, sqlstate.New(sqlstate.StatementTooComplex,
			"the statement is too complex for one that names a protected table (a run of more than %d "+
				"operator characters, or comments nested more than %d deep)",
			sqltext.MaxOperator, sqltext.MaxCommentDepth).WithHint("Shorten the run, also inside comments " +
			"and strings.")
	}
	scanned, err := pg.Scan(statement)
	if err != nil {
		return "", nil, scanError(err)
	}
	if text = withoutCommentsInStrings(statement, scanned.Tokens); text != statement {
		if scanned, err = pg.Scan(text); err != nil {
			return "", nil, scanError(err)
		}
	}
	if len(scanned.Tokens) > maxTokens {
		return "", nil, sqlstate.New(sqlstate.StatementTooComplex,
			"the statement is too complex for one that names a protected table (%d tokens, at most %d)",
			len(scanned.Tokens), maxTokens).
			WithHint("Load long lists of values into a temporary table and join with it.")
	}
	return text, withoutComments(scanned.Tokens), nil
}

// withoutCommentsInStrings puts blanks in place of comments between the lines of
// a string ('a' -- why ⏎ 'b'), where PostgreSQL's scanner takes them for blanks
// and the parser's sees two strings. Comments that are not ASCII stay: positions
// count characters.
func withoutCommentsInStrings(statement string, tokens []*pg.ScanToken) string {
	var text []byte
	for i, t := range tokens {
		if t.Token != pg.Token_SCONST && t.Token != pg.Token_BCONST && t.Token != pg.Token_XCONST {
			continue
		}
		next := i + 1
		for next < len(tokens) && tokens[next].Token == pg.Token_SQL_COMMENT {
			next++
		}
		if next == i+1 || next == len(tokens) || tokens[next].Token != pg.Token_SCONST ||
			statement[tokens[next].Start] != '\'' {
			continue
		}
		if text == nil {
			text = []byte(statement)
		}
		for _, comment := range tokens[i+1 : next] {
			of := statement[comment.Start:comment.End]
			if len(of) == utf8.RuneCountInString(of) {
				copy(text[comment.Start:], strings.Repeat(" ", len(of)))
			}
		}
	}
	if text == nil {
		return statement
	}
	return string(text)
}

// withoutComments leaves the tokens that the grammar sees, so that the
// distance of two tokens is what the grammar says.
func withoutComments(tokens []*pg.ScanToken) []*pg.ScanToken {
	return slices.DeleteFunc(tokens, func(t *pg.ScanToken) bool {
		return t.Token == pg.Token_SQL_COMMENT || t.Token == pg.Token_C_COMMENT
	})
}

func (b *binder) tooManyColumns(n int) error {
	return sqlstate.New(sqlstate.TooManyColumns,
		"target lists can have at most %d entries, with the columns for labels (%d)", maxColumns, n).
		WithHint("Name the columns that are needed.")
}

// spend counts the columns of one query level.
func (b *binder) spend(q *boundQuery) error {
	if len(q.columns) > maxColumns {
		return b.tooManyColumns(len(q.columns))
	}
	return b.spendColumns(len(q.columns))
}

func (b *binder) spendColumns(n int) error {
	if b.columns += n; b.columns > maxColumnsOverall {
		return sqlstate.New(sqlstate.StatementTooComplex,
			"the statement has too many columns over all its levels (at most %d)", maxColumnsOverall).
			WithHint("Name the columns that are needed.")
	}
	return nil
}

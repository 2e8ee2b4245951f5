package planner

import (
	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// The parser is a C library on a C stack, which a deeply nested expression
// overflows, and no Go code can recover from that. Its tree is never deeper
// than a small multiple of the number of tokens, so both are bounded before it
// is called. Only the scanner, which does not recurse, sees longer texts.
const (
	maxTextBytes = 256 << 10
	maxTokens    = 8000
)

// scanBounded splits a statement into tokens, or refuses it as too large.
func scanBounded(statement string) ([]*pg.ScanToken, error) {
	if len(statement) > maxTextBytes {
		return nil, sqlstate.New(sqlstate.ProgramLimitExceeded,
			"the statement is too long for one that names a protected table (%d bytes, at most %d)", len(statement), maxTextBytes).
			WithHint("Load long lists of values into a temporary table and join with it.")
	}
	scanned, err := pg.Scan(statement)
	if err != nil {
		return nil, sqlstate.New(sqlstate.SyntaxError, "the statement cannot be split into tokens").Wrap(err)
	}
	if len(scanned.Tokens) > maxTokens {
		return nil, sqlstate.New(sqlstate.StatementTooComplex,
			"the statement is too complex for one that names a protected table (%d tokens, at most %d)", len(scanned.Tokens), maxTokens).
			WithHint("Load long lists of values into a temporary table and join with it.")
	}
	return scanned.Tokens, nil
}

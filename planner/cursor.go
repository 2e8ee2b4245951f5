package planner

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v5"
)

// Fetching is a text that only moves cursors and begins or ends transactions,
// so that it reads what a recorded DECLARE CURSOR has set out, and nothing else.
type Fetching struct {
	Cursors []string // that it fetches from or moves
	Closed  []string // and closes; "" stands for all
	Ends    bool     // a transaction, which reads the rest of cursors WITH HOLD
}

// fetchingBytes bounds the texts that are looked at.
const fetchingBytes = 4096

// fetchingWords start the statements that such a text may hold.
var fetchingWords = []string{"fetch", "move", "close", "commit", "end", "begin", "start", "prepare"}

// FetchingOf tells a text that fetches from cursors; ok is false for any other.
func FetchingOf(statement string) (f Fetching, ok bool) {
	if len(statement) > fetchingBytes {
		return f, false
	}
	lower := strings.ToLower(statement)
	if !slices.ContainsFunc(fetchingWords, func(w string) bool { return strings.Contains(lower, w) }) {
		return f, false
	}
	text, tokens, err := scanBounded(statement)
	if err != nil || len(tokens) == 0 || !slices.Contains(fetchingWords, strings.ToLower(statement[tokens[0].Start:tokens[0].End])) {
		return f, false
	}
	tree, err := pg.Parse(text)
	if err != nil {
		return f, false
	}
	for _, s := range tree.Stmts {
		switch n := s.Stmt.GetNode().(type) {
		case *pg.Node_FetchStmt:
			f.Cursors = append(f.Cursors, n.FetchStmt.Portalname)
		case *pg.Node_ClosePortalStmt:
			f.Closed = append(f.Closed, n.ClosePortalStmt.Portalname)
		case *pg.Node_TransactionStmt:
			switch n.TransactionStmt.Kind {
			case pg.TransactionStmtKind_TRANS_STMT_BEGIN, pg.TransactionStmtKind_TRANS_STMT_START:
			case pg.TransactionStmtKind_TRANS_STMT_COMMIT:
				f.Ends = true
			default:
				return f, false
			}
		default:
			return f, false
		}
	}
	return f, true
}

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
	Undoes  bool     // a transaction, and its cursors with it
}

// fetchingBytes bounds the texts that are looked at.
const fetchingBytes = 4096

// fetchingWords start the statements that such a text may hold.
var fetchingWords = []string{
	"fetch", "move", "close", "commit", "end", "begin", "start", "prepare",
	"savepoint", "release", "rollback", "abort",
}

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
	if err != nil || len(tokens) == 0 ||
		!slices.Contains(fetchingWords, strings.ToLower(statement[tokens[0].Start:tokens[0].End])) {
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
			case pg.TransactionStmtKind_TRANS_STMT_SAVEPOINT, pg.TransactionStmtKind_TRANS_STMT_RELEASE,
				pg.TransactionStmtKind_TRANS_STMT_ROLLBACK_TO:
			case pg.TransactionStmtKind_TRANS_STMT_COMMIT:
				f.Ends = true
			case pg.TransactionStmtKind_TRANS_STMT_ROLLBACK:
				f.Undoes = true
			default:
				return f, false
			}
		default:
			return f, false
		}
	}
	return f, true
}

// MayFetch says whether a text may fetch from a cursor of which named says that it is
// one: it fetches from it, or has a block that may, or is not understood. SQL in strings
// that are computed is not seen.
func MayFetch(statement string, named func(cursor string) bool) bool {
	if lower := strings.ToLower(statement); !strings.Contains(lower, "fetch") &&
		!strings.Contains(lower, "move") {
		return false
	}
	text, _, err := scanBounded(statement)
	if err != nil {
		return true
	}
	tree, err := pg.Parse(text)
	return err != nil || slices.ContainsFunc(tree.Stmts, func(s *pg.RawStmt) bool {
		fetch := s.Stmt.GetFetchStmt()
		return s.Stmt.GetDoStmt() != nil || fetch != nil && named(fetch.Portalname)
	})
}

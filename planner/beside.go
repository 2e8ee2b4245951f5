package planner

import (
	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// beside refuses a statement that may run a query of the reader's own, or leaves behind
// what it reads, in one text with statements over protected tables: all of the text has
// one ticket. REFRESH MATERIALIZED VIEW runs the view's query, what writes runs
// constraints, defaults and expressions of indexes.
func (b *binder) beside(s *pg.RawStmt) error {
	switch n := s.Stmt.GetNode().(type) {
	case *pg.Node_VariableSetStmt:
		if n.VariableSetStmt.Name != "TRANSACTION SNAPSHOT" { // may be older than the release
			return nil
		}
	case *pg.Node_SelectStmt, *pg.Node_ExplainStmt,
		*pg.Node_VariableShowStmt, *pg.Node_DiscardStmt,
		*pg.Node_DeclareCursorStmt, *pg.Node_FetchStmt, *pg.Node_ClosePortalStmt, *pg.Node_DeallocateStmt:
		return nil
	case *pg.Node_CreateTableAsStmt:
		if n.CreateTableAsStmt.Objtype == pg.ObjectType_OBJECT_TABLE &&
			n.CreateTableAsStmt.Into.GetRel().GetRelpersistence() == "t" {
			return nil
		}
	case *pg.Node_DropStmt:
		if n.DropStmt.RemoveType == pg.ObjectType_OBJECT_TABLE {
			return nil
		}
	case *pg.Node_CopyStmt:
		if n.CopyStmt.Query != nil && !n.CopyStmt.IsFrom && n.CopyStmt.Filename == "" {
			return nil
		}
	case *pg.Node_TransactionStmt:
		switch n.TransactionStmt.Kind {
		case pg.TransactionStmtKind_TRANS_STMT_PREPARE, pg.TransactionStmtKind_TRANS_STMT_COMMIT_PREPARED,
			pg.TransactionStmtKind_TRANS_STMT_ROLLBACK_PREPARED:
		default:
			return nil
		}
	}
	return sqlstate.New(sqlstate.FeatureNotSupported,
		"this statement cannot stand beside one over protected tables in one text").
		WithHint("Send it on its own: what it runs would be recorded as the other.").
		At(b.statement, b.textStart(int(s.StmtLocation)))
}

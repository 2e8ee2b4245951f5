package planner

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// changesSettings says whether a statement can change what the statements
// behind it in the same text mean: the plan is made before any of them runs,
// under the settings at hand. The end of a transaction takes back its SET.
func changesSettings(stmt *pg.Node, found nodeCollector) bool {
	switch n := stmt.GetNode().(type) {
	case *pg.Node_VariableSetStmt, *pg.Node_DiscardStmt, *pg.Node_DoStmt, *pg.Node_CallStmt:
		return true
	case *pg.Node_TransactionStmt:
		switch n.TransactionStmt.Kind {
		case pg.TransactionStmtKind_TRANS_STMT_COMMIT, pg.TransactionStmtKind_TRANS_STMT_ROLLBACK,
			pg.TransactionStmtKind_TRANS_STMT_ROLLBACK_TO, pg.TransactionStmtKind_TRANS_STMT_PREPARE:
			return true
		}
		return false
	}
	return slices.ContainsFunc(found.calls, func(f *pg.FuncCall) bool {
		return last(f.Funcname) == "set_config"
	})
}

// refuseAfterChange ends a text whose earlier statements change the settings
// that the plan of a later one rests on.
func (b *binder) refuseAfterChange(at int) error {
	return sqlstate.New(sqlstate.FeatureNotSupported,
		"a protected table cannot be read in one text behind a statement that can change settings").
		WithHint("Send the statement on its own.").At(b.statement, b.textStart(at))
}

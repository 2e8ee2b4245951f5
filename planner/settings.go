package planner

import (
	pg "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// changesSettings says whether a statement can change what the statements
// behind it in the same text mean: the plan is made before any of them runs,
// under the settings at hand. The end of a transaction takes back its SET.
func changesSettings(stmt *pg.Node) bool {
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
	found := false
	walk(stmt.ProtoReflect(), func(m protoreflect.Message) {
		if f, ok := m.Interface().(*pg.FuncCall); ok && last(f.Funcname) == "set_config" {
			found = true
		}
	})
	return found
}

// refuseAfterChange ends a text whose earlier statements change the settings
// that the plan of a later one rests on.
func (b *binder) refuseAfterChange(at int) error {
	return sqlstate.New(sqlstate.FeatureNotSupported,
		"a protected table cannot be read in one text behind a statement that can change settings").
		WithHint("Send the statement on its own.").At(b.statement, b.textStart(at))
}

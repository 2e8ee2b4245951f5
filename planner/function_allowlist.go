package planner

import (
	"errors"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// runSQL are functions of PostgreSQL's own that run SQL from a string or name a
// relation by one. Beside a protected relation they would read its release
// under the ticket of a text that says nothing of it.
var runSQL = []string{
	"query_to_xml", "query_to_xmlschema", "query_to_xml_and_xmlschema", "cursor_to_xml",
	"cursor_to_xmlschema",
	"table_to_xml", "table_to_xmlschema", "table_to_xml_and_xmlschema",
	"schema_to_xml", "schema_to_xmlschema", "schema_to_xml_and_xmlschema",
	"database_to_xml", "database_to_xmlschema", "database_to_xml_and_xmlschema",
	"ts_stat", "ts_rewrite", "crosstab", "connectby", "xpath_table",
	"pg_input_is_valid", "pg_input_error_info", // of a type that is named by a string
}

// signals are functions that end in a warning, in the server's log as well,
// which quotes the argument.
var signals = []string{
	"pg_terminate_backend", "pg_cancel_backend",
	"pg_log_backend_memory_contexts",
}

// assertAllowedFunction refuses functions that run SQL of their own, as far as their names
// tell: those above, dblink's, and what lies in a schema of its own; and those
// that write their arguments to the log.
func (b *binder) assertAllowedFunction(f *pg.FuncCall) error {
	name := last(f.Funcname)
	if slices.Contains(signals, name) {
		return sqlstate.New(sqlstate.InsufficientPrivilege,
			"function %q cannot be called beside a protected table", name).
			WithHint("The server's log would hold its argument. Call it in a statement of its own, with a "+
				"number that you have read.").
			At(b.statement, int(f.Location))
	}
	own := foreign(f.Funcname) && !b.isCaseCount(f)
	if !own && !slices.Contains(runSQL, name) && !strings.HasPrefix(name, "dblink") {
		return nil
	}
	return sqlstate.New(sqlstate.InsufficientPrivilege,
		"function %q cannot be called beside a protected table", name).
		WithHint("It may run SQL that no record would hold. Functions of PostgreSQL's own that compute "+
			"values can be called.").
		At(b.statement, int(f.Location))
}

// assertNothingElseRuns does so of all that a text over protected relations has anywhere, in
// statements and clauses that are not bound, too: all of it has one ticket. A function may be
// written as a column of its argument, (argument).function.
func (b *binder) assertNothingElseRuns(stmts []*pg.RawStmt) error {
	if len(b.plan.Relations) == 0 {
		return nil
	}
	var refused *sqlstate.Error // the first in the text: trees are walked in any order
	check := func(err error) {
		var one *sqlstate.Error
		if errors.As(err, &one) && (refused == nil || one.Position < refused.Position) {
			refused = one
		}
	}
	asColumn := func(name string, at int32) {
		check(b.assertAllowedFunction(&pg.FuncCall{
			Funcname: []*pg.Node{pg.MakeStrNode(name)}, Location: at,
		}))
	}
	for _, s := range stmts {
		walk(s.ProtoReflect(), func(m proto.Message) {
			switch n := m.(type) {
			case *pg.FuncCall:
				if !b.isLabelCall(n) {
					check(b.assertAllowedFunction(n))
				}
			case *pg.A_Expr:
				check(b.ownOperator(n.Name, int(n.Location)))
			case *pg.SubLink:
				check(b.ownOperator(n.OperName, int(n.Location)))
			case *pg.SortBy:
				check(b.ownOperator(n.UseOp, int(n.Location)))
			case *pg.TypeName:
				check(b.ownType(n))
			case *pg.ColumnRef:
				if names := refNames(n); len(names) > 1 {
					asColumn(names[len(names)-1], n.Location)
				}
			case *pg.A_Indirection:
				for _, part := range n.Indirection {
					asColumn(part.GetString_().GetSval(), int32(max(start(n.Arg), 0)))
				}
			}
		})
	}
	if refused == nil {
		return nil
	}
	return refused
}

// ownOperator refuses an operator that is named with a schema other than
// pg_catalog: behind it stands a function, as behind a name.
func (b *binder) ownOperator(names []*pg.Node, at int) error {
	if !foreign(names) {
		return nil
	}
	return sqlstate.New(sqlstate.InsufficientPrivilege,
		"operator %q cannot be named with a schema beside a protected table", last(names)).
		WithHint("The function behind it may run SQL that no record would hold. "+
			"OPERATOR(pg_catalog....) names PostgreSQL's own.").
		At(b.statement, at)
}

// ownType refuses a type that is named with a schema other than pg_catalog:
// a cast to it may call a function, and its constraints may.
func (b *binder) ownType(t *pg.TypeName) error {
	plain := !slices.ContainsFunc(t.GetTypmods(), func(n *pg.Node) bool {
		return n.GetAConst() == nil && n.GetColumnRef() == nil
	})
	if !foreign(t.GetNames()) && plain {
		return nil
	}
	return sqlstate.New(sqlstate.InsufficientPrivilege,
		"type %q cannot be named with a schema beside a protected table", last(t.Names)).
		WithHint("A cast to it may run SQL that no record would hold. Types of PostgreSQL's own can "+
			"be named.").
		At(b.statement, int(t.Location))
}

// foreign says whether a name has a schema other than pg_catalog.
func foreign(names []*pg.Node) bool {
	return len(names) > 1 && names[len(names)-2].GetString_().GetSval() != "pg_catalog"
}

// ownNames start the names of the columns that releases hold beside those of
// their tables: labels, the numbers of rows, and the numbers of labels.
var ownNames = []string{"tailor_label", "tailor_number"}

// assertNoLabels refuses texts that name what a release holds beside the
// table's own columns: it would be shown without being noted.
func (b *binder) assertNoLabels() error {
	for _, t := range b.tokens {
		if t.Token != pg.Token_IDENT {
			continue
		}
		text := strings.TrimPrefix(strings.ToLower(b.statement[t.Start:t.End]), `"`)
		for _, own := range ownNames {
			if strings.HasPrefix(text, own) {
				return sqlstate.New(sqlstate.UndefinedColumn,
					"names that start with %q are reserved beside a protected table", own).
					WithHint("Name the column itself: its label is shown.").At(b.statement, int(t.Start))
			}
		}
	}
	return nil
}

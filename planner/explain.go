package planner

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// explainFormats are the forms of EXPLAIN (TAILOR).
var explainFormats = []string{"text", "json", "mermaid", "dot"}

// asksTailor says whether a statement is EXPLAIN (TAILOR …), which Tailor
// answers itself: PostgreSQL knows no such option.
func asksTailor(stmt *pg.Node) bool {
	return slices.ContainsFunc(stmt.GetExplainStmt().GetOptions(), func(option *pg.Node) bool {
		return option.GetDefElem().GetDefname() == "tailor"
	})
}

// explain plans EXPLAIN (TAILOR) of a query: what it reads and uses is noted,
// and nothing of it will run.
func (b *binder) explain(e *pg.ExplainStmt, alone bool) error {
	if !alone {
		return sqlstate.New(sqlstate.FeatureNotSupported, "EXPLAIN (TAILOR) stands alone").
			WithHint("Send it on its own.")
	}
	b.plan.Explain = "text"
	for _, option := range e.Options {
		d := option.GetDefElem()
		switch value := strings.ToLower(d.GetArg().GetString_().GetSval()); d.Defname {
		case "tailor":
			if d.Arg != nil && value != "true" && value != "on" {
				return sqlstate.New(sqlstate.SyntaxError, "option TAILOR takes no value").
					At(b.statement, int(d.Location))
			}
		case "format":
			if !slices.Contains(explainFormats, value) {
				return sqlstate.New(sqlstate.InvalidParameterValue, "unknown format for EXPLAIN (TAILOR)").
					WithHint("Formats are %s.", strings.Join(explainFormats, ", ")).
					At(b.statement, int(d.Location))
			}
			b.plan.Explain = value
		default:
			return sqlstate.New(sqlstate.FeatureNotSupported, "EXPLAIN (TAILOR) takes no option %q",
				d.Defname).
				WithHint("Beside TAILOR it knows FORMAT. The query is not run.").
				At(b.statement, int(d.Location))
		}
	}
	for _, t := range b.tokens {
		if t.Token == pg.Token_PARAM {
			return sqlstate.New(sqlstate.FeatureNotSupported, "EXPLAIN (TAILOR) takes no parameters").
				WithHint("Write any value in their place: values make no difference.").
				At(b.statement, int(t.Start))
		}
	}
	found := collectNodes(e.Query)
	concerned, err := b.concerned(found)
	if err != nil || concerned == "" {
		return err
	}
	b.joint = b.readJointly(found)
	query := e.Query.GetSelectStmt()
	if query == nil {
		return b.refuseStatement(e.Query, concerned)
	}
	_, err = b.selectStmt(query, nil, true)
	return err
}

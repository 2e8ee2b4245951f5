package planner

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// withClause binds the queries of WITH.
func (b *binder) withClause(w *pg.WithClause, sc *scope) error {
	if w == nil {
		return nil
	}
	for i, node := range w.Ctes {
		cte := node.GetCommonTableExpr()
		query := cte.GetCtequery().GetSelectStmt()
		if query == nil {
			return sqlstate.New(sqlstate.FeatureNotSupported,
				"WITH can only hold SELECT where a protected table is read").
				At(b.statement, int(cte.GetLocation()))
		}
		if w.Recursive && mentions(cte.Ctequery, w.Ctes[i:]) {
			if b.concerns(cte.Ctequery, sc) {
				return sqlstate.New(sqlstate.FeatureNotSupported,
					"WITH RECURSIVE cannot read a protected table").
					WithHint("Read the table in a query of WITH that does not refer to itself, and recurse over "+
						"that one's result in a temporary table.").
					At(b.statement, int(cte.Location))
			}
			// What it returns is not known, nor what those behind it do that it mentions.
			for _, later := range w.Ctes[i:] {
				c := later.GetCommonTableExpr()
				sc.ctes[c.Ctename] = &boundQuery{columns: renamed(nil, false, c.Aliascolnames)}
			}
			if _, err := b.selectStmt(query, sc, false); err != nil {
				return err
			}
			continue
		}
		bound, err := b.selectStmt(query, sc, false)
		if err != nil {
			return err
		}
		bound.columns = renamed(bound.columns, bound.known, cte.Aliascolnames)
		sc.ctes[cte.Ctename] = bound
	}
	return nil
}

// mentions says whether a tree names one of some queries of WITH, which under
// RECURSIVE may be itself or stand behind it.
func mentions(tree *pg.Node, ctes []*pg.Node) bool {
	return slices.ContainsFunc(collectNodes(tree).relations, func(rv *pg.RangeVar) bool {
		return rv.Schemaname == "" && slices.ContainsFunc(ctes, func(c *pg.Node) bool {
			return c.GetCommonTableExpr().GetCtename() == rv.Relname
		})
	})
}

// concerns says whether a tree names a protected relation, or a query of WITH
// that can carry labels.
func (b *binder) concerns(node *pg.Node, sc *scope) bool {
	return slices.ContainsFunc(collectNodes(node).relations, func(rv *pg.RangeVar) bool {
		if q, ok := sc.cte(rv.Relname); ok && rv.Schemaname == "" {
			return hasLabels(q.columns)
		}
		name, err := b.relationName(rv)
		return err != nil || b.protects(name)
	})
}

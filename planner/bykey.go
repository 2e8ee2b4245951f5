package planner

import (
	"maps"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/catalog"
)

// keyedTables notes the tables of a subquery that PostgreSQL asks once for each row of the
// query around it, for the rows of one subject: codes are then read by the view that finds
// these by an index. Which one is read changes no answer. Of EXISTS PostgreSQL makes a join,
// or looks all subjects up at once, unless more than equations depends on the row outside.
func (b *binder) keyedTables(query *pg.SelectStmt, exists bool) {
	inside := make(map[string]*pg.RangeVar) // by alias
	var conditions []*pg.Node
	known := true
	var collect func(node *pg.Node)
	collect = func(node *pg.Node) {
		switch n := node.GetNode().(type) {
		case *pg.Node_RangeVar:
			alias := n.RangeVar.Relname
			if n.RangeVar.Alias != nil {
				alias = n.RangeVar.Alias.Aliasname
			}
			inside[alias] = n.RangeVar
		case *pg.Node_JoinExpr:
			collect(n.JoinExpr.Larg)
			collect(n.JoinExpr.Rarg)
			conditions = append(conditions, conjuncts(n.JoinExpr.Quals)...)
		default:
			known = false
		}
	}
	for _, node := range query.FromClause {
		collect(node)
	}
	if !known || query.Op != pg.SetOperation_SETOP_NONE || query.WithClause != nil {
		return
	}
	tables := b.protectedOf(inside)
	outside := func(ref *pg.ColumnRef) bool {
		names := refNames(ref)
		if len(names) > 1 {
			return inside[names[len(names)-2]] == nil
		}
		return len(names) == 1 && !slices.ContainsFunc(tables,
			func(r *catalog.Relation) bool { return r.Column(names[0]) != nil })
	}
	keyed, once := false, exists
	for _, condition := range append(conditions, conjuncts(query.WhereClause)...) {
		if e := equation(condition); e != nil {
			x, y := e.Lexpr.GetColumnRef(), e.Rexpr.GetColumnRef()
			if x != nil && y != nil {
				keyed = keyed || outside(x) != outside(y)
				continue
			}
		}
		visit(condition, func(ref *pg.ColumnRef) { once = once && !outside(ref) })
	}
	if !keyed || once {
		return
	}
	if b.byKey == nil {
		b.byKey = make(map[*pg.RangeVar]bool)
	}
	for _, rv := range inside {
		b.byKey[rv] = true
	}
}

// protectedOf are the protected tables among some.
func (b *binder) protectedOf(inside map[string]*pg.RangeVar) (out []*catalog.Relation) {
	for rv := range maps.Values(inside) {
		if name, err := b.relationName(rv); err == nil && b.snapshot.Protected(name) != nil {
			out = append(out, b.snapshot.Protected(name))
		}
	}
	return out
}

package planner

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v5"
)

// A subquery over the parent that depends on a child's row by the key alone, in EXISTS or IN,
// is a join along the key: the child's release shows for each of its rows what the parent's
// quasi-identifiers are. So it is read as one, by the number of the row.

// semiJoin notes that a subquery is over the parent of a table outside of it.
func (b *binder) semiJoin(s *pg.SubLink, sc *scope) error {
	query := s.Subselect.GetSelectStmt()
	if query == nil || len(query.FromClause) != 1 || query.Op != pg.SetOperation_SETOP_NONE ||
		query.WithClause != nil {
		return nil
	}
	rv := query.FromClause[0].GetRangeVar()
	if rv == nil || rv.Alias.GetColnames() != nil || b.keyed.parents[rv] != nil {
		return nil
	}
	if _, isCTE := sc.cte(rv.Relname); isCTE && rv.Schemaname == "" {
		return nil
	}
	name, err := b.relationName(rv)
	if err != nil {
		return err
	}
	parent := b.snapshot.Protected(name)
	if parent == nil || b.joint[parent] != nil {
		return nil
	}
	inner := &standing{rv: rv, alias: rv.Relname, relation: parent}
	if rv.Alias != nil {
		inner.alias = rv.Alias.Aliasname
	}
	outer := func(ref *pg.ColumnRef) *entry {
		e := b.childOutside(ref, sc, parent.OID)
		if e != nil && e.alias == inner.alias {
			return nil
		}
		return e
	}
	switch s.SubLinkType {
	case pg.SubLinkType_ANY_SUBLINK:
		key := s.Testexpr.GetColumnRef()
		e := outer(key)
		if e == nil || len(s.OperName) > 0 && last(s.OperName) != "=" || !selectsEachRow(query) {
			return nil
		}
		if ref := query.TargetList[0].GetResTarget().GetVal().GetColumnRef(); inner.keyIs(ref) {
			return b.semiJoined(e, inner, key, ref)
		}
	case pg.SubLinkType_EXISTS_SUBLINK:
		return b.equated(query.WhereClause, inner, outer)
	}
	return nil
}

// selectsEachRow says whether a query without aggregates has one value of every row that meets
// its condition: it has them, too, if there are several rows for one.
func selectsEachRow(query *pg.SelectStmt) bool {
	return len(query.TargetList) == 1 && len(query.GroupClause) == 0 && query.HavingClause == nil &&
		query.LimitCount == nil && query.LimitOffset == nil && len(query.WindowClause) == 0 &&
		!distinctOn(query)
}

// distinctOn says whether a query keeps the first row of each group.
func distinctOn(query *pg.SelectStmt) bool {
	return slices.ContainsFunc(query.DistinctClause,
		func(n *pg.Node) bool { return n.GetNode() != nil })
}

// equated finds the equation of both keys among the conjuncts of a condition.
func (b *binder) equated(
	condition *pg.Node,
	inner *standing,
	outer func(*pg.ColumnRef) *entry,
) error {
	if and := condition.GetBoolExpr(); and != nil && and.Boolop == pg.BoolExprType_AND_EXPR {
		for _, arg := range and.Args {
			if err := b.equated(arg, inner, outer); err != nil {
				return err
			}
		}
		return nil
	}
	e := equation(condition)
	if e == nil {
		return nil
	}
	x, y := e.Lexpr.GetColumnRef(), e.Rexpr.GetColumnRef()
	if inner.keyIs(x) {
		x, y = y, x
	}
	if x == nil || len(x.Fields) == 1 && inner.has(last(x.Fields)) {
		return nil // it is a column of the subquery's own table
	}
	if child := outer(x); child != nil && inner.keyIs(y) {
		return b.semiJoined(child, inner, x, y)
	}
	return nil
}

// keyIs says whether a reference inside of the subquery is the table's key.
func (t *standing) keyIs(ref *pg.ColumnRef) bool {
	if ref == nil || isStar(ref) {
		return false
	}
	names := refNames(ref)
	return t.isKey(names[len(names)-1]) &&
		(len(names) == 1 || len(names) == 2 && names[0] == t.alias)
}

// childOutside is the entry, outside of a subquery, of a table whose key refers to another
// table's and which a reference names; nil if it is none.
func (b *binder) childOutside(ref *pg.ColumnRef, sc *scope, parent uint32) *entry {
	if ref == nil || isStar(ref) {
		return nil
	}
	names := refNames(ref)
	for _, e := range sc.entries {
		if e.relation == nil || e.via != nil || e.query != nil || e.relation.SetValued != nil ||
			!slices.Contains(e.relation.References, parent) ||
			names[len(names)-1] != e.relation.Subject ||
			e.find(e.relation.Subject) >= 0 ||
			!sc.reaches(e) {
			continue
		}
		if len(names) == 2 && names[0] == e.alias || len(names) == 1 && len(sc.entries) == 1 {
			return e
		}
	}
	return nil
}

// semiJoined puts the number of the child's row in place of both keys.
func (b *binder) semiJoined(e *entry, inner *standing, outside, inside *pg.ColumnRef) error {
	if err := lends(e.relation, inner.relation); err != nil {
		return err.At(b.statement, int(outside.Location))
	}
	b.keyed.parents[inner.rv] = e.relation
	b.keyed.keys[outside] = &standing{alias: e.alias, relation: e.relation}
	b.keyed.keys[inside] = inner
	return nil
}

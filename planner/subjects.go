package planner

import (
	"fmt"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/catalog"
)

// countsAll finds a target that is count(DISTINCT key) over all rows of a table
// with several rows for a subject, or of its join with its parent along the key,
// and puts the number of subjects of its copy in place of it. It is one number
// for the whole table: of any part of it, the number would tell which rows are
// of one subject (docs/decisions/joins.md).
func (b *binder) countsAll(target *pg.ResTarget, s *pg.SelectStmt, sc *scope) (bool, error) {
	f := target.GetVal().GetFuncCall()
	if f == nil || !isSubjectCount(f) || f.AggFilter != nil || len(s.GroupClause) > 0 ||
		s.HavingClause != nil || !b.wholeTable(s, sc) {
		return false, nil
	}
	whole := b.holdsKey(f.Args[0].GetColumnRef(), sc)
	if whole == nil || whole.OneRow || whole.SetValued != nil || whole.Subjects == 0 {
		return false, nil
	}
	if !slices.Contains(b.plan.Counted, whole) {
		b.plan.Counted = append(b.plan.Counted, whole)
	}
	first, end := b.extentOf(f)
	// There are at least as many rows; without any, none is a subject.
	text := fmt.Sprintf("LEAST(pg_catalog.count(*), %d::pg_catalog.int8)", whole.Subjects)
	if target.Name == "" {
		text += " AS " + quoted("count")
	}
	return true, b.replace(first, end, text)
}

// isSubjectCount says whether a call has the form of count(DISTINCT column).
func isSubjectCount(f *pg.FuncCall) bool {
	if last(f.Funcname) != "count" || len(f.Funcname) != 1 || !f.AggDistinct || len(f.Args) != 1 ||
		f.Over != nil || len(f.AggOrder) > 0 {
		return false
	}
	ref := f.Args[0].GetColumnRef()
	return ref != nil && !isStar(ref)
}

// wholeTable says whether the rows of a query are all those of one protected
// table, each once: it is read alone, or joined with its parent by the equation
// of the keys and nothing else.
func (b *binder) wholeTable(s *pg.SelectStmt, sc *scope) bool {
	switch {
	case len(sc.entries) == 1:
		return sc.entries[0].relation != nil && s.WhereClause == nil
	case len(sc.entries) != 2 || sc.entries[0].via == nil && sc.entries[1].via == nil:
		return false
	}
	for _, e := range sc.entries {
		if e.kept {
			return false // there are subjects without rows
		}
	}
	j := s.FromClause[0].GetJoinExpr()
	if j == nil {
		return b.isKeyEquation(s.WhereClause)
	}
	if len(j.UsingClause) > 0 {
		return s.WhereClause == nil && len(j.UsingClause) == 1 && b.keyed.using[j] != ""
	}
	if j.Quals == nil { // CROSS JOIN
		return b.isKeyEquation(s.WhereClause)
	}
	return s.WhereClause == nil && b.isKeyEquation(j.Quals)
}

// isKeyEquation says whether a condition is the equation of two tables' keys.
func (b *binder) isKeyEquation(condition *pg.Node) bool {
	e := condition.GetAExpr()
	return e != nil && b.keyed.keys[e.Lexpr.GetColumnRef()] != nil &&
		b.keyed.keys[e.Rexpr.GetColumnRef()] != nil
}

// holdsKey is the relation whose rows a query has, where a reference names the
// key of its subject or that of its parent; nil for none.
func (b *binder) holdsKey(ref *pg.ColumnRef, sc *scope) *catalog.Relation {
	names := refNames(ref)
	var rows *catalog.Relation
	found := 0
	for _, e := range sc.entries {
		if e.via == nil {
			rows = e.relation
		}
		if len(names) > 2 || len(names) == 2 && names[0] != e.alias || e.find(e.relation.Subject) >= 0 {
			continue
		}
		if name := names[len(names)-1]; name == e.relation.Subject {
			found++
		} else if len(names) == 1 && e.relation.Column(name) != nil {
			return nil // another table has a column of the name: PostgreSQL says which is meant
		}
	}
	if found == 0 || found > 1 && len(b.keyed.using) == 0 {
		return nil
	}
	return rows
}

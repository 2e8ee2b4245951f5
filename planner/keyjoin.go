package planner

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/catalog"
)

// A join of two protected tables is understood along the key of their subject:
// an equation of the two keys among the conditions that every row of the join
// meets. In place of the child stands its release, in place of the parent what
// that release shows of it, with a row for each row of the child; in place of
// both keys stands the random number of that row. A row of the join is then a
// row of the child's release with more columns, and the rest of the client's
// text says the same of either. docs/decisions/joins.md has the argument.

// keyed is what the text being planned joins along keys.
type keyed struct {
	parents map[*pg.RangeVar]*catalog.Relation // and the child of each
	keys    map[*pg.ColumnRef]*standing
	using   map[*pg.JoinExpr]string // the key among the columns of USING
	kept    map[*pg.RangeVar]*kept  // of parents whose rows an outer join keeps
}

func newKeyed() keyed {
	return keyed{
		parents: make(map[*pg.RangeVar]*catalog.Relation), keys: make(map[*pg.ColumnRef]*standing),
		using: make(map[*pg.JoinExpr]string),
		kept:  make(map[*pg.RangeVar]*kept),
	}
}

// standing is an item of a FROM list that stands there by its own name.
type standing struct {
	rv       *pg.RangeVar
	alias    string
	schema   string            // set for an unaliased relation
	relation *catalog.Relation // nil for one without a policy
	columns  []string          // of one without a policy
	linked   *standing
}

// fromList is a FROM list as far as joins along keys are concerned.
type fromList struct {
	b      *binder
	tables []*standing
	opaque bool // it has columns that are not known here
	// natural is a NATURAL join in it.
	natural *pg.JoinExpr
}

// linkTables finds the joins along keys in a query's FROM list, and ends a
// query that reads two protected tables side by side in another way.
func (b *binder) linkTables(s *pg.SelectStmt, sc *scope) error {
	l := &fromList{b: b}
	for _, item := range s.FromClause {
		l.collect(item, sc)
	}
	if !l.several() {
		return nil
	}
	for _, item := range s.FromClause {
		if err := l.joins(item); err != nil {
			return err
		}
	}
	if err := l.equations(s.WhereClause, l.tables, l.tables); err != nil {
		return err
	}
	return l.assertLinked()
}

// several says whether two protected relations stand in the list. Those that
// are published as sets are refused where they are read.
func (l *fromList) several() bool {
	var first *catalog.Relation
	several := false
	for _, t := range l.tables {
		switch {
		case t.relation == nil:
		case t.relation.SetValued != nil:
			return false
		case first == nil:
			first = t.relation
		default:
			several = several || t.relation != first
		}
	}
	return several
}

// collect lists the tables of an item of FROM.
func (l *fromList) collect(node *pg.Node, sc *scope) {
	if j := node.GetJoinExpr(); j != nil {
		if j.IsNatural {
			l.natural = j
		}
		l.collect(j.Larg, sc)
		l.collect(j.Rarg, sc)
		return
	}
	rv := node.GetRangeVar()
	if rv == nil {
		l.opaque = true
		return
	}
	t := &standing{rv: rv, alias: rv.Relname}
	if rv.Alias != nil {
		t.alias = rv.Alias.Aliasname
	}
	l.tables = append(l.tables, t)
	name, err := l.b.relationName(rv)
	if _, isCTE := sc.cte(rv.Relname); (isCTE && rv.Schemaname == "") || err != nil {
		l.opaque = true
		return
	}
	if rv.Alias == nil {
		t.schema = name.Schema
	}
	t.relation = l.b.snapshot.Protected(name)
	t.columns = l.b.columnsOf(name)
	l.opaque = l.opaque || (t.relation == nil && t.columns == nil)
}

// within lists the tables of a part of the FROM list.
func (l *fromList) within(node *pg.Node) []*standing {
	if j := node.GetJoinExpr(); j != nil {
		return append(l.within(j.Larg), l.within(j.Rarg)...)
	}
	for _, t := range l.tables {
		if t.rv == node.GetRangeVar() {
			return []*standing{t}
		}
	}
	return nil
}

// joins finds equations of keys among the conditions of joins. An outer join
// may keep rows of the child; one that keeps rows of the parent shows
// which of them have no row in the child, if a data set tells that.
func (l *fromList) joins(node *pg.Node) error {
	j := node.GetJoinExpr()
	if j == nil {
		return nil
	}
	for _, side := range []*pg.Node{j.Larg, j.Rarg} {
		if err := l.joins(side); err != nil {
			return err
		}
	}
	left, right := l.within(j.Larg), l.within(j.Rarg)
	children, parents := append(slices.Clone(left), right...), append(slices.Clone(left), right...)
	switch j.Jointype {
	case pg.JoinType_JOIN_INNER:
	case pg.JoinType_JOIN_LEFT:
		children, parents = left, right
	case pg.JoinType_JOIN_RIGHT:
		children, parents = right, left
	default:
		children, parents = nil, nil
	}
	if l.keeps(j, left, right) {
		return nil
	}
	if err := l.usingClause(j, left, right, children); err != nil {
		return err
	}
	return l.equations(j.Quals, children, parents)
}

// equations links the tables whose keys are equal by a conjunct of a condition.
// Of each pair the child must be among children, the parent among parents.
func (l *fromList) equations(condition *pg.Node, children, parents []*standing) error {
	if and := condition.GetBoolExpr(); and != nil && and.Boolop == pg.BoolExprType_AND_EXPR {
		for _, arg := range and.Args {
			if err := l.equations(arg, children, parents); err != nil {
				return err
			}
		}
		return nil
	}
	e := condition.GetAExpr()
	if e == nil || e.Kind != pg.A_Expr_Kind_AEXPR_OP || len(e.Name) != 1 || last(e.Name) != "=" {
		return nil
	}
	x, y := e.Lexpr.GetColumnRef(), e.Rexpr.GetColumnRef()
	child, parent := l.keyOf(x), l.keyOf(y)
	if child == nil || parent == nil {
		return nil
	}
	if refers(parent, child) {
		child, parent = parent, child
	}
	if !refers(child, parent) {
		return nil
	}
	if !slices.Contains(children, child) || !slices.Contains(parents, parent) {
		return l.keepsParents(child, parent, int(x.Location))
	}
	l.b.keyed.keys[x], l.b.keyed.keys[y] = l.keyOf(x), l.keyOf(y)
	return l.link(child, parent, int(x.Location))
}

// usingClause links the tables whose keys USING merges.
func (l *fromList) usingClause(j *pg.JoinExpr, left, right, children []*standing) error {
	for _, u := range j.UsingClause {
		name := u.GetString_().GetSval()
		x, y := holder(left, name), holder(right, name)
		if l.opaque || x == nil || y == nil || !x.isKey(name) || !y.isKey(name) {
			continue
		}
		child, parent := x, y
		if refers(parent, child) {
			child, parent = parent, child
		}
		at := int(parent.rv.Location)
		switch {
		case !refers(child, parent):
			continue
		case j.Jointype != pg.JoinType_JOIN_INNER &&
			(j.Jointype == pg.JoinType_JOIN_FULL || !slices.Contains(children, child)):
			return l.keepsParents(child, parent, at)
		}
		l.b.keyed.using[j] = name
		if err := l.link(child, parent, at); err != nil {
			return err
		}
	}
	return nil
}

// refers says whether the one's subject column refers to the other's key.
func refers(child, parent *standing) bool {
	return slices.Contains(child.relation.References, parent.relation.OID)
}

// isKey says whether a column is the table's subject, as it is in no release. Behind an alias
// with a list of names it may be another one.
func (t *standing) isKey(name string) bool {
	return t.relation != nil && t.relation.Subject == name &&
		(t.rv == nil || len(t.rv.Alias.GetColnames()) == 0)
}

// has says whether the table has a column of a name, hidden or not.
func (t *standing) has(name string) bool {
	return slices.Contains(t.columns, name) || (t.relation != nil && t.relation.Column(name) != nil)
}

// holder is the one table that has a column, nil for none or several.
func holder(tables []*standing, name string) *standing {
	var found *standing
	for _, t := range tables {
		if t.has(name) {
			if found != nil {
				return nil
			}
			found = t
		}
	}
	return found
}

// keyOf is the table whose key a reference names, nil where it names something
// else or where that cannot be told.
func (l *fromList) keyOf(ref *pg.ColumnRef) *standing {
	if ref == nil || isStar(ref) {
		return nil
	}
	names := refNames(ref)
	name, qualifier := names[len(names)-1], names[:len(names)-1]
	var found *standing
	switch {
	case len(qualifier) == 0 && !l.opaque:
		found = holder(l.tables, name)
	case len(qualifier) == 1 || len(qualifier) == 2:
		for _, t := range l.tables {
			if t.alias != qualifier[len(qualifier)-1] ||
				(len(qualifier) == 2 && !isIn(qualifier[0], t.schema, t.relation)) {
				continue
			}
			if found != nil {
				return nil
			}
			found = t
		}
	}
	if found == nil || !found.isKey(name) || found.rv.Alias.GetColnames() != nil {
		return nil
	}
	return found
}

package planner

import (
	"fmt"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/catalog"
)

// patients LEFT JOIN visits, along the key and nothing else, has the rows of the join along
// the key, and one for each patient without a visit. If a data set of the parent has the
// number of rows of each subject, these are known: the parent's own release shows them.

// kept is what tells which of a parent's subjects have no row in a child.
type kept struct {
	child, set *catalog.Relation
	count      string // the column of the data set, of its alias
}

// keeps notes an outer join that keeps all rows of a parent beside those of its child, and
// says whether it can be answered.
func (l *fromList) keeps(j *pg.JoinExpr, left, right []*standing) bool {
	if j.Jointype == pg.JoinType_JOIN_RIGHT {
		left, right = right, left
	} else if j.Jointype != pg.JoinType_JOIN_LEFT {
		return false
	}
	if len(left) != 1 || len(right) != 1 || left[0].relation == nil || right[0].relation == nil {
		return false
	}
	parent, child := left[0], right[0]
	if l.natural != nil || l.opaque || !refers(child, parent) || parent.linked != nil ||
		child.linked != nil ||
		lends(child.relation, parent.relation) != nil {
		return false
	}
	set, count := l.b.countColumn(child.relation, parent.relation)
	if set == nil {
		return false
	}
	switch {
	case len(j.UsingClause) == 1 && j.Quals == nil:
		name := j.UsingClause[0].GetString_().GetSval()
		if !parent.isKey(name) || !child.isKey(name) {
			return false
		}
		l.b.keyed.using[j] = name
	case len(j.UsingClause) > 0:
		return false
	default:
		e := equation(j.Quals)
		if e == nil {
			return false
		}
		x, y := e.Lexpr.GetColumnRef(), e.Rexpr.GetColumnRef()
		a, b := l.keyOf(x), l.keyOf(y)
		if a == b || (a != parent && a != child) || (b != parent && b != child) {
			return false
		}
		l.b.keyed.keys[x], l.b.keyed.keys[y] = a, b
	}
	child.linked, parent.linked = parent, child
	l.b.keyed.parents[parent.rv] = child.relation
	l.b.keyed.kept[parent.rv] = &kept{child: child.relation, set: set, count: count}
	return true
}

// countColumn is the column of a data set that has the number of a child's rows of each of
// a parent's subjects; nil for none.
func (b *binder) countColumn(child, parent *catalog.Relation) (*catalog.Relation, string) {
	for _, set := range b.snapshot.DataSets(parent) {
		if column := b.derivedColumns(set, parent)[countOf(child, parent.Subject)]; column != "" {
			return set, column
		}
	}
	return nil, ""
}

// countOf is the form of the number of a child's rows of a subject.
func countOf(child *catalog.Relation, subject string) string {
	return fmt.Sprintf("(SELECT count(*) FROM %s.%s c1 WHERE c1.%s = %s.%s)",
		plain(child.Schema), plain(child.Name), plain(child.Subject), subjectAlias, plain(subject))
}

// replaceKept puts in place of a parent's name what the child's release shows of it, and the
// parent's own subjects without a row there.
func (b *binder) replaceKept(rv *pg.RangeVar, r *catalog.Relation, k *kept, alias string) error {
	for _, read := range []*catalog.Relation{r, k.set} {
		if err := b.read(read, int(rv.Location)); err != nil {
			return err
		}
	}
	var columns []string
	for i := range k.child.Parent.Columns {
		c := &k.child.Parent.Columns[i]
		columns = append(columns, quoted(c.Name), quoted(c.LabelColumn()))
	}
	list := strings.Join(columns, ", ")
	err := b.editAt(int(rv.Location), []edit{
		{text: fmt.Sprintf("(SELECT %s, %s FROM", list, catalog.RowColumn)},
		{relation: k.child, parent: true},
		{text: fmt.Sprintf("UNION ALL SELECT %s, NULL FROM", list)},
		{relation: r, family: true},
		{text: fmt.Sprintf("AS %[1]s WHERE %[1]s.%[2]s IN (SELECT %[3]s.%[4]s FROM",
			keptAlias, quoted(r.Subject), derivedAlias, quoted(k.set.Subject))},
		{relation: k.set, family: true},
		{text: fmt.Sprintf("AS %s WHERE %s = 0))", derivedAlias, k.count)},
	})
	if err != nil {
		return err
	}
	b.plan.joins(k.child)
	return b.replaceName(rv, edit{}, alias)
}

// keptChild is the child of an outer join that keeps its parent's rows, if a reference names
// its key: whether that is NULL says whether a subject has rows. nil for none.
func keptChild(ref *pg.ColumnRef, sc *scope) *standing {
	if ref == nil || isStar(ref) {
		return nil
	}
	names := refNames(ref)
	named := func(e, parent *entry) bool {
		if len(names) == 2 {
			return names[0] == e.alias
		}
		return len(names) == 1 && parent.relation.Column(names[0]) == nil && len(sc.entries) == 2
	}
	for _, parent := range sc.entries {
		for _, e := range sc.entries {
			if parent.kept && e.relation == parent.via && e.via == nil &&
				names[len(names)-1] == e.relation.Subject && named(e, parent) {
				return &standing{alias: e.alias}
			}
		}
	}
	return nil
}

// keptAlias is that of the parent's subjects without rows.
const keptAlias = "tailor_own_kept"

package planner

import (
	"fmt"
	"regexp"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// link notes that two tables are joined along the key, if the child's copy has
// what the join shows of the parent.
func (l *fromList) link(child, parent *standing, at int) error {
	if child.linked == parent {
		return nil
	}
	if child.linked != nil || parent.linked != nil {
		return sqlstate.New(sqlstate.FeatureNotSupported,
			"more than two tables are joined along the key of %q", parent.relation.Name).
			WithHint("Rows of one subject are not linked to each other: join the table with one other at "+
				"a time. %s", l.b.dataSet(child.relation, parent.relation)).At(l.b.statement, at)
	}
	if err := lends(child.relation, parent.relation); err != nil {
		return err.At(l.b.statement, at)
	}
	if l.natural != nil {
		return sqlstate.New(sqlstate.FeatureNotSupported,
			"NATURAL is not supported beside a join along a key").
			WithHint("Name the columns with USING or ON: columns that are in no release have names, too.").
			At(l.b.statement, at)
	}
	child.linked, parent.linked = parent, child
	l.b.keyed.parents[parent.rv] = child.relation
	return nil
}

// lends says why a join cannot show the parent's quasi-identifiers, nil if it
// can.
func lends(child, parent *catalog.Relation) *sqlstate.Error {
	switch {
	case len(child.References) > 1:
		return sqlstate.New(sqlstate.FeatureNotSupported,
			"table %q refers to more than one protected table by its subject", child.Name).
			WithHint("Which of them it is joined with must be the same for everybody: drop the other " +
				"foreign keys.")
	case !child.Parent.Is(parent) || !child.Parent.InStep:
		return sqlstate.New(sqlstate.PolicyStale,
			"table %q does not hold the quasi-identifiers of %q as they are now", child.Name, parent.Name).
			WithHint("The owner of both calls tailor.activate('%[1]s'), after that of '%[2]s'. Where "+
				"readers have been shown it by other quasi-identifiers of '%[2]s', it is refused to all of "+
				"them until tailor.forget_chains('%[1]s'): tailor policy plan says so. "+
				"tailor.forget_chains('%[2]s') comes before both if an earlier version showed means of it.",
				child, parent)
	case child.Parent.Narrow:
		return sqlstate.New(sqlstate.FeatureNotSupported,
			"the chains of table %q are shared by fewer than those of %q", child.Name, parent.Name).
			WithHint("People who share a chain of the one could compare their joins: the owner gives both " +
				"tables one scope with tailor.chain_scope.")
	}
	return nil
}

// dataSet says what data set tells of each of a parent's subjects how many rows the child
// has, as their owner would declare it, or that there is one, and that others take others.
func (b *binder) dataSet(child, parent *catalog.Relation) string {
	const read = "What is computed of each subject is read from a data set"
	if set, _ := b.countColumn(child, parent); set != nil {
		return fmt.Sprintf("%s: %q has how many rows of %q each has, and answers subqueries that say no "+
			"more; the owner of the tables declares another one for what else is asked of each.",
			read, set.Name, child.Name)
	}
	return read + ", which the owner of the tables declares: " + b.declaration(parent.Schema,
		parent.Name, parent.Subject, child.Name, child.Name, countOf(child, parent.Subject))
}

// declaration is what makes, protects and shows a data set of a relation's subjects with one
// column, which says something of their rows in another table.
func (b *binder) declaration(schema, name, subject, child, column, text string) string {
	set := catalog.Name{Schema: schema, Name: name + "_" + child}
	for i := 2; b.exists(set); i++ {
		set.Name = fmt.Sprintf("%s_%s_%d", name, child, i)
	}
	quote := "$$"
	for strings.Contains(text, quote) {
		quote = "$q" + quote[1:]
	}
	return fmt.Sprintf("CALL tailor.define_dataset(%[1]s, %[2]s SELECT p.%[3]s, %[4]s AS %[5]s FROM "+
		"%[6]s.%[7]s p %[2]s, subject => %[8]s); "+
		"CALL tailor.classify(%[1]s, %[8]s, 'direct_identifier'); CALL tailor.classify(%[1]s, %[9]s, "+
		"'sensitive'); CALL tailor.activate(%[1]s);",
		literal(plain(set.Schema)+"."+plain(set.Name)), quote, plain(subject), text, plain(column),
		plain(schema), plain(name),
		literal(subject), literal(column))
}

var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// plain is a name as it stands behind a dot, where no word is reserved.
func plain(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	return quoted(name)
}

// keepsParents refuses an outer join that keeps rows of the parent.
func (l *fromList) keepsParents(child, parent *standing, at int) error {
	return sqlstate.New(sqlstate.FeatureNotSupported,
		"an outer join cannot keep rows of %q that have none in %q", parent.relation.Name,
		child.relation.Name).
		WithHint("It would show who has no rows. Use JOIN, or %s LEFT JOIN %s. %s", child.relation.Name,
			parent.relation.Name, l.b.dataSet(child.relation, parent.relation)).
		At(l.b.statement, at)
}

// assertLinked ends a query over two protected tables that are not joined along
// the key: nothing holds their rows together.
func (l *fromList) assertLinked() error {
	for i, x := range l.tables {
		for _, y := range l.tables[:i] {
			if x.relation == nil || y.relation == nil || x.relation.Root() == y.relation.Root() ||
				x.linked == y {
				continue
			}
			if x.linked != nil && x.linked.relation == y.relation ||
				y.linked != nil && y.linked.relation == x.relation {
				continue // as in a self-join
			}
			if set, child := l.besideDataSet(x.relation, y.relation); set != nil {
				return sqlstate.New(sqlstate.FeatureNotSupported,
					"rows of %q are not shown beside those of data set %q", child.Name, set.Name).
					WithHint("Both are of the same people, whose rows in %q no release links to what else is "+
						"shown of them. What is computed from these rows can be a column of a data set; or ask "+
						"each in a subquery of its own.", child.Name).
					At(l.b.statement, int(x.rv.Location))
			}
			return sqlstate.New(sqlstate.FeatureNotSupported,
				"the protected tables %q and %q are not joined along the key of their subject", y.relation.Name,
				x.relation.Name).
				WithHint("Write the equation of the keys that the foreign key declares in ON or WHERE, each "+
					"with its table's name; or ask each table in a subquery of its own.").
				At(l.b.statement, int(x.rv.Location))
		}
	}
	return nil
}

// besideDataSet says of two relations whether one is a data set and the other has rows of the
// same subjects; nil if not.
func (l *fromList) besideDataSet(x, y *catalog.Relation) (set, child *catalog.Relation) {
	for range 2 {
		if x.DataSetOf != 0 {
			if root := l.b.snapshot.Rooted(x); root != nil && l.b.snapshot.Referred(y) == root {
				return x, y
			}
		}
		x, y = y, x
	}
	return nil, nil
}

// lentEntry is a parent in a join along the key: of its columns, those that the
// child's release shows.
func lentEntry(e *entry, child *catalog.Relation) {
	e.via = child
	var columns []column
	for _, c := range e.columns {
		if c.qid != nil {
			columns = append(columns, c)
		}
	}
	e.columns = columns
}

// notLent refuses a column of the parent that is no quasi-identifier.
func (b *binder) notLent(ref *pg.ColumnRef, e *entry, name string) error {
	if e.via.IsJoint() {
		return sqlstate.New(sqlstate.InsufficientPrivilege,
			"column %q of table %q is not shown together with %q", name, e.relation.Name, e.via.Name).
			WithHint("The codes are published together with %s. Ask for other columns in a statement of "+
				"their own.", strings.Join(e.via.SetValued.Joint.Columns, ", ")).
			At(b.statement, int(ref.Location))
	}
	return sqlstate.New(sqlstate.InsufficientPrivilege,
		"column %q of table %q is not shown in a join with %q", name, e.relation.Name, e.via.Name).
		WithHint("A join shows of %q its quasi-identifiers only: values that both tables' own answers "+
			"show would link rows of the one to rows of the other. %s", e.relation.Name,
			b.dataSet(e.via, e.relation)).
		At(b.statement, int(ref.Location))
}

// keyReference puts the number of the joined row in place of a key.
func (b *binder) keyReference(ref *pg.ColumnRef, t *standing) error {
	end := b.tokens[b.tokenAt(int(ref.Location))+2*(len(ref.Fields)-1)].End
	return b.replace(int(ref.Location), int(end), quoted(t.alias)+"."+catalog.RowColumn)
}

// keyUsing does the same among the columns of USING.
func (b *binder) keyUsing(j *pg.JoinExpr, at int) error {
	i := b.usingToken(j, at)
	if i < 0 {
		return b.unsupported(j.Rarg)
	}
	return b.replace(int(b.tokens[i].Start), int(b.tokens[i].End), catalog.RowColumn)
}

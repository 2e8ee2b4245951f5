package planner

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// fromItem binds one item of a FROM list and adds its entries to the scope.
func (b *binder) fromItem(node *pg.Node, sc *scope) error {
	switch n := node.Node.(type) {
	case *pg.Node_RangeVar:
		return b.rangeVar(n.RangeVar, sc)
	case *pg.Node_RangeSubselect:
		return b.rangeSubselect(n.RangeSubselect, sc)
	case *pg.Node_JoinExpr:
		return b.join(n.JoinExpr, sc)
	case *pg.Node_RangeFunction:
		return b.rangeFunction(n.RangeFunction, sc)
	case *pg.Node_RangeTableSample:
		return sqlstate.New(sqlstate.FeatureNotSupported,
			"TABLESAMPLE cannot be used beside a protected table").
			WithHint("ORDER BY random() LIMIT n draws n rows.").
			At(b.statement, int(n.RangeTableSample.Location))
	}
	return b.unsupported(node)
}

// rangeVar binds a relation: a common table expression, a protected table,
// which is replaced by its release, or one without a policy.
func (b *binder) rangeVar(rv *pg.RangeVar, sc *scope) error {
	alias := rv.Relname
	if rv.Alias != nil {
		alias = rv.Alias.Aliasname
	}
	if q, ok := sc.cte(rv.Relname); ok && rv.Schemaname == "" {
		return b.queryEntry(q, alias, rv.Alias, sc)
	}
	name, err := b.relationName(rv)
	if err != nil {
		return err
	}
	if !b.protects(name) {
		e := &entry{alias: alias}
		if rv.Alias == nil {
			e.schema = name.Schema
		}
		for _, c := range b.columnsOf(name) {
			e.known = true
			e.columns = append(e.columns, column{name: c})
		}
		e.columns = renamed(e.columns, e.known, rv.Alias.GetColnames())
		sc.entries = append(sc.entries, e)
		return b.spendColumns(len(e.columns))
	}
	if rv.Catalogname != "" && rv.Catalogname != b.session.Database {
		return b.otherDatabase(int(rv.Location))
	}
	if !rv.Inh {
		return sqlstate.New(sqlstate.FeatureNotSupported,
			"ONLY is not supported before a protected table").
			WithHint("Leave out ONLY: a release has no child tables.").At(b.statement, int(rv.Location))
	}
	r := b.snapshot.Protected(name)
	if r == nil {
		return b.view(rv, name, alias, sc)
	}
	e := releaseEntry(r, rv, alias, name.Schema)
	if n := len(rv.Alias.GetColnames()); n > len(e.columns) {
		// More would give names to the columns of labels.
		return sqlstate.New(sqlstate.InvalidColumnReference,
			"table %q has %d columns available but %d columns specified", alias, len(e.columns), n).
			At(b.statement, int(rv.Location))
	}
	codes, child := b.joint[r], b.keyed.parents[rv]
	if len(rv.Alias.GetColnames()) > 0 && (codes != nil || child != nil) {
		// It has other columns then, and names would reach those of labels.
		return sqlstate.New(sqlstate.FeatureNotSupported,
			"columns of %q cannot be renamed where it is joined along its key", alias).
			WithHint("Leave the list behind the alias out, and name columns in SELECT with AS.").
			At(b.statement, int(rv.Location))
	}
	switch {
	case codes != nil:
		jointEntry(e, codes)
	case child != nil:
		lentEntry(e, child)
		e.kept = b.keyed.kept[rv] != nil
	case b.family[r]:
		familyEntry(e)
	}
	e.columns = renamed(e.columns, true, rv.Alias.GetColnames())
	sc.entries = append(sc.entries, e)
	if err := b.spendColumns(len(r.Columns)); err != nil {
		return err
	}
	if codes != nil {
		if err := b.read(codes, int(rv.Location)); err != nil { // the name may have been that of a query
			return err
		}
		return b.replaceParent(rv, r, codes, alias)
	}
	if k := b.keyed.kept[rv]; k != nil {
		return b.replaceKept(rv, r, k, alias)
	}
	if child != nil {
		return b.replaceParent(rv, r, child, alias)
	}
	if err := b.read(r, int(rv.Location)); err != nil {
		return err
	}
	return b.replaceRelation(rv, r, alias)
}

// otherDatabase refuses a name with another database in front, as PostgreSQL does.
func (b *binder) otherDatabase(at int) error {
	return sqlstate.New(sqlstate.FeatureNotSupported, "cross-database references are not implemented").
		WithHint("Connect with the database, and leave its name out.").At(b.statement, at)
}

// releaseEntry is a protected relation as its release shows it.
func releaseEntry(r *catalog.Relation, rv *pg.RangeVar, alias, schema string) *entry {
	e := &entry{alias: alias, relation: r, known: true, replaced: true}
	if rv.Alias == nil {
		e.schema = schema
	}
	for i := range r.Columns {
		c := &r.Columns[i]
		if !c.Visible() {
			continue
		}
		out := column{name: c.Name, provenance: provenance{kind: Released, of: r.String() + "." + c.Name}}
		if c.Class == catalog.QuasiIdentifier {
			out.qid, out.kind = c, Value
		}
		if c.IsPayload() {
			out.payload = c
		}
		e.columns = append(e.columns, out)
	}
	return e
}

// replaceRelation edits the name of a protected relation into its release's,
// under the name that the statement's columns refer to.
func (b *binder) replaceRelation(rv *pg.RangeVar, r *catalog.Relation, alias string) error {
	return b.replaceName(rv, edit{relation: r, family: b.family[r]}, alias)
}

// replaceParent edits the name of a protected relation into that of what the release of
// another shows of it.
func (b *binder) replaceParent(rv *pg.RangeVar, r, child *catalog.Relation, alias string) error {
	b.plan.lends(r)
	b.plan.joins(child)
	return b.replaceName(rv, edit{relation: child, parent: true}, alias)
}

// replaceName puts an edit in place of a relation's name.
func (b *binder) replaceName(rv *pg.RangeVar, e edit, alias string) error {
	at := b.tokenAt(int(rv.Location))
	for _, qualifier := range []string{rv.Catalogname, rv.Schemaname} {
		if qualifier != "" {
			at += 2
		}
	}
	if at+1 < len(b.tokens) && b.tokens[at+1].Token == pg.Token_ASCII_42 {
		at++ // "patients *": with child tables, as always
	}
	if rv.Alias == nil {
		e.text = " AS " + quoted(alias)
	}
	e.start, e.end = int(rv.Location), int(b.tokens[at].End)
	return b.edit(e)
}

func (b *binder) rangeSubselect(s *pg.RangeSubselect, sc *scope) error {
	query := s.Subquery.GetSelectStmt()
	if query == nil {
		return b.unsupported(s.Subquery)
	}
	if s.Alias == nil {
		return sqlstate.New(sqlstate.SyntaxError, "subquery in FROM must have an alias").
			WithHint("For example, FROM (SELECT ...) AS foo.").At(b.statement, start(s.Subquery))
	}
	outer := sc.parent
	if s.Lateral {
		outer = sc
	}
	// Names of WITH are visible inside a subquery, lateral or not.
	bound, err := b.selectStmt(query, &scope{parent: outer, ctes: sc.ctes}, false)
	if err != nil {
		return err
	}
	return b.queryEntry(bound, s.Alias.GetAliasname(), s.Alias, sc)
}

// queryEntry adds a subquery, or a query of WITH, to the scope.
func (b *binder) queryEntry(q *boundQuery, name string, alias *pg.Alias, sc *scope) error {
	sc.entries = append(sc.entries, &entry{
		alias: name, query: q, columns: renamed(q.columns, q.known, alias.GetColnames()), known: q.known,
	})
	return b.spendColumns(len(q.columns))
}

// renamed renames columns by the list of names behind an alias. Where columns
// are missing, the names stand for columns of which nothing else is known.
func renamed(columns []column, known bool, names []*pg.Node) []column {
	if len(names) == 0 {
		return columns
	}
	var out []column
	if known {
		out = slices.Clone(columns)
	}
	for i, n := range names {
		if name := n.GetString_().GetSval(); i < len(out) {
			out[i].name = name
		} else {
			out = append(out, column{name: name})
		}
	}
	return out
}

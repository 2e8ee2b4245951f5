package planner

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/ecg"
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
		for _, f := range n.RangeFunction.Functions {
			if err := b.expression(f, sc, ecg.Scan); err != nil {
				return err
			}
		}
		sc.entries = append(sc.entries, &entry{alias: n.RangeFunction.Alias.GetAliasname()})
		return nil
	case *pg.Node_RangeTableSample:
		return sqlstate.New(sqlstate.FeatureNotSupported, "TABLESAMPLE cannot be used beside a protected table").
			At(b.statement, int(n.RangeTableSample.Location))
	}
	return b.notUnderstood(node)
}

// rangeVar binds a relation: a common table expression, a protected table,
// which is replaced by its release, or one without a policy.
func (b *binder) rangeVar(rv *pg.RangeVar, sc *scope) error {
	alias := rv.Relname
	if rv.Alias != nil {
		alias = rv.Alias.Aliasname
	}
	if columns, ok := sc.cte(rv.Relname); ok && rv.Schemaname == "" {
		sc.entries = append(sc.entries, &entry{alias: alias, columns: aliased(columns, rv.Alias), known: columns != nil})
		return nil
	}
	name, err := b.relationName(rv)
	if err != nil {
		return err
	}
	r := b.snapshot.Protected(name)
	if r == nil {
		e := &entry{alias: alias}
		if rv.Alias == nil {
			e.schema = name.Schema
		}
		if other := b.snapshot.Other(name); other != nil {
			e.known = true
			for _, c := range other.Columns {
				e.columns = append(e.columns, column{name: c})
			}
			e.columns = aliased(e.columns, rv.Alias)
		}
		sc.entries = append(sc.entries, e)
		return nil
	}
	if rv.Catalogname != "" {
		return sqlstate.New(sqlstate.FeatureNotSupported, "a protected table cannot be named with its database").
			At(b.statement, int(rv.Location))
	}
	if !rv.Inh {
		return sqlstate.New(sqlstate.FeatureNotSupported, "ONLY is not supported before a protected table").
			WithHint("Leave out ONLY: a release has no child tables.").At(b.statement, int(rv.Location))
	}
	if rv.Alias != nil && len(rv.Alias.Colnames) > 0 {
		return sqlstate.New(sqlstate.FeatureNotSupported, "a list of column names behind the alias of a protected table is not supported").
			WithHint("Rename the columns in a subquery.").At(b.statement, int(rv.Location))
	}
	b.plan.note(r)
	sc.entries = append(sc.entries, releaseEntry(r, rv, alias, name.Schema))
	b.replaceRelation(rv, r, alias)
	return nil
}

// releaseEntry is a protected relation as its release shows it.
func releaseEntry(r *catalog.Relation, rv *pg.RangeVar, alias, schema string) *entry {
	e := &entry{alias: alias, relation: r, known: true}
	if rv.Alias == nil {
		e.schema = schema
	}
	for i := range r.Columns {
		c := &r.Columns[i]
		if !c.Visible() {
			continue
		}
		out := column{name: c.Name}
		if c.Class == catalog.QuasiIdentifier {
			out.qid, out.label = c, c.LabelColumn()
		}
		e.columns = append(e.columns, out)
	}
	return e
}

// replaceRelation edits the name of a protected relation into its release's,
// under the name that the statement's columns refer to.
func (b *binder) replaceRelation(rv *pg.RangeVar, r *catalog.Relation, alias string) {
	at := b.tokenAt(int(rv.Location))
	if rv.Schemaname != "" {
		at += 2
	}
	if at+1 < len(b.tokens) && b.tokens[at+1].Token == pg.Token_ASCII_42 {
		at++ // "patients *": with child tables, as always
	}
	text := ""
	if rv.Alias == nil {
		text = " AS " + quoted(alias)
	}
	b.plan.edits = append(b.plan.edits, edit{
		start: int(rv.Location), end: int(b.tokens[at].End), relation: r, text: text,
	})
}

func (b *binder) rangeSubselect(s *pg.RangeSubselect, sc *scope) error {
	query := s.Subquery.GetSelectStmt()
	if query == nil {
		return b.notUnderstood(s.Subquery)
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
	bound, err := b.selectStmt(query, &scope{parent: outer, ctes: sc.ctes})
	if err != nil {
		return err
	}
	b.carryLabels(&bound)
	sc.entries = append(sc.entries, &entry{
		alias: s.Alias.GetAliasname(), columns: aliased(bound.columns, s.Alias), known: bound.known,
	})
	return nil
}

func (b *binder) join(j *pg.JoinExpr, sc *scope) error {
	if j.Alias != nil || j.JoinUsingAlias != nil {
		return sqlstate.New(sqlstate.FeatureNotSupported, "an alias for a join is not supported beside a protected table")
	}
	for _, side := range []*pg.Node{j.Larg, j.Rarg} {
		if err := b.fromItem(side, sc); err != nil {
			return err
		}
	}
	if j.IsNatural {
		return sqlstate.New(sqlstate.FeatureNotSupported, "NATURAL JOIN is not supported beside a protected table").
			WithHint("Name the columns with USING or ON.")
	}
	for _, u := range j.UsingClause {
		sc.merged = true
		ref := &pg.ColumnRef{Fields: []*pg.Node{u}, Location: -1}
		if err := b.reference(ref, sc, ecg.Join); err != nil {
			return err
		}
	}
	return b.expression(j.Quals, sc, ecg.Join)
}

// aliased renames columns by the list behind an alias.
func aliased(columns []column, alias *pg.Alias) []column {
	return renamed(columns, alias.GetColnames())
}

func renamed(columns []column, names []*pg.Node) []column {
	out := slices.Clone(columns)
	for i, n := range names {
		if i < len(out) {
			out[i].name = n.GetString_().GetSval()
		}
	}
	return out
}

package planner

import (
	"fmt"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// cells is the one query of a statement over a relation that answers with
// aggregates only (rows: false). Every group and every cell of it is computed
// from at least k subjects, or it is not shown:
//
//   - A group of fewer subjects is left out by HAVING, before anything that the
//     query says of groups is evaluated.
//   - An aggregate that sees fewer rows than its group has (FILTER, NULLs) is
//     NULL where it sees fewer than k, or leaves out fewer than k but some.
//   - Where WHERE names columns that are no quasi-identifiers and leaves out
//     fewer than k subjects but some, there is no answer.
//
// Rows stand for subjects: such a relation has one for each. What is evaluated
// for rows compares columns with values, which no row can make fail, for the
// error would tell of it; what is evaluated for groups is free. The functions
// are PostgreSQL's own by their full names. That the operators are as well is
// for the proxy to ask before the statement runs (catalog.AssertNoShadow).
type cells struct {
	relation *catalog.Relation
	query    *pg.SelectStmt
	item     *pg.RangeVar
	end      int // of the query's text

	scope         *scope
	where, having clause
	grouped       []origin
	opened        int // index of the first edit at WHERE, and of as many behind it as it takes
}

// clause is where a clause stands in the text, or would.
type clause struct {
	given      bool
	start, end int // of its condition
}

// whereEdits are the edits that stand before the condition of WHERE.
const whereEdits = 4

// hintOfCells says what a relation without rows does answer.
const hintOfCells = "Ask for count, sum, avg, stddev or variance of its columns, FROM the table alone, with WHERE that compares columns with values, GROUP BY columns, and HAVING."

func (b *binder) refuseCells(at int, format string, args ...any) error {
	return sqlstate.New(sqlstate.FeatureNotSupported, "a table that answers with aggregates only: "+format, args...).
		WithHint(hintOfCells).At(b.statement, at)
}

// openCells notes that a statement reads a relation that answers with
// aggregates only, and ends one of another form than [cells] knows.
func (b *binder) openCells(stmt *pg.Node, found survey, c *command) error {
	b.cells = nil
	var only *catalog.Relation
	for _, rv := range found.relations {
		name, err := b.relationName(rv)
		if err != nil {
			return err
		}
		if r := b.snapshot.Protected(name); r != nil && r.AggregateOnly && rv.Relpersistence != "t" {
			only = r
		}
	}
	if only == nil || c.query == nil {
		return nil
	}
	s := c.query
	switch {
	case !only.OneRow:
		return b.refuseCells(b.textStart(c.start), "it has come to have several rows for a subject")
	case !b.alone:
		return b.refuseCells(b.textStart(c.start), "the statement cannot stand beside others in one text")
	case c.kept || stmt.GetDeclareCursorStmt() != nil:
		return b.refuseCells(b.textStart(c.start), "its answers cannot be kept in a table or a cursor")
	case s.WithClause != nil || s.Op != pg.SetOperation_SETOP_NONE:
		return b.refuseCells(b.textStart(c.start), "WITH and set operations are not understood")
	case len(s.DistinctClause) > 0:
		return b.refuseCells(b.textStart(c.start), "DISTINCT is not understood, GROUP BY is")
	case len(s.WindowClause) > 0:
		return b.refuseCells(start(s.WindowClause[0]), "windows are not understood")
	case len(s.FromClause) != 1 || s.FromClause[0].GetRangeVar() == nil:
		return b.refuseCells(b.textStart(c.start), "it is read alone, without joins and subqueries")
	case len(s.GroupClause) == 0 && !slices.ContainsFunc(s.TargetList, callsAggregate):
		for _, target := range s.TargetList {
			for _, f := range calls(target) {
				if !slices.Contains(cellFunctions, last(f.Funcname)) {
					return b.refuseFunction(f)
				}
			}
		}
		return b.refuseCells(b.textStart(c.start), "the statement has neither an aggregate nor GROUP BY")
	}
	b.cells = &cells{relation: only, query: s, item: s.FromClause[0].GetRangeVar(), end: c.end}
	return nil
}

// bindCells checks the clauses of the query, whose FROM is bound, and reserves
// the places at which they are completed.
func (b *binder) bindCells(s *pg.SelectStmt, sc *scope) error {
	c := b.cells
	c.scope = sc
	b.findClauses()
	if err := b.rowCondition(s.WhereClause); err != nil {
		return err
	}
	for _, node := range s.GroupClause {
		o, err := b.cellGroup(node)
		if err != nil {
			return err
		}
		if !slices.Contains(c.grouped, o) {
			c.grouped = append(c.grouped, o)
		}
	}
	for _, node := range slices.Concat(s.TargetList, s.SortClause, []*pg.Node{s.HavingClause}) {
		if err := b.groupExpression(node); err != nil {
			return err
		}
	}
	for _, node := range []*pg.Node{s.LimitCount, s.LimitOffset} {
		if node != nil && node.GetAConst() == nil && node.GetParamRef() == nil {
			return b.refuseCells(start(node), "LIMIT and OFFSET take a number")
		}
	}
	c.opened = len(b.edits)
	for range whereEdits {
		b.edits = append(b.edits, edit{start: c.where.start, end: c.where.start})
	}
	if err := b.ownComparisons(s.WhereClause); err != nil {
		return err
	}
	if c.having.given {
		if err := b.insert(c.having.start, fmt.Sprintf("CASE WHEN pg_catalog.count(*) OPERATOR(pg_catalog.>=) %d THEN (", c.relation.K)); err != nil {
			return err
		}
	}
	return nil
}

// findClauses finds WHERE and HAVING in the text, or where they would stand.
func (b *binder) findClauses() {
	c := b.cells
	bounds := b.clauseBounds(b.tokenAt(int(c.item.Location)), c.end)
	c.where = b.clause(bounds, pg.Token_WHERE)
	c.having = b.clause(bounds, pg.Token_HAVING, pg.Token_WHERE, pg.Token_GROUP_P)
}

// clauseBounds are the indices of the tokens with which clauses of the query
// start behind index i, and then that of the first one that is none of its own.
func (b *binder) clauseBounds(i, end int) []int {
	var bounds []int
	depth := 0
	for ; i < len(b.tokens) && int(b.tokens[i].Start) < end; i++ {
		switch t := b.tokens[i].Token; t {
		case pg.Token_ASCII_40, pg.Token_ASCII_91:
			depth++
		case pg.Token_ASCII_41, pg.Token_ASCII_93:
			depth--
		case pg.Token_ASCII_59:
			return append(bounds, i)
		default:
			if depth == 0 && endsClause(t) && !b.partOfExpression(i) {
				bounds = append(bounds, i)
			}
		}
	}
	return append(bounds, i)
}

// clause is that which starts with a word, or the place behind those before it.
func (b *binder) clause(bounds []int, word pg.Token, before ...pg.Token) clause {
	for n, i := range bounds {
		last := n == len(bounds)-1
		switch {
		case !last && b.tokens[i].Token == word:
			return clause{given: true, start: int(b.tokens[i+1].Start), end: int(b.tokens[bounds[n+1]-1].End)}
		case last || !slices.Contains(before, b.tokens[i].Token):
			at := int(b.tokens[i-1].End)
			return clause{start: at, end: at}
		}
	}
	return clause{} // cannot happen: there is a last one
}

// closeCells completes the clauses, when it is known which labels are shown.
func (b *binder) closeCells(q *boundQuery) error {
	c := b.cells
	if c == nil {
		return nil
	}
	k := c.relation.K
	if err := b.countLeftOut(q); err != nil {
		return err
	}
	if c.having.given {
		return b.insert(c.having.end, ") ELSE false END")
	}
	return b.insert(c.having.end, fmt.Sprintf("HAVING pg_catalog.count(*) OPERATOR(pg_catalog.>=) %d", k))
}

// countLeftOut puts into WHERE what counts the groups that are left out and
// tells the client, once and before any row is read. It looks at groups before
// HAVING: that must not be evaluated for them. Where the condition is about
// payload, the rows that it is not true for are counted as well.
func (b *binder) countLeftOut(q *boundQuery) error {
	c := b.cells
	groups, condition, where, missing := "", "", "", false
	if len(c.grouped) > 0 {
		groups = " GROUP BY " + strings.Join(c.groups(q), ", ")
	}
	word, rest := " WHERE ", ""
	if c.where.given {
		condition = b.rendered(c.where.start, c.where.end, c.opened)
		where = " WHERE (" + condition + ")"
		var err error
		if missing, err = b.namesPayload(c.query.WhereClause); err != nil {
			return err
		}
		word, rest = "", " AND ("
		if err := b.insert(c.where.end, ")"); err != nil {
			return err
		}
	}
	at := c.where.start
	opened := word + fmt.Sprintf("(SELECT tailor.left_out(%d, pg_catalog.count(*), pg_catalog.sum(tailor_n), ", c.relation.K)
	few := "FROM (SELECT pg_catalog.count(*) AS tailor_n FROM"
	edits := []edit{
		{text: opened + "0) " + few},
		{},
		{relation: c.relation, text: " AS " + c.alias()},
		{text: where + groups + fmt.Sprintf(" HAVING pg_catalog.count(*) OPERATOR(pg_catalog.<) %d) AS tailor_few)", c.relation.K) + rest},
	}
	if missing {
		edits[0].text = opened + "(SELECT pg_catalog.count(*) FROM"
		edits[1] = edit{relation: c.relation, text: " AS " + c.alias() + " WHERE (" + condition + ") IS NOT TRUE)) " + few}
	}
	for i, e := range edits {
		e.start, e.end = at, at
		if err := b.grow(len(e.text) + releaseBytes); err != nil {
			return err
		}
		b.edits[c.opened+i] = e
	}
	return nil
}

// namesPayload says whether a condition names a column that is no
// quasi-identifier: those stand for whole blocks, of k subjects each.
func (b *binder) namesPayload(condition *pg.Node) (named bool, err error) {
	visit(condition, func(ref *pg.ColumnRef) {
		r, failed := b.resolve(b.cells.scope, ref)
		named = named || r.qid() == nil
		if failed != nil {
			err = failed
		}
	})
	return named, err
}

// groups are the expressions that the query groups by, labels that it shows
// among them.
func (c *cells) groups(q *boundQuery) []string {
	var out []string
	for _, o := range c.grouped {
		out = append(out, o.value())
		for i, carried := range q.carried {
			if carried && q.labels[i] == o && !slices.Contains(out, o.label()) {
				out = append(out, o.label())
			}
		}
	}
	return out
}

// alias is the name of the relation in the query, with those of its columns.
func (c *cells) alias() string {
	e := c.scope.entries[0]
	var names []string
	for _, n := range c.item.GetAlias().GetColnames() {
		names = append(names, quoted(n.GetString_().GetSval()))
	}
	if len(names) == 0 {
		return quoted(e.alias)
	}
	return quoted(e.alias) + " (" + strings.Join(names, ", ") + ")"
}

// rendered is the text [from, to) with the edits to it from an index on.
func (b *binder) rendered(from, to, since int) string {
	var out strings.Builder
	part := source{statement: b.statement[:to]}
	for _, e := range b.edits[since:] {
		if e.start >= from && e.end <= to && e.text+b.statement[e.start:e.end] != "" {
			part.edits = append(part.edits, e)
		}
	}
	part.finish()
	part.edits = append([]edit{{start: 0, end: from}}, part.edits...)
	part.write(&out, nil)
	return out.String()
}

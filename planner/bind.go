package planner

import (
	"slices"
	"strconv"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/ecg"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// binder resolves the names of one text and collects the edits.
type binder struct {
	plan      *Plan
	statement string
	tokens    []*pg.ScanToken // without comments
	session   Session
	snapshot  *catalog.Snapshot
	carrying  []*boundQuery // queries that carry labels out
	stars     []*boundStar
	reading   []*catalog.Relation // protected, of the statement at hand
	columns   int                 // noted so far, over all levels
	added     int                 // bytes of all edits
	at        int                 // offset of the reference being bound, -1 for none
	fragments item                // the last one
}

// boundQuery is a SELECT after binding: its visible output columns, and how to
// make it carry the labels of those that are bare quasi-identifiers.
type boundQuery struct {
	columns []column
	known   bool          // whether columns is complete
	arms    []*boundQuery // of a set operation
	// labels say, for each column, whose label is its own; no entry for none.
	labels []origin
	// carried says which labels are asked for.
	carried []bool
	// listEnd is the offset behind the target list, where labels are added.
	listEnd int
	// grouping is where the labels of grouped columns are added, -1 for none.
	grouping int
	grouped  []origin
}

// selectStmt binds a query inside an outer scope. top says that its rows are
// the answer's: there, equal rows are told apart by their labels.
func (b *binder) selectStmt(s *pg.SelectStmt, outer *scope, top bool) (*boundQuery, error) {
	if err := b.refuseClauses(s); err != nil {
		return nil, err
	}
	sc := &scope{parent: outer, ctes: make(map[string]*boundQuery)}
	if err := b.withClause(s.WithClause, sc); err != nil {
		return nil, err
	}
	bound, err := b.selectBody(s, sc, top)
	if err != nil {
		return nil, err
	}
	if b.session.Values || (!top && mergesRows(s)) {
		bound.forgetLabels()
	}
	return bound, b.tail(s, sc)
}

func (b *binder) selectBody(s *pg.SelectStmt, sc *scope, top bool) (*boundQuery, error) {
	if s.Op != pg.SetOperation_SETOP_NONE {
		return b.setOperation(s, sc, top)
	}
	if len(s.ValuesLists) > 0 {
		return b.values(s, sc)
	}
	for _, item := range s.FromClause {
		if err := b.fromItem(item, sc); err != nil {
			return nil, err
		}
	}
	if err := b.expression(s.WhereClause, sc, ecg.Scan); err != nil {
		return nil, err
	}
	bound, err := b.targetList(s, sc)
	if err != nil {
		return nil, err
	}
	return bound, b.groupClause(s, sc, bound)
}

// mergesRows says whether a query makes one row of several that are equal in
// its output columns, so that a label among them would tell rows apart.
// DISTINCT ON does not: it compares the expressions that it lists.
func mergesRows(s *pg.SelectStmt) bool {
	if s.Op != pg.SetOperation_SETOP_NONE {
		return s.Op != pg.SetOperation_SETOP_UNION || !s.All
	}
	plain := len(s.DistinctClause) > 0 && s.DistinctClause[0].GetNode() == nil
	return plain || len(s.GroupClause) > 0
}

// forgetLabels leaves only the values of the columns.
func (q *boundQuery) forgetLabels() {
	q.columns = slices.Clone(q.columns)
	for i := range q.columns {
		q.columns[i].qid = nil
	}
	q.grouped = nil
}

// values binds the rows of VALUES, whose columns are column1 and so on.
func (b *binder) values(s *pg.SelectStmt, sc *scope) (*boundQuery, error) {
	bound := &boundQuery{known: true, grouping: -1}
	for _, list := range s.ValuesLists {
		if err := b.expression(list, sc, ecg.Projection); err != nil {
			return nil, err
		}
	}
	for range s.ValuesLists[0].GetList().GetItems() {
		bound.add(column{name: "column" + strconv.Itoa(len(bound.columns)+1)}, origin{})
	}
	return bound, b.spend(bound)
}

// add appends an output column and whose label is its own.
func (q *boundQuery) add(c column, label origin) {
	q.columns = append(q.columns, c)
	q.labels = append(q.labels, label)
}

// tail binds what stands behind the target list and its grouping.
func (b *binder) tail(s *pg.SelectStmt, sc *scope) error {
	for _, item := range s.SortClause {
		if err := b.expression(item, sc, ecg.Order); err != nil {
			return err
		}
	}
	for _, node := range []*pg.Node{s.LimitCount, s.LimitOffset} {
		if err := b.expression(node, sc, ecg.Projection); err != nil {
			return err
		}
	}
	return nil
}

// refuseClauses ends statements that would write or lock.
func (b *binder) refuseClauses(s *pg.SelectStmt) error {
	if s.IntoClause != nil {
		return sqlstate.New(sqlstate.FeatureNotSupported, "SELECT INTO cannot read a protected table")
	}
	if len(s.LockingClause) > 0 {
		return sqlstate.New(sqlstate.FeatureNotSupported, "rows of a protected table cannot be locked").
			WithHint("Leave out FOR UPDATE or FOR SHARE: releases do not change.")
	}
	return nil
}

// use notes that a quasi-identifier can influence the answer.
func (b *binder) use(o origin, place ecg.Place) {
	if o.entry.relation == nil {
		return // a subquery's column: noted where the relation was read
	}
	condition := ""
	if b.at >= 0 {
		condition = b.fragment(b.at)
	}
	b.plan.note(ecg.Use{Place: place, Table: o.entry.relation.String(), Attribute: o.qid().Name, Condition: condition})
}

// useAll notes those of some columns that are quasi-identifiers.
func (b *binder) useAll(columns []origin, place ecg.Place) {
	for _, o := range columns {
		if o.qid() != nil {
			b.use(o, place)
		}
	}
}

// targetList binds the output columns.
func (b *binder) targetList(s *pg.SelectStmt, sc *scope) (*boundQuery, error) {
	bound := &boundQuery{known: true, grouping: -1}
	for _, node := range s.TargetList {
		target := node.GetResTarget()
		if ref := target.GetVal().GetColumnRef(); ref != nil && isStar(ref) {
			if err := b.star(ref, sc, bound); err != nil {
				return nil, err
			}
			continue
		}
		if err := b.expression(target.Val, sc, ecg.Projection); err != nil {
			return nil, err
		}
		c := column{name: target.Name}
		if c.name == "" {
			c.name = outputName(target.Val)
		}
		var label origin
		if ref := target.Val.GetColumnRef(); ref != nil {
			r, err := b.resolve(sc, ref)
			if err != nil {
				return nil, err
			}
			// Behind "t.*" of unknown width a column has no number.
			if r.qid() != nil && bound.known && sc.reaches(r.entry) {
				c.qid, label = r.qid(), r.origin
			}
		}
		bound.add(c, label)
		if len(bound.columns) > maxColumns {
			return nil, b.tooManyColumns(len(bound.columns))
		}
	}
	for _, node := range s.DistinctClause {
		if err := b.expression(node, sc, ecg.Order); err != nil {
			return nil, err
		}
	}
	if n := len(s.TargetList); n > 0 {
		bound.listEnd = b.targetListEnd(int(s.TargetList[n-1].GetResTarget().Location))
	}
	return bound, b.spend(bound)
}

package planner

import (
	"slices"
	"strconv"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/ecg"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// binder resolves the names of one text, and of the definitions of views in
// it, and collects the edits.
type binder struct {
	*source  // that is being bound
	plan     *Plan
	session  Session
	snapshot *catalog.Snapshot
	sources  []*source
	carrying []*boundQuery // queries that carry labels out
	stars    []*boundStar
	reading  []*catalog.Relation // protected, of the statement at hand
	columns  int                 // noted so far, over all levels
	bytes    int                 // of the rewritten text, at most
	views    int                 // that the present text is inside of
	keeps    bool                // the statement's rows go into a temporary table
	alone    bool                // the text holds one statement
	averaged *pg.ColumnRef       // stands directly inside an aggregate that averages answer
	keyed    keyed
	// joint are the parents that are read together with their codes in the statement at
	// hand, each with the relation of the codes.
	joint map[*catalog.Relation]*catalog.Relation
	// lists are code lists that conditions are judged by, see codeList.
	lists map[*catalog.HierarchySpec]codeList
	// derivations are what columns of data sets say, see derivedColumns.
	derivations map[*catalog.Relation]map[string]string
	// family are the relations whose subjects have numbers in the statement at hand.
	family map[*catalog.Relation]bool
	apart  bool   // codes are not read together with their parent
	forms  int    // of subqueries, made so far
	wish   string // the data set that would answer the subquery being bound
	at     int    // offset of the reference being bound, -1 for none
	deciding
	gathered *[]base // of the output column being bound, nil for none
}

// boundQuery is a SELECT after binding: its visible output columns, and how to
// make it carry the labels of those that are bare quasi-identifiers.
type boundQuery struct {
	text    *source // that the query stands in
	columns []column
	known   bool                // whether columns is complete
	arms    []*boundQuery       // of a set operation
	keyed   []*catalog.Relation // whose keys "*" would hand on
	// labels say, for each column, whose label is its own; no entry for none.
	labels []origin
	// carried says which labels are asked for.
	carried []bool
	// listEnd is the offset behind the target list, where labels are added.
	listEnd int
	grouped []origin
	// distinct says that the query merges rows by DISTINCT.
	distinct bool
	// keys are the quasi-identifiers that the query is grouped by as they stand.
	keys []origin
	// places are where the target list, GROUP BY and ORDER BY name columns by
	// themselves.
	places []place
	// whole is the refusal of carrying labels, for a query whose row is used as a
	// value: it would have columns that the client does not know of.
	whole error
}

// selectStmt binds a query inside an outer scope. top says that its rows are
// the answer's: there, equal rows are told apart by their labels.
func (b *binder) selectStmt(s *pg.SelectStmt, outer *scope, top bool) (*boundQuery, error) {
	if err := b.refuseClauses(s); err != nil {
		return nil, err
	}
	around, gathered := b.deciding, b.gathered
	b.deciding, b.gathered = deciding{}, nil
	defer func() { b.deciding, b.gathered = around, gathered }()
	sc := &scope{parent: outer, ctes: make(map[string]*boundQuery)}
	if err := b.withClause(s.WithClause, sc); err != nil {
		return nil, err
	}
	bound, err := b.selectBody(s, sc, top)
	if err != nil {
		return nil, err
	}
	bound.text = b.source
	merges := mergesRows(s)
	if b.session.Values || merges && (!top || s.Op != pg.SetOperation_SETOP_NONE) {
		bound.forgetLabels()
	}
	if err := b.tail(s, sc, bound); err != nil {
		return nil, err
	}
	if merges {
		bound.keepNumbered(s)
	}
	for _, o := range bound.keys {
		if !bound.shows(o) {
			b.useExactly(o, ecg.Group)
		}
	}
	if len(s.DistinctClause) > 0 {
		b.decidesAll(bound)
	}
	return bound, nil
}

func (b *binder) selectBody(s *pg.SelectStmt, sc *scope, top bool) (*boundQuery, error) {
	if s.Op != pg.SetOperation_SETOP_NONE {
		return b.setOperation(s, sc, top)
	}
	if len(s.ValuesLists) > 0 {
		return b.values(s, sc)
	}
	if err := b.linkTables(s, sc); err != nil {
		return nil, err
	}
	for _, item := range s.FromClause {
		if err := b.fromItem(item, sc); err != nil {
			return nil, err
		}
	}
	if err := b.expression(s.WhereClause, sc, ecg.Scan); err != nil {
		return nil, err
	}
	for _, e := range sc.entries {
		e.mentions = nil // those before come to act before groups are made
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

// keepNumbered leaves the labels of those columns of a query that merges rows by which
// it can be grouped: others show the values that it is grouped by.
func (q *boundQuery) keepNumbered(s *pg.SelectStmt) {
	if len(s.DistinctClause) > 0 {
		q.distinct = true
	}
	if len(s.GroupClause) == 0 {
		q.grouped = q.labels // DISTINCT
	}
	q.columns = slices.Clone(q.columns)
	for i := range q.columns {
		if q.columns[i].qid != nil && !q.byNumber(q.labels[i]) {
			q.columns[i].qid = nil
		}
	}
}

// shows says whether the label of a column is shown.
func (q *boundQuery) shows(o origin) bool {
	for i, label := range q.labels {
		if label == o && q.columns[i].qid != nil {
			return true
		}
	}
	return false
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
	bound := &boundQuery{known: true}
	for _, list := range s.ValuesLists {
		if err := b.expression(list, sc, ecg.Projection); err != nil {
			return nil, err
		}
	}
	for range s.ValuesLists[0].GetList().GetItems() {
		bound.add(column{
			name:       "column" + strconv.Itoa(len(bound.columns)+1),
			provenance: provenance{kind: Computed},
		}, origin{})
	}
	return bound, b.spend(bound)
}

// add appends an output column and whose label is its own.
func (q *boundQuery) add(c column, label origin) {
	q.columns = append(q.columns, c)
	q.labels = append(q.labels, label)
}

// tail binds what stands behind the target list and its grouping.
func (b *binder) tail(s *pg.SelectStmt, sc *scope, bound *boundQuery) error {
	for _, item := range s.SortClause {
		if err := b.ownOperator(item.GetSortBy().GetUseOp(),
			int(item.GetSortBy().GetLocation())); err != nil {
			return err
		}
		if err := b.ordering(item.GetSortBy().GetNode(), sc, bound); err != nil {
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

// ordering binds an item of ORDER BY or DISTINCT ON. A bare name that an output
// column has means that column, whatever the tables hold.
func (b *binder) ordering(node *pg.Node, sc *scope, bound *boundQuery) error {
	if ref := node.GetColumnRef(); ref != nil && len(ref.Fields) == 1 && !isStar(ref) {
		for i, c := range bound.columns {
			if c.name == last(ref.Fields) {
				if o := bound.labelAt(i); o.qid() != nil {
					b.at = int(ref.Location)
					b.use(o, ecg.Order)
					b.at = -1
				}
				return nil
			}
		}
	}
	if err := b.expression(node, sc, ecg.Order); err != nil {
		return err
	}
	if ref := node.GetColumnRef(); ref != nil && !isStar(ref) {
		r, err := b.resolve(sc, ref)
		if err != nil {
			return err
		}
		b.names(ref, sc, bound, place{origin: r.origin, written: true})
	}
	return nil
}

// refuseClauses ends statements that would write or lock.
func (b *binder) refuseClauses(s *pg.SelectStmt) error {
	if s.IntoClause != nil && !b.keeps {
		return sqlstate.New(sqlstate.FeatureNotSupported,
			"SELECT INTO is not supported inside another statement").
			WithHint("Write SELECT INTO TEMP, or CREATE TEMP TABLE ... AS, on its own.")
	}
	if len(s.LockingClause) > 0 {
		return sqlstate.New(sqlstate.FeatureNotSupported, "rows of a protected table cannot be locked").
			WithHint("Leave out FOR UPDATE or FOR SHARE: releases do not change.")
	}
	return nil
}

// use notes that a quasi-identifier can influence the answer. A subquery's column was noted
// where the relation was read.
func (b *binder) use(o origin, place ecg.Place) {
	d := b.deciding
	d.exactly = d.exactly || place == ecg.Join
	if o.entry.relation == nil {
		b.plan.decides(o.entry.columns[o.at].bases, d)
		return
	}
	condition := ""
	if b.at >= 0 {
		condition = b.conditionText(b.at)
	}
	table, attribute := o.asked()
	b.plan.note(ecg.Use{
		Place: place, Table: table, Attribute: attribute,
		Condition: condition, Exactly: d.exactly, Bounds: d.bounds,
	})
}

// useExactly notes that the values of a quasi-identifier themselves matter.
func (b *binder) useExactly(o origin, place ecg.Place) {
	_ = b.while(deciding{exactly: true}, func() error {
		b.use(o, place)
		return nil
	})
}

// useAll notes those of some columns that are quasi-identifiers, or may be computed from some.
func (b *binder) useAll(columns []origin, place ecg.Place) {
	for _, o := range columns {
		if o.qid() != nil || o.entry.relation == nil {
			b.use(o, place)
		}
		b.gather(o)
	}
}

// targetList binds the output columns.
func (b *binder) targetList(s *pg.SelectStmt, sc *scope) (*boundQuery, error) {
	bound := &boundQuery{known: true}
	for _, node := range s.TargetList {
		target := node.GetResTarget()
		if ref := target.GetVal().GetColumnRef(); ref != nil && isStar(ref) {
			if err := b.star(ref, s.FromClause, sc, bound); err != nil {
				return nil, err
			}
			continue
		}
		counted, err := b.countsAll(target, s, sc)
		if err != nil {
			return nil, err
		}
		var bases []base
		if !counted {
			b.gathered = &bases
			err := b.expression(target.Val, sc, ecg.Projection)
			b.gathered = nil
			if err != nil {
				return nil, err
			}
		}
		if target.Val.GetColumnRef() == nil {
			bases = computed(bases)
		}
		if err := b.nameLabelCall(target); err != nil {
			return nil, err
		}
		c := column{name: target.Name, provenance: provenance{kind: Computed}, bases: bases}
		if c.name == "" {
			c.name = outputName(target.Val)
		}
		var label origin
		if ref := target.Val.GetColumnRef(); ref != nil && b.keyed.keys[ref] == nil {
			r, err := b.resolve(sc, ref)
			if err != nil {
				return nil, err
			}
			c.provenance = r.provenance()
			// Behind "t.*" of unknown width a column has no number.
			if r.qid() != nil && bound.known && sc.reaches(r.entry) {
				c.qid, label = r.qid(), r.origin
				here := place{origin: label, written: true}
				if target.Name == "" {
					here.name = c.name
				}
				b.names(ref, sc, bound, here)
			}
		}
		bound.add(c, label)
		if len(bound.columns) > maxColumns {
			return nil, b.tooManyColumns(len(bound.columns))
		}
	}
	for _, node := range s.DistinctClause {
		if err := b.ordering(node, sc, bound); err != nil {
			return nil, err
		}
	}
	if n := len(s.TargetList); n > 0 && bound.listEnd == 0 {
		bound.listEnd = b.targetListEnd(int(s.TargetList[n-1].GetResTarget().Location))
	}
	return bound, b.spend(bound)
}

package planner

import (
	"fmt"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/ecg"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// binder resolves the names of one text and collects the edits.
type binder struct {
	plan      *Plan
	statement string
	tokens    []*pg.ScanToken
	session   Session
	snapshot  *catalog.Snapshot
}

// boundQuery is a SELECT after binding: its visible output columns, and how to
// make it carry the labels of those that are bare quasi-identifiers.
type boundQuery struct {
	columns []column
	known   bool         // whether columns is complete
	arms    []boundQuery // of a set operation
	// listEnd is the offset behind the target list, where labels are added.
	listEnd int
	// labels are, for each column, the reference to its label in this query's
	// own scope; empty for none.
	labels []string
	// grouping is where the labels of grouped columns are added, -1 for none.
	grouping int
	grouped  []string // references to the labels of grouped columns
}

// selectStmt binds a query inside an outer scope.
func (b *binder) selectStmt(s *pg.SelectStmt, outer *scope) (boundQuery, error) {
	if err := b.refuseClauses(s); err != nil {
		return boundQuery{}, err
	}
	sc := &scope{parent: outer, ctes: make(map[string][]column)}
	if err := b.withClause(s.WithClause, sc); err != nil {
		return boundQuery{}, err
	}
	if s.Op != pg.SetOperation_SETOP_NONE {
		return b.setOperation(s, sc)
	}
	for _, list := range s.ValuesLists {
		if err := b.expression(list, sc, ecg.Projection); err != nil {
			return boundQuery{}, err
		}
	}
	if len(s.ValuesLists) > 0 {
		return boundQuery{grouping: -1}, b.tail(s, sc)
	}
	for _, item := range s.FromClause {
		if err := b.fromItem(item, sc); err != nil {
			return boundQuery{}, err
		}
	}
	if err := b.expression(s.WhereClause, sc, ecg.Scan); err != nil {
		return boundQuery{}, err
	}
	bound, err := b.targetList(s, sc)
	if err != nil {
		return boundQuery{}, err
	}
	if err := b.groupClause(s, sc, &bound); err != nil {
		return boundQuery{}, err
	}
	return bound, b.tail(s, sc)
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

func (b *binder) withClause(w *pg.WithClause, sc *scope) error {
	if w == nil {
		return nil
	}
	for _, node := range w.Ctes {
		cte := node.GetCommonTableExpr()
		query := cte.GetCtequery().GetSelectStmt()
		if query == nil {
			return sqlstate.New(sqlstate.FeatureNotSupported, "WITH can only hold SELECT where a protected table is read").
				At(b.statement, int(cte.GetLocation()))
		}
		if w.Recursive && b.concerns(cte.Ctequery) {
			return sqlstate.New(sqlstate.FeatureNotSupported, "WITH RECURSIVE cannot read a protected table").
				At(b.statement, int(cte.Location))
		}
		if w.Recursive {
			sc.ctes[cte.Ctename] = nil // its own columns are not known
			continue
		}
		bound, err := b.selectStmt(query, sc)
		if err != nil {
			return err
		}
		b.carryLabels(&bound)
		sc.ctes[cte.Ctename] = renamed(bound.columns, cte.Aliascolnames)
	}
	return nil
}

// concerns says whether a tree names a protected relation.
func (b *binder) concerns(node *pg.Node) bool {
	return slices.ContainsFunc(rangeVars(node), func(rv *pg.RangeVar) bool {
		name, err := b.relationName(rv)
		return err != nil || b.snapshot.Protected(name) != nil
	})
}

// setOperation binds both arms; a column stays a quasi-identifier where it is
// one in each arm.
func (b *binder) setOperation(s *pg.SelectStmt, sc *scope) (boundQuery, error) {
	left, err := b.selectStmt(s.Larg, sc)
	if err != nil {
		return boundQuery{}, err
	}
	right, err := b.selectStmt(s.Rarg, sc)
	if err != nil {
		return boundQuery{}, err
	}
	bound := boundQuery{arms: []boundQuery{left, right}, known: left.known && right.known, grouping: -1}
	bound.columns = slices.Clone(left.columns)
	if !bound.known || len(left.columns) != len(right.columns) {
		for i := range bound.columns {
			bound.columns[i].qid = nil
		}
		return bound, b.tail(s, sc)
	}
	for i := range bound.columns {
		if bound.columns[i].qid == nil || right.columns[i].qid == nil {
			bound.columns[i].qid = nil
		}
	}
	return bound, b.tail(s, sc)
}

// carryLabels makes a bound query output the labels of its bare
// quasi-identifiers behind its other columns.
func (b *binder) carryLabels(bound *boundQuery) {
	var carried []int
	for i := range bound.columns {
		if bound.columns[i].qid != nil {
			bound.columns[i].label = fmt.Sprintf("tailor_label_of_%d", i+1)
			carried = append(carried, i)
		}
	}
	b.addLabels(bound, carried)
}

// addLabels edits the target lists that a query consists of.
func (b *binder) addLabels(bound *boundQuery, carried []int) {
	if len(carried) == 0 {
		return
	}
	for i := range bound.arms {
		b.addLabels(&bound.arms[i], carried)
	}
	if len(bound.arms) > 0 {
		return
	}
	var list strings.Builder
	for _, i := range carried {
		fmt.Fprintf(&list, ", %s AS tailor_label_of_%d", bound.labels[i], i+1)
	}
	b.insert(bound.listEnd, list.String())
	if bound.grouping >= 0 {
		b.insert(bound.grouping, " "+strings.Join(bound.grouped, ", ")+",")
		bound.grouping = -1
	}
}

func (b *binder) insert(at int, text string) {
	b.plan.edits = append(b.plan.edits, edit{start: at, end: at, text: text})
}

// targetList binds the output columns and expands stars over releases, whose
// columns for labels are not for showing.
func (b *binder) targetList(s *pg.SelectStmt, sc *scope) (boundQuery, error) {
	bound := boundQuery{known: true, grouping: -1}
	for _, node := range s.TargetList {
		target := node.GetResTarget()
		if ref := target.GetVal().GetColumnRef(); ref != nil && isStar(ref) {
			if err := b.star(ref, sc, &bound); err != nil {
				return bound, err
			}
			continue
		}
		if err := b.expression(target.Val, sc, ecg.Projection); err != nil {
			return bound, err
		}
		c := column{name: target.Name}
		if c.name == "" {
			c.name = outputName(target.Val)
		}
		label := ""
		if ref := target.Val.GetColumnRef(); ref != nil {
			r, err := b.resolve(sc, ref)
			if err != nil {
				return bound, err
			}
			if r.column != nil && r.column.qid != nil {
				c.qid, label = r.column.qid, r.entry.labelOf(r.column)
			}
		}
		bound.columns = append(bound.columns, c)
		bound.labels = append(bound.labels, label)
	}
	for _, node := range s.DistinctClause {
		if err := b.expression(node, sc, ecg.Order); err != nil {
			return bound, err
		}
	}
	if n := len(s.TargetList); n > 0 {
		bound.listEnd = b.targetListEnd(int(s.TargetList[n-1].GetResTarget().Location))
	}
	return bound, nil
}

// labelOf is the reference to a column's label, from inside the query whose
// FROM list holds the entry.
func (e *entry) labelOf(c *column) string { return quoted(e.alias) + "." + quoted(c.label) }

// star expands "*" or "t.*" where it covers a column with a label, and notes
// its columns.
func (b *binder) star(ref *pg.ColumnRef, sc *scope, bound *boundQuery) error {
	names := refNames(ref)
	if ref.Location < 0 {
		return sqlstate.New(sqlstate.FeatureNotSupported, "the command TABLE is not supported for a protected table").
			WithHint("Write SELECT * FROM instead.")
	}
	var entries []*entry
	if len(names) == 0 {
		entries = sc.entries
	}
	for at := sc; at != nil && len(names) > 0 && entries == nil; at = at.parent {
		for _, e := range at.entries {
			if e.alias == names[len(names)-1] {
				entries = []*entry{e}
				break
			}
		}
	}
	if len(names) == 0 && sc.merged {
		return sqlstate.New(sqlstate.FeatureNotSupported, "\"*\" over USING or NATURAL cannot be expanded").
			WithHint("Name the columns, or use t.* for each table.").At(b.statement, int(ref.Location))
	}
	var list []string
	expand := false
	for _, e := range entries {
		if e.relation == nil && !hasLabels(e.columns) {
			list = append(list, quoted(e.alias)+".*")
			bound.known = bound.known && e.known
			for _, c := range e.columns {
				bound.columns = append(bound.columns, column{name: c.name})
				bound.labels = append(bound.labels, "")
			}
			continue
		}
		expand = true
		for i := range e.columns {
			c := &e.columns[i]
			list = append(list, quoted(e.alias)+"."+quoted(c.name))
			label := ""
			if c.qid != nil {
				label = e.labelOf(c)
				b.use(e, c, ecg.Projection)
			}
			bound.columns = append(bound.columns, column{name: c.name, qid: c.qid})
			bound.labels = append(bound.labels, label)
		}
	}
	if entries == nil {
		bound.known = false
	}
	if expand {
		end := b.tokenAt(int(ref.Location)) + 2*len(names)
		b.plan.edits = append(b.plan.edits, edit{
			start: int(ref.Location), end: int(b.tokens[end].End), text: strings.Join(list, ", "),
		})
	}
	return nil
}

// groupClause binds GROUP BY and HAVING. A grouped quasi-identifier that is
// shown is grouped by its label too: two nodes can share a representative.
func (b *binder) groupClause(s *pg.SelectStmt, sc *scope, bound *boundQuery) error {
	labels := func(node *pg.Node) (string, bool, error) {
		if c := node.GetAConst(); c != nil && c.GetIval() != nil {
			if i := int(c.GetIval().Ival) - 1; i >= 0 && i < len(bound.labels) && bound.known {
				return bound.labels[i], bound.labels[i] != "", nil
			}
			return "", false, nil
		}
		ref := node.GetColumnRef()
		if ref == nil {
			return "", false, nil
		}
		r, err := b.resolve(sc, ref)
		if err != nil {
			return "", false, err
		}
		if r.column != nil {
			if r.column.qid == nil {
				return "", false, nil
			}
			return r.entry.labelOf(r.column), true, nil
		}
		if names := refNames(ref); len(names) == 1 {
			for i, c := range bound.columns {
				if c.name == names[0] && bound.labels[i] != "" {
					return bound.labels[i], true, nil
				}
			}
		}
		return "", false, nil
	}
	sets := false
	for _, node := range s.GroupClause {
		sets = sets || node.GetGroupingSet() != nil
		if err := b.expression(node, sc, ecg.Group); err != nil {
			return err
		}
		label, ok, err := labels(node)
		if err != nil {
			return err
		}
		if ok && !slices.Contains(bound.grouped, label) {
			bound.grouped = append(bound.grouped, label)
		}
	}
	if sets {
		// A label would have to be left out of exactly those sets that leave
		// out its column; shown as a value, the column needs none.
		for i := range bound.columns {
			bound.columns[i].qid = nil
		}
		bound.grouped = nil
	}
	if len(bound.grouped) > 0 {
		bound.grouping = b.groupByStart(start(s.GroupClause[0]))
	}
	if err := b.expression(s.HavingClause, sc, ecg.Group); err != nil {
		return err
	}
	for _, w := range s.WindowClause {
		if err := b.expression(w, sc, ecg.Projection); err != nil {
			return err
		}
	}
	return nil
}

// use notes that a quasi-identifier can influence the answer.
func (b *binder) use(e *entry, c *column, place ecg.Place) {
	if e.relation == nil {
		return // a subquery's column: noted where the relation was read
	}
	u := ecg.Use{Place: place, Table: e.relation.String(), Attribute: c.qid.Name}
	if !slices.Contains(b.plan.Uses, u) {
		b.plan.Uses = append(b.plan.Uses, u)
	}
}

// showLabels wraps the outermost query so that the client gets labels where
// its target list holds bare quasi-identifiers. The order of rows is kept: the
// wrapper only projects.
func (b *binder) showLabels(bound boundQuery, start, end int) error {
	if !slices.ContainsFunc(bound.columns, func(c column) bool { return c.qid != nil }) {
		return nil
	}
	if !bound.known {
		return sqlstate.New(sqlstate.FeatureNotSupported, "the columns that \"*\" stands for are not known").
			WithHint("Name the columns.")
	}
	b.carryLabels(&bound)
	var inner, outer []string
	for i := range bound.columns {
		inner = append(inner, fmt.Sprintf("tailor_%d", i+1))
	}
	for i, c := range bound.columns {
		from := inner[i]
		if c.qid != nil {
			from = fmt.Sprintf("tailor_label_of_%d", i+1)
		}
		outer = append(outer, from+" AS "+quoted(c.name))
	}
	b.insert(b.textStart(start), "SELECT "+strings.Join(outer, ", ")+" FROM (")
	b.insert(b.textEnd(end), "\n) AS tailor_answer ("+strings.Join(inner, ", ")+")")
	return nil
}

// textStart is the offset of the first token at or after an offset that is not
// a comment.
func (b *binder) textStart(offset int) int {
	for i := b.tokenAt(offset); i < len(b.tokens); i++ {
		if t := b.tokens[i]; t.Token != pg.Token_SQL_COMMENT && t.Token != pg.Token_C_COMMENT {
			return int(t.Start)
		}
	}
	return offset
}

// textEnd is the offset behind the last token before an offset that is neither
// a comment nor a semicolon.
func (b *binder) textEnd(offset int) int {
	for i := b.tokenAt(offset) - 1; i >= 0; i-- {
		switch t := b.tokens[i]; t.Token {
		case pg.Token_SQL_COMMENT, pg.Token_C_COMMENT, pg.Token_ASCII_59:
		default:
			return int(t.End)
		}
	}
	return offset
}

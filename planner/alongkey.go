package planner

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hiatus-tailor/tailor/catalog"
)

// Queries that say of each subject something of its rows, and do not name subjects, are the
// same as others with subqueries along the key, which data sets may answer:
//
//   - count(DISTINCT key) over some rows of a child, alone or joined with its parent, is the
//     number of the parent's subjects for whom there EXISTS such a row;
//   - SELECT key, aggregates FROM child GROUP BY key is a row for each of these subjects, with
//     aggregates as subqueries.

// alongTheKey is a statement with such queries in place of those; "" if it has none. It is no
// longer than the parser's library can write.
func (b *binder) alongTheKey(tree *pg.ParseResult) string {
	if len(tree.Stmts) != 1 || len(b.tokens) > 2*maxFormTokens ||
		tree.Stmts[0].Stmt.GetSelectStmt() == nil {
		return ""
	}
	stmt := proto.Clone(tree.Stmts[0].Stmt).(*pg.Node)
	named := make(map[string]bool) // by WITH
	visit(stmt, func(cte *pg.CommonTableExpr) { named[cte.Ctename] = true })
	var queries []*pg.SelectStmt
	visit(stmt, func(s *pg.SelectStmt) { queries = append(queries, s) })
	changed := false
	for _, s := range queries {
		if s.Op != pg.SetOperation_SETOP_NONE || s.IntoClause != nil ||
			len(s.DistinctClause) > 0 || len(s.WindowClause) > 0 || len(s.LockingClause) > 0 ||
			len(s.ValuesLists) > 0 {
			continue
		}
		for _, rewrite := range []func(*subjectCounter, *pg.SelectStmt) bool{
			(*subjectCounter).countsSubjects, (*subjectCounter).groupsBySubject,
		} {
			// What does not fit is left as it is.
			of := proto.Clone(s).(*pg.SelectStmt)
			if rewrite(&subjectCounter{b: b, named: named}, of) {
				proto.Reset(s)
				proto.Merge(s, of)
				changed = true
				break
			}
		}
	}
	if !changed {
		return ""
	}
	text, err := pg.Deparse(&pg.ParseResult{Stmts: []*pg.RawStmt{{Stmt: stmt}}})
	if err != nil {
		return ""
	}
	return text
}

// countsSubjects rewrites a query that counts different keys, and asks nothing else of the
// child.
func (c *subjectCounter) countsSubjects(s *pg.SelectStmt) bool {
	if !c.from(s) {
		return false
	}
	inside, outside := c.split(s.WhereClause)
	if c.failed || !c.equated && c.parent != nil || c.parent == nil && len(s.GroupClause) > 0 {
		return false
	}
	for _, list := range [][]*pg.Node{
		s.TargetList, s.GroupClause, s.SortClause, {s.HavingClause, s.LimitCount, s.LimitOffset},
	} {
		for _, node := range list {
			if node != nil {
				c.recount(node.ProtoReflect())
			}
		}
	}
	if c.failed || !c.counted {
		return false
	}
	c.ofSubjects(s, inside, outside)
	return true
}

// ofSubjects makes a query one over the parent, of subjects who have a row.
func (c *subjectCounter) ofSubjects(s *pg.SelectStmt, inside, outside []*pg.Node) {
	if c.parent == nil {
		subjects := c.child.relation.Parent
		c.parent = &canonicalTable{alias: c.child.alias + "_subject"}
		c.parentName = &pg.RangeVar{
			Schemaname: subjects.Schema, Relname: subjects.Name, Inh: true, Relpersistence: "p",
			Alias: &pg.Alias{Aliasname: c.parent.alias},
		}
	}
	s.FromClause = []*pg.Node{{Node: &pg.Node_RangeVar{RangeVar: c.parentName}}}
	s.WhereClause = conjunction(append(outside, c.subLink(pg.SubLinkType_EXISTS_SUBLINK, nil, inside)))
}

// subLink is a subquery over a subject's rows that meet conditions.
func (c *subjectCounter) subLink(kind pg.SubLinkType, target *pg.Node, inside []*pg.Node) *pg.Node {
	equation := &pg.Node{Node: &pg.Node_AExpr{AExpr: &pg.A_Expr{
		Kind: pg.A_Expr_Kind_AEXPR_OP, Name: []*pg.Node{pg.MakeStrNode("=")},
		Lexpr: columnNode(c.child.alias, c.child.relation.Subject),
		Rexpr: columnNode(c.parent.alias, c.child.relation.Parent.Subject),
	}}}
	query := &pg.SelectStmt{
		FromClause:  []*pg.Node{{Node: &pg.Node_RangeVar{RangeVar: c.childName}}},
		WhereClause: conjunction(append(slices.Clone(inside), equation)),
		LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg.SetOperation_SETOP_NONE,
	}
	if target != nil {
		query.TargetList = []*pg.Node{{Node: &pg.Node_ResTarget{ResTarget: &pg.ResTarget{Val: target}}}}
	}
	return &pg.Node{Node: &pg.Node_SubLink{SubLink: &pg.SubLink{
		SubLinkType: kind, Subselect: &pg.Node{Node: &pg.Node_SelectStmt{SelectStmt: query}},
	}}}
}

func columnNode(table, column string) *pg.Node {
	return &pg.Node{Node: &pg.Node_ColumnRef{ColumnRef: columnOf(table, column)}}
}

// groupsBySubject rewrites a query over a child alone that is grouped by its key.
func (c *subjectCounter) groupsBySubject(s *pg.SelectStmt) bool {
	if !c.from(s) || c.parent != nil || len(s.GroupClause) != 1 || !c.isKey(grouping(s)) ||
		s.GroupDistinct ||
		len(s.SortClause) > 0 || s.LimitCount != nil || s.LimitOffset != nil {
		return false
	}
	inside, outside := c.split(s.WhereClause)
	if c.failed || len(outside) > 0 {
		return false
	}
	having := s.HavingClause
	s.GroupClause, s.HavingClause = nil, nil
	c.ofSubjects(s, inside, nil)
	for _, node := range s.TargetList {
		target := node.GetResTarget()
		if c.isKey(target.Val) {
			if target.Name == "" {
				target.Name = c.child.relation.Subject
			}
			target.Val = columnNode(c.parent.alias, c.child.relation.Parent.Subject)
			continue
		}
		if f := target.Val.GetFuncCall(); target.Name == "" && f != nil {
			target.Name = last(f.Funcname)
		}
		c.perSubject(target.Val, inside)
	}
	if having != nil {
		c.perSubject(having, inside)
		s.WhereClause = conjunction([]*pg.Node{s.WhereClause, having})
	}
	return !c.failed
}

// grouping is what a query is grouped by, be it by the place of a column.
func grouping(s *pg.SelectStmt) *pg.Node {
	if at := s.GroupClause[0].GetAConst().GetIval(); at != nil && at.Ival >= 1 &&
		int(at.Ival) <= len(s.TargetList) {
		return s.TargetList[at.Ival-1].GetResTarget().GetVal()
	}
	return s.GroupClause[0]
}

// perSubject puts subqueries in place of the aggregates of an expression.
func (c *subjectCounter) perSubject(node *pg.Node, inside []*pg.Node) {
	switch n := node.GetNode().(type) {
	case nil, *pg.Node_AConst:
		return
	case *pg.Node_FuncCall:
		f := n.FuncCall
		if slices.Contains(plainFunctions, last(f.Funcname)) {
			break
		}
		if f.Over != nil || len(f.AggOrder) > 0 && !f.AggWithinGroup {
			c.failed = true
			return
		}
		if child, parent := c.uses(node); parent || !child && !f.AggStar {
			c.failed = true
			return
		}
		if last(f.Funcname) == "count" && !f.AggDistinct && f.AggFilter == nil && len(f.Args) == 1 &&
			c.isKey(f.Args[0]) {
			f.Args, f.AggStar = nil, true
		}
		node.Node = c.subLink(pg.SubLinkType_EXPR_SUBLINK, &pg.Node{Node: n}, inside).Node
		return
	case *pg.Node_ColumnRef, *pg.Node_SubLink:
		c.failed = true // of which row?
		return
	}

	m := node.ProtoReflect()
	m.Range(func(_ protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		c.below(value.Message(), inside)
		return true
	})
}

// below does the same for the expressions in a node.
func (c *subjectCounter) below(m protoreflect.Message, inside []*pg.Node) {
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		each := func(v protoreflect.Message) {
			if n, ok := v.Interface().(*pg.Node); ok {
				c.perSubject(n, inside)
			} else {
				c.below(v, inside)
			}
		}
		switch {
		case field.Message() == nil:
		case field.IsList():
			for i := range value.List().Len() {
				each(value.List().Get(i).Message())
			}
		default:
			each(value.Message())
		}
		return true
	})
}

// subjectCounter takes such a query apart.
type subjectCounter struct {
	b                     *binder
	child, parent         *canonicalTable // parent is nil if the child stands alone
	childName, parentName *pg.RangeVar
	named                 map[string]bool // queries of WITH, which may hide a table
	joined                []*pg.Node      // conditions of the join
	equated               bool            // both keys are
	counted, failed       bool
}

// from finds the child, and its parent, in the FROM list.
func (c *subjectCounter) from(s *pg.SelectStmt) bool {
	items := s.FromClause
	if len(items) == 1 && items[0].GetJoinExpr() != nil {
		j := items[0].GetJoinExpr()
		if j.Jointype != pg.JoinType_JOIN_INNER || j.IsNatural || len(j.UsingClause) > 0 ||
			j.Alias != nil {
			return false
		}
		items = []*pg.Node{j.Larg, j.Rarg}
		c.joined = []*pg.Node{j.Quals}
	}
	for _, item := range items {
		rv := item.GetRangeVar()
		if rv == nil || rv.Alias.GetColnames() != nil || !rv.Inh || c.named[rv.Relname] {
			return false
		}
		name, err := c.b.relationName(rv)
		r := c.b.snapshot.Protected(name)
		if err != nil || r == nil || r.SetValued != nil || r.AggregateOnly {
			return false
		}
		t := &canonicalTable{alias: rv.Relname, relation: r}
		if rv.Alias != nil {
			t.alias = rv.Alias.Aliasname
		}
		switch {
		case r.Lent() && c.child == nil:
			c.child, c.childName = t, rv
		case r.Parent == nil && c.parent == nil:
			c.parent, c.parentName = t, rv
		default:
			return false
		}
	}
	return c.child != nil && (c.parent == nil || c.child.relation.Parent.Is(c.parent.relation))
}

// split parts the conjuncts of the conditions: those of the parent alone, and all others but
// the equation of the keys. They are looked at once a subject, and again in each subquery: what
// may be another thing each time it is asked fails.
func (c *subjectCounter) split(where *pg.Node) (inside, outside []*pg.Node) {
	for _, condition := range append(slices.Clone(c.joined), where) {
		for _, n := range conjuncts(condition) {
			child, parent := c.uses(n)
			visit(n, func(f *pg.FuncCall) {
				known := slices.ContainsFunc([][]string{steadyFunctions, plainFunctions, stableFunctions},
					func(list []string) bool { return slices.Contains(list, last(f.Funcname)) })
				c.failed = c.failed || !known || foreign(f.Funcname)
			})
			e := equation(n)
			switch {
			case e != nil && c.isKey(e.Lexpr) && c.isKey(e.Rexpr) && child && parent:
				c.equated = true
			case child || !parent && c.parent == nil:
				inside = append(inside, n)
			default:
				outside = append(outside, n)
			}
		}
	}
	return inside, outside
}

// uses says whose columns stand below a node. What is not understood fails.
func (c *subjectCounter) uses(node *pg.Node) (child, parent bool) {
	visit(node, func(*pg.SubLink) { c.failed = true })
	visit(node, func(ref *pg.ColumnRef) {
		switch c.table(ref) {
		case nil:
			c.failed = true
		case c.child:
			child = true
		default:
			parent = true
		}
	})
	return child, parent
}

// table is that of a column, nil where it cannot be told.
func (c *subjectCounter) table(ref *pg.ColumnRef) *canonicalTable {
	names := refNames(ref)
	if isStar(ref) || len(names) > 2 || len(names) == 0 {
		return nil
	}
	var found *canonicalTable
	for _, t := range []*canonicalTable{c.child, c.parent} {
		if t == nil || t.relation == nil || len(names) == 2 && names[0] != t.alias ||
			t.relation.Column(names[len(names)-1]) == nil {
			continue
		}
		if found != nil {
			return nil
		}
		found = t
	}
	return found
}

// isKey says whether an expression is the key of either.
func (c *subjectCounter) isKey(node *pg.Node) bool {
	ref := node.GetColumnRef()
	if ref == nil {
		return false
	}
	t := c.table(ref)
	return t != nil && last(ref.Fields) == t.relation.Subject
}

// recount puts count(*) in place of the number of different keys; nothing else may depend on
// rows of the child, or count them.
func (c *subjectCounter) recount(m protoreflect.Message) {
	switch n := m.Interface().(type) {
	case *pg.FuncCall:
		if isSubjectCount(n) && n.AggFilter == nil && c.isKey(n.Args[0]) {
			n.Args, n.AggDistinct, n.AggStar = nil, false, true
			c.counted = true
			return
		}
		if !slices.Contains(plainFunctions, last(n.Funcname)) {
			c.failed = true // it may be an aggregate
		}
	case *pg.ColumnRef:
		if t := c.table(
			n,
		); t == nil || t == c.child ||
			c.isKey(&pg.Node{Node: &pg.Node_ColumnRef{ColumnRef: n}}) {
			c.failed = true
		}
		return
	case *pg.SubLink:
		c.failed = true
		return
	case *pg.A_Const, *pg.String:
		return
	}
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.Message() == nil:
		case field.IsList():
			for i := range value.List().Len() {
				c.recount(value.List().Get(i).Message())
			}
		default:
			c.recount(value.Message())
		}
		return true
	})
}

// stableFunctions say the same for all of a statement.
var stableFunctions = []string{"now", "age", "date", "to_char", "to_date", "to_timestamp"}

// plainFunctions are some that are no aggregates.
var plainFunctions = []string{
	"left",
	"right",
	"width_bucket",
	"date_trunc",
	"extract",
	"date_part",
	"lower",
	"upper",
	"round",
	"floor",
	"ceil",
	"substring",
	"least",
	"greatest",
}

// conjuncts of a condition.
func conjuncts(condition *pg.Node) (out []*pg.Node) {
	if and := condition.GetBoolExpr(); and != nil && and.Boolop == pg.BoolExprType_AND_EXPR {
		for _, arg := range and.Args {
			out = append(out, conjuncts(arg)...)
		}
	} else if condition != nil {
		out = append(out, condition)
	}
	return out
}

// conjunction is the condition of some conjuncts, nil for none.
func conjunction(list []*pg.Node) *pg.Node {
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	return &pg.Node{
		Node: &pg.Node_BoolExpr{
			BoolExpr: &pg.BoolExpr{Boolop: pg.BoolExprType_AND_EXPR, Args: list},
		},
	}
}

// planAlongTheKey plans the statement with subqueries in place of a text that was refused,
// if there is one. What is said of it has no place in the client's text.
func planAlongTheKey(
	tokens []*pg.ScanToken,
	tree *pg.ParseResult,
	session Session,
	snapshot *catalog.Snapshot,
) (*Plan, error) {
	b := &binder{source: &source{tokens: tokens}, session: session, snapshot: snapshot}
	text := b.alongTheKey(tree)
	if text == "" {
		return nil, nil
	}
	return Make(text, session, snapshot)
}

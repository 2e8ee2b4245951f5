package planner

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hiatus-tailor/tailor/catalog"
)

// count(DISTINCT key) over some rows of a child, alone or joined with its parent, is the
// number of the parent's subjects who have such a row. So a query that asks nothing else of
// the child is the same as one over the parent with EXISTS, which a data set may answer.

// subjectsWho is the query that counts subjects in place of one that counts different keys;
// "" if a text is not of that kind. It is no longer than the parser's library can write.
func (b *binder) subjectsWho(tree *pg.ParseResult) string {
	if len(tree.Stmts) != 1 || len(b.tokens) > maxFormTokens {
		return ""
	}
	s := tree.Stmts[0].Stmt.GetSelectStmt()
	if s == nil || s.Op != pg.SetOperation_SETOP_NONE || s.WithClause != nil ||
		s.IntoClause != nil ||
		len(s.DistinctClause) > 0 ||
		len(s.WindowClause) > 0 ||
		len(s.LockingClause) > 0 {
		return ""
	}
	s = proto.Clone(s).(*pg.SelectStmt)
	c := &subjectCounter{b: b}
	if !c.from(s) {
		return ""
	}
	inside, outside := c.split(s.WhereClause)
	if c.failed || !c.equated && c.parent != nil {
		return ""
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
		return ""
	}
	if c.parent == nil {
		subjects := c.child.relation.Parent
		c.parent = &canonicalTable{alias: c.child.alias + "_subject"}
		c.parentName = &pg.RangeVar{
			Schemaname:     subjects.Schema,
			Relname:        subjects.Name,
			Inh:            true,
			Relpersistence: "p",
			Alias:          &pg.Alias{Aliasname: c.parent.alias},
		}
		if len(s.GroupClause) > 0 {
			return ""
		}
	}
	inside = append(inside, &pg.Node{Node: &pg.Node_AExpr{AExpr: &pg.A_Expr{
		Kind: pg.A_Expr_Kind_AEXPR_OP,
		Name: []*pg.Node{pg.MakeStrNode("=")},
		Lexpr: &pg.Node{
			Node: &pg.Node_ColumnRef{ColumnRef: columnOf(c.child.alias, c.child.relation.Subject)},
		},
		Rexpr: &pg.Node{
			Node: &pg.Node_ColumnRef{
				ColumnRef: columnOf(c.parent.alias, c.child.relation.Parent.Subject),
			},
		},
	}}})
	exists := &pg.SelectStmt{
		FromClause: []*pg.Node{
			{Node: &pg.Node_RangeVar{RangeVar: c.childName}},
		},
		WhereClause: conjunction(inside),
		LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT,
		Op:          pg.SetOperation_SETOP_NONE,
	}
	s.FromClause = []*pg.Node{{Node: &pg.Node_RangeVar{RangeVar: c.parentName}}}
	s.WhereClause = conjunction(
		append(outside, &pg.Node{Node: &pg.Node_SubLink{SubLink: &pg.SubLink{
			SubLinkType: pg.SubLinkType_EXISTS_SUBLINK,
			Subselect:   &pg.Node{Node: &pg.Node_SelectStmt{SelectStmt: exists}},
		}}}),
	)
	text, err := pg.Deparse(
		&pg.ParseResult{
			Stmts: []*pg.RawStmt{{Stmt: &pg.Node{Node: &pg.Node_SelectStmt{SelectStmt: s}}}},
		},
	)
	if err != nil {
		return ""
	}
	return text
}

// subjectCounter takes such a query apart.
type subjectCounter struct {
	b                     *binder
	child, parent         *canonicalTable // parent is nil if the child stands alone
	childName, parentName *pg.RangeVar
	joined                []*pg.Node // conditions of the join
	equated               bool       // both keys are
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
		if rv == nil || rv.Alias.GetColnames() != nil || !rv.Inh {
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
// the equation of the keys.
func (c *subjectCounter) split(where *pg.Node) (inside, outside []*pg.Node) {
	for _, condition := range append(slices.Clone(c.joined), where) {
		for _, n := range conjuncts(condition) {
			child, parent := c.uses(n)
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
		if t == nil || len(names) == 2 && names[0] != t.alias ||
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

// countsSubjectsOf plans the query that counts subjects in place of a text that was refused,
// if there is one. What is said of it has no place in the client's text.
func countsSubjectsOf(
	tokens []*pg.ScanToken,
	tree *pg.ParseResult,
	session Session,
	snapshot *catalog.Snapshot,
) (*Plan, error) {
	b := &binder{source: &source{tokens: tokens}, session: session, snapshot: snapshot}
	text := b.subjectsWho(tree)
	if text == "" {
		return nil, nil
	}
	return Make(text, session, snapshot)
}

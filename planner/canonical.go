package planner

import (
	"fmt"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hiatus-tailor/tailor/catalog"
)

// canonical is a subquery along the key in the form in which two of them are compared: names
// qualified, aliases numbered, conjuncts sorted. Two subqueries with one form say the same of
// every subject; some that say the same have two.
type canonical struct {
	text     string
	counting string // the form of how many rows EXISTS finds
	having   string // what EXISTS asks of that number, beside that it is not 0
	exists   bool   // it is EXISTS, IN or = ANY
	counts   bool   // it is count(*)
	// otherwise is what it is where an outer join has found no subject, "" for NULL; unsure says
	// that this is not known.
	otherwise string
	unsure    bool
	outer     *outerTable
	outerQID  string              // a quasi-identifier of outer that it looks at, "" for none
	children  []*catalog.Relation // protected, in order of appearance
}

// canonicalizer rewrites a clone of a subquery.
type canonicalizer struct {
	b      *binder
	find   func(qualifier, name string) *outerTable
	form   *canonical
	scopes [][]*canonicalTable
	tables int
	failed bool
	keyed  bool // it is correlated by the key
}

type canonicalTable struct {
	alias, name string
	columns     []string // nil if they are not known
	unsteady    []string // columns of a table without a policy that sessions read differently
	relation    *catalog.Relation
}

// canonicalSubLink is the form of a subquery; false if it has none: it reads no protected
// table of the same subjects, depends on anything but one subject, or is not understood.
func (b *binder) canonicalSubLink(
	s *pg.SubLink,
	find func(qualifier, name string) *outerTable,
) (*canonical, bool) {
	query := s.Subselect.GetSelectStmt()
	if query == nil {
		return nil, false
	}
	query = proto.Clone(query).(*pg.SelectStmt)
	c := &canonicalizer{b: b, find: find, form: &canonical{}}
	out := &pg.SubLink{
		SubLinkType: s.SubLinkType,
		Subselect:   &pg.Node{Node: &pg.Node_SelectStmt{SelectStmt: query}},
	}
	switch s.SubLinkType {
	case pg.SubLinkType_EXPR_SUBLINK, pg.SubLinkType_ARRAY_SUBLINK:
		if s.Testexpr != nil || len(query.TargetList) != 1 {
			return nil, false
		}
	case pg.SubLinkType_EXISTS_SUBLINK:
		if len(query.GroupClause) > 0 || query.HavingClause != nil || query.LimitCount != nil ||
			query.LimitOffset != nil ||
			aggregates(query.TargetList) {
			return nil, false
		}
	case pg.SubLinkType_ANY_SUBLINK:
		key := s.Testexpr.GetColumnRef()
		if key == nil || len(s.OperName) > 0 && last(s.OperName) != "=" || !c.member(query, key) {
			return nil, false
		}
		out.SubLinkType = pg.SubLinkType_EXISTS_SUBLINK
	default:
		return nil, false
	}
	if out.SubLinkType == pg.SubLinkType_EXISTS_SUBLINK {
		c.form.exists = true
		query.TargetList, query.DistinctClause, query.SortClause = nil, nil, nil
	}
	c.query(query)
	if c.failed || !c.keyed || len(c.form.children) == 0 {
		return nil, false
	}
	c.form.text = expressionText(&pg.Node{Node: &pg.Node_SubLink{SubLink: out}})
	if c.form.text == "" {
		return nil, false
	}
	counting := "SELECT count(*)"
	if c.form.exists {
		plain, _, grouped := strings.Cut(
			strings.TrimSuffix(strings.TrimPrefix(c.form.text, "EXISTS ("), ")"),
			" GROUP BY ",
		)
		if !grouped || c.form.having != "" {
			c.form.counting = "(" + strings.Replace(plain, "SELECT", counting, 1) + ")"
		}
	}
	c.form.counts = strings.HasPrefix(c.form.text, "("+counting+" FROM") &&
		len(query.GroupClause) == 0 && query.HavingClause == nil &&
		query.LimitCount == nil && query.LimitOffset == nil // else there may be no row
	c.form.otherwise, c.form.unsure = ofNobody(s.SubLinkType, query)
	return c.form, true
}

// member makes of key IN (SELECT child's key …) the condition of EXISTS.
func (c *canonicalizer) member(query *pg.SelectStmt, key *pg.ColumnRef) bool {
	if len(query.TargetList) != 1 || query.LimitCount != nil || query.LimitOffset != nil ||
		distinctOn(query) {
		return false
	}
	ref := query.TargetList[0].GetResTarget().GetVal().GetColumnRef()
	if ref == nil || isStar(ref) || isStar(key) || !c.grouped(query, ref) {
		return false
	}
	// The reference is to be resolved outside, whatever columns the tables inside have.
	names := refNames(key)
	if len(names) > 2 {
		return false
	}
	qualifier := ""
	if len(names) == 2 {
		qualifier = names[0]
	}
	outer := c.find(qualifier, names[len(names)-1])
	if outer == nil || !outer.names(names[len(names)-1]) {
		return false
	}
	equation := &pg.Node{Node: &pg.Node_AExpr{AExpr: &pg.A_Expr{
		Kind:  pg.A_Expr_Kind_AEXPR_OP,
		Name:  []*pg.Node{pg.MakeStrNode("=")},
		Lexpr: &pg.Node{Node: &pg.Node_ColumnRef{ColumnRef: ref}},
		Rexpr: &pg.Node{
			Node: &pg.Node_ColumnRef{ColumnRef: columnOf(subjectAlias, outer.root.Subject)},
		},
	}}}
	c.form.outer, c.keyed = outer, true
	if query.WhereClause != nil {
		equation = &pg.Node{
			Node: &pg.Node_BoolExpr{
				BoolExpr: &pg.BoolExpr{
					Boolop: pg.BoolExprType_AND_EXPR,
					Args:   []*pg.Node{query.WhereClause, equation},
				},
			},
		}
	}
	query.WhereClause = equation
	return true
}

// grouped says whether a query is grouped by nothing, or by the key that it selects. It
// notes a condition on the number of rows.
func (c *canonicalizer) grouped(query *pg.SelectStmt, key *pg.ColumnRef) bool {
	if len(query.GroupClause) == 0 {
		return query.HavingClause == nil
	}
	ref := query.GroupClause[0].GetColumnRef()
	if len(query.GroupClause) > 1 || ref == nil || query.GroupDistinct ||
		!slices.Equal(refNames(ref), refNames(key)) {
		return false
	}
	e := query.HavingClause.GetAExpr()
	count, number := e.GetLexpr().GetFuncCall(), e.GetRexpr().GetAConst().GetIval()
	if count == nil || number == nil || e.Kind != pg.A_Expr_Kind_AEXPR_OP || len(e.Name) != 1 ||
		!slices.Contains([]string{"=", "<", ">", "<=", ">=", "<>"}, last(e.Name)) {
		return true
	}
	if count.AggStar && last(count.Funcname) == "count" && count.AggFilter == nil &&
		count.Over == nil {
		c.form.having = fmt.Sprintf(" %s %d", last(e.Name), number.Ival)
	}
	return true
}

// subjectAlias is that of the table of subjects in a form. No text that is planned has it.
const subjectAlias = "p"

// settled marks references that are in their form already.
const settled = -7

func columnOf(table, column string) *pg.ColumnRef {
	return &pg.ColumnRef{
		Fields:   []*pg.Node{pg.MakeStrNode(table), pg.MakeStrNode(column)},
		Location: settled,
	}
}

// names says whether a column is the table's key.
func (o *outerTable) names(column string) bool {
	return column == o.key || o.entry != nil && column == o.entry.relation.Subject
}

// query rewrites a query and what is below it.
func (c *canonicalizer) query(s *pg.SelectStmt) {
	if s == nil || s.WithClause != nil || len(s.LockingClause) > 0 ||
		s.Op != pg.SetOperation_SETOP_NONE ||
		s.IntoClause != nil ||
		len(s.ValuesLists) > 0 {
		c.failed = true
		return
	}
	c.scopes = append(c.scopes, nil)
	for _, item := range s.FromClause {
		c.item(item)
	}
	for _, list := range [][]*pg.Node{
		s.FromClause, s.DistinctClause, s.TargetList, s.GroupClause, s.WindowClause, s.SortClause,
		{s.WhereClause, s.HavingClause, s.LimitCount, s.LimitOffset},
	} {
		for _, node := range list {
			c.expression(node)
		}
	}
	s.WhereClause = sorted(s.WhereClause)
	c.scopes = c.scopes[:len(c.scopes)-1]
}

// item adds the tables of an item of FROM to the scope.
func (c *canonicalizer) item(node *pg.Node) {
	at := len(c.scopes) - 1
	add := func(t *canonicalTable) string {
		c.tables++
		t.name = fmt.Sprintf("c%d", c.tables)
		c.scopes[at] = append(c.scopes[at], t)
		return t.name
	}
	switch n := node.GetNode().(type) {
	case *pg.Node_RangeVar:
		rv := n.RangeVar
		name, err := c.b.relationName(rv)
		r := c.b.snapshot.Protected(name)
		columns := c.b.columnsOf(name)
		if err != nil || r == nil && columns == nil || rv.Alias.GetColnames() != nil || !rv.Inh ||
			r == nil && c.b.protects(name) {
			c.failed = true
			return
		}
		t := &canonicalTable{alias: rv.Relname, columns: columns, relation: r}
		if o := c.b.snapshot.Other(name); o != nil {
			t.unsteady = o.Zoned
		}
		if rv.Alias != nil {
			t.alias = rv.Alias.Aliasname
		}
		if r != nil {
			t.columns = nil
			for i := range r.Columns {
				t.columns = append(t.columns, r.Columns[i].Name)
			}
			name = catalog.Name{Schema: r.Schema, Name: r.Name}
			c.form.children = append(c.form.children, r)
		}
		rv.Catalogname, rv.Schemaname, rv.Relname = "", name.Schema, name.Name
		rv.Alias = &pg.Alias{Aliasname: add(t)}
	case *pg.Node_JoinExpr:
		if j := n.JoinExpr; j.IsNatural || len(j.UsingClause) > 0 || j.Alias != nil {
			c.failed = true
		} else {
			c.item(j.Larg)
			c.item(j.Rarg)
		}
	case *pg.Node_RangeSubselect:
		sub := n.RangeSubselect
		if sub.Lateral || sub.Alias == nil || len(sub.Alias.Colnames) > 0 {
			c.failed = true
			return
		}
		here := c.scopes
		c.scopes = c.scopes[:at:at] // it does not see what stands beside it
		c.query(sub.Subquery.GetSelectStmt())
		c.scopes = here
		t := &canonicalTable{alias: sub.Alias.Aliasname, columns: namesOf(sub.Subquery.GetSelectStmt())}
		sub.Alias = &pg.Alias{Aliasname: add(t)}
	default:
		c.failed = true
	}
}

// namesOf are the names of the columns of a query; nil if it has a star, or one that PostgreSQL
// names.
func namesOf(s *pg.SelectStmt) []string {
	names := []string{}
	for _, node := range s.GetTargetList() {
		target := node.GetResTarget()
		ref := target.GetVal().GetColumnRef()
		switch {
		case target.GetName() != "":
			names = append(names, target.Name)
		case ref != nil && !isStar(ref):
			names = append(names, last(ref.Fields))
		default:
			return nil
		}
	}
	return names
}

// expression rewrites the references below a node.
func (c *canonicalizer) expression(node *pg.Node) {
	if node == nil {
		return
	}
	c.message(node.ProtoReflect())
}

func (c *canonicalizer) message(m protoreflect.Message) {
	switch n := m.Interface().(type) {
	case *pg.ColumnRef:
		c.reference(n)
		return
	case *pg.SubLink:
		c.failed = c.failed || len(n.OperName) > 0 && !isSteady(n.OperName)
		c.expression(n.Testexpr)
		c.query(n.Subselect.GetSelectStmt())
		return
	case *pg.A_Const:
		c.failed = c.failed || !steadyText(n.GetSval().GetSval())
		return
	case *pg.A_Expr: // || is none of them: of dates, its text follows DateStyle
		c.failed = c.failed || !isSteady(n.Name)
		c.comparedDay(n)
	case *pg.SortBy:
		c.failed = c.failed || len(n.UseOp) > 0
	case *pg.TypeCast:
		c.failed = c.failed || !c.steadyCast(n)
	case *pg.RangeVar, *pg.RangeSubselect, *pg.String:
		return
	case *pg.ParamRef,
		*pg.SQLValueFunction,
		*pg.RangeFunction,
		*pg.RangeTableSample,
		*pg.SetToDefault:
		c.failed = true
		return
	case *pg.FuncCall:
		c.failed = c.failed || !steadyCall(n)
	}
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.Message() == nil:
		case field.IsList():
			for i := range value.List().Len() {
				c.message(value.List().Get(i).Message())
			}
		default:
			c.message(value.Message())
		}
		return true
	})
}

// reference qualifies a column by the name of its table in the form.
func (c *canonicalizer) reference(ref *pg.ColumnRef) {
	if ref.Location == settled {
		return
	}
	names := refNames(ref)
	star := isStar(ref)
	if len(names) > 2 || len(names) == 0 || star && len(names) != 1 {
		c.failed = true
		return
	}
	qualifier, name := "", names[len(names)-1]
	if star {
		qualifier, name = name, ""
	} else if len(names) == 2 {
		qualifier = names[0]
	}
	for at := len(c.scopes) - 1; at >= 0; at-- {
		var found *canonicalTable
		for _, t := range c.scopes[at] {
			has := qualifier == t.alias
			if qualifier == "" {
				has = slices.Contains(t.columns, name)
				c.failed = c.failed || t.columns == nil // it may be of that subquery
			}
			if has && found != nil {
				c.failed = true
			}
			if has {
				found = t
			}
		}
		if found != nil {
			c.failed = c.failed || !found.readAlike(name)
			c.qualify(ref, found.name, star)
			return
		}
	}
	outer := c.find(qualifier, name)
	if star || outer == nil || c.form.outer != nil && c.form.outer.alias != outer.alias {
		c.failed = true
		return
	}
	c.form.outer = outer
	if outer.names(name) {
		c.keyed = true
		ref.Fields = columnOf(subjectAlias, outer.root.Subject).Fields
		return
	}
	column := outer.root.Column(name)
	if column == nil || !alike(column) ||
		outer.entry != nil && outer.entry.relation != outer.root {
		c.failed = true
		return
	}
	if column.Class == catalog.QuasiIdentifier {
		c.form.outerQID = name
	}
	c.qualify(ref, subjectAlias, false)
}

// qualify puts a table's name in front of a column.
func (c *canonicalizer) qualify(ref *pg.ColumnRef, table string, star bool) {
	last := ref.Fields[len(ref.Fields)-1]
	ref.Fields = []*pg.Node{pg.MakeStrNode(table), last}
}

// expressionText is an expression as PostgreSQL's grammar reads it, "" where it cannot be
// written.
func expressionText(node *pg.Node) string {
	text, err := pg.Deparse(
		&pg.ParseResult{
			Stmts: []*pg.RawStmt{
				{Stmt: &pg.Node{Node: &pg.Node_SelectStmt{SelectStmt: &pg.SelectStmt{
					TargetList: []*pg.Node{
						{Node: &pg.Node_ResTarget{ResTarget: &pg.ResTarget{Val: node}}},
					},
					LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT,
					Op:          pg.SetOperation_SETOP_NONE,
				}}}},
			},
		},
	)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(text, "SELECT ")
}

// aggregates says whether a target list may have an aggregate, which makes one row of none.
func aggregates(targets []*pg.Node) bool {
	found := false
	for _, node := range targets {
		visit(node, func(*pg.FuncCall) { found = true })
	}
	return found
}

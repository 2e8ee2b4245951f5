package planner

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v5"
)

// cellAggregates are computed from all the values that they see. Those that
// return one of them (min, max, percentiles, arrays) would show a row's.
var cellAggregates = []string{
	"count", "sum", "avg", "stddev", "stddev_pop", "stddev_samp", "variance", "var_pop", "var_samp",
}

// valueAggregates are those that do.
var valueAggregates = []string{
	"min", "max", "percentile_disc", "percentile_cont", "mode", "any_value", "array_agg", "string_agg",
	"json_agg", "jsonb_agg", "json_object_agg", "jsonb_object_agg", "xmlagg", "range_agg",
}

// cellFunctions are known to do nothing but compute.
var cellFunctions = []string{
	"abs", "ceil", "ceiling", "floor", "round", "trunc", "sqrt", "ln", "log", "exp", "power", "mod", "div", "sign",
	"to_char", "concat", "upper", "lower", "length", "left", "right", "substr", "substring", "extract", "date_part",
}

// cellTypes are the types of PostgreSQL's own that casts may name.
var cellTypes = []string{
	"bool", "int2", "int4", "int8", "float4", "float8", "numeric", "text", "varchar", "bpchar", "date", "timestamp", "timestamptz",
}

// exactTypes are those of them to which a literal is converted before any row
// is read, and with which a comparison cannot fail for any.
var exactTypes = []string{"bool", "int2", "int4", "int8", "numeric", "text", "varchar", "date", "timestamp"}

// comparisons of a column with a value.
var comparisons = []string{"=", "<>", "!=", "<", "<=", ">", ">="}

// rowCondition checks what is evaluated for each row: columns are compared with
// values, and nothing else. No value of a row can make that fail.
func (b *binder) rowCondition(node *pg.Node) error {
	switch n := node.GetNode().(type) {
	case nil, *pg.Node_AConst:
		return nil
	case *pg.Node_BoolExpr:
		for _, arg := range n.BoolExpr.Args {
			if err := b.rowCondition(arg); err != nil {
				return err
			}
		}
		return nil
	case *pg.Node_ColumnRef:
		if isColumn(node) {
			return nil
		}
	case *pg.Node_NullTest:
		if isColumn(n.NullTest.Arg) {
			return nil
		}
	case *pg.Node_BooleanTest:
		if isColumn(n.BooleanTest.Arg) {
			return nil
		}
	case *pg.Node_AExpr:
		if comparesColumn(n.AExpr) {
			return nil
		}
	}
	return b.refuseCells(start(node), "rows are told apart by comparing a column with values")
}

// comparesColumn says whether an expression compares one column with values.
func comparesColumn(e *pg.A_Expr) bool {
	switch e.Kind {
	case pg.A_Expr_Kind_AEXPR_OP:
		return slices.Contains(comparisons, last(e.Name)) &&
			(isColumn(e.Lexpr) && isValue(e.Rexpr) || isValue(e.Lexpr) && isColumn(e.Rexpr))
	case pg.A_Expr_Kind_AEXPR_DISTINCT, pg.A_Expr_Kind_AEXPR_NOT_DISTINCT:
		return isColumn(e.Lexpr) && isLiteral(e.Rexpr)
	case pg.A_Expr_Kind_AEXPR_IN, pg.A_Expr_Kind_AEXPR_BETWEEN, pg.A_Expr_Kind_AEXPR_NOT_BETWEEN:
		return isColumn(e.Lexpr) && areValues(e.Rexpr.GetList().GetItems())
	case pg.A_Expr_Kind_AEXPR_OP_ANY, pg.A_Expr_Kind_AEXPR_OP_ALL:
		if !isColumn(e.Lexpr) || !slices.Contains(comparisons, last(e.Name)) {
			return false
		}
		if list := e.Rexpr.GetAArrayExpr(); list != nil {
			return areValues(list.Elements)
		}
		return e.Rexpr.GetParamRef() != nil || e.Rexpr.GetAConst().GetSval() != nil
	case pg.A_Expr_Kind_AEXPR_LIKE, pg.A_Expr_Kind_AEXPR_ILIKE:
		// A pattern that ends in a backslash fails where a row gets that far.
		pattern := e.Rexpr.GetAConst().GetSval()
		return isColumn(e.Lexpr) && pattern != nil && !strings.Contains(pattern.Sval, `\`)
	}
	return false
}

func isColumn(node *pg.Node) bool { return node.GetColumnRef() != nil && !isStar(node.GetColumnRef()) }

// isValue says whether a node is a literal, a parameter or the present day.
func isValue(node *pg.Node) bool {
	if cast := node.GetTypeCast(); cast != nil {
		return cast.Arg.GetAConst() != nil && cellType(cast.TypeName, exactTypes)
	}
	return node.GetAConst() != nil || node.GetParamRef() != nil || node.GetSqlvalueFunction() != nil
}

// isLiteral says whether a node is a literal other than NULL.
func isLiteral(node *pg.Node) bool {
	if cast := node.GetTypeCast(); cast != nil {
		return isValue(node) && isLiteral(cast.Arg)
	}
	return node.GetAConst() != nil && !node.GetAConst().Isnull
}

func areValues(nodes []*pg.Node) bool {
	return !slices.ContainsFunc(nodes, func(n *pg.Node) bool { return !isValue(n) })
}

// cellType says whether a type is one of some of PostgreSQL's own.
func cellType(t *pg.TypeName, among []string) bool {
	return len(t.Names) > 0 && !foreign(t.Names) && !t.Setof && len(t.ArrayBounds) == 0 && slices.Contains(among, last(t.Names))
}

// cellGroup is the column that an item of GROUP BY stands for.
func (b *binder) cellGroup(node *pg.Node) (origin, error) {
	s, at := b.cells.query, start(node)
	if c := node.GetAConst(); c.GetIval() != nil {
		if i := int(c.GetIval().Ival) - 1; i >= 0 && i < len(s.TargetList) {
			node = s.TargetList[i].GetResTarget().GetVal()
		}
	}
	if isColumn(node) {
		r, err := b.resolve(b.cells.scope, node.GetColumnRef())
		if err != nil || r.entry != nil {
			return r.origin, err
		}
		for _, target := range s.TargetList {
			if t := target.GetResTarget(); t.Name == last(node.GetColumnRef().Fields) && isColumn(t.Val) {
				r, err := b.resolve(b.cells.scope, t.Val.GetColumnRef())
				if err != nil || r.entry != nil {
					return r.origin, err
				}
			}
		}
	}
	return origin{}, b.refuseCells(at, "GROUP BY takes columns of the table")
}

// groupExpression checks what is evaluated for each group that is shown.
func (b *binder) groupExpression(node *pg.Node) error {
	var below []*pg.Node
	switch n := node.GetNode().(type) {
	case nil, *pg.Node_AConst, *pg.Node_ParamRef, *pg.Node_SqlvalueFunction:
	case *pg.Node_ColumnRef:
		if !isColumn(node) {
			return b.refuseCells(start(node), "name the columns in place of *")
		}
	case *pg.Node_ResTarget:
		below = []*pg.Node{n.ResTarget.Val}
	case *pg.Node_SortBy:
		below = []*pg.Node{n.SortBy.Node}
	case *pg.Node_AExpr:
		below = []*pg.Node{n.AExpr.Lexpr, n.AExpr.Rexpr}
	case *pg.Node_List:
		below = n.List.Items
	case *pg.Node_BoolExpr:
		below = n.BoolExpr.Args
	case *pg.Node_NullTest:
		below = []*pg.Node{n.NullTest.Arg}
	case *pg.Node_BooleanTest:
		below = []*pg.Node{n.BooleanTest.Arg}
	case *pg.Node_CaseExpr:
		below = append([]*pg.Node{n.CaseExpr.Arg, n.CaseExpr.Defresult}, n.CaseExpr.Args...)
	case *pg.Node_CaseWhen:
		below = []*pg.Node{n.CaseWhen.Expr, n.CaseWhen.Result}
	case *pg.Node_CoalesceExpr:
		below = n.CoalesceExpr.Args
	case *pg.Node_MinMaxExpr:
		below = n.MinMaxExpr.Args
	case *pg.Node_TypeCast:
		if !cellType(n.TypeCast.TypeName, cellTypes) {
			return b.refuseCells(start(node), "casts are to types of PostgreSQL's own")
		}
		below = []*pg.Node{n.TypeCast.Arg}
	case *pg.Node_FuncCall:
		if slices.Contains(cellAggregates, last(n.FuncCall.Funcname)) {
			return b.cellAggregate(n.FuncCall)
		}
		if f := n.FuncCall; !slices.Contains(cellFunctions, last(f.Funcname)) || f.Over != nil || f.AggFilter != nil ||
			f.AggStar || f.AggDistinct || f.AggWithinGroup || f.FuncVariadic || len(f.AggOrder) > 0 {
			return b.refuseFunction(f)
		}
		below = n.FuncCall.Args
	default:
		return b.refuseCells(start(node), "this is more than is understood of groups")
	}
	for _, n := range below {
		if err := b.groupExpression(n); err != nil {
			return err
		}
	}
	return nil
}

// cellAggregate checks an aggregate: of a column, or of rows, as they are.
func (b *binder) cellAggregate(f *pg.FuncCall) error {
	name, at := last(f.Funcname), int(f.Location)
	switch {
	case foreign(f.Funcname):
		return b.harmless(f)
	case f.Over != nil:
		return b.refuseCells(at, "windows are not understood")
	case len(f.AggOrder) > 0 || f.AggWithinGroup || f.FuncVariadic:
		return b.refuseCells(at, "an aggregate takes its rows in no order")
	case f.AggDistinct && name != "count":
		return b.refuseCells(at, "DISTINCT is for count")
	case f.AggStar && name == "count":
	case len(f.Args) != 1 || !isColumn(f.Args[0]):
		return b.refuseCells(at, "an aggregate takes a column as it is")
	}
	return b.rowCondition(f.AggFilter)
}

// callsAggregate says whether an expression of the target list has an aggregate.
func callsAggregate(node *pg.Node) bool {
	return slices.ContainsFunc(calls(node), func(f *pg.FuncCall) bool { return slices.Contains(cellAggregates, last(f.Funcname)) })
}

// refuseFunction refuses a function that is not understood of groups.
func (b *binder) refuseFunction(f *pg.FuncCall) error {
	name := last(f.Funcname)
	if slices.Contains(valueAggregates, name) {
		return b.refuseCells(int(f.Location), "%s would show values of single rows", name)
	}
	return b.refuseCells(int(f.Location), "%s is not among the functions that it knows", name)
}

package planner

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v5"
)

// unnamed is the name of an output column that PostgreSQL finds none for.
const unnamed = "?column?"

// outputName is the name that PostgreSQL gives an output column without AS.
func outputName(node *pg.Node) string {
	if name, _ := figureName(node); name != "" {
		return name
	}
	return unnamed
}

// figureName finds a name and says whether it is a strong one, which an
// enclosing cast or CASE keeps.
func figureName(node *pg.Node) (name string, strong bool) {
	switch n := node.GetNode().(type) {
	case *pg.Node_ColumnRef:
		return last(n.ColumnRef.Fields), true
	case *pg.Node_AIndirection:
		if name := last(n.AIndirection.Indirection); name != "" {
			return name, true
		}
		return figureName(n.AIndirection.Arg)
	case *pg.Node_FuncCall:
		return last(n.FuncCall.Funcname), true
	case *pg.Node_AExpr:
		if n.AExpr.Kind == pg.A_Expr_Kind_AEXPR_NULLIF {
			return "nullif", true
		}
	case *pg.Node_TypeCast:
		if name, strong := figureName(n.TypeCast.Arg); strong {
			return name, true
		}
		return last(n.TypeCast.TypeName.GetNames()), false
	case *pg.Node_CollateClause:
		return figureName(n.CollateClause.Arg)
	case *pg.Node_GroupingFunc:
		return "grouping", true
	case *pg.Node_SubLink:
		return subLinkName(n.SubLink)
	case *pg.Node_CaseExpr:
		if name, strong := figureName(n.CaseExpr.Defresult); strong {
			return name, true
		}
		return "case", false
	case *pg.Node_AArrayExpr:
		return "array", true
	case *pg.Node_RowExpr:
		return "row", true
	case *pg.Node_CoalesceExpr:
		return "coalesce", true
	case *pg.Node_MinMaxExpr:
		if n.MinMaxExpr.Op == pg.MinMaxOp_IS_LEAST {
			return "least", true
		}
		return "greatest", true
	case *pg.Node_SqlvalueFunction:
		return valueFunctionName(n.SqlvalueFunction.Op), true
	}
	return "", false
}

func subLinkName(s *pg.SubLink) (string, bool) {
	switch s.SubLinkType {
	case pg.SubLinkType_EXISTS_SUBLINK:
		return "exists", true
	case pg.SubLinkType_ARRAY_SUBLINK:
		return "array", true
	case pg.SubLinkType_EXPR_SUBLINK:
		query := s.Subselect.GetSelectStmt()
		for query != nil && query.Op != pg.SetOperation_SETOP_NONE {
			query = query.Larg
		}
		if query == nil || len(query.TargetList) != 1 {
			return "", false
		}
		target := query.TargetList[0].GetResTarget()
		if target.Name != "" {
			return target.Name, true
		}
		return figureName(target.Val)
	}
	return "", false
}

// valueFunctionName turns SVFOP_CURRENT_DATE into current_date; variants with
// a precision (…_N) carry the same name.
func valueFunctionName(op pg.SQLValueFunctionOp) string {
	name := strings.ToLower(strings.TrimPrefix(op.String(), "SVFOP_"))
	return strings.TrimSuffix(name, "_n")
}

// last is the last name of a list of names, empty where it ends in a star or a
// subscript.
func last(names []*pg.Node) string {
	if len(names) == 0 {
		return ""
	}
	return names[len(names)-1].GetString_().GetSval()
}

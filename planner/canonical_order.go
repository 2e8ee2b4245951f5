package planner

import (
	"slices"
	"strings"
	"time"

	pg "github.com/pganalyze/pg_query_go/v5"
)

// sorted puts the conjuncts of a condition, and both sides of their comparisons, in order.
func sorted(condition *pg.Node) *pg.Node {
	list := conjuncts(condition)
	texts := make(map[*pg.Node]string)
	for _, n := range list {
		sortItems(n.GetAExpr())
		if e := n.GetAExpr(); e != nil && e.Kind == pg.A_Expr_Kind_AEXPR_OP && len(e.Name) == 1 &&
			e.Lexpr != nil {
			turned, comparison := map[string]string{">": "<", ">=": "<="}[last(e.Name)]
			if comparison {
				e.Name = []*pg.Node{pg.MakeStrNode(turned)}
			}
			if comparison || last(e.Name) == "=" && orderOf(e.Lexpr) > orderOf(e.Rexpr) {
				e.Lexpr, e.Rexpr = e.Rexpr, e.Lexpr
			}
		}
		texts[n] = expressionText(n)
	}
	slices.SortStableFunc(
		list,
		func(x, y *pg.Node) int { return strings.Compare(texts[x], texts[y]) },
	)
	return conjunction(list)
}

// sortItems puts the items of IN and NOT IN in order. Of a single one it is a comparison.
func sortItems(e *pg.A_Expr) {
	items := e.GetRexpr().GetList().GetItems()
	switch {
	case e.GetKind() != pg.A_Expr_Kind_AEXPR_IN:
	case len(items) == 1:
		e.Kind, e.Rexpr = pg.A_Expr_Kind_AEXPR_OP, items[0]
	default:
		slices.SortStableFunc(items, func(x, y *pg.Node) int {
			return strings.Compare(expressionText(x), expressionText(y))
		})
	}
}

// equation is a condition that is one of two expressions, nil for others.
func equation(condition *pg.Node) *pg.A_Expr {
	e := condition.GetAExpr()
	if e == nil || e.Kind != pg.A_Expr_Kind_AEXPR_OP || len(e.Name) != 1 || last(e.Name) != "=" {
		return nil
	}
	return e
}

// orderOf sorts both sides of an equation, columns before constants.
func orderOf(node *pg.Node) string {
	text := expressionText(node)
	if node.GetColumnRef() == nil {
		return "1" + text
	}
	return "0" + text
}

// comparedDay writes the comparison of a date with a day in one way: without a cast of the day,
// and with the day after in place of "later than" and "until".
func (c *canonicalizer) comparedDay(e *pg.A_Expr) {
	if e.Kind != pg.A_Expr_Kind_AEXPR_OP || len(e.Name) != 1 {
		return
	}
	column, day, turned := e.Lexpr, &e.Rexpr, map[string]string{">": ">=", "<=": "<"}
	if column.GetColumnRef() == nil {
		column, day, turned = e.Rexpr, &e.Lexpr, map[string]string{"<": "<=", ">=": ">"}
	}
	if c.typeOf(column.GetColumnRef()) != "date" {
		return
	}
	if cast := (*day).GetTypeCast(); cast != nil && last(cast.TypeName.GetNames()) == "date" &&
		len(cast.TypeName.GetArrayBounds()) == 0 && cast.Arg.GetAConst() != nil {
		*day = cast.Arg
	}
	at, err := time.Parse(time.DateOnly, (*day).GetAConst().GetSval().GetSval())
	name, later := turned[last(e.Name)]
	if err != nil || !later {
		return
	}
	e.Name = []*pg.Node{pg.MakeStrNode(name)}
	*day = pg.MakeAConstStrNode(at.AddDate(0, 0, 1).Format(time.DateOnly), -1)
}

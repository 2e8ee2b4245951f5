package planner

import (
	"fmt"
	"slices"
	"strings"
	"time"

	pg "github.com/pganalyze/pg_query_go/v5"
)

// castsOfParts are types that the parts of columns can be cast to, and remain what they are.
var castsOfParts = map[string][]string{
	"date_trunc": dayTypes, "extract": numberTypes, "date_part": numberTypes, "left": {"text"},
}

// period is the range of days, or the beginning of codes, that a condition on a part of a
// column stands for: date_trunc(unit, day) = 'first day', extract(year FROM day) = 2025,
// left(code, n) = 'n characters'. nil for other conditions.
func (j judge) period(e *pg.A_Expr) (*pg.Node, error) {
	call := asIs(e.GetLexpr(), slices.Concat(scaleTypes, []string{"text"})).GetFuncCall()
	if call == nil || e.Kind != pg.A_Expr_Kind_AEXPR_OP || len(e.Name) != 1 || last(e.Name) != "=" {
		return nil, nil
	}
	name := last(call.Funcname)
	types := castsOfParts[name]
	value := asIs(e.GetRexpr(), types).GetAConst()
	if value == nil || len(call.Args) < 2 || asIs(e.GetLexpr(), types).GetFuncCall() == nil {
		return nil, nil
	}
	column := call.Args[1]
	unit := call.Args[0].GetAConst().GetSval().GetSval()
	var out *pg.Node
	switch name {
	case "date_trunc":
		from, err := time.Parse(time.DateOnly, value.GetSval().GetSval())
		to := followingPeriod(unit, from)
		if err != nil || to.IsZero() || len(call.Args) != 2 {
			return nil, nil
		}
		out = days(column, from, to)
	case "extract", "date_part":
		if unit != "year" || value.GetIval() == nil {
			return nil, nil
		}
		from := time.Date(int(value.GetIval().Ival), 1, 1, 0, 0, 0, 0, time.UTC)
		out = days(column, from, from.AddDate(1, 0, 0))
	case "left":
		text, n := value.GetSval().GetSval(), call.Args[1].GetAConst().GetIval()
		column = call.Args[0]
		if n == nil || value.GetSval() == nil || int(n.Ival) != len([]rune(text)) ||
			strings.ContainsAny(text, `%_\ `) {
			return nil, nil
		}
		out = pg.MakeAExprNode(pg.A_Expr_Kind_AEXPR_LIKE, []*pg.Node{pg.MakeStrNode("~~")}, column,
			pg.MakeAConstStrNode(text+"%", -1), -1)
	default:
		return nil, nil
	}
	if column.GetColumnRef() == nil {
		return nil, nil
	}
	return out, j.assertAllowedFunction(call)
}

// followingPeriod is when the period of a unit that begins at a moment ends; zero where none does.
func followingPeriod(unit string, from time.Time) time.Time {
	first := from.Day() == 1
	switch {
	case unit == "day":
		return from.AddDate(0, 0, 1)
	case unit == "week" && from.Weekday() == time.Monday:
		return from.AddDate(0, 0, 7)
	case unit == "month" && first:
		return from.AddDate(0, 1, 0)
	case unit == "quarter" && first && from.Month()%3 == 1:
		return from.AddDate(0, 3, 0)
	case unit == "year" && first && from.Month() == 1:
		return from.AddDate(1, 0, 0)
	}
	return time.Time{}
}

// days is the condition that a column lies between two moments, the second excluded.
func days(column *pg.Node, from, to time.Time) *pg.Node {
	end := func(operator string, at time.Time) *pg.Node {
		text := fmt.Sprintf("%04d-%02d-%02d", at.Year(), at.Month(), at.Day())
		return pg.MakeAExprNode(pg.A_Expr_Kind_AEXPR_OP, []*pg.Node{pg.MakeStrNode(operator)}, column,
			pg.MakeAConstStrNode(text, -1), -1)
	}
	return pg.MakeBoolExprNode(pg.BoolExprType_AND_EXPR,
		[]*pg.Node{end(">=", from), end("<", to)}, -1)
}

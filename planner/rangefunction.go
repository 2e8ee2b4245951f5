package planner

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/ecg"
)

// singleColumn are functions known to return one column that is named by the
// alias, or else by the function.
var singleColumn = []string{
	"generate_series", "generate_subscripts", "regexp_matches", "regexp_split_to_table",
	"string_to_table",
}

// rangeFunction binds a function in FROM. Its columns are those that the
// statement names; only for some functions are these all.
func (b *binder) rangeFunction(f *pg.RangeFunction, sc *scope) error {
	e := &entry{alias: f.Alias.GetAliasname()}
	definitions := slices.Clone(f.Coldeflist)
	for i, node := range f.Functions {
		items := node.GetList().GetItems()
		if len(items) == 0 {
			return b.unsupported(node)
		}
		if err := b.expression(items[0], sc, ecg.Scan); err != nil {
			return err
		}
		if i == 0 && e.alias == "" {
			e.alias, _ = figureName(items[0])
		}
		if len(items) > 1 {
			definitions = append(definitions, items[1].GetList().GetItems()...)
		}
	}
	if len(definitions) == 0 && len(f.Functions) == 1 && b.isCaseCount(onlyCall(f)) {
		e.known = true
		for _, name := range caseCountColumns {
			e.columns = append(e.columns, column{name: name})
		}
	} else if len(definitions) == 0 && len(f.Functions) == 1 {
		call := onlyCall(f)
		e.known = slices.Contains(singleColumn, last(call.GetFuncname()))
		e.columns = append(e.columns, column{name: e.alias, guessed: !e.known})
	}
	for _, d := range definitions {
		if err := b.ownType(d.GetColumnDef().GetTypeName()); err != nil {
			return err
		}
		if name := d.GetColumnDef().GetColname(); name != "" {
			e.columns = append(e.columns, column{name: name})
		}
	}
	if f.Ordinality {
		e.columns = append(e.columns, column{name: "ordinality"})
	}
	for i := range e.columns {
		e.columns[i].kind = Computed
	}
	e.columns = renamed(e.columns, e.known, f.Alias.GetColnames())
	sc.entries = append(sc.entries, e)
	return b.spendColumns(len(e.columns))
}

// onlyCall is the call of a function in FROM, nil where it is something else.
func onlyCall(f *pg.RangeFunction) *pg.FuncCall {
	return f.Functions[0].GetList().Items[0].GetFuncCall()
}

package planner

import (
	"fmt"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/ecg"
)

// guarded binds a call in a query of cells. An aggregate that may see fewer
// rows than its group has becomes NULL where it sees fewer than k, and where
// fewer than k, but some, are between what it sees and what others of the
// group can: all rows, those that its filter lets through, and those that have
// a value. The difference of two cells would be about them.
func (b *binder) guarded(f *pg.FuncCall, sc *scope, place ecg.Place) error {
	at := int(f.Location)
	guard := slices.Contains(cellAggregates, last(f.Funcname)) && (!f.AggStar || f.AggFilter != nil)
	mark := len(b.edits)
	if guard {
		b.edits = append(b.edits, edit{start: at, end: at})
	}
	if len(f.Funcname) == 1 {
		if err := b.insert(at, "pg_catalog."); err != nil {
			return err
		}
	}
	if err := b.ownComparisons(f.AggFilter); err != nil {
		return err
	}
	subjects := b.countsSubjects(f, sc)
	if err := b.call(f, sc, place); err != nil || !guard {
		return err
	}
	open := b.tokenAt(at) + 2*(len(f.Funcname)-1) + 1
	end := b.closing(open)
	seen, back := "*", ""
	if !f.AggStar && !subjects {
		r, err := b.resolve(sc, f.Args[0].GetColumnRef())
		if err != nil {
			return err
		}
		if r.entry == nil {
			return b.refuseCells(at, "an aggregate takes a column as it is")
		}
		seen = r.value()
		if back, err = b.widen(f, open, r.origin); err != nil {
			return err
		}
	}
	filter := ""
	if f.AggFilter != nil { // FILTER ( WHERE condition )
		from := int(b.tokens[end+3].End)
		end = b.closing(end + 2)
		filter = " FILTER (WHERE " + b.rendered(from, int(b.tokens[end].Start), mark) + ")"
	}
	e := &b.edits[mark]
	e.text = fmt.Sprintf("(CASE WHEN tailor.shows(%d, %s) THEN", b.cells.relation.K, strings.Join(counts(seen, filter), ", "))
	if err := b.grow(len(e.text)); err != nil {
		return err
	}
	return b.insert(int(b.tokens[end].End), "END)"+back)
}

// counts count the rows that a cell is computed from, and then those of the
// sets of rows that it is a part of.
func counts(seen, filter string) []string {
	out := []string{"pg_catalog.count(" + seen + ")" + filter, "pg_catalog.count(*)"}
	if seen != "*" && filter != "" {
		out = append(out, "pg_catalog.count("+seen+")", "pg_catalog.count(*)"+filter)
	}
	return out
}

// calls lists the function calls in a tree.
func calls(node *pg.Node) (out []*pg.FuncCall) {
	visit(node, func(f *pg.FuncCall) { out = append(out, f) })
	return out
}

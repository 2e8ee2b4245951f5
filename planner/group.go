package planner

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/ecg"
)

// groupClause binds GROUP BY and HAVING, and notes the quasi-identifiers that the query
// is grouped by.
func (b *binder) groupClause(s *pg.SelectStmt, sc *scope, bound *boundQuery) error {
	sets := false
	for _, node := range s.GroupClause {
		sets = sets || node.GetGroupingSet() != nil
		if err := b.expression(node, sc, ecg.Group); err != nil {
			return err
		}
		for _, item := range setItems(node) {
			if err := b.groupedBy(item, s, sc, bound); err != nil {
				return err
			}
		}
		for _, item := range unpacked(node) {
			o, written, err := b.grouped(item, sc, bound)
			if err != nil {
				return err
			}
			if o.qid() == nil {
				if err := b.groupedBy(item, s, sc, bound); err != nil {
					return err
				}
				continue
			}
			bound.keys = append(bound.keys, o)
			b.namesKey(item, sc, bound, place{origin: o, written: written})
			if !slices.Contains(bound.grouped, o) {
				bound.grouped = append(bound.grouped, o)
			}
		}
	}
	if sets {
		bound.forgetLabels() // GROUPING() takes what is grouped by as it is written
	}
	if err := b.expression(s.HavingClause, sc, ecg.Group); err != nil {
		return err
	}
	return b.all(sc, ecg.Projection, s.WindowClause...)
}

// groupedBy notes what a grouping expression computes from, where it is no column: itself,
// or the output column whose number or name it is.
func (b *binder) groupedBy(item *pg.Node, s *pg.SelectStmt, sc *scope, bound *boundQuery) error {
	computed := item
	at := -1
	if c := item.GetAConst(); c != nil && c.GetIval() != nil {
		at = int(c.GetIval().Ival) - 1
	} else if ref := item.GetColumnRef(); ref != nil && len(refNames(ref)) == 1 {
		at = slices.IndexFunc(bound.columns, func(c column) bool { return c.name == refNames(ref)[0] })
	}
	if at >= 0 && at < len(s.TargetList) && len(s.TargetList) == len(bound.columns) {
		computed = s.TargetList[at].GetResTarget().GetVal()
	}
	var failed error
	visit(computed, func(ref *pg.ColumnRef) {
		if isStar(ref) || b.keyed.keys[ref] != nil {
			return
		}
		r, err := b.resolve(sc, ref)
		if err != nil {
			failed = err
		}
		for _, o := range r.all() {
			if o.qid() != nil || o.entry.relation == nil {
				b.useExactly(o, ecg.Group)
			}
		}
	})
	return failed
}

// setItems lists the expressions of GROUPING SETS, ROLLUP and CUBE.
func setItems(node *pg.Node) []*pg.Node {
	set := node.GetGroupingSet()
	if set == nil {
		return nil
	}
	var out []*pg.Node
	for _, n := range set.Content {
		for _, item := range unpacked(n) {
			if item.GetGroupingSet() != nil {
				out = append(out, setItems(item)...)
			} else {
				out = append(out, item)
			}
		}
	}
	return out
}

// unpacked lists the expressions of a grouping item: (a, b) groups by both.
func unpacked(node *pg.Node) []*pg.Node {
	row := node.GetRowExpr()
	if row == nil || row.RowFormat != pg.CoercionForm_COERCE_IMPLICIT_CAST {
		return []*pg.Node{node}
	}
	var out []*pg.Node
	for _, arg := range row.Args {
		out = append(out, unpacked(arg)...)
	}
	return out
}

// grouped is the column that a grouping expression stands for: a position, a
// column of the FROM list, which it is written as, or else the name of an output
// column.
func (b *binder) grouped(
	node *pg.Node, sc *scope, bound *boundQuery,
) (o origin, written bool, err error) {
	if c := node.GetAConst(); c != nil && c.GetIval() != nil {
		if i := int(c.GetIval().Ival) - 1; i >= 0 && i < len(bound.labels) && bound.known {
			return bound.labels[i], false, nil
		}
		return origin{}, false, nil
	}
	ref := node.GetColumnRef()
	if ref == nil {
		return origin{}, false, nil
	}
	r, err := b.resolve(sc, ref)
	if err != nil || r.found {
		return r.origin, true, err
	}
	if names := refNames(ref); len(names) == 1 {
		for i, c := range bound.columns {
			switch {
			case c.name != names[0]:
			case c.qid == nil || (o.entry != nil && o != bound.labels[i]):
				return origin{}, false, nil // or PostgreSQL says that the name is ambiguous
			default:
				o = bound.labels[i]
			}
		}
		return o, false, nil
	}
	return origin{}, false, nil
}

package planner

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/catalog"
)

// Measure is a quasi-identifier that a statement only averages, sums or counts
// over whole blocks. Where the policy shows it by means, those of the blocks as
// they are serve: it does not enter the combination that blocks are refined
// along.
type Measure struct{ Table, Attribute string }

// measuring are the aggregates to which a mean of many is as good as their
// values.
var measuring = []string{"avg", "sum", "count"}

// MeasuresOf lists the measures of a relation in the order of their first use.
func (p *Plan) MeasuresOf(r *catalog.Relation) []string {
	var out []string
	for _, m := range p.Measures {
		if m.Table == r.String() {
			out = append(out, m.Attribute)
		}
	}
	return out
}

// noteMeasure records a measure.
func (p *Plan) noteMeasure(m Measure) {
	if !slices.Contains(p.Measures, m) {
		p.Measures = append(p.Measures, m)
	}
}

// settleMeasures leaves out those that the text uses elsewhere in another way:
// they are in the combination.
func (p *Plan) settleMeasures() {
	p.Measures = slices.DeleteFunc(p.Measures, func(m Measure) bool {
		for _, u := range p.Uses {
			if u.Table == m.Table && u.Attribute == m.Attribute {
				return true
			}
		}
		return false
	})
}

// isMeasure says whether a call is of a measuring aggregate over a bare column
// that is shown by means, in a query whose groups are whole blocks.
func (b *binder) isMeasure(f *pg.FuncCall, sc *scope) (bool, error) {
	if !sc.wholeBlocks || !slices.Contains(measuring, last(f.Funcname)) || len(f.Args) != 1 ||
		f.AggDistinct || f.AggFilter != nil || f.Over != nil || len(f.AggOrder) > 0 || f.FuncVariadic {
		return false, nil
	}
	ref := f.Args[0].GetColumnRef()
	if ref == nil || isStar(ref) {
		return false, nil
	}
	r, err := b.resolve(sc, ref)
	return err == nil && r.entry == sc.entries[0] && r.qid() != nil && r.qid().Mean, err
}

// findWholeBlocks says of a query's scope, when its FROM list is bound, whether
// each group that it aggregates consists of whole blocks: it reads one release
// alone, and its conditions and groups name nothing but quasi-identifiers, of
// which the rows of a block show the same.
func (b *binder) findWholeBlocks(s *pg.SelectStmt, sc *scope) {
	if len(sc.entries) != 1 || sc.entries[0].relation == nil || sc.entries[0].via != nil {
		return
	}
	sc.wholeBlocks = b.ofBlocks(s.WhereClause, sc)
	for _, item := range s.GroupClause {
		sc.wholeBlocks = sc.wholeBlocks && b.groupsBlocks(item, s, sc)
	}
}

// groupsBlocks says whether a grouping item puts the rows of a block in one
// group.
func (b *binder) groupsBlocks(item *pg.Node, s *pg.SelectStmt, sc *scope) bool {
	if set := item.GetGroupingSet(); set != nil {
		return !slices.ContainsFunc(set.Content, func(n *pg.Node) bool { return !b.groupsBlocks(n, s, sc) })
	}
	if c := item.GetAConst(); c != nil && c.GetIval() != nil {
		i := int(c.GetIval().Ival) - 1
		return i >= 0 && i < len(s.TargetList) && b.ofBlocks(s.TargetList[i].GetResTarget().GetVal(), sc)
	}
	if ref := item.GetColumnRef(); ref != nil && len(ref.Fields) == 1 && sc.entries[0].find(last(ref.Fields)) < 0 {
		for _, target := range s.TargetList {
			if target.GetResTarget().GetName() == last(ref.Fields) {
				return b.ofBlocks(target.GetResTarget().GetVal(), sc)
			}
		}
	}
	return b.ofBlocks(item, sc)
}

// ofBlocks says whether an expression reads nothing of rows but
// quasi-identifiers of the scope's release.
func (b *binder) ofBlocks(node *pg.Node, sc *scope) bool {
	if node == nil {
		return true
	}
	only := true
	visit(node, func(*pg.SubLink) { only = false })
	visit(node, func(ref *pg.ColumnRef) {
		if isStar(ref) {
			only = false
			return
		}
		r, err := b.resolve(sc, ref)
		only = only && err == nil && r.entry == sc.entries[0] && r.qid() != nil
	})
	return only
}

package anonymize

import "math"

// cellwise is the common part of the models in which every cell has a cost of
// its own, which depends on its leaf and on the level at which it is shown or
// on its suppression. The score of a column is the mean cost of its cells.
//
// Its bound is exact without suppression: the cost of each column at each
// level is known beforehand. With at least s rows suppressed, each of them adds
// at least the least difference between a suppressed and a shown cell of that
// level ([PrasserKohlmayer2016] §4, sharpened by s).
type cellwise struct {
	kept     [][][]float64 // [column][level][leaf]
	withheld [][]float64   // [column][leaf]
	base     [][]float64   // [column][level]: cost if nothing is suppressed
	// [column][level]: least cost at this level or any above, suppressed or not
	least     [][]float64
	extra     [][]float64 // [column][level]: least cost that suppression adds to a cell
	rows      float64
	aggregate Aggregate
	finish    func(mean float64) float64
	byLeaf    bool // cost depends on the leaf, not just on its group
}

// newCellwise derives bounds from kept and withheld.
func newCellwise(b *binding, kept [][][]float64, withheld [][]float64, a Aggregate) *cellwise {
	q := &cellwise{
		kept: kept, withheld: withheld, aggregate: a, rows: float64(b.entries.rows),
		finish: func(mean float64) float64 { return mean },
	}
	for c := range kept {
		rows := b.leafRows(c)
		height := len(kept[c])
		base, least, extra := make([]float64, height), make([]float64, height), make([]float64, height)
		cheapest := append([]float64(nil), withheld[c]...)
		for l := height - 1; l >= 0; l-- {
			extra[l] = math.Inf(1)
			for leaf, n := range rows {
				if n == 0 {
					continue
				}
				cost := kept[c][l][leaf]
				cheapest[leaf] = min(cheapest[leaf], cost)
				base[l] += n * cost
				least[l] += n * cheapest[leaf]
				extra[l] = min(extra[l], withheld[c][leaf]-cost)
			}
		}
		q.base, q.least, q.extra = append(q.base, base), append(q.least, least), append(q.extra, extra)
	}
	return q
}

func (q *cellwise) node(v levels, suppressed int) float64 {
	return q.aggregate.of(len(v), func(c int) float64 {
		l := v[c]
		if q.extra[c][l] < 0 {
			return q.finish(q.least[c][l] / q.rows)
		}
		return q.finish((q.base[c][l] + float64(suppressed)*q.extra[c][l]) / q.rows)
	})
}

func (q *cellwise) cone(v levels) float64 {
	return q.aggregate.of(len(v), func(c int) float64 { return q.finish(q.least[c][v[c]] / q.rows) })
}

func (q *cellwise) above(*judged) float64 { return math.Inf(-1) }

func (q *cellwise) score(n *judged) float64 {
	parts := q.parts(n)
	return q.aggregate.of(len(parts), func(c int) float64 { return parts[c] })
}

func (q *cellwise) parts(n *judged) []float64 {
	parts := make([]float64, len(n.levels))
	for c, l := range n.levels {
		parts[c] = q.base[c][l]
		if n.rows > 0 {
			parts[c] += q.suppressionCost(n, c, int(l))
		}
		parts[c] = q.finish(parts[c] / q.rows)
	}
	return parts
}

// suppressionCost is what suppression adds to a column.
func (q *cellwise) suppressionCost(n *judged, c, l int) float64 {
	leaves, kept, withheld := n.leaves(c), q.kept[c][l], q.withheld[c]
	added := 0.0
	if q.byLeaf {
		for i, class := range n.classOf {
			if n.suppressed[class] {
				leaf := leaves[i]
				added += float64(n.entryRows()[i]) * (withheld[leaf] - kept[leaf])
			}
		}
		return added
	}
	for class, out := range n.suppressed {
		if out {
			leaf := leaves[n.classes.reps[class]]
			added += float64(n.classes.rows[class]) * (withheld[leaf] - kept[leaf])
		}
	}
	return added
}

func (q *cellwise) leafwise() bool { return q.byLeaf }

// costTables fills the cost of every cell. shown is asked once per group, or
// once per leaf where byLeaf.
func costTables(b *binding, shown func(column, leaf int, n Node) float64) [][][]float64 {
	kept := make([][][]float64, len(b.columns()))
	for c, column := range b.columns() {
		h := column.Hierarchy
		kept[c] = make([][]float64, h.Height())
		for l := range kept[c] {
			kept[c][l] = make([]float64, h.Leaves())
			for leaf := range kept[c][l] {
				kept[c][l][leaf] = shown(c, leaf, Node{Level: l, Group: h.Generalize(uint32(leaf), l)})
			}
		}
	}
	return kept
}

// flatCosts is one cost for all leaves of each column.
func flatCosts(b *binding, cost float64) [][]float64 {
	costs := make([][]float64, len(b.columns()))
	for c, column := range b.columns() {
		costs[c] = make([]float64, column.Hierarchy.Leaves())
		for leaf := range costs[c] {
			costs[c][leaf] = cost
		}
	}
	return costs
}

package anonymize

import "math"

// Modified is the share of the cells of the columns, over all rows, that do
// not show their value: the modification rate (MR) of [Chen], in [0, 1].
func (p *Partition) Modified(columns []int) float64 {
	return p.meanOverRows(columns, func(_ *Hierarchy, node Node) float64 {
		if node.Level == 0 {
			return 0
		}
		return 1
	})
}

// meanOverRows averages a measure of labels over the cells of some columns.
func (p *Partition) meanOverRows(columns []int, of func(h *Hierarchy, node Node) float64) float64 {
	if len(columns) == 0 || p.ground.table.Rows() == 0 {
		return 0
	}
	total := 0.0
	for _, c := range columns {
		h := p.ground.table.columns[c].Hierarchy
		for b, rows := range p.rows {
			total += float64(rows) * of(h, p.Cover(uint32(b), c))
		}
	}
	return total / float64(len(columns)) / float64(p.ground.table.Rows())
}

// EntropyLoss is the generic non-uniform entropy of [PrasserBild2016] §4 for
// labels of any levels: what is lost level by level, each step counted over the
// rows whose labels reach above it. It is the mean over the columns of the
// share of what withholding the column would lose, in [0, 1].
func (p *Partition) EntropyLoss(columns []int) float64 {
	if len(columns) == 0 {
		return 0
	}
	total := 0.0
	for _, c := range columns {
		all := p.entropyLost(c, func(uint32) int {
			return p.ground.table.columns[c].Hierarchy.Height() - 1
		})
		if all > 0 {
			total += p.entropyLost(c, func(block uint32) int { return p.Cover(block, c).Level }) / all
		}
	}
	return total / float64(len(columns))
}

// entropyLost is the entropy that a column loses, in bits, where level says up
// to which level the labels of a block reach.
func (p *Partition) entropyLost(column int, level func(block uint32) int) float64 {
	t := p.ground.table
	h := t.columns[column].Hierarchy
	levelOf := make([]int, p.Blocks())
	for block := range levelOf {
		levelOf[block] = level(uint32(block))
	}
	lost := 0.0
	for l := range h.Height() - 1 {
		lower, upper := make([]float64, h.Groups(l)), make([]float64, h.Groups(l+1))
		for tuple, block := range p.blockOf {
			if levelOf[block] <= l {
				continue
			}
			leaf := t.tuples[column][tuple]
			n := float64(len(t.RowsOf(uint32(tuple))))
			lower[h.Generalize(leaf, l)] += n
			upper[h.Generalize(leaf, l+1)] += n
		}
		for _, n := range upper {
			lost += xlogx(n)
		}
		for _, n := range lower {
			lost -= xlogx(n)
		}
	}
	return max(lost, 0) / math.Ln2
}

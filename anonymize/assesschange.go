package anonymize

import (
	"fmt"
	"math"
)

// ChangeMeasures compare a release with its original.
type ChangeMeasures struct {
	Columns []ColumnChange
	// Entropies are sums over columns in nats; Maximum is what suppressing
	// every cell would lose.
	ConventionalEntropy, GenericEntropy, MaximumEntropy float64
	// ModificationRate is the share of cells with another text.
	ModificationRate float64
	// Loss and Precision are means over columns, GeometricLoss the geometric
	// aggregate; NaN where a column has no hierarchy.
	Loss, GeometricLoss, Precision float64
}

// ColumnChange compares one column.
type ColumnChange struct {
	Name string
	// ConventionalEntropy is -Σ ln of the frequency of the input over that of the
	// output value ([Gionis2009]); it can be negative on mixed levels.
	// GenericEntropy goes level by level over the rows that each step affects
	// ([PrasserBild2016] §4), in one step over all changed cells where the
	// hierarchy is not known. In nats, as is MaximumEntropy.
	ConventionalEntropy, GenericEntropy, MaximumEntropy float64
	ModificationRate                                    float64
	Loss, Precision                                     float64 // NaN without a hierarchy
}

// LabelError says that a released label is none that the hierarchy gives the
// original value. It quotes neither.
type LabelError struct {
	Column string
	Row    int // counted from 1
}

func (e *LabelError) Error() string {
	return fmt.Sprintf("column %q, row %d: the label is not one that the hierarchy gives the "+
		"original value", e.Column, e.Row)
}

func (r *Release) measureChange() (*ChangeMeasures, error) {
	m := &ChangeMeasures{GeometricLoss: 1}
	n := float64(len(r.QuasiIdentifiers))
	for i := range r.QuasiIdentifiers {
		q := &r.QuasiIdentifiers[i]
		if q.Original == nil {
			return nil, nil
		}
		c, err := q.change()
		if err != nil {
			return nil, err
		}
		m.Columns = append(m.Columns, c)
		m.ConventionalEntropy += c.ConventionalEntropy
		m.GenericEntropy += c.GenericEntropy
		m.MaximumEntropy += c.MaximumEntropy
		m.ModificationRate += c.ModificationRate / n
		m.Loss += c.Loss / n
		m.Precision += c.Precision / n
		m.GeometricLoss *= math.Pow(c.Loss+1, 1/n)
	}
	m.GeometricLoss--
	return m, nil
}

func (q *ReleasedColumn) change() (ColumnChange, error) {
	c := ColumnChange{Name: q.Name, Loss: math.NaN(), Precision: math.NaN()}
	rows := float64(len(q.Cells))
	whole := make(map[string]float64)
	for r, cell := range q.Original {
		whole[cell]++
		if q.Cells[r] != cell {
			c.ModificationRate += 1 / rows
		}
	}
	c.MaximumEntropy = xlogx(rows) - sumXLogX(whole)
	c.ConventionalEntropy = q.stepEntropy(func(int) bool { return true }, q.original, q.released)
	if q.Hierarchy == nil {
		changed := func(r int) bool { return q.Original[r] != q.Cells[r] }
		c.GenericEntropy = q.stepEntropy(changed, q.original, q.released)
		return c, nil
	}
	return c, q.changeAlongHierarchy(&c)
}

func (q *ReleasedColumn) original(r int) string { return q.Original[r] }
func (q *ReleasedColumn) released(r int) string { return q.Cells[r] }

// stepEntropy is -Σ ln f(from)/f(to) over the affected rows, f counting them.
func (q *ReleasedColumn) stepEntropy(
	affected func(r int) bool, from, to func(r int) string,
) float64 {
	fromCount, toCount := make(map[string]float64), make(map[string]float64)
	for r := range q.Cells {
		if affected(r) {
			fromCount[from(r)]++
			toCount[to(r)]++
		}
	}
	loss := 0.0
	for r := range q.Cells {
		if affected(r) {
			loss -= math.Log(fromCount[from(r)] / toCount[to(r)])
		}
	}
	return loss
}

func (q *ReleasedColumn) changeAlongHierarchy(c *ColumnChange) error {
	h := q.Hierarchy
	leaves, levels := make([]uint32, len(q.Cells)), make([]int, len(q.Cells))
	c.Loss, c.Precision = 0, 0
	rows := float64(len(q.Cells))
	for r := range q.Cells {
		leaf, ok := h.Code(q.Original[r])
		if !ok {
			return &LabelError{Column: q.Name, Row: r + 1}
		}
		level, ok := h.levelOf(leaf, q.Cells[r])
		if !ok {
			return &LabelError{Column: q.Name, Row: r + 1}
		}
		leaves[r], levels[r] = leaf, level
		c.Loss += h.loss(Node{Level: level, Group: h.Generalize(leaf, level)}) / rows
		c.Precision += float64(level) / float64(max(h.Height()-1, 1)) / rows
	}
	for l := range h.Height() - 1 {
		label := func(level int) func(int) string {
			return func(r int) string {
				return h.Label(Node{Level: level, Group: h.Generalize(leaves[r], level)})
			}
		}
		c.GenericEntropy += q.stepEntropy(func(r int) bool { return levels[r] > l }, label(l), label(l+1))
	}
	return nil
}

// levelOf is the lowest level at which a leaf is shown as a label. The root
// counts as [Top] whatever its label.
func (h *Hierarchy) levelOf(leaf uint32, label string) (level int, ok bool) {
	for l := range h.Height() {
		if h.Label(Node{Level: l, Group: h.Generalize(leaf, l)}) == label {
			return l, true
		}
	}
	return h.Height() - 1, label == Top
}

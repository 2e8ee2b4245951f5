package anonymize

import "math"

// NonUniformEntropy is the generic non-uniform entropy of [PrasserBild2016] §4,
// in bits: the information lost level by level, each step counted over the rows
// that it affects. For a full-domain transformation those are all rows up to
// the level of the column, and the suppressed rows from there to the root. The
// score is the sum over columns or, Normalized, the mean of each column's share
// of what its suppression as a whole would lose.
//
// Without suppression it equals the conventional measure ([Gionis2009]), and it
// grows along generalization, which is the bound.
type NonUniformEntropy struct{ Normalized bool }

func (m NonUniformEntropy) String() string {
	if m.Normalized {
		return "normalized non-uniform entropy"
	}
	return "non-uniform entropy"
}

func (m NonUniformEntropy) bind(b *binding) (quality, error) {
	q := &entropyLoss{aggregate: sum}
	if m.Normalized {
		q.aggregate = Arithmetic
	}
	for c, column := range b.columns() {
		bits := levelEntropy(b, c)
		scale := 1.0
		if m.Normalized {
			if scale = bits[len(bits)-1]; scale == 0 {
				scale = 1 // a column of one value has nothing to lose
			}
		}
		q.bits, q.scale = append(q.bits, bits), append(q.scale, scale)
		q.hierarchies = append(q.hierarchies, column.Hierarchy)
	}
	return q, nil
}

// levelEntropy is what a column loses at each level if nothing is suppressed,
// in bits.
func levelEntropy(b *binding, c int) []float64 {
	h := b.columns()[c].Hierarchy
	rows := b.leafRows(c)
	bits := make([]float64, h.Height())
	floor := 0.0
	for l := range bits {
		groups := make([]float64, h.Groups(l))
		for leaf, n := range rows {
			groups[h.Generalize(uint32(leaf), l)] += n
		}
		total := 0.0
		for _, n := range groups {
			total += xlogx(n)
		}
		if l == 0 {
			floor = total
		}
		bits[l] = max(total-floor, 0) / math.Ln2
	}
	return bits
}

type entropyLoss struct {
	bits        [][]float64 // [column][level]
	scale       []float64
	hierarchies []*Hierarchy
	aggregate   Aggregate
}

func (q *entropyLoss) node(v levels, _ int) float64 { return q.cone(v) }

func (q *entropyLoss) cone(v levels) float64 {
	return q.aggregate.of(len(v), func(c int) float64 { return q.bits[c][v[c]] / q.scale[c] })
}

func (q *entropyLoss) above(*judged) float64 { return math.Inf(-1) }

func (q *entropyLoss) score(n *judged) float64 {
	parts := q.parts(n)
	return q.aggregate.of(len(parts), func(c int) float64 { return parts[c] })
}

func (q *entropyLoss) parts(n *judged) []float64 {
	parts := make([]float64, len(n.levels))
	for c, l := range n.levels {
		parts[c] = q.bits[c][l]
		if n.rows > 0 {
			parts[c] += q.suppressionLoss(n, c, int(l))
		}
		parts[c] /= q.scale[c]
	}
	return parts
}

// suppressionLoss is the step from the level to the root over the suppressed
// rows.
func (q *entropyLoss) suppressionLoss(n *judged, c, l int) float64 {
	groupOf, leaves := q.hierarchies[c].GroupOf(l), n.leaves(c)
	counts := make([]float64, q.hierarchies[c].Groups(l))
	for class, out := range n.suppressed {
		if out {
			counts[groupOf[leaves[n.classes.reps[class]]]] += float64(n.classes.rows[class])
		}
	}
	loss := xlogx(float64(n.rows))
	for _, count := range counts {
		loss -= xlogx(count)
	}
	return max(loss, 0) / math.Ln2
}

func (q *entropyLoss) leafwise() bool { return false }

// ConventionalEntropy is the conventional non-uniform entropy ([Gionis2009]) of
// the suppressed output, in bits, summed over columns: -log₂ of the frequency
// of the input value over that of the output value. On mixed levels it can fall
// below zero ([PrasserBild2016] §3), so that it has no bound and prunes
// nothing; it is here for comparison.
type ConventionalEntropy struct{}

func (ConventionalEntropy) String() string { return "conventional non-uniform entropy" }

func (ConventionalEntropy) bind(b *binding) (quality, error) {
	q := &conventional{}
	for c, column := range b.columns() {
		rows := b.leafRows(c)
		input := 0.0
		for _, n := range rows {
			input += xlogx(n)
		}
		q.input = append(q.input, input)
		q.hierarchies = append(q.hierarchies, column.Hierarchy)
	}
	return q, nil
}

type conventional struct {
	unbounded
	input       []float64
	hierarchies []*Hierarchy
}

func (q *conventional) score(n *judged) float64 {
	parts := q.parts(n)
	return sum.of(len(parts), func(c int) float64 { return parts[c] })
}

func (q *conventional) parts(n *judged) []float64 {
	parts := make([]float64, len(n.levels))
	for c, l := range n.levels {
		h := q.hierarchies[c]
		groupOf, leaves := h.GroupOf(int(l)), n.leaves(c)
		shown := make(map[string]float64, h.Groups(int(l))+1)
		for class, out := range n.suppressed {
			label := Top
			if !out {
				label = h.Label(Node{Level: int(l), Group: groupOf[leaves[n.classes.reps[class]]]})
			}
			shown[label] += float64(n.classes.rows[class])
		}
		parts[c] = (sumXLogX(shown) - q.input[c]) / math.Ln2
	}
	return parts
}

// unbounded is embedded by models without a bound from levels.
type unbounded struct{}

func (unbounded) node(levels, int) float64 { return math.Inf(-1) }
func (unbounded) cone(levels) float64      { return math.Inf(-1) }
func (unbounded) above(*judged) float64    { return math.Inf(-1) }
func (unbounded) leafwise() bool           { return false }

func sumXLogX(counts map[string]float64) float64 {
	total := 0.0
	for _, n := range counts {
		total += xlogx(n)
	}
	return total
}

package anonymize

import (
	"math"
	"slices"
)

// SensitiveMeasures of one sensitive attribute: the strictest parameter of each
// model that every class meets. Where no finite parameter would do, the field
// is +Inf.
type SensitiveMeasures struct {
	Name    string
	Numeric bool
	// DistinctL is the fewest distinct values in a class.
	DistinctL int
	// EntropyL is e to the least entropy of a class, not rounded.
	EntropyL float64
	// RecursiveC[l-2] is the bound that c has to exceed for recursive
	// (c,l)-diversity, for l from 2 to DistinctL ([Machanavajjhala2006] §4.1).
	RecursiveC []float64
	// Alpha is the largest share of one value in a class ([Wong2006]).
	Alpha float64
	// T is the largest distance of a class from the whole: ordered for
	// numbers, equal for text ([Li2007]).
	T float64
	// BasicBeta is the largest relative gain of a value; EnhancedBeta the
	// least beta of the enhanced model, +Inf where a value gains more than
	// -ln of its share, which no beta allows ([Cao2012]).
	BasicBeta, EnhancedBeta float64
	// Delta is the largest |ln(q/p)| over the values that a class holds;
	// StrictDelta is +Inf where a class lacks a value ([Brickell2008]).
	Delta, StrictDelta float64
	// Pycanon gives the figures that pyCANON defines in another way
	// ([SainzPardo2022]); docs/references.md explains the differences.
	Pycanon PycanonMeasures
}

// PycanonMeasures are figures after pyCANON, for comparison.
type PycanonMeasures struct {
	EntropyL     int     // e to the least entropy, rounded down, rounding errors and all
	RecursiveC   int     // by ascending frequencies; 0 where l is 1
	EnhancedBeta float64 // min of BasicBeta and -ln of the rarest share
	L            int     // the l of RecursiveC: least over all attributes
}

func measureSensitive(c *classes, s int, attribute *SensitiveAttribute) SensitiveMeasures {
	h := &c.sensitive[s]
	whole := wholeShares(h, attribute.domain())
	to := onScale(whole)
	m := SensitiveMeasures{
		Name: attribute.Name, Numeric: attribute.Numeric, DistinctL: math.MaxInt,
		EntropyL: math.Inf(1),
	}
	distance := to.equalDistance
	if attribute.Numeric {
		distance = to.orderedDistance
	}
	for i := range c.reps {
		values, counts := h.of(i)
		m.DistinctL = min(m.DistinctL, len(values))
		m.EntropyL = min(m.EntropyL, math.Exp(entropy(counts)))
		m.Alpha = max(m.Alpha, float64(slices.Max(counts))/float64(c.subjects[i]))
		m.T = max(m.T, distance(values, counts))
		m.Delta = max(m.Delta, to.disclosure(values, counts))
		if len(values) < len(whole) {
			m.StrictDelta = math.Inf(1)
		}
		m.addGains(values, counts, to)
	}
	m.StrictDelta = max(m.StrictDelta, m.Delta)
	m.measureRecursive(c, h)
	m.Pycanon.EntropyL = int(pycanonEntropyL(c, h))
	m.Pycanon.EnhancedBeta = min(m.BasicBeta, -math.Log(slices.Min(whole)))
	return m
}

// pycanonEntropyL sums -p ln p in floating point, so that three equal shares
// give a little less than 3.
func pycanonEntropyL(c *classes, h *histogram) float64 {
	least := math.Inf(1)
	for i := range c.reps {
		_, counts := h.of(i)
		total, entropy := sumCounts(counts), 0.0
		for _, n := range counts {
			p := float64(n) / total
			entropy -= p * math.Log(p)
		}
		least = min(least, entropy)
	}
	return math.Exp(least)
}

// wholeShares is the distribution over all classes.
func wholeShares(h *histogram, domain int) []float64 {
	shares := make([]float64, domain)
	total := sumCounts(h.counts)
	for j, v := range h.values {
		shares[v] += float64(h.counts[j]) / total
	}
	return shares
}

func (m *SensitiveMeasures) addGains(values, counts []uint32, to *Reference) {
	total := sumCounts(counts)
	for j, v := range values {
		g := to.gain(v, counts[j], total)
		m.BasicBeta = max(m.BasicBeta, g)
		if g > -math.Log(to.share(v))+tolerance {
			g = math.Inf(1)
		}
		m.EnhancedBeta = max(m.EnhancedBeta, g)
	}
}

func (m *SensitiveMeasures) measureRecursive(c *classes, h *histogram) {
	for l := 2; l <= m.DistinctL; l++ {
		bound := 0.0
		for i := range c.reps {
			_, counts := h.of(i)
			most, tail := recursiveParts(counts, l)
			bound = max(bound, most/tail)
		}
		m.RecursiveC = append(m.RecursiveC, bound)
	}
}

// agreeOnL fills in the figures that pyCANON takes over all attributes: l is
// the least of all, and c is ⌊r₀/(r_(l-1) + …) + 1⌋ in the worst class with
// frequencies in ascending order.
func agreeOnL(measures []SensitiveMeasures, c *classes) {
	l := math.MaxInt
	for i := range measures {
		l = min(l, measures[i].DistinctL)
	}
	for s := range measures {
		p := &measures[s].Pycanon
		if p.L = l; l < 2 {
			continue
		}
		for i := range c.reps {
			_, counts := c.sensitive[s].of(i)
			ascending := slices.Sorted(slices.Values(counts))
			p.RecursiveC = max(p.RecursiveC, int(float64(ascending[0])/sumCounts(ascending[l-1:])+1))
		}
	}
}

package anonymize

import (
	"fmt"
	"math"
	"slices"
)

// DistinctLDiversity asks that every class holds at least L different values
// of a sensitive attribute ([Machanavajjhala2006] §4).
type DistinctLDiversity struct {
	Sensitive string
	L         int
}

func (m DistinctLDiversity) String() string {
	return fmt.Sprintf("distinct %d-diversity of %s", m.L, m.Sensitive)
}
func (m DistinctLDiversity) Monotone() Monotonicity { return WithSuppression }

func (m DistinctLDiversity) bind(p *Problem) (privacyTest, error) {
	s, err := p.sensitive(m.Sensitive, m.String())
	if err != nil {
		return privacyTest{}, err
	}
	if err := checkParameter("l", float64(m.L), 1, float64(p.Sensitive[s].domain())); err != nil {
		return privacyTest{}, err
	}
	return privacyTest{class: func(c *classes, i int) bool {
		values, _ := c.sensitive[s].of(i)
		return len(values) >= m.L
	}}, nil
}

// EntropyLDiversity asks that the entropy of a sensitive attribute is at least
// ln L in every class ([Machanavajjhala2006] §4.1). L need not be whole.
type EntropyLDiversity struct {
	Sensitive string
	L         float64
}

func (m EntropyLDiversity) String() string {
	return fmt.Sprintf("entropy %v-diversity of %s", m.L, m.Sensitive)
}
func (m EntropyLDiversity) Monotone() Monotonicity { return WithoutSuppression }

func (m EntropyLDiversity) bind(p *Problem) (privacyTest, error) {
	s, err := p.sensitive(m.Sensitive, m.String())
	if err != nil {
		return privacyTest{}, err
	}
	if err := checkParameter("l", m.L, 1, float64(p.Sensitive[s].domain())); err != nil {
		return privacyTest{}, err
	}
	least := math.Log(m.L) - tolerance
	return privacyTest{monotone: WithoutSuppression, class: func(c *classes, i int) bool {
		_, counts := c.sensitive[s].of(i)
		return entropy(counts) >= least
	}}, nil
}

// entropy of a distribution given by counts, in nats.
func entropy(counts []uint32) float64 {
	total, sum := 0.0, 0.0
	for _, n := range counts {
		total += float64(n)
		sum += xlogx(float64(n))
	}
	if total == 0 {
		return 0
	}
	return math.Log(total) - sum/total
}

// xlogx is x ln x, and 0 at 0.
func xlogx(x float64) float64 {
	if x <= 0 {
		return 0
	}
	return x * math.Log(x)
}

// RecursiveCLDiversity asks of every class that its most frequent sensitive
// value is less frequent than C times all from the L-th most frequent on: r₁ <
// C·(r_L + … + r_m) with r in descending order ([Machanavajjhala2006] §4.1).
type RecursiveCLDiversity struct {
	Sensitive string
	C         float64
	L         int
}

func (m RecursiveCLDiversity) String() string {
	return fmt.Sprintf("recursive (%v,%d)-diversity of %s", m.C, m.L, m.Sensitive)
}
func (m RecursiveCLDiversity) Monotone() Monotonicity { return WithoutSuppression }

func (m RecursiveCLDiversity) bind(p *Problem) (privacyTest, error) {
	s, err := p.sensitive(m.Sensitive, m.String())
	if err != nil {
		return privacyTest{}, err
	}
	if err := checkParameter("l", float64(m.L), 1, float64(p.Sensitive[s].domain())); err != nil {
		return privacyTest{}, err
	}
	if err := checkParameter("c", m.C, math.SmallestNonzeroFloat64, math.MaxFloat64); err != nil {
		return privacyTest{}, err
	}
	return privacyTest{monotone: WithoutSuppression, class: func(c *classes, i int) bool {
		_, counts := c.sensitive[s].of(i)
		most, tail := recursiveParts(counts, m.L)
		return most < m.C*tail-tolerance
	}}, nil
}

// recursiveParts is the count of the most frequent value, and the sum of the
// counts from the l-th most frequent value on.
func recursiveParts(counts []uint32, l int) (most, tail float64) {
	sorted := slices.Clone(counts)
	slices.Sort(sorted)
	slices.Reverse(sorted)
	for i, n := range sorted {
		if i >= l-1 {
			tail += float64(n)
		}
	}
	if len(sorted) > 0 {
		most = float64(sorted[0])
	}
	return most, tail
}

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
	return privacyTest{class: ofClass(s, BlockDistinctL{L: m.L})}, nil
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
	return privacyTest{monotone: WithoutSuppression, class: ofClass(s, BlockEntropyL{L: m.L})}, nil
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
	model := BlockRecursiveCL{C: m.C, L: m.L}
	return privacyTest{monotone: WithoutSuppression, class: ofClass(s, model)}, nil
}

// recursiveParts is the count of the most frequent value, and the sum of the
// counts from the l-th most frequent value on.
func recursiveParts(counts []uint32, l int) (most, tail float64) {
	var held [16]uint32
	top := held[:0] // the l-1 highest, in descending order
	for _, n := range counts {
		most = max(most, float64(n))
		tail += float64(n)
		at := len(top)
		for at > 0 && top[at-1] < n {
			at--
		}
		if at < l-1 {
			top = slices.Insert(top, at, n)[:min(len(top)+1, l-1)]
		}
	}
	return most, tail - sumCounts(top)
}

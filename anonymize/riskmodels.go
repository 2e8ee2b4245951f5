package anonymize

import (
	"fmt"
	"math"
)

// AverageRisk asks that the mean prosecutor risk over all subjects, which is
// the number of classes over the number of subjects, is at most Max
// ([Dankar2010]).
type AverageRisk struct{ Max float64 }

func (m AverageRisk) String() string {
	return fmt.Sprintf("average risk of at most %v", m.Max)
}
func (m AverageRisk) Monotone() Monotonicity { return WithSuppression }

func (m AverageRisk) bind(*Problem) (privacyTest, error) {
	return privacyTest{share: m.Max, counted: func(uint32) uint64 { return 1 }}, checkRisk(m.Max)
}

// HighestRisk asks that the prosecutor risk of every subject, one over the size
// of its class, is at most Max: k-anonymity with k = ⌈1/Max⌉.
type HighestRisk struct{ Max float64 }

func (m HighestRisk) String() string {
	return fmt.Sprintf("highest risk of at most %v", m.Max)
}
func (m HighestRisk) Monotone() Monotonicity { return WithSuppression }

func (m HighestRisk) bind(p *Problem) (privacyTest, error) {
	if err := checkRisk(m.Max); err != nil {
		return privacyTest{}, err
	}
	k := m.classSize()
	if k > float64(p.Table.Subjects()) {
		return privacyTest{}, &ProblemError{
			fmt.Sprintf("a risk of %v needs classes larger than the table, which has %d subjects", m.Max,
				p.Table.Subjects()),
			"allow a higher risk or give more rows",
		}
	}
	return privacyTest{least: uint32(k), smallest: uint32(k)}, nil
}

// classSize is ⌈1/Max⌉.
func (m HighestRisk) classSize() float64 { return math.Ceil(1/m.Max - tolerance) }

func checkRisk(value float64) error {
	return checkParameter("risk", value, math.SmallestNonzeroFloat64, 1)
}

// SampleUniqueness asks that at most the share Max of all subjects that remain
// are alone in their class.
type SampleUniqueness struct{ Max float64 }

func (m SampleUniqueness) String() string {
	return fmt.Sprintf("sample uniqueness of at most %v", m.Max)
}
func (m SampleUniqueness) Monotone() Monotonicity { return WithSuppression }

func (m SampleUniqueness) bind(*Problem) (privacyTest, error) {
	return atRisk(2, m.Max), checkParameter("share", m.Max, 0, 1)
}

// RecordsAtRisk asks that at most the share Max of all subjects that remain
// have a prosecutor risk above Threshold.
type RecordsAtRisk struct{ Threshold, Max float64 }

func (m RecordsAtRisk) String() string {
	return fmt.Sprintf("at most the share %v at a risk above %v", m.Max, m.Threshold)
}
func (m RecordsAtRisk) Monotone() Monotonicity { return WithSuppression }

func (m RecordsAtRisk) bind(*Problem) (privacyTest, error) {
	if err := checkRisk(m.Threshold); err != nil {
		return privacyTest{}, err
	}
	return atRisk(math.Ceil(1/m.Threshold-tolerance), m.Max), checkParameter("share", m.Max, 0, 1)
}

// atRisk counts the subjects in classes smaller than size.
func atRisk(size, share float64) privacyTest {
	return privacyTest{share: share, counted: func(n uint32) uint64 {
		if float64(n) < size {
			return uint64(n)
		}
		return 0
	}}
}

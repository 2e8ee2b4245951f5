package ecg

import (
	"fmt"
	"math"
)

// Risk is the re-identification risk of equivalence classes to an attacker who
// knows that his target is in the data (the prosecutor). All are in [0, 1] and
// are counted in subjects.
type Risk struct {
	Highest float64 `json:"highest"` // 1 / subjects of the smallest class
	Average float64 `json:"average"` // classes / subjects
	BelowK  float64 `json:"below_k"` // share of subjects in classes of fewer than k
	Unique  float64 `json:"unique"`  // share of subjects alone in their class
}

// RiskOf measures classes by the number of subjects of each. Without classes
// nobody is at risk.
func RiskOf(subjects []uint32, k int) Risk {
	if len(subjects) == 0 {
		return Risk{}
	}
	smallest := uint32(math.MaxUint32)
	var all, below, unique float64
	for _, n := range subjects {
		smallest = min(smallest, n)
		all += float64(n)
		if int(n) < k {
			below += float64(n)
		}
		if n == 1 {
			unique++
		}
	}
	return Risk{
		Highest: 1 / float64(smallest), Average: float64(len(subjects)) / all, BelowK: below / all,
		Unique: unique / all,
	}
}

// Gate is the risk that a policy accepts. Whatever the measure, no class may
// have fewer than K subjects: a measure can only demand more than that.
type Gate struct {
	K         int
	Measure   string  // "highest", "average", "below_k" or "unique"
	Threshold float64 // the most that is accepted, in [0, 1]
}

// NewGate is the gate of a policy. It fails on a measure that is not monotone:
// one that a finer partition could bring down again would let a chain pass the
// gate after it had been above, and what was shown in between stays shown.
func NewGate(k int, measure string, threshold float64) (Gate, error) {
	g := Gate{K: k, Measure: measure, Threshold: threshold}
	if _, known := g.of(Risk{}); !known {
		return Gate{}, fmt.Errorf("%q cannot gate: only highest, average, below_k and unique grow with "+
			"every refinement", measure)
	}
	if k < 1 || !(threshold >= 0 && threshold <= 1) {
		return Gate{}, fmt.Errorf("a gate needs a k of at least 1 and a threshold from 0 to 1")
	}
	return g, nil
}

// HighestRisk is the default gate: no risk above 1/k.
func HighestRisk(k int) Gate {
	return Gate{K: k, Measure: "highest", Threshold: 1 / float64(k)}
}

// of is the measure that the gate looks at.
func (g Gate) of(r Risk) (value float64, known bool) {
	switch g.Measure {
	case "highest":
		return r.Highest, true
	case "average":
		return r.Average, true
	case "below_k":
		return r.BelowK, true
	case "unique":
		return r.Unique, true
	}
	return 0, false
}

// Accepts says whether classes of that risk may be shown.
func (g Gate) Accepts(r Risk) bool {
	value, known := g.of(r)
	return known && value <= g.Threshold && r.Highest <= 1/float64(g.K)
}

package utility

import (
	"math"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate"
)

// AverageRelativeError is the mean of |estimate - count| / count over a
// workload (ARE, [Loukides2014]): 0 is exact. Queries that no record answers
// have no relative error and are left out; NaN means that there were no others.
func AverageRelativeError(workload []Frequent, estimate func(query []Item) float64) float64 {
	sum, n := 0.0, 0
	for _, q := range workload {
		if q.Support == 0 {
			continue
		}
		sum += math.Abs(estimate(q.Items)-float64(q.Support)) / float64(q.Support)
		n++
	}
	return sum / float64(n)
}

// Matching compares, for one utility constraint, how many records have at
// least one of its codes.
type Matching struct {
	Name      string
	Original  int
	Estimated float64
}

// Error is the matching error of the constraint (MRE, [Loukides2014]) in
// percent of the original number: positive where records were lost, negative
// where there are too many.
func (m Matching) Error() float64 {
	return 100 * (float64(m.Original) - m.Estimated) / float64(m.Original)
}

// MatchConstraints measures each constraint that has a code in the data. The
// constraints are disjoint.
func MatchConstraints(constraints []disassociate.Constraint, d *disassociate.Dataset,
	estimate func(codes []string) float64,
) []Matching {
	constraintOf := make(map[string]int)
	for u, c := range constraints {
		for _, text := range c.Codes {
			constraintOf[text] = u
		}
	}
	byItem := make([]int, len(d.Codes()))
	for it, c := range d.Codes() {
		u, ok := constraintOf[c.Text]
		if !ok {
			u = -1
		}
		byItem[it] = u
	}
	count := make([]int, len(constraints))
	last := make([]int, len(constraints)) // the record counted last, plus one
	for r := range d.Len() {
		for _, it := range d.Items(r) {
			if u := byItem[it]; u >= 0 && last[u] != r+1 {
				last[u] = r + 1
				count[u]++
			}
		}
	}
	var out []Matching
	for u, c := range constraints {
		if count[u] > 0 {
			out = append(out, Matching{c.Name, count[u], estimate(c.Codes)})
		}
	}
	return out
}

// ShareWithin is the part of the constraints, in [0, 1], whose error is at
// most percent either way. It is 1 for no constraints.
func ShareWithin(matchings []Matching, percent float64) float64 {
	if len(matchings) == 0 {
		return 1
	}
	n := 0
	for _, m := range matchings {
		if math.Abs(m.Error()) <= percent {
			n++
		}
	}
	return float64(n) / float64(len(matchings))
}

package anonymize

import "math"

// The guard on a mean. Values are counted from the low end of the group's
// label, whose width is one person's range.
const (
	// leastValues is the least number of different values behind a mean. Where
	// k is large, half of it.
	leastValues = 3
	// largestShare is the most that one person may have of the deviations from
	// the mean. Those of either side add up to one half, so that whoever takes
	// one side for a single person's is off by a quarter at least.
	largestShare = 0.4
	// leastSpread is the least mean deviation, as a share of the label's width:
	// below it the mean would say of each what the label leaves open.
	leastSpread = 0.05
)

// sample is the values behind one mean.
type sample struct {
	low, width float64 // of the label
	unit       float64 // between neighbouring values, 0 where there is always another between two
	values     []float64
	people     []uint32 // who have the value
}

// mean is what may be shown of the sample's mean: the multiple of
// width/people that is nearest to it. ok is false where the guard holds it
// back.
//
// Guarantee. The sum of the values is told to within one width, the range in
// which the label leaves each of them. Attackers:
//
//   - Who knows all values but one learns of two parts of its range in which
//     it lies, and nothing more.
//   - Who knows the labels alone can rule out no value of the range for
//     anybody.
//   - Who has a large value himself, and takes all of one side's deviations for
//     the largest one, is off by a quarter of it at least.
//
// Which samples are held back, and what is done with them ([Means.Refine]), are
// answers as well: those of the first kind learn of at most seven parts of the
// range in all, each time a group splits.
// TestRoundingLeavesTwoParts…, TestAShownMeanRulesOutNoValue and
// TestTheGuardHoldsBack check it.
func (s *sample) mean(k int) (mean float64, ok bool) {
	n, sum := 0.0, 0.0
	for i, v := range s.values {
		n += float64(s.people[i])
		sum += float64(s.people[i]) * (v - s.low)
	}
	if s.width <= 0 || n == 0 || len(s.values) < max(leastValues, (k+1)/2) || !s.spread(s.low+sum/n, n) {
		return 0, false
	}
	most := s.width - s.unit
	parts := math.Round(sum / s.width)
	if parts < 1 || (parts-0.5)*s.width > (n-1)*most {
		return 0, false
	}
	return s.low + parts*s.width/n, true
}

// spread says whether the values lie far enough from their mean, and nobody
// alone does.
func (s *sample) spread(mean, n float64) bool {
	all, largest := 0.0, 0.0
	for i, v := range s.values {
		d := math.Abs(v - mean)
		all += d * float64(s.people[i])
		largest = max(largest, d)
	}
	return largest <= largestShare*all && all/n >= leastSpread*s.width
}

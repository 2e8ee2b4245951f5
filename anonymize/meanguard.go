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
	// leastEnd and leastEndShare are how far from the least and the greatest sum
	// of the label what is told stays, in widths, and as a share of the people's
	// widths: nearer, a label that no narrower node covers, or a mean that is
	// shown, would rule out sums. With 1.5 widths, or three of a hundred people at
	// the far end, the deviations are enough, and nobody's is the most of them.
	leastEnd, leastEndShare = 1.5, 0.03
)

// sample is the values behind one mean.
type sample struct {
	low, width float64 // of the label
	unit       float64 // between neighbouring values, 0 where there is always another between two
	values     []float64
	people     []uint32 // who have the value
	nulls      uint32   // people who have none
}

// count is the number of people.
func (s *sample) count() float64 {
	n := float64(s.nulls)
	for _, p := range s.people {
		n += float64(p)
	}
	return n
}

// sum is the true one.
func (s *sample) sum() float64 {
	sum := 0.0
	for i, v := range s.values {
		sum += v * float64(s.people[i])
	}
	return sum
}

// told is what has been told of a sum: it lies less than slack from sum, or
// at sum-slack.
type told struct {
	sum, slack float64
	people     float64
}

// mean is what is shown of it.
func (t told) mean() float64 { return t.sum / t.people }

// rounded is the sum as a multiple of the label's width, counted from its low
// end.
func (s *sample) rounded() told {
	n := s.count()
	parts := math.Round((s.sum() - n*s.low) / s.width)
	return told{sum: n*s.low + parts*s.width, slack: s.width / 2, people: n}
}

// passes says whether what is to be told of the sample's sum may be.
//
// Guarantee. The sum is told to within one width at best, the range in which
// the label leaves each of its values. Attackers:
//
//   - Who knows the labels alone can rule out no value of the range for
//     anybody: every sum within the slack is one that people with the label
//     can have, and show. With this, what is told of other groups narrows none
//     ([Means] says why). What is left over stays one width further from the
//     ends: it then passes alone as well, whatever it is, so that who is left over
//     says nothing of its sum.
//   - Who knows all values but one of a sum that was rounded learns on which
//     side of one threshold the last lies. It may lie close to it.
//   - Who has a large value himself, and takes all of one side's deviations for
//     the largest one, is off by a quarter of it at least.
//
// Which samples are held back, and what is done with them ([Means.Refine]), are
// answers as well: thresholds for those who know all values but one, for which
// nothing is claimed. TestNoChoiceOfGroupsNarrows… looks for what they tell to
// those who know labels alone.
// TestRoundingLeavesTwoParts…, TestAMeanIsOffByHalf…,
// TestWhatWasToldOfAllGroupsNarrowsNoneBelowOneWidth and TestTheGuardHoldsBack
// check it.
func (s *sample) passes(k int, t told, leftOver bool) bool {
	if !s.varied(k) {
		return false
	}
	n := s.count()
	end := max(s.width*max(leastEnd, leastEndShare*n), s.fewest(k))
	if leftOver {
		end += s.width
	}
	return t.sum-t.slack >= n*s.low+end && t.sum+t.slack <= n*(s.low+s.width-s.unit)-end
}

// fewest is the least sum above the low end, or below the high end, of people who
// have enough different values under a label that no narrower node covers.
func (s *sample) fewest(k int) float64 {
	most := float64(leastDifferent(k) - 1)
	return s.unit*most*(most-1)/2 + s.width
}

// leastDifferent is the least number of different values behind a mean.
func leastDifferent(k int) int { return max(leastValues, (k+1)/2) }

// varied says whether the values are enough and differ enough, whatever is told
// of their sum.
func (s *sample) varied(k int) bool {
	n := s.count()
	return s.nulls == 0 && s.width > 0 && n > 0 && len(s.values) >= leastDifferent(k) && s.spread(s.sum()/n, n)
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

package anonymize

import (
	"math"
	"slices"
)

// Reference is the distribution of a sensitive attribute that classes are held against by
// models of likeness: t-closeness, β-likeness and δ-disclosure privacy. It belongs to a release
// and stays what it is: for one reference, each of these models is kept when blocks that meet it
// are joined (docs/decisions/models.md). It is safe for concurrent use.
type Reference struct {
	shares []float64 // by code
	values int       // codes with a share above 0
	// Codes from first up to last have places on a scale, at even steps in their order. Others
	// are off it: a missing value, and one that the reference lacks.
	first, last int
	below       []float64 // place -> share of this place and those before
	area        []float64 // place -> sum of below up to it
}

// NewReference makes a reference of the share of each code. Codes from first up to last have
// places on a scale.
func NewReference(shares []float64, first, last int) *Reference {
	r := &Reference{shares: shares, first: first, last: last}
	below, area := 0.0, 0.0
	for code, share := range shares {
		if share > 0 {
			r.values++
		}
		if code >= first && code < last {
			below += share
			area += below
			r.below, r.area = append(r.below, below), append(r.area, area)
		}
	}
	return r
}

// onScale is a reference all of whose codes are on the scale.
func onScale(shares []float64) *Reference { return NewReference(shares, 0, len(shares)) }

// share of a code; 0 for one that the reference lacks.
func (r *Reference) share(code uint32) float64 {
	if int(code) < len(r.shares) {
		return r.shares[code]
	}
	return 0
}

// equalDistance is the earth mover's distance with equal distances between values ([Li2007]
// §4.2): what a class has too much of, which is half of all differences.
func (r *Reference) equalDistance(values, counts []uint32) float64 {
	total, excess := sumCounts(counts), 0.0
	for j, v := range values {
		excess += max(0, float64(counts[j])/total-r.share(v))
	}
	return excess
}

// orderedDistance is the earth mover's distance with values at even steps of a scale ([Li2007]
// §4.2): the sum of absolute cumulative differences, by one less than there are places. What is
// off the scale is as far from all others as the ends of the scale are from each other: the
// result is what it costs to put the mass on the scale right in all, and then in place. It is a
// norm of the differences, as the distance of the paper is, which it equals where nothing is
// off the scale. Cost: the values of the class, sorted, and a search in the scale for each.
func (r *Reference) orderedDistance(values, counts []uint32) float64 {
	var held [48]ranked
	places, total := held[:0], sumCounts(counts)
	on, off, offLacking := 0.0, 0.0, r.offScale()
	for j, v := range values {
		q := float64(counts[j]) / total
		if int(v) >= r.first && int(v) < r.last {
			places = append(places, ranked{int(v) - r.first, q})
			on += q
			continue
		}
		off += math.Abs(q - r.share(v))
		offLacking -= r.share(v)
	}
	whole := r.whole()
	apart := (math.Abs(on-whole) + off + max(offLacking, 0)) / 2
	if len(places) == 0 || len(r.below) < 2 || whole == 0 {
		return apart
	}
	slices.SortFunc(places, func(a, b ranked) int { return a.at - b.at })
	scaled, carried, work, from := on/whole, 0.0, 0.0, 0
	for _, p := range places {
		work += r.between(from, p.at, carried, scaled)
		carried += p.share
		from = p.at
	}
	work += r.between(from, len(r.below), carried, scaled)
	return apart + work/float64(len(r.below)-1)
}

// ranked is a share of a class at a place of the scale.
type ranked struct {
	at    int
	share float64
}

// whole is the share of all that is on the scale.
func (r *Reference) whole() float64 {
	if len(r.below) == 0 {
		return 0
	}
	return r.below[len(r.below)-1]
}

func (r *Reference) offScale() float64 { return max(0, 1-r.whole()) }

// between is the sum of |carried - scaled*below| over the places from one up to another: of
// those below a crossing the one sign holds, of the others the other one.
func (r *Reference) between(from, to int, carried, scaled float64) float64 {
	if from >= to {
		return 0
	}
	crossing := from
	for low, high := from, to; ; {
		if low == high {
			crossing = low
			break
		}
		if mid := (low + high) / 2; scaled*r.below[mid] <= carried {
			low = mid + 1
		} else {
			high = mid
		}
	}
	sum := func(a, b int) float64 { // of below
		if a >= b {
			return 0
		}
		if a == 0 {
			return r.area[b-1]
		}
		return r.area[b-1] - r.area[a-1]
	}
	return carried*float64(crossing-from) - scaled*sum(from, crossing) +
		scaled*sum(crossing, to) - carried*float64(to-crossing)
}

// gain is (q-p)/p of a value ([Cao2012] §3), +Inf where the reference lacks it.
func (r *Reference) gain(value, count uint32, total float64) float64 {
	share := r.share(value)
	if share == 0 {
		return math.Inf(1)
	}
	return (float64(count)/total - share) / share
}

// disclosure is the largest |ln(q/p)| over the values that a class holds ([Brickell2008]).
func (r *Reference) disclosure(values, counts []uint32) float64 {
	total, most := sumCounts(counts), 0.0
	for j, v := range values {
		most = max(most, math.Abs(math.Log(float64(counts[j])/total/r.share(v))))
	}
	return most
}

func sumCounts(counts []uint32) float64 {
	total := 0.0
	for _, n := range counts {
		total += float64(n)
	}
	return total
}

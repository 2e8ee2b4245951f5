package main

import (
	"cmp"
	"math"
	"slices"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// iterations of the expectation-maximization algorithm.
const iterations = 500

// likelihood is the distribution of a column that makes its labels most likely, as if
// which label a value gets were a matter of chance: sums of weights up to each position.
func (r *release) likelihood(c int) []float64 {
	rows := make(map[anonymize.Node]float64)
	for block, labels := range r.sketch.Labels {
		rows[labels[c]] += float64(r.sketch.Rows[block])
	}
	root := r.columns[c].span(r.columns[c].Root())
	sums := make([]float64, root[1]-root[0]+2)
	for i := range sums {
		sums[i] = float64(i)
	}
	for range iterations {
		factor := make([]float64, len(sums)) // differences of what weights are multiplied by
		for node, n := range rows {
			span := r.columns[c].span(node)
			low, high := span[0]-root[0], span[1]-root[0]+1
			if weight := sums[high] - sums[low]; weight > 0 {
				factor[low] += n / weight
				factor[high] -= n / weight
			}
		}
		next, by := make([]float64, len(sums)), 0.0
		for i := range len(sums) - 1 {
			by += factor[i]
			next[i+1] = next[i] + max(0, by)*(sums[i+1]-sums[i])
		}
		sums = next
	}
	return sums
}

// likelyShare is the part of a span that meets a condition, by a distribution whose first
// position is first.
func likelyShare(sums []float64, first int, span, bounds [2]int) float64 {
	of := func(low, high int) float64 {
		if low > high {
			return 0
		}
		return sums[high-first+1] - sums[low-first]
	}
	all := of(span[0], span[1])
	if all == 0 {
		return 0
	}
	return of(max(span[0], bounds[0]), min(span[1], bounds[1])) / all
}

// mondrian cuts at medians, always the column whose range is widest, as long as both
// sides have k people.
func mondrian(d *dataset, k int) []class {
	var out []class
	var cut func(rows []int)
	cut = func(rows []int) {
		cl := class{rows: float64(len(rows))}
		type side struct {
			column int
			width  float64
		}
		var sides []side
		for c := range d.columns {
			low, high := math.MaxInt, math.MinInt
			for _, row := range rows {
				low, high = min(low, d.truth[c][row]), max(high, d.truth[c][row])
			}
			cl.spans = append(cl.spans, [2]int{low, high})
			all := d.columns[c].span(d.columns[c].Root())
			sides = append(sides, side{c, float64(high-low) / float64(all[1]-all[0]+1)})
		}
		slices.SortStableFunc(sides, func(x, y side) int { return cmp.Compare(y.width, x.width) })
		for _, s := range sides {
			values := make([]int, len(rows))
			for i, row := range rows {
				values[i] = d.truth[s.column][row]
			}
			slices.Sort(values)
			median := values[len(values)/2]
			var left, right []int
			for _, row := range rows {
				if d.truth[s.column][row] < median {
					left = append(left, row)
				} else {
					right = append(right, row)
				}
			}
			if len(left) >= k && len(right) >= k {
				cut(left)
				cut(right)
				return
			}
		}
		out = append(out, cl)
	}
	everybody := make([]int, d.table.Rows())
	for row := range everybody {
		everybody[row] = row
	}
	cut(everybody)
	return out
}

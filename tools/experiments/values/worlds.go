package main

import (
	"math"
	"math/rand/v2"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// How many worlds are drawn, and how often each value that a label hides is offered
// another one between two of them.
const (
	worldsDrawn = 8
	offers      = 40
)

// worlds are tables with the labels and the margins of a release, drawn at random from
// all of them: values of people whose labels cover both are exchanged, as long as the
// labels of their blocks stay the narrowest. What is published says of none that it is
// not the true one.
func (r *release) worlds(seed uint64) [][][]int {
	random := rand.New(rand.NewPCG(seed, 4))
	members := make([][]int, len(r.sketch.Rows))
	for row := range r.table.Rows() {
		members[r.blockOf(row)] = append(members[r.blockOf(row)], row)
	}
	out := make([][][]int, worldsDrawn)
	for w := range out {
		out[w] = make([][]int, len(r.columns))
	}
	for c := range r.columns {
		r.exchange(c, members, random, func(w int, leaves []uint32) {
			for _, leaf := range leaves {
				out[w][c] = append(out[w][c], r.columns[c].span(anonymize.Node{Group: leaf})[0])
			}
		})
	}
	return out
}

// exchange hands over the leaves of a column, by row, in one world after the other.
func (r *release) exchange(
	c int, members [][]int, random *rand.Rand, each func(world int, leaves []uint32),
) {
	h := r.columns[c].Hierarchy
	label := func(row int) anonymize.Node { return r.sketch.Labels[r.blockOf(row)][c] }
	var leaves []uint32
	var hidden []int
	for row, tuple := range r.table.TupleOfRow() {
		leaves = append(leaves, r.table.Leaf(c, tuple))
		if label(row).Level > 0 {
			hidden = append(hidden, row)
		}
	}
	covers := func(row int, leaf uint32) bool {
		first, last := h.Range(label(row))
		return first <= leaf && leaf <= last
	}
	narrowest := func(row int) bool {
		low, high := leaves[row], leaves[row]
		for _, other := range members[r.blockOf(row)] {
			low, high = min(low, leaves[other]), max(high, leaves[other])
		}
		return h.Cover(low, high) == label(row)
	}
	for w := range worldsDrawn {
		for range offers * len(hidden) {
			x, y := hidden[random.IntN(len(hidden))], hidden[random.IntN(len(hidden))]
			if !covers(x, leaves[y]) || !covers(y, leaves[x]) {
				continue
			}
			leaves[x], leaves[y] = leaves[y], leaves[x]
			if !narrowest(x) || !narrowest(y) {
				leaves[x], leaves[y] = leaves[y], leaves[x]
			}
		}
		each(w, leaves)
	}
}

// uncertain is how far off the counts of each world are from the mean of all, as a share
// of the truth: no function of labels and margins comes nearer on average, if each
// world is as likely as the others.
func uncertain(worlds [][][]int, w workload) (errors []float64) {
	for i, q := range w.queries {
		counts, mean := make([]float64, len(worlds)), 0.0
		for n, world := range worlds {
			counts[n] = q.count(world)
			mean += counts[n] / float64(len(worlds))
		}
		for _, n := range counts {
			errors = append(errors, math.Abs(n-mean)/w.truth[i])
		}
	}
	return errors
}

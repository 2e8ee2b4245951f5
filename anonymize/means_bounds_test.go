package anonymize_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// bounded is a set of people over which a mean was shown or could have been, and
// what an attacker works out of its sum.
type bounded struct {
	rows      []int
	low, high float64 // what the rounding of its sum leaves
	width     float64 // of its label
	told      bool
	sum       float64 // told
	fresh     bool    // rounded, not left over
	parts     []*bounded
}

const nothing = 1e12

// watcher notes all that is told of a column, generation by generation.
type watcher struct {
	t       *testing.T
	all     []*bounded
	present map[int]*bounded // by row
	label   map[*bounded][2]float64
	splits  int
}

func (w *watcher) note(p *anonymize.Partition, m *anonymize.Means) {
	w.t.Helper()
	h := p.Table().Columns()[0].Hierarchy
	rows, blockOf := make(map[uint32][]int), make(map[uint32]uint32)
	for row, tuple := range p.Table().TupleOfRow() {
		b := p.BlockOf()[tuple]
		rows[m.Group(b)], blockOf[m.Group(b)] = append(rows[m.Group(b)], row), b
	}
	past := w.present
	w.present, w.label = make(map[int]*bounded), make(map[*bounded][2]float64)
	touched := make(map[*bounded]bool)
	for g, people := range rows {
		low, high, _ := h.Ends(m.Label(blockOf[g]))
		old := past[people[0]]
		b := old
		sum, slack, told := m.Told(blockOf[g])
		if old == nil || len(old.rows) != len(people) {
			b = &bounded{rows: people, low: -nothing, high: nothing, width: high - low, told: told, sum: sum}
			if b.fresh = told && slack <= b.width/2+1e-6; b.fresh {
				b.low, b.high = sum-b.width/2, sum+b.width/2
			}
			w.all = append(w.all, b)
			if old != nil {
				old.parts, touched[old] = append(old.parts, b), true
			}
		} else if told && (!old.told || math.Abs(old.sum-sum) > 1e-6) {
			w.t.Fatal("the same people are told of twice")
		}
		for _, row := range people {
			w.present[row] = b
		}
		w.label[b] = [2]float64{float64(len(people)) * low, float64(len(people)) * high}
		// Then all errors of rounding go together with all labels.
		end := (high - low) * max(1.5, 0.03*float64(len(people)))
		if told && (sum-slack < w.label[b][0]+end-1e-6 || sum+slack > w.label[b][1]-end+1e-6) {
			w.t.Errorf("%d people with the label %g to %g can not have all sums from %g to %g", len(people), low, high, sum-slack, sum+slack)
		}
	}
	for old := range touched {
		w.splits++
		w.assertAddsUp(old)
	}
}

// assertAddsUp asserts that one of the parts of a sum that was told follows from
// the others, so that the attacker has no threshold on it.
func (w *watcher) assertAddsUp(old *bounded) {
	w.t.Helper()
	if !old.told {
		return
	}
	sum, left := 0.0, 0
	for _, part := range old.parts {
		if sum += part.sum; !part.told {
			w.t.Fatal("a part of a sum that was told is not told")
		}
		if !part.fresh {
			left++
		}
	}
	if left > 1 || math.Abs(sum-old.sum) > 1e-6 {
		w.t.Fatalf("%d parts of %g in all were told of %g, %d of them left over", len(old.parts), sum, old.sum, left)
	}
}

// known works out, from labels and sums of all generations, between which ends
// the sum of each set lies: up and down the tree of sets.
func (w *watcher) known() map[*bounded][2]float64 {
	out := make(map[*bounded][2]float64)
	for _, b := range slices.Backward(w.all) { // parts come after what they are of
		low, high := 0.0, 0.0
		for _, part := range b.parts {
			low, high = low+out[part][0], high+out[part][1]
		}
		if len(b.parts) == 0 {
			low, high = w.label[b][0], w.label[b][1]
		}
		out[b] = [2]float64{max(low, b.low), min(high, b.high)}
	}
	for _, b := range w.all {
		low, high := 0.0, 0.0
		for _, part := range b.parts {
			low, high = low+out[part][0], high+out[part][1]
		}
		narrowed := make([][2]float64, len(b.parts))
		for i, part := range b.parts {
			narrowed[i] = [2]float64{max(out[part][0], out[b][0]-(high-out[part][1])), min(out[part][1], out[b][1]-(low-out[part][0]))}
		}
		for i, part := range b.parts {
			out[part] = narrowed[i]
		}
	}
	return out
}

// nested are people of whom a few spread over the whole range, and teams that
// lie close together and can be cut off one by one.
func nested(random *rand.Rand) (values []int, cuts [][]uint32) {
	const depth = 5
	cuts = make([][]uint32, depth)
	add := func(v, team int) {
		values = append(values, v)
		for c := range cuts {
			of := uint32(1)
			if c == team {
				of = 0
			}
			cuts[c] = append(cuts[c], of)
		}
	}
	for range 6 + random.IntN(40) {
		add(random.IntN(14000), depth)
	}
	for team := range depth {
		base, width := random.IntN(190)*100, []int{100, 1000, 5000, 20000}[random.IntN(4)]
		for range 8 + random.IntN(30) {
			add(min(base/width*width+random.IntN(width), 19999), team)
		}
	}
	return values, cuts
}

func TestWhatWasToldOfAllGroupsNarrowsNoneBelowOneWidth(t *testing.T) {
	splits, sums := 0, 0
	for seed := range uint64(150) {
		random := rand.New(rand.NewPCG(seed, 3))
		values, cuts := nested(random)
		chain := []anonymize.Refinement{}
		for c := range cuts {
			columns := []int{}
			for i := range c + 1 {
				columns = append(columns, i+1)
			}
			chain = append(chain, anonymize.Refinement{Columns: columns, Requirements: blockK(5)})
		}
		iv := anonymize.Interval{Widths: []float64{100, 1000, 5000}, Lower: 0, Upper: 19999, Integer: true}
		if seed%3 == 0 {
			values, cuts = skewed(seed, 600)
			iv = anonymize.Interval{Widths: []float64{10, 40}, Lower: 0, Upper: 119, Integer: true}
			chain = nil
			for _, columns := range [][]int{{1}, {1, 2}, {0, 1}, {1, 2, 3}, {0, 1, 2, 3}} {
				chain = append(chain, anonymize.Refinement{Columns: columns, Requirements: blockK(5)})
			}
		}
		table := measuredWithin(t, iv, nil, values, cuts...)
		p := anonymize.NewPartition(table)
		m := meansOf(p, 5)
		w := &watcher{t: t}
		w.note(p, m)
		for _, r := range chain {
			next := refined(t, p, r)
			m, p = m.Refine(next), next
			w.note(p, m)
		}
		splits += w.splits
		for b, ends := range w.known() {
			if !b.told {
				continue
			}
			sums++
			if wide := ends[1] - ends[0]; wide < b.width-1e-6 {
				t.Errorf("seed %d: of %d people under a label of %g the sum is told to within %g", seed, len(b.rows), b.width, wide)
			}
			sum := 0
			for _, row := range b.rows {
				sum += values[row]
			}
			if s := float64(sum); s < ends[0]-1e-6 || s > ends[1]+1e-6 {
				t.Errorf("seed %d: the sum %g does not lie in %g", seed, s, ends)
			}
		}
	}
	if splits < 150 || sums < 500 {
		t.Errorf("%d splits, %d sums", splits, sums)
	}
}

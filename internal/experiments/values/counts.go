package main

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/internal/experiments/adult"
)

// attributes are the columns of Adult that are asked about; the first is the age.
var attributes = []string{"age", "sex", "race", "marital-status", "education", "native-country", "workclass"}

// query is a range of leaves for each column.
type query [][2]uint32

func (q query) meets(leaf func(column int) uint32) bool {
	for c, bounds := range q {
		if v := leaf(c); v < bounds[0] || v > bounds[1] {
			return false
		}
	}
	return true
}

// spread is the part of a range [first, last] of leaves that meets a condition, by the
// weights of the leaves; nil weighs all alike.
func spread(first, last uint32, bounds [2]uint32, weights []float64) float64 {
	met, all := 0.0, 0.0
	for v := first; v <= last; v++ {
		w := 1.0
		if weights != nil {
			w = weights[v]
		}
		all += w
		if bounds[0] <= v && v <= bounds[1] {
			met += w
		}
	}
	if all == 0 {
		return 0
	}
	return met / all
}

// result is how far off counts are by one way to read a release.
type result struct {
	name       string
	all, large summary
}

type summary struct{ mean, median, ninety float64 }

func summarized(errors []float64) (s summary) {
	slices.Sort(errors)
	for _, e := range errors {
		s.mean += e / float64(len(errors))
	}
	s.median, s.ninety = errors[len(errors)/2], errors[len(errors)*9/10]
	return s
}

// measure asks the queries of a root for k.
func measure(ctx context.Context, data string, k int) ([]result, error) {
	table, err := adult.Read(data, attributes)
	if err != nil {
		return nil, err
	}
	root, err := anonymize.Root(ctx, table, anonymize.RootPlan{Requirements: []anonymize.Requirement{anonymize.BlockK{K: k}}})
	if err != nil {
		return nil, err
	}
	rows := table.TupleOfRow()
	drawn, likely := make([][]uint32, len(attributes)), make([][]float64, len(attributes))
	sketch := root.Sketch()
	for c, column := range table.Columns() {
		drawn[c] = drawnLeaves(root, column.Hierarchy, sketch.Draw(c, table.Margin(c, k, 0.5), rand.New(rand.NewPCG(uint64(c), 7))))
		likely[c] = likelihood(root, c)
	}
	ranges := mondrian(table, k)
	// Of labels, each block counts as often as it has rows.
	byLabels := func(part func(c int, first, last uint32, bounds [2]uint32) float64) func(query) float64 {
		return func(q query) (n float64) {
			for block := range uint32(root.Blocks()) {
				share := 1.0
				for c := 0; c < len(q) && share > 0; c++ {
					first, last := table.Columns()[c].Hierarchy.Range(root.Cover(block, c))
					share *= part(c, first, last, q[c])
				}
				n += share * float64(root.Rows(block))
			}
			return n
		}
	}
	ways := []struct {
		name  string
		count func(query) float64
	}{
		{"raked", func(q query) (n float64) {
			for row := range rows {
				if q.meets(func(c int) uint32 { return drawn[c][row] }) {
					n++
				}
			}
			return n
		}},
		{"even", byLabels(func(_ int, first, last uint32, bounds [2]uint32) float64 { return spread(first, last, bounds, nil) })},
		{"likelihood", byLabels(func(c int, first, last uint32, bounds [2]uint32) float64 {
			return spread(first, last, bounds, likely[c])
		})},
		{"middle", byLabels(func(c int, first, last uint32, bounds [2]uint32) float64 {
			switch {
			case c == 0:
				return spread((first+last)/2, (first+last)/2, bounds, nil)
			case bounds[0] <= first && last <= bounds[1]:
				return 1
			}
			return 0
		})},
		{"Mondrian", func(q query) (n float64) {
			for _, tuple := range rows {
				share := 1.0
				for c := 0; c < len(q) && share > 0; c++ {
					share *= spread(ranges[c][tuple][0], ranges[c][tuple][1], q[c], nil)
				}
				n += share
			}
			return n
		}},
	}
	queries, truth := draw(table)
	out := make([]result, len(ways))
	for w, way := range ways {
		var all, large []float64
		for i, q := range queries {
			e := math.Abs(way.count(q)-truth[i]) / truth[i]
			all = append(all, e)
			if truth[i] >= 50 {
				large = append(large, e)
			}
		}
		out[w] = result{way.name, summarized(all), summarized(large)}
	}
	return out, nil
}

// draw makes the queries, with the counts of people who meet them.
func draw(table *anonymize.Table) (queries []query, truth []float64) {
	random := rand.New(rand.NewPCG(1, 2))
	rows := table.TupleOfRow()
	for len(queries) < 1000 {
		q := make(query, len(attributes))
		for c := range q {
			q[c][1] = uint32(table.Columns()[c].Hierarchy.Leaves())
		}
		about := rows[random.IntN(len(rows))]
		for _, c := range random.Perm(len(attributes))[:1+random.IntN(4)] {
			q[c] = [2]uint32{table.Leaf(c, about), table.Leaf(c, about)}
			if c == 0 {
				q[c][1] += random.Uint32N(20)
			}
		}
		n := 0.0
		for _, tuple := range rows {
			if q.meets(func(c int) uint32 { return table.Leaf(c, tuple) }) {
				n++
			}
		}
		if share := n / float64(len(rows)); share >= 0.001 && share <= 0.1 {
			queries, truth = append(queries, q), append(truth, n)
		}
	}
	return queries, truth
}

// drawnLeaves are the leaves of drawn values, by row.
func drawnLeaves(p *anonymize.Partition, h *anonymize.Hierarchy, values *anonymize.Values) []uint32 {
	taken := make([]int, p.Blocks())
	var out []uint32
	for _, tuple := range p.Table().TupleOfRow() {
		block := p.BlockOf()[tuple]
		leaf, _ := h.Code(values.Texts[values.Of[block][taken[block]]])
		taken[block]++
		out = append(out, leaf)
	}
	return out
}

// likelihood is the distribution of a column that makes its labels most likely, as if
// which label a value gets were a matter of chance.
func likelihood(p *anonymize.Partition, column int) []float64 {
	h := p.Table().Columns()[column].Hierarchy
	count := make(map[anonymize.Node]float64)
	for block := range uint32(p.Blocks()) {
		count[p.Cover(block, column)] += float64(p.Rows(block))
	}
	weights := make([]float64, h.Leaves())
	for i := range weights {
		weights[i] = 1
	}
	for range 500 {
		next := make([]float64, len(weights))
		for node, n := range count {
			first, last := h.Range(node)
			sum := 0.0
			for v := first; v <= last; v++ {
				sum += weights[v]
			}
			for v := first; v <= last && sum > 0; v++ {
				next[v] += n * weights[v] / sum
			}
		}
		weights = next
	}
	return weights
}

// mondrian cuts at medians, always the column whose range is widest, as long as both
// sides have k people: [column][tuple] -> the range of its part.
func mondrian(table *anonymize.Table, k int) [][][2]uint32 {
	ranges := make([][][2]uint32, len(attributes))
	for c := range ranges {
		ranges[c] = make([][2]uint32, table.Tuples())
	}
	var cut func(rows []uint32)
	cut = func(rows []uint32) {
		type side struct {
			column int
			width  float64
			low    uint32
			high   uint32
		}
		var sides []side
		for c := range attributes {
			s := side{column: c, low: math.MaxUint32}
			for _, tuple := range rows {
				s.low, s.high = min(s.low, table.Leaf(c, tuple)), max(s.high, table.Leaf(c, tuple))
			}
			s.width = float64(s.high-s.low) / float64(table.Columns()[c].Hierarchy.Leaves())
			sides = append(sides, s)
		}
		slices.SortStableFunc(sides, func(x, y side) int { return int(math.Copysign(1, y.width-x.width)) })
		for _, s := range sides {
			values := make([]uint32, len(rows))
			for i, tuple := range rows {
				values[i] = table.Leaf(s.column, tuple)
			}
			slices.Sort(values)
			median := values[len(values)/2]
			var left, right []uint32
			for _, tuple := range rows {
				if table.Leaf(s.column, tuple) < median {
					left = append(left, tuple)
				} else {
					right = append(right, tuple)
				}
			}
			if len(left) >= k && len(right) >= k {
				cut(left)
				cut(right)
				return
			}
		}
		for _, s := range sides {
			for _, tuple := range rows {
				ranges[s.column][tuple] = [2]uint32{s.low, s.high}
			}
		}
	}
	cut(slices.Clone(table.TupleOfRow()))
	return ranges
}

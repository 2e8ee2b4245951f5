package main

import (
	"context"
	"math/rand/v2"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// way is one way to read what is released.
type way struct {
	name   string
	counts []func(query) float64 // one for each time that chance is asked
}

// chances is how often values are drawn.
const chances = 4

// ways reads the releases of a table for k.
func ways(ctx context.Context, d *dataset, k int) ([]way, *release, error) {
	root, err := anonymize.Root(ctx, d.table,
		anonymize.RootPlan{Requirements: []anonymize.Requirement{anonymize.BlockK{K: k}}})
	if err != nil {
		return nil, nil, err
	}
	r := &release{dataset: d, root: root, sketch: root.Sketch()}
	full, err := fullDomain(ctx, d, k)
	if err != nil {
		return nil, nil, err
	}
	likely := make([][]float64, len(d.columns))
	for c := range likely {
		likely[c] = r.likelihood(c)
	}
	raked, own := way{name: "raked"}, way{name: "block"}
	for seed := range uint64(chances) {
		drawn, shuffled := r.drawn(k, seed), r.shuffled(seed)
		raked.counts = append(raked.counts, func(q query) float64 { return q.count(drawn) })
		own.counts = append(own.counts, func(q query) float64 { return q.count(shuffled) })
	}
	one := func(name string, classes []class, part func(c int, span, bounds [2]int) float64) way {
		counted := func(q query) float64 { return expected(classes, q, part) }
		return way{name, []func(query) float64{counted}}
	}
	even := func(_ int, span, bounds [2]int) float64 { return overlap(span, bounds) }
	classes := r.classes()
	return []way{
		raked,
		one("even", classes, even),
		one("likelihood", classes, func(c int, span, bounds [2]int) float64 {
			return likelyShare(likely[c], d.columns[c].span(d.columns[c].Root())[0], span, bounds)
		}),
		one("middle", classes, func(c int, span, bounds [2]int) float64 {
			if d.columns[c].year != nil {
				middle := (span[0] + span[1]) / 2
				return overlap([2]int{middle, middle}, bounds)
			}
			if bounds[0] <= span[0] && span[1] <= bounds[1] {
				return 1
			}
			return 0
		}),
		one("full-domain", full, even),
		one("Mondrian", mondrian(d, k), even),
		own,
	}, r, nil
}

// class are rows that are shown alike.
type class struct {
	rows  float64
	spans [][2]int // of each column
}

// expected is how many rows meet the conditions, if of the rows of each class a part does
// that is independent from column to column.
func expected(classes []class, q query, part func(c int, span, bounds [2]int) float64) (n float64) {
	for i := range classes {
		share := classes[i].rows
		for c := 0; c < len(q) && share > 0; c++ {
			if q[c] != anything {
				share *= part(c, classes[i].spans[c], q[c])
			}
		}
		n += share
	}
	return n
}

// overlap is the part of a span that meets a condition if all positions count alike.
func overlap(span, bounds [2]int) float64 {
	low, high := max(span[0], bounds[0]), min(span[1], bounds[1])
	return float64(max(0, high-low+1)) / float64(span[1]-span[0]+1)
}

// release is what the root of a table for k shows.
type release struct {
	*dataset
	root   *anonymize.Partition
	sketch *anonymize.Sketch
}

func (r *release) classes() []class {
	var out []class
	for b, rows := range r.sketch.Rows {
		cl := class{rows: float64(rows)}
		for c := range r.columns {
			cl.spans = append(cl.spans, r.columns[c].span(r.sketch.Labels[b][c]))
		}
		out = append(out, cl)
	}
	return out
}

// blockOf is the block of a row.
func (r *release) blockOf(row int) uint32 { return r.root.BlockOf()[r.table.TupleOfRow()[row]] }

// drawn are the values that the release shows.
func (r *release) drawn(k int, seed uint64) [][]int {
	out, margins := make([][]int, len(r.columns)), make(map[int]*anonymize.Margin)
	for c := range out {
		margins[c] = r.table.Margin(c, k, 0.5)
	}
	n := uint64(0)
	drawn := r.sketch.DrawAll(margins, func() *rand.Rand {
		n++
		return rand.New(rand.NewPCG(n, seed))
	})
	for c := range out {
		values := drawn[c]
		positions := make([]int, len(values.Texts))
		for i, text := range values.Texts {
			positions[i] = r.columns[c].position(text)
		}
		taken := make([]int, len(r.sketch.Rows))
		for row := range r.table.Rows() {
			block := r.blockOf(row)
			out[c] = append(out[c], positions[values.Of[block][taken[block]]])
			taken[block]++
		}
	}
	return out
}

// shuffled exchanges the true values of each column within blocks.
func (r *release) shuffled(seed uint64) [][]int {
	random := rand.New(rand.NewPCG(seed, 3))
	members := make([][]int, len(r.sketch.Rows))
	for row := range r.table.Rows() {
		block := r.blockOf(row)
		members[block] = append(members[block], row)
	}
	out := make([][]int, len(r.columns))
	for c := range out {
		out[c] = append(out[c], r.truth[c]...)
		for _, m := range members {
			random.Shuffle(len(m), func(i, j int) {
				out[c][m[i]], out[c][m[j]] = out[c][m[j]], out[c][m[i]]
			})
		}
	}
	return out
}

// fullDomain is the file of least loss among those that show each column by one level of
// its hierarchy, with up to 5 % of the rows suppressed, which show nothing.
func fullDomain(ctx context.Context, d *dataset, k int) ([]class, error) {
	p := &anonymize.Problem{
		Table: d.table, Privacy: []anonymize.Privacy{anonymize.KAnonymity{K: k}},
		Quality: anonymize.Loss{}, SuppressionLimit: 0.05,
	}
	found, err := anonymize.Search(ctx, p, anonymize.Options{})
	if err != nil {
		return nil, err
	}
	t, err := anonymize.Transform(p, found.Levels)
	if err != nil {
		return nil, err
	}
	at := make(map[uint32]int)
	var out []class
	for row, tuple := range d.table.TupleOfRow() {
		i, known := at[t.Class(row)]
		if !known {
			i = len(out)
			at[t.Class(row)] = i
			cl := class{}
			for c := range d.columns {
				n := anonymize.Node{Level: found.Levels[c]}
				n.Group = d.columns[c].Generalize(d.table.Leaf(c, tuple), n.Level)
				if t.Suppressed(row) {
					n = d.columns[c].Root()
				}
				cl.spans = append(cl.spans, d.columns[c].span(n))
			}
			out = append(out, cl)
		}
		out[i].rows++
	}
	return out, nil
}

package main

import (
	"cmp"
	"context"
	"iter"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate"
)

// usual is the number of codes that an attacker knows.
const usual = 2

// nearest are the columns by which groups are put next to each other: sex, age, area.
var nearest = []int{1, 0, 2}

// grouped are people in groups of a size that have demographics in common.
type grouped struct {
	sketch  *anonymize.Sketch
	groupOf []int // of each record
	members [][]int32
	order   []uint32 // of groups: near ones share what is rare
}

func (d *dataset) groups(ctx context.Context, size int) (*grouped, error) {
	p, err := anonymize.Root(
		ctx,
		d.table,
		anonymize.RootPlan{Requirements: []anonymize.Requirement{anonymize.BlockK{K: size}}},
	)
	if err != nil {
		return nil, err
	}
	order := make([]uint32, p.Blocks())
	for g := range order {
		order[g] = uint32(g)
	}
	slices.SortFunc(order, func(x, y uint32) int {
		for _, column := range nearest {
			h := d.table.Columns()[column].Hierarchy
			firstX, lastX := h.Range(p.Cover(x, column))
			firstY, lastY := h.Range(p.Cover(y, column))
			if c := cmp.Or(cmp.Compare(firstX, firstY), cmp.Compare(lastX, lastY)); c != 0 {
				return c
			}
		}
		return 0
	})
	g := &grouped{
		sketch:  p.Sketch(),
		members: make([][]int32, p.Blocks()),
		groupOf: make([]int, d.records.Len()),
		order:   order,
	}
	for r, tuple := range d.table.TupleOfRow() {
		g.groupOf[r] = int(p.BlockOf()[tuple])
		g.members[g.groupOf[r]] = append(g.members[g.groupOf[r]], int32(r))
	}
	return g, nil
}

// demographicsFirst parts people into groups of a size, and codes within them.
func (d *dataset) demographicsFirst(ctx context.Context, k, m, size int) ([]person, error) {
	g, err := d.groups(ctx, size)
	if err != nil {
		return nil, err
	}
	cfg := disassociate.Default(k, m)
	for _, group := range g.order {
		cfg.Groups = append(cfg.Groups, g.members[group])
	}
	return d.shown(ctx, cfg, g.sketch, func(record, _ int) int { return g.groupOf[record] })
}

// others are the ways without groups of demographics.
func (d *dataset) others(ctx context.Context, k int) iter.Seq2[string, func() ([]person, error)] {
	return func(yield func(string, func() ([]person, error)) bool) {
		if !yield("codes alone", func() ([]person, error) {
			everybody := anonymize.NewPartition(d.table).Sketch()
			return d.shown(
				ctx,
				disassociate.Default(k, usual),
				everybody,
				func(int, int) int { return 0 },
			)
		}) {
			return
		}
		if !yield(
			"codes generalized",
			func() ([]person, error) { return d.generalized(ctx, k, 40*k) },
		) {
			return
		}
		yield("codes first", func() ([]person, error) {
			cfg := disassociate.Default(k, usual)
			result, err := disassociate.Disassociate(ctx, d.records, cfg, chance(), nil)
			if err != nil {
				return nil, err
			}
			return d.shown(
				ctx,
				cfg,
				d.covers(result.ClusterOf, len(result.Form.Clusters)),
				func(_, cluster int) int { return cluster },
			)
		})
	}
}

// chance is the same on every run.
func chance() *rand.Rand { return rand.New(rand.NewPCG(9, 9)) }

// covers are the labels that cover clusters.
func (d *dataset) covers(clusterOf []int32, clusters int) *anonymize.Sketch {
	s := &anonymize.Sketch{Rows: make([]int, clusters), Labels: make([][]anonymize.Node, clusters)}
	members := make([][]uint32, clusters) // their tuples
	for r, c := range clusterOf {
		s.Rows[c]++
		members[c] = append(members[c], d.table.TupleOfRow()[r])
	}
	for i, column := range d.table.Columns() {
		s.Hierarchies = append(s.Hierarchies, column.Hierarchy)
		for c, tuples := range members {
			low, high := d.table.Leaf(i, tuples[0]), d.table.Leaf(i, tuples[0])
			for _, tuple := range tuples {
				low, high = min(low, d.table.Leaf(i, tuple)), max(high, d.table.Leaf(i, tuple))
			}
			s.Labels[c] = append(s.Labels[c], column.Hierarchy.Cover(low, high))
		}
	}
	return s
}

// shown publishes the records, and reads them once with values of the labels of a sketch.
// blockOf is the block of a record, which is in a cluster.
func (d *dataset) shown(
	ctx context.Context,
	cfg disassociate.Config,
	s *anonymize.Sketch,
	blockOf func(record, cluster int) int,
) ([]person, error) {
	rng := chance()
	result, err := disassociate.Disassociate(ctx, d.records, cfg, rng, nil)
	if err != nil {
		return nil, err
	}
	values := d.values(s, cfg.K, rng)
	blockOfCluster := make([]int, len(result.Form.Clusters))
	for r, c := range result.ClusterOf {
		blockOfCluster[c] = blockOf(r, int(c))
	}
	records := result.Form.Reconstruct(rng)
	taken := make([]int, len(s.Rows))
	var out []person
	for c := range result.Form.Clusters {
		for range result.Form.Clusters[c].Size {
			block := blockOfCluster[c]
			p, err := demographics(values, block, taken[block])
			if err != nil {
				return nil, err
			}
			taken[block]++
			for _, item := range records[len(out)] {
				if code := result.Form.Codes[item]; code.Nth == 1 {
					p.codes = append(p.codes, code.Text)
				}
			}
			out = append(out, p)
		}
	}
	return out, nil
}

// values are drawn from the labels of a sketch.
func (d *dataset) values(s *anonymize.Sketch, k int, rng *rand.Rand) map[int]*anonymize.Values {
	margins := make(map[int]*anonymize.Margin)
	for i := range s.Hierarchies {
		margins[i] = d.table.Margin(i, k, 1)
	}
	return s.DrawAll(margins, func() *rand.Rand { return rand.New(rand.NewPCG(rng.Uint64(), 9)) })
}

// demographics are those of one of a block.
func demographics(values map[int]*anonymize.Values, block, nth int) (p person, err error) {
	text := func(column int) string { return values[column].Texts[values[column].Of[block][nth]] }
	p = person{sex: text(1), area: text(2)}
	p.age, err = strconv.Atoi(text(0))
	return p, err
}

package disassociate

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate/published"
)

// publish makes the published form of clusters and shared chunks, clusters in
// random order, and says which cluster of the form each record is in. What is
// in the form depends on the order of the records in no other way.
func publish(ctx context.Context, d *Dataset, promise published.Promise, clusters []cluster, chunks []shared,
	rng *rand.Rand, progress func(done int),
) (*published.Form, []int32, error) {
	f := &published.Form{
		Promise:  promise,
		Codes:    d.codes,
		Clusters: make([]published.Cluster, len(clusters)),
		Shared:   make([]published.SharedChunk, len(chunks)),
	}
	position := make([]int32, len(clusters))
	clusterOf := make([]int32, d.Len())
	for p, at := range rng.Perm(len(clusters)) {
		position[p] = int32(at)
		for _, r := range clusters[p].records {
			clusterOf[r] = int32(at)
		}
	}
	newProjector := func() *projector { return &projector{data: d, mark: make([]bool, len(d.codes))} }
	err := forEach(ctx, len(clusters), newProjector, func(w *projector, p int) {
		f.Clusters[position[p]] = w.cluster(&clusters[p])
	}, progress)
	if err != nil {
		return nil, nil, err
	}
	err = forEach(ctx, len(chunks), newProjector, func(w *projector, i int) {
		f.Shared[i] = w.shared(&chunks[i], clusters, position)
	}, func(int) {})
	if err != nil {
		return nil, nil, err
	}
	slices.SortFunc(f.Shared, func(a, b published.SharedChunk) int {
		return cmp.Or(slices.Compare(a.Codes, b.Codes), slices.Compare(a.Scope, b.Scope))
	})
	return f, clusterOf, nil
}

// projector makes chunks. It is scratch space of one worker.
type projector struct {
	data *Dataset
	mark []bool // item -> is a code of the chunk being made
	rows [][]Item
	all  []Item
}

func (w *projector) cluster(c *cluster) published.Cluster {
	out := published.Cluster{Size: len(c.records), Items: slices.Clone(c.items)}
	for _, codes := range c.chunks {
		w.begin(codes)
		w.add(c.records)
		out.Record = append(out.Record, w.end(codes, len(c.records)))
	}
	slices.SortFunc(out.Record, func(a, b published.Chunk) int { return cmp.Compare(a.Codes[0], b.Codes[0]) })
	return out
}

func (w *projector) shared(s *shared, clusters []cluster, position []int32) published.SharedChunk {
	out := published.SharedChunk{Scope: make([]int32, len(s.scope))}
	w.begin(s.codes)
	slots := 0
	for i, p := range s.scope {
		out.Scope[i] = position[p]
		w.add(clusters[p].records)
		slots += len(clusters[p].records)
	}
	slices.Sort(out.Scope)
	out.Chunk = w.end(s.codes, slots)
	return out
}

func (w *projector) begin(codes []Item) {
	w.rows, w.all = w.rows[:0], w.all[:0]
	for _, it := range codes {
		w.mark[it] = true
	}
}

// add projects records on the codes of the chunk.
func (w *projector) add(records []int32) {
	for _, r := range records {
		first := len(w.all)
		for _, it := range w.data.Items(int(r)) {
			if w.mark[it] {
				w.all = append(w.all, it)
			}
		}
		if len(w.all) > first {
			w.rows = append(w.rows, w.all[first:])
		}
	}
}

// end counts equal projections.
func (w *projector) end(codes []Item, slots int) published.Chunk {
	for _, it := range codes {
		w.mark[it] = false
	}
	slices.SortFunc(w.rows, slices.Compare)
	out := published.Chunk{Codes: slices.Clone(codes), Empty: slots - len(w.rows)}
	slices.Sort(out.Codes)
	for i, row := range w.rows {
		if i > 0 && slices.Equal(row, w.rows[i-1]) {
			out.Sub[len(out.Sub)-1].Count++
			continue
		}
		out.Sub = append(out.Sub, published.SubRecord{Items: slices.Clone(row), Count: 1})
	}
	return out
}

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
func publish(ctx context.Context, d *Dataset, promise published.Promise, clusters []cluster,
	chunks []shared,
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
	sharedOf := make([][]int32, len(clusters))
	for i := range chunks {
		for _, p := range chunks[i].scope {
			sharedOf[p] = append(sharedOf[p], int32(i))
		}
	}
	loose := make([][]entry, len(clusters)) // what each cluster has in shared chunks
	newProjector := func() *projector { return newProjector(d, chunks) }
	err := forEach(ctx, len(clusters), newProjector, func(w *projector, p int) {
		f.Clusters[position[p]], loose[p] = w.cluster(&clusters[p], sharedOf[p])
	}, progress)
	if err != nil {
		return nil, nil, err
	}
	entries, begin := byChunk(loose, len(chunks))
	err = forEach(ctx, len(chunks), newProjector, func(w *projector, i int) {
		f.Shared[i] = w.shared(&chunks[i], entries[begin[i]:begin[i+1]], clusters, position)
	}, func(int) {})
	if err != nil {
		return nil, nil, err
	}
	slices.SortFunc(f.Shared, func(a, b published.SharedChunk) int {
		return cmp.Or(slices.Compare(a.Codes, b.Codes), slices.Compare(a.Scope, b.Scope))
	})
	return f, clusterOf, nil
}

// entry is one code of one record, and the chunk it goes to.
type entry struct {
	chunk, record int32
	item          Item
}

// byChunk sorts entries by chunk, those of a record staying together: chunk i
// has entries[begin[i]:begin[i+1]].
func byChunk(lists [][]entry, chunks int) (entries []entry, begin []int) {
	begin = make([]int, chunks+1)
	for _, list := range lists {
		for _, e := range list {
			begin[e.chunk+1]++
		}
	}
	for i := range chunks {
		begin[i+1] += begin[i]
	}
	entries = make([]entry, begin[chunks])
	next := slices.Clone(begin[:chunks])
	for _, list := range lists {
		for _, e := range list {
			entries[next[e.chunk]] = e
			next[e.chunk]++
		}
	}
	return entries, begin
}

// projector makes chunks. It is scratch space of one worker.
type projector struct {
	data   *Dataset
	chunks []shared
	place  []int32 // item -> chunk of the cluster, or shared chunk less inShared, or none
	own    []entry
	rows   [][]Item
	all    []Item
}

// inShared tells shared chunks from record chunks in projector.place.
const inShared = -2

func newProjector(d *Dataset, chunks []shared) *projector {
	w := &projector{data: d, chunks: chunks, place: make([]int32, len(d.codes))}
	for i := range w.place {
		w.place[i] = none
	}
	return w
}

// cluster publishes one cluster and returns what it has in shared chunks.
func (w *projector) cluster(
	c *cluster, sharedChunks []int32,
) (out published.Cluster, loose []entry) {
	w.placeCodes(c, sharedChunks)
	w.own = w.own[:0]
	for _, r := range c.records {
		for _, it := range w.data.Items(int(r)) {
			switch at := w.place[it]; {
			case at >= 0:
				w.own = append(w.own, entry{at, r, it})
			case at <= inShared:
				loose = append(loose, entry{inShared - at, r, it})
			}
			// A code of the item chunk goes nowhere.
		}
	}
	slices.SortStableFunc(w.own, func(a, b entry) int { return cmp.Compare(a.chunk, b.chunk) })
	out = published.Cluster{Size: len(c.records), Items: slices.Clone(c.items)}
	rest := w.own
	for i, codes := range c.chunks {
		n := 0
		for n < len(rest) && rest[n].chunk == int32(i) {
			n++
		}
		out.Record = append(out.Record, w.histogram(rest[:n], codes, len(c.records)))
		rest = rest[n:]
	}
	slices.SortFunc(out.Record, func(a, b published.Chunk) int {
		return cmp.Compare(a.Codes[0], b.Codes[0])
	})
	w.clearPlaces(c, sharedChunks)
	return out, loose
}

func (w *projector) placeCodes(c *cluster, sharedChunks []int32) {
	for _, s := range sharedChunks {
		for _, it := range w.chunks[s].codes {
			w.place[it] = inShared - s
		}
	}
	for i, codes := range c.chunks {
		for _, it := range codes {
			w.place[it] = int32(i)
		}
	}
}

func (w *projector) clearPlaces(c *cluster, sharedChunks []int32) {
	for _, s := range sharedChunks {
		for _, it := range w.chunks[s].codes {
			w.place[it] = none
		}
	}
	for _, codes := range c.chunks {
		for _, it := range codes {
			w.place[it] = none
		}
	}
}

func (w *projector) shared(
	s *shared, entries []entry, clusters []cluster, position []int32,
) published.SharedChunk {
	out := published.SharedChunk{Scope: make([]int32, len(s.scope))}
	slots := 0
	for i, p := range s.scope {
		out.Scope[i] = position[p]
		slots += len(clusters[p].records)
	}
	slices.Sort(out.Scope)
	out.Chunk = w.histogram(entries, s.codes, slots)
	return out
}

// histogram counts equal sub-records. The entries of a record stand together,
// in code order.
func (w *projector) histogram(entries []entry, codes []Item, slots int) published.Chunk {
	w.rows, w.all = w.rows[:0], w.all[:0]
	for i := 0; i < len(entries); {
		first, record := len(w.all), entries[i].record
		for ; i < len(entries) && entries[i].record == record; i++ {
			w.all = append(w.all, entries[i].item)
		}
		w.rows = append(w.rows, w.all[first:])
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

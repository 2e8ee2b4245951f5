package published

import "slices"

// Index answers counting queries on a form. It is immutable and safe for
// concurrent use.
type Index struct {
	form   *Form
	places [][]place // item -> where it is, by cluster
	slots  []int     // shared chunk -> records of its scope
}

// place says where a code of a cluster is.
type place struct {
	cluster int32
	chunk   int32 // record chunk, or shared chunk, or nothing for the item chunk
	kind    placeKind
}

type placeKind uint8

const (
	inRecordChunk placeKind = iota
	inItemChunk
	inSharedChunk
)

// NewIndex prepares a form for queries. It costs one step per code of each
// chunk and of each cluster in a scope.
func NewIndex(f *Form) *Index {
	x := &Index{form: f, places: make([][]place, len(f.Codes)), slots: make([]int, len(f.Shared))}
	for p := range f.Clusters {
		c := &f.Clusters[p]
		for i := range c.Record {
			for _, it := range c.Record[i].Codes {
				x.places[it] = append(x.places[it], place{int32(p), int32(i), inRecordChunk})
			}
		}
		for _, it := range c.Items {
			x.places[it] = append(x.places[it], place{int32(p), -1, inItemChunk})
		}
	}
	for s := range f.Shared {
		for _, p := range f.Shared[s].Scope {
			x.slots[s] += f.Clusters[p].Size
			for _, it := range f.Shared[s].Codes {
				x.places[it] = append(x.places[it], place{p, int32(s), inSharedChunk})
			}
		}
	}
	for it := range x.places {
		slices.SortFunc(x.places[it], func(a, b place) int { return int(a.cluster - b.cluster) })
	}
	return x
}

// Form is the form that the index answers from.
func (x *Index) Form() *Form { return x.form }

// Items looks up codes. The result is ascending; known is false if the form
// does not have one of them, so that no record holds all. A text that stands
// n times means its first n occurrences.
func (x *Index) Items(codes []string) (items []Item, known bool) {
	seen := make(map[string]int, len(codes))
	for _, text := range codes {
		seen[text]++
		it, ok := x.form.Item(Code{Text: text, Nth: seen[text]})
		if !ok {
			return nil, false
		}
		items = append(items, it)
	}
	slices.Sort(items)
	return items, true
}

// part is what one chunk of a cluster has of a query: its codes, ascending.
type part struct {
	place
	codes []Item
}

// split calls visit for each cluster that has a place for every code of a
// query, with the query divided by chunk. Each code of an item chunk is a part
// of its own, as it is independent of the others. parts is only valid during
// the call.
func (x *Index) split(query []Item, visit func(cluster int32, parts []part)) {
	if len(query) == 0 {
		return
	}
	rarest := query[0]
	for _, it := range query {
		if len(x.places[it]) < len(x.places[rarest]) {
			rarest = it
		}
	}
	at := make([]int, len(query))
	var parts []part
clusters:
	for _, lead := range x.places[rarest] {
		parts = parts[:0]
		for i, it := range query {
			list := x.places[it]
			for at[i] < len(list) && list[at[i]].cluster < lead.cluster {
				at[i]++
			}
			if at[i] == len(list) || list[at[i]].cluster != lead.cluster {
				continue clusters
			}
			parts = addToPart(parts, list[at[i]], it)
		}
		visit(lead.cluster, parts)
	}
}

// addToPart adds a code to the part of its chunk. Queries are short, so the
// parts are searched one by one.
func addToPart(parts []part, at place, it Item) []part {
	if at.kind != inItemChunk {
		for i := range parts {
			if parts[i].place == at {
				parts[i].codes = append(parts[i].codes, it)
				return parts
			}
		}
	}
	n := len(parts)
	if n < cap(parts) {
		parts = parts[:n+1]
		parts[n].place = at
		parts[n].codes = append(parts[n].codes[:0], it)
		return parts
	}
	return append(parts, part{at, []Item{it}})
}

// support is the number of sub-records of a part's chunk that hold its codes,
// and the number of records that they are spread over.
func (x *Index) support(p *part) (support, slots int) {
	switch p.kind {
	case inRecordChunk:
		c := &x.form.Clusters[p.cluster]
		return c.Record[p.chunk].Support(p.codes), c.Size
	case inSharedChunk:
		return x.form.Shared[p.chunk].Support(p.codes), x.slots[p.chunk]
	}
	return 1, x.form.Clusters[p.cluster].Size
}

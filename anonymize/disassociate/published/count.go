package published

import (
	"maps"
	"slices"
)

// Estimate is what a form says about a count of records.
type Estimate struct {
	// Expected is the mean over all reconstructions of the form, each chunk
	// dealt to the records at random and each code of an item chunk taken
	// once.
	Expected float64
	// Lower and Upper bound the count in the original data with certainty.
	Lower, Upper int
}

// Count estimates how many records hold all of codes. Every record holds the
// empty set. The query costs one step per cluster that has all the codes.
//
// Clusters with the whole query in one chunk count exactly. Elsewhere the
// chunks of a cluster are independent for Expected, and for the bounds overlap
// as little or as much as they can (Fréchet); a code of an item chunk occurs
// at least once, at most in all records of the cluster.
func (x *Index) Count(codes []string) Estimate {
	items, known := x.Items(codes)
	if !known {
		return Estimate{}
	}
	return x.CountItems(items)
}

// CountItems is Count for items of the form, ascending.
func (x *Index) CountItems(query []Item) Estimate {
	if len(query) == 0 {
		n := x.form.Records()
		return Estimate{Expected: float64(n), Lower: n, Upper: n}
	}
	var e Estimate
	whole := make(map[int32]bool)  // shared chunks that hold the whole query
	joint := make(map[int32]limit) // shared chunks that limit several clusters
	x.split(query, func(cluster int32, parts []part) {
		if len(parts) == 1 && parts[0].kind == inSharedChunk {
			// The chunk holds the query for all clusters of its scope at once.
			if s := parts[0].chunk; !whole[s] {
				whole[s] = true
				n, _ := x.support(&parts[0])
				e.Expected += float64(n)
				e.Lower += n
				e.Upper += n
			}
			return
		}
		one, by := x.inCluster(cluster, parts)
		e.Expected += one.Expected
		e.Lower += one.Lower
		if by.chunk < 0 {
			e.Upper += one.Upper
			return
		}
		joint[by.chunk] = limit{by.chunk, joint[by.chunk].upper + one.Upper, by.support}
	})
	for _, l := range joint {
		e.Upper += min(l.upper, l.support)
	}
	return e
}

// limit is a shared chunk whose sub-records limit the count over all clusters
// of its scope together: no more than support, whatever the sum of the bounds
// of the clusters. chunk is -1 for no limit.
type limit struct {
	chunk          int32
	upper, support int
}

// inCluster estimates the count within one cluster, and returns the rarest
// shared chunk among the parts.
func (x *Index) inCluster(cluster int32, parts []part) (Estimate, limit) {
	size := x.form.Clusters[cluster].Size
	e := Estimate{Expected: float64(size), Upper: size}
	by := limit{chunk: -1}
	together := -(len(parts) - 1) * size
	for i := range parts {
		p := &parts[i]
		n, slots := x.support(p)
		e.Expected *= x.share(p, n, slots)
		least, most := n, n
		switch p.kind {
		case inItemChunk:
			most = size
		case inSharedChunk:
			least, most = max(0, n-(slots-size)), min(n, size)
			if by.chunk < 0 || n < by.support {
				by = limit{chunk: p.chunk, support: n}
			}
		}
		together += least
		e.Upper = min(e.Upper, most)
	}
	e.Lower = max(0, together)
	return e, by
}

// share is the expected share of a cluster's records that have what n of slots records
// of a part's chunk have.
func (x *Index) share(p *part, n, slots int) float64 {
	if p.kind == inSharedChunk {
		if share := x.form.Shared[p.chunk].Share(x.form.Clusters[p.cluster].Size); share > 0 {
			return share
		}
	}
	return float64(n) / float64(slots)
}

// Share is the expected share of the records of a cluster of some size that have the one
// code of a shared chunk, 0 for a chunk of several: each cluster has the code once, and
// the rest falls to the other records alike.
func (s *SharedChunk) Share(size int) float64 {
	if !s.spreads() {
		return 0
	}
	held, scope, slots := s.NonEmpty(), len(s.Scope), s.NonEmpty()+s.Empty
	expected := 1.0
	if slots > scope {
		expected += float64((held-scope)*(size-1)) / float64(slots-scope)
	}
	return expected / float64(size)
}

// CountAny is the expected number of records with at least one of codes, over
// all reconstructions as in [Estimate].Expected. Codes that the form does not
// have count for nothing.
func (x *Index) CountAny(codes []string) float64 {
	var query []Item
	for _, text := range codes {
		if it, ok := x.form.Item(Code{Text: text, Nth: 1}); ok {
			query = append(query, it)
		}
	}
	slices.Sort(query)
	query = slices.Compact(query)
	inClusters := make(map[int32][]part)
	for _, it := range query {
		for _, at := range x.places[it] {
			inClusters[at.cluster] = addToPart(inClusters[at.cluster], at, it)
		}
	}
	clusters := slices.Sorted(maps.Keys(inClusters)) // floating-point sums depend on the order
	total := 0.0
	for _, p := range clusters {
		parts := inClusters[p]
		size := float64(x.form.Clusters[p].Size)
		missed := 1.0
		for i := range parts {
			slots := x.form.Clusters[p].Size
			if parts[i].kind == inSharedChunk {
				slots = x.slots[parts[i].chunk]
			}
			missed *= 1 - x.share(&parts[i], x.supportAny(&parts[i]), slots)
		}
		total += size * (1 - missed)
	}
	return total
}

// supportAny is the number of sub-records of a part's chunk with at least one
// of its codes.
func (x *Index) supportAny(p *part) int {
	var c *Chunk
	switch p.kind {
	case inRecordChunk:
		c = &x.form.Clusters[p.cluster].Record[p.chunk]
	case inSharedChunk:
		c = &x.form.Shared[p.chunk].Chunk
	default:
		return 1
	}
	n := 0
	for i := range c.Sub {
		if holdsAny(c.Sub[i].Items, p.codes) {
			n += c.Sub[i].Count
		}
	}
	return n
}

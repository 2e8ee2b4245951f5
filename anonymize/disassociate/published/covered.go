package published

// Covered counts what a form gives away within chunks, beyond the guarantee:
// the cover problem ([Barakat2016], [Awad2019]). k^m-anonymity is about whose
// record it is, not about what else is in it.
type Covered struct {
	// Chunks is the number of record and shared chunks, Placements the number
	// of codes in all of them.
	Chunks, Placements int
	// ChunksWithCovered have a covered code, CoveredPlacements counts these:
	// codes x that never occur in the chunk without some other code y, so that
	// whoever is known to have x there has y for certain.
	ChunksWithCovered, CoveredPlacements int
	// CertainPlacements counts codes that every record of the cluster has.
	CertainPlacements int
	// SingleCluster counts codes that occur in one cluster only: whoever has
	// one is known to be in that cluster.
	SingleCluster int
	// ExactCodes counts codes that are in no item chunk, so that their number
	// of records can be read off the form. Codes is the number of all codes.
	ExactCodes, Codes int
}

// Covered makes the report. It costs, per chunk, the distinct sub-records
// times the square of their length.
func (f *Form) Covered() Covered {
	r := Covered{Codes: len(f.Codes)}
	clusters := make([]int, len(f.Codes)) // item -> clusters it may be in
	counted := make([]bool, len(f.Codes)) // item -> not in an item chunk
	for i := range counted {
		counted[i] = true
	}
	for p := range f.Clusters {
		c := &f.Clusters[p]
		for i := range c.Record {
			r.add(&c.Record[i], c.Size)
			for _, it := range c.Record[i].Codes {
				clusters[it]++
			}
		}
		for _, it := range c.Items {
			clusters[it]++
			counted[it] = false
		}
	}
	for s := range f.Shared {
		r.add(&f.Shared[s].Chunk, f.Shared[s].NonEmpty()+f.Shared[s].Empty)
		for _, it := range f.Shared[s].Codes {
			clusters[it] += len(f.Shared[s].Scope)
		}
	}
	for it := range f.Codes {
		if clusters[it] == 1 {
			r.SingleCluster++
		}
		if counted[it] {
			r.ExactCodes++
		}
	}
	return r
}

// add counts one chunk over a number of records.
func (r *Covered) add(c *Chunk, slots int) {
	r.Chunks++
	r.Placements += len(c.Codes)
	covered := 0
	for _, it := range c.Codes {
		support, others := c.company(it)
		if support == slots {
			r.CertainPlacements++
		}
		if others {
			covered++
		}
	}
	r.CoveredPlacements += covered
	if covered > 0 {
		r.ChunksWithCovered++
	}
}

// company is the number of sub-records with an item, and whether they all have
// another item in common.
func (c *Chunk) company(it Item) (support int, others bool) {
	var common []Item
	for i := range c.Sub {
		s := &c.Sub[i]
		if !holdsAll(s.Items, []Item{it}) {
			continue
		}
		if support == 0 {
			common = append(common, s.Items...)
		} else {
			common = intersection(common, s.Items)
		}
		support += s.Count
	}
	return support, len(common) > 1
}

// intersection keeps of ascending a what is in ascending b.
func intersection(a, b []Item) []Item {
	kept := a[:0]
	j := 0
	for _, it := range a {
		for j < len(b) && b[j] < it {
			j++
		}
		if j < len(b) && b[j] == it {
			kept = append(kept, it)
		}
	}
	return kept
}

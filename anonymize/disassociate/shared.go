package disassociate

import "slices"

// shared is a shared chunk while the form is being made. It holds, of the
// records of all clusters in its scope, the projections on its codes.
type shared struct {
	scope []int32 // clusters
	codes []Item
}

// mayLeave says whether a cluster may give one more code of its item chunk to
// a shared chunk, with left codes still there: the last one only where the
// record chunks alone keep the records from being empty. What shared chunks
// hold does not help, as it may belong to another cluster. Where records may be empty,
// any may.
func (c *cluster) mayLeave(left int, cfg *Config) bool {
	return left > 1 || cfg.MayBeEmpty ||
		emptyRuleHolds(len(c.records), c.nonEmpty, len(c.chunks), cfg.K, cfg.M)
}

// removeItems takes codes, ascending, out of the item chunk.
func (c *cluster) removeItems(codes []Item) {
	kept := 0
	for i, it := range c.items {
		if _, gone := slices.BinarySearch(codes, it); gone {
			continue
		}
		c.items[kept], c.support[kept] = it, c.support[i]
		kept++
	}
	c.items, c.support = c.items[:kept], c.support[:kept]
}

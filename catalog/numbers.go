package catalog

// Numbers says whether the relation's releases number the labels of a column, for
// grouping: two nodes can share a value, and a number is cheaper to group by than
// a label. A text's value is its label. Where only aggregates are answered,
// PostgreSQL's counters are to tell nothing of labels that are looked up.
func (r *Relation) Numbers(c *Column) bool {
	return c.Class == QuasiIdentifier && c.Category != "S" && !r.AggregateOnly
}

// numbered are the columns whose labels a release numbers.
func (r *Relation) numbered() []*Column {
	var out []*Column
	for _, q := range r.QuasiIdentifiers() {
		if r.Numbers(q) {
			out = append(out, q)
		}
	}
	return out
}

package catalog

// Numbers says whether the relation's releases number the labels of a column, for
// grouping: two nodes can share a value, and a number is cheaper to group by than
// what it stands for.
func (r *Relation) Numbers(c *Column) bool { return c.Class == QuasiIdentifier }

// Lists says whether the values of a numbered column can be found by the number, as
// its labels can: a group by the number is then all that a group by the column is.
func (r *Relation) Lists(c *Column) bool {
	return r.Numbers(c) && (c.Category == "S" || c.isFixed())
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

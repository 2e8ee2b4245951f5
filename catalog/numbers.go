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

// numbering numbers the labels of a column, from 0, as a release comes to them:
// equal labels have one number.
type numbering struct {
	labels  []string
	numbers map[string]int
	last    int // the number of the label that was met last
}

// numberings makes one for each dimension of a relation, nil where its labels are
// not numbered.
func numberings(r *Relation) []*numbering {
	out := make([]*numbering, len(r.Dimensions()))
	for i, q := range r.QuasiIdentifiers() { // they come first
		if r.Numbers(q) {
			out[i] = &numbering{numbers: make(map[string]int)}
		}
	}
	return out
}

// meet notes a label. A nil numbering notes nothing.
func (n *numbering) meet(label string) {
	if n == nil {
		return
	}
	number, known := n.numbers[label]
	if !known {
		number = len(n.labels)
		n.numbers[label] = number
		n.labels = append(n.labels, label)
	}
	n.last = number
}

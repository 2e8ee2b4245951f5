package planner

import "slices"

// Kind says what an output column of a protected statement shows.
type Kind string

// The kinds, from the one that says least about protected rows to the one that
// says most.
const (
	Unprotected Kind = "unprotected" // of a relation without a policy
	Computed    Kind = "computed"    // by an expression over what is released
	Released    Kind = "released"    // a column that is no quasi-identifier, as stored
	Value       Kind = "value"       // the representative of a quasi-identifier
	Label       Kind = "label"       // the label of a quasi-identifier
)

var kinds = []Kind{Unprotected, Computed, Released, Value, Label}

// Output is an output column of a protected statement. "*" stands for the
// columns of a relation without a policy whose columns are not known.
type Output struct {
	Name string
	Kind Kind
	Of   string // the protected column, "schema.relation.column", where it is one
}

// provenance is where the content of a column comes from. Its kind is never
// Label: that is decided where the column reaches the client.
type provenance struct {
	kind Kind
	of   string
}

// more is the provenance of a column that has now the one, now the other.
func more(x, y provenance) provenance {
	switch {
	case x == y:
		return x
	case slices.Index(kinds, x.kind) < slices.Index(kinds, y.kind):
		x.kind = y.kind
	}
	if x.of != y.of {
		x.of = ""
	}
	return x
}

// provenance of what a reference names.
func (r resolved) provenance() provenance {
	if r.qid() != nil {
		return r.entry.columns[r.at].provenance
	}
	var out provenance
	for i, o := range r.all() {
		from := o.entry.columns[o.at].provenance
		if i > 0 {
			from = more(out, from)
		}
		out = from
	}
	if out.kind == "" {
		out.kind = Unprotected
	}
	return out
}

// classify notes the output columns of one statement of the text.
func (p *Plan) classify(q *boundQuery) {
	for _, c := range q.columns {
		o := Output{Name: c.name, Kind: c.kind, Of: c.of}
		switch {
		case c.qid != nil:
			o.Kind = Label
		case o.Kind == "":
			o.Kind = Unprotected
		}
		p.Outputs = append(p.Outputs, o)
	}
	if !q.known {
		p.Outputs = append(p.Outputs, Output{Name: "*", Kind: Unprotected})
	}
}

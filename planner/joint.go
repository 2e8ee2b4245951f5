package planner

import (
	"slices"

	"github.com/hiatus-tailor/tailor/catalog"
)

// Where codes are published together with quasi-identifiers of their parent, a statement
// over both reads one publication: a row for each of the parent's subjects, and one for
// each code, with the same random number for a subject. Nothing of it needs to be held
// apart, so the client's text says what it says of the tables: any join, EXISTS, IN,
// and any number of either (docs/decisions/joint.md).

// readJointly finds the parents that a statement names beside their codes.
func (b *binder) readJointly(found nodeCollector) map[*catalog.Relation]*catalog.Relation {
	var named []*catalog.Relation
	for _, rv := range found.relations {
		// A name that cannot be resolved ends the statement elsewhere.
		if name, err := b.relationName(rv); err == nil && b.snapshot.Protected(name) != nil {
			named = append(named, b.snapshot.Protected(name))
		}
	}
	var out map[*catalog.Relation]*catalog.Relation
	for _, codes := range named {
		if !codes.IsJoint() || !codes.Lent() {
			continue
		}
		for _, r := range named {
			if codes.Parent.Is(r) && !r.AggregateOnly &&
				(out[r] == nil || slices.Index(named, codes) < slices.Index(named, out[r])) {
				if out == nil {
					out = make(map[*catalog.Relation]*catalog.Relation)
				}
				out[r] = codes
			}
		}
	}
	return out
}

// jointEntry is a parent as the publication of codes shows it: the number of the subject,
// and the columns that the codes are published together with.
func jointEntry(e *entry, codes *catalog.Relation) {
	e.via = codes
	subject := codes.Parent.Subject
	columns := []column{{name: subject, provenance: provenance{
		kind: Released,
		of:   e.relation.String() + "." + subject,
	}}}
	for _, c := range e.columns {
		if c.qid != nil && slices.ContainsFunc(codes.Parent.Columns, func(q catalog.Column) bool {
			return q.Name == c.name
		}) {
			columns = append(columns, c)
		}
	}
	e.columns = columns
}

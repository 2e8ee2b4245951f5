package catalog

import "fmt"

// Parent is a protected relation with a row for each subject, to whose key the
// subject column of another one, its child, refers. The child's copy holds the
// parent's quasi-identifiers beside its own, as they were at one moment, so
// that a join along the key is a relation with one partition: the child's.
type Parent struct {
	Schema, Name string
	Subject      string // its key
	// Columns are the parent's quasi-identifiers, in the parent's own names and
	// numbers.
	Columns []Column
	// InStep says that the parent's policy still lends just these.
	InStep bool
	// Narrow says that an audience of the child is part of one of the parent:
	// people who share the parent's chain could compare their joins.
	Narrow bool
}

// borrowedFrom tells the numbers of borrowed columns from the child's own, as
// tailor.borrowed does.
const borrowedFrom = 10000

// Lends names a quasi-identifier of the parent as the child's partition has it.
func (p *Parent) Lends(column string) string { return p.Name + "." + column }

// Is says whether this is the relation.
func (p *Parent) Is(r *Relation) bool {
	return p != nil && p.Schema == r.Schema && p.Name == r.Name
}

// Referred is the protected relation to whose key another one refers: its parent, or the
// first that could be. nil for none.
func (s *Snapshot) Referred(r *Relation) *Relation {
	if r.Parent != nil {
		return s.protected[Name{r.Parent.Schema, r.Parent.Name}]
	}
	for _, oid := range r.References {
		if parent := s.relation(oid); parent != nil {
			return parent
		}
	}
	return nil
}

// Lent says whether joins of the relation with its parent can be answered.
func (r *Relation) Lent() bool { return r.Parent != nil && r.Parent.InStep }

// parentDocument is what a policy version says of the parent.
type parentDocument struct {
	Schema  string           `json:"schema"`
	Name    string           `json:"name"`
	Subject string           `json:"subject"`
	Scope   string           `json:"scope"`
	K       int              `json:"k"`
	Columns []columnDocument `json:"columns"`
}

// borrow takes what the policy says of the parent.
func (r *Relation) borrow(d *parentDocument) {
	p := &Parent{
		Schema: d.Schema, Name: d.Name, Subject: d.Subject, InStep: true,
		Narrow: r.Scope == "project" && d.Scope != "project",
	}
	for i := range d.Columns {
		c := d.Columns[i].column()
		c.Class = QuasiIdentifier
		p.Columns = append(p.Columns, c)
	}
	r.Borrow(p, d.K)
}

// Borrow makes the parent's quasi-identifiers dimensions of the relation, whose
// blocks then meet the k of both.
func (r *Relation) Borrow(p *Parent, k int) {
	r.Parent, r.K, r.borrowed = p, max(r.K, k), nil
	for _, c := range p.Columns {
		c.Name, c.Number = p.Lends(c.Name), borrowedFrom+c.Number
		c.stored = fmt.Sprintf("tailor qid %d", c.Number)
		r.borrowed = append(r.borrowed, c)
	}
}

// Dimensions are the quasi-identifiers that partitions of the relation are
// made along: its own, then those of its parent.
func (r *Relation) Dimensions() []*Column {
	out := r.QuasiIdentifiers()
	for i := range r.borrowed {
		out = append(out, &r.borrowed[i])
	}
	return out
}

// storedName is the name of a quasi-identifier in copies and tables of values.
func (c *Column) storedName() string {
	if c.stored != "" {
		return c.stored
	}
	return c.Name
}

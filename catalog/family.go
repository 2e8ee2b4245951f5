package catalog

import "fmt"

// A relation and the data sets that are read off its release are a family: each of their
// releases has a number for each subject, the same in all, by which rows are joined.

// FamilyView is the view that shows a release with the number of each subject under the
// name of its key, the same in a relation and in the data sets that are read off it.
func FamilyView(release string) string { return release + "_family" }

// createFamilyView is the statement that defines the release with the numbers of its
// subjects, which stand for their keys.
func (c *Chain) createFamilyView(r *Relation, dictionaries []*dictionary) string {
	list := append([]string{fmt.Sprintf("e.%s AS %s", rowColumn, ident(r.Subject))},
		c.shownList(r, dictionaries, r.Subject)...)
	return c.viewOver(FamilyView(c.name()), list, "")
}

// inFamily says whether rows of the release have numbers by which they are joined with
// those of relations that are read off the same release.
func (r *Relation) inFamily() bool { return r.DataSetOf != 0 || len(r.carried) > 0 }

// numberType is that of the numbers which stand for keys in a family: the key's own if it
// has room for them.
func (r *Relation) numberType() string {
	if c := r.Column(r.Subject); c != nil && c.Type == "integer" {
		return c.Type
	}
	return "bigint"
}

// IsDataSet says whether a relation is read off another one's release.
func (r *Relation) IsDataSet() bool { return r.DataSetOf != 0 }

// Root is the relation whose release a relation is read off: itself, but for data sets.
func (r *Relation) Root() uint32 {
	if r.DataSetOf != 0 {
		return r.DataSetOf
	}
	return r.OID
}

// Rooted is the relation whose release a relation is read off, nil if it is not protected.
func (s *Snapshot) Rooted(r *Relation) *Relation {
	for _, other := range s.protected {
		if other.OID == r.Root() {
			return other
		}
	}
	return nil
}

// DataSets are the relations that are read off the release of another, in order.
func (s *Snapshot) DataSets(r *Relation) []*Relation {
	var out []*Relation
	for _, other := range s.relations() {
		if other.DataSetOf == r.OID {
			out = append(out, other)
		}
	}
	return out
}

// WithoutJoint says that no codes are published together with their parent.
func (s *Snapshot) WithoutJoint() bool {
	for _, r := range s.protected {
		if r.IsJoint() {
			return false
		}
	}
	return true
}

// HasDataSets says whether a relation has data sets.
func (s *Snapshot) HasDataSets(oid uint32) bool {
	for _, r := range s.protected {
		if r.DataSetOf == oid {
			return true
		}
	}
	return false
}

package planner

import (
	"slices"

	"github.com/hiatus-tailor/tailor/catalog"
)

// A relation and the data sets of its subjects are read off one release, row by row: they
// are parts of one wider table. A statement over several of them reads each with one number
// for a subject, in place of its key, and the client's text says what it says of the tables:
// any join along the key, EXISTS, IN, NOT IN, outer joins (docs/decisions/datasets.md).

// readAsFamily finds the relations whose subjects a statement needs to have numbers: those
// that it names beside others which are read off the same release, or beside a child, of
// which a data set may tell what it asks for.
func (b *binder) readAsFamily(found nodeCollector) map[*catalog.Relation]bool {
	var named []*catalog.Relation
	for _, rv := range found.relations {
		// A name that cannot be resolved ends the statement elsewhere.
		if name, err := b.relationName(rv); err == nil {
			if r := b.snapshot.Protected(name); r != nil && !slices.Contains(named, r) {
				named = append(named, r)
			}
		}
	}
	var out map[*catalog.Relation]bool
	for _, r := range named {
		for _, other := range named {
			beside := r != other && r.Root() == other.Root()
			child := slices.Contains(other.References, r.Root()) && b.snapshot.HasDataSets(r.Root())
			if beside || child {
				if out == nil {
					out = make(map[*catalog.Relation]bool)
				}
				out[r] = true
			}
		}
	}
	return out
}

// familyEntry shows the number of each subject under the name of its key.
func familyEntry(e *entry) {
	r := e.relation
	key := column{
		name:       r.Subject,
		provenance: provenance{kind: Released, of: r.String() + "." + r.Subject},
	}
	e.columns = append(
		[]column{key},
		slices.DeleteFunc(e.columns, func(c column) bool { return c.name == r.Subject })...)
}

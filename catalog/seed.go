package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
)

// policySeed is the name, among the seeds of a chain, of its policy's own.
const policySeed = ""

// Seed is a declared workload: the combinations of quasi-identifiers that an
// audience is expected to ask for. A chain that is prepared for it spends its
// room where it is needed. It is a refinement like any other, so that whoever
// names a project learns no more than by asking its queries.
type Seed struct {
	Name         string
	Combinations [][]string
}

// Key tells seeds apart, also those of one name that have been declared anew.
func (s Seed) Key() string {
	combinations, _ := json.Marshal(s.Combinations) // of strings: cannot fail
	sum := sha256.Sum256(combinations)
	return s.Name + " " + hex.EncodeToString(sum[:8])
}

// unplanted lists the seeds that a chain is to be prepared for and is not,
// without columns that are shown by means.
func (r *Relation) unplanted(planted []string, project string) []Seed {
	var out []Seed
	for _, s := range r.Seeds {
		combinations := make([][]string, len(s.Combinations))
		for i, names := range s.Combinations {
			combinations[i] = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
				c := r.Column(name)
				return c != nil && c.Mean
			})
		}
		s.Combinations = slices.DeleteFunc(combinations, func(names []string) bool { return len(names) == 0 })
		if (s.Name == policySeed || s.Name == project) && !slices.Contains(planted, s.Key()) {
			out = append(out, s)
		}
	}
	return out
}

// nonNil is the list itself, or an empty one, which SQL tells from NULL.
func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

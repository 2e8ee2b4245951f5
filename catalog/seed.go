package catalog

import (
	"context"
	"slices"

	"github.com/hiatus-tailor/tailor/anonymize"
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

// unplanted lists the seeds that a chain is to be prepared for and is not.
func (r *Relation) unplanted(planted []string, project string) []Seed {
	var out []Seed
	for _, s := range r.Seeds {
		if (s.Name == policySeed || s.Name == project) && !slices.Contains(planted, s.Name) {
			out = append(out, s)
		}
	}
	return out
}

// plant refines a chain for the workloads of seeds. Columns that are no
// quasi-identifiers any more need no room.
func (s *state) plant(ctx context.Context, seeds []Seed, needs []anonymize.Requirement) error {
	for _, seed := range seeds {
		table := s.partition.Table()
		var workload anonymize.Workload
		for _, combination := range seed.Combinations {
			var columns []int
			for _, name := range combination {
				if c := table.Column(name); c >= 0 && !slices.Contains(columns, c) {
					columns = append(columns, c)
				}
			}
			if columns != nil {
				workload = append(workload, columns)
			}
		}
		if workload != nil {
			refined, err := s.partition.Refine(ctx, workload.Seed(table, needs))
			if err != nil {
				return err
			}
			s.partition = refined
		}
		s.seeds = append(slices.Clone(s.seeds), seed.Name)
	}
	return nil
}

// nonNil is the list itself, or an empty one, which SQL tells from NULL.
func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

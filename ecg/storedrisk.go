package ecg

import (
	"cmp"
	"context"
	"slices"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// StoredRisk is the risk of a combination of attributes in a table as it is.
type StoredRisk struct {
	Attributes []string `json:"attributes"`
	Risk       Risk     `json:"risk"`
	// The classes of fewer than k subjects, the subjects in these, and those of the
	// smallest; 0 where there are none.
	Classes  int `json:"classes,omitempty"`
	Subjects int `json:"subjects,omitempty"`
	Smallest int `json:"smallest,omitempty"`
}

// exceeds says whether the combination sets more people apart than another.
func (s StoredRisk) exceeds(other StoredRisk) bool {
	if order := cmp.Or(
		cmp.Compare(s.Risk.Highest, other.Risk.Highest), cmp.Compare(s.Risk.BelowK, other.Risk.BelowK),
		cmp.Compare(s.Risk.Unique, other.Risk.Unique),
		cmp.Compare(s.Risk.Average, other.Risk.Average)); order != 0 {
		return order > 0
	}
	return slices.Compare(s.Attributes, other.Attributes) < 0
}

// StoredRiskOf is the risk of a combination by the subjects of each of its classes.
func StoredRiskOf(attributes []string, subjects []uint32, k int) StoredRisk {
	found := StoredRisk{Attributes: attributes, Risk: RiskOf(subjects, k)}
	if found.Risk.Highest > 1/float64(k) {
		s := sourceOf("", subjects, k)
		found.Classes, found.Subjects, found.Smallest = s.Classes, s.Subjects, s.Smallest
	}
	return found
}

// measuredCells bounds the work of StoredRisks, in tuples times combinations.
const measuredCells = 50_000_000

// StoredRisks measures combinations of a table's columns, small ones first: all
// single columns, and larger ones as long as no part of them is known to set somebody
// apart and the work is bounded. It stops when the context ends.
func StoredRisks(ctx context.Context, t *anonymize.Table, k int) []StoredRisk {
	var out []StoredRisk
	type combination struct {
		last    int
		names   []string
		classes *anonymize.EquivalenceClasses
	}
	level := []combination{{-1, nil, t.Everyone()}}
	for work := 0; len(level) > 0; {
		var next []combination
		for _, part := range level {
			for c := part.last + 1; c < len(t.Columns()); c++ {
				names := append(slices.Clone(part.names), t.Columns()[c].Name)
				if ctx.Err() != nil || len(names) > 1 && work > measuredCells {
					return out
				}
				if slices.ContainsFunc(out, func(known StoredRisk) bool {
					return known.Risk.Highest == 1 && within(known.Attributes, names)
				}) {
					continue
				}
				work += t.Tuples()
				classes := part.classes.Exactly(c)
				out = append(out, StoredRiskOf(names, classes.Subjects(), k))
				next = append(next, combination{c, names, classes})
			}
		}
		level = next
	}
	return out
}

// within says whether all names of a part are in a whole.
func within(part, whole []string) bool {
	return !slices.ContainsFunc(part, func(name string) bool { return !slices.Contains(whole, name) })
}

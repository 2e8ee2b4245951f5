package planner

import (
	"slices"

	"github.com/hiatus-tailor/tailor/catalog"
)

// Measure is a quasi-identifier that the policy shows by means, in a statement
// that names it. Whatever the statement does with it, it does not enter the
// combination that blocks are refined along: who shares a block would tell of
// values that the groups of means hold back.
type Measure struct{ Table, Attribute string }

// MeasuresOf lists the measures of a relation in the order of their first use.
func (p *Plan) MeasuresOf(r *catalog.Relation) []string {
	var out []string
	for _, m := range p.Measures {
		if m.Table == r.String() {
			out = append(out, m.Attribute)
		}
	}
	return out
}

// noteMeasure records a measure.
func (p *Plan) noteMeasure(m Measure) {
	if !slices.Contains(p.Measures, m) {
		p.Measures = append(p.Measures, m)
	}
}

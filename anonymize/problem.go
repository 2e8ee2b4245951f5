package anonymize

import (
	"fmt"
	"math"
)

// Problem says what is to be anonymized by full-domain recoding, and what the
// result has to meet.
type Problem struct {
	Table *Table
	// Sensitive attributes, one value a row, for the models that name one.
	Sensitive []SensitiveAttribute
	// Population is the table that [KMap] counts in, over the same columns and
	// hierarchies; nil where no model asks for one.
	Population *Table
	// Blocks is a base partition: the block of each row, numbered densely from
	// 0. Classes are formed within blocks. nil is one block.
	Blocks []uint32
	// Privacy models, all of which every class that is not suppressed meets.
	Privacy []Privacy
	// Quality is what the search minimizes.
	Quality Quality
	// SuppressionLimit is the share of rows, in [0, 1], that may be suppressed:
	// at most floor(limit × rows).
	SuppressionLimit float64
	// Strict asks in addition that the suppressed rows of each block are none
	// or those of at least as many subjects as the models ask of a class, so
	// that the suppressed form a class themselves. Releases need it; published
	// comparisons are made without.
	Strict bool
}

// ProblemError says what is wrong with a [Problem] and what would mend it. It
// never quotes a cell value.
type ProblemError struct {
	What, Remedy string
}

func (e *ProblemError) Error() string { return e.What }

// validate reports the first fault as a *[ProblemError].
func (p *Problem) validate() error {
	switch {
	case p.Table == nil || p.Table.Rows() == 0:
		return &ProblemError{"the table is empty", "give a table with at least one row"}
	case math.IsNaN(p.SuppressionLimit) || p.SuppressionLimit < 0 || p.SuppressionLimit > 1:
		return &ProblemError{
			fmt.Sprintf("suppression limit %v is outside [0, 1]", p.SuppressionLimit),
			"give a share of rows, such as 0.05",
		}
	case len(p.Privacy) == 0:
		return &ProblemError{"no privacy model", "ask at least for k-anonymity"}
	case p.Quality == nil:
		return &ProblemError{"no quality model", "name what to minimize, such as loss"}
	case p.Blocks != nil && len(p.Blocks) != p.Table.Rows():
		return &ProblemError{
			fmt.Sprintf("base partition of %d rows for a table of %d", len(p.Blocks), p.Table.Rows()),
			"give one block for each row",
		}
	}
	for _, s := range p.Sensitive {
		if len(s.Codes) != p.Table.Rows() {
			return &ProblemError{
				fmt.Sprintf("sensitive attribute %q has %d values for %d rows", s.Name, len(s.Codes),
					p.Table.Rows()),
				"give one value for each row",
			}
		}
	}
	return p.validatePopulation()
}

func (p *Problem) validatePopulation() error {
	if p.Population == nil {
		return nil
	}
	if p.Blocks != nil {
		return &ProblemError{
			"a population table cannot be combined with a base partition",
			"leave out one of the two",
		}
	}
	if !p.Population.RowPerSubject() {
		return &ProblemError{
			"the population table has several rows a subject",
			"give one row for each subject",
		}
	}
	own, other := p.Table.Columns(), p.Population.Columns()
	same := len(own) == len(other)
	for i := 0; same && i < len(own); i++ {
		same = own[i].Hierarchy == other[i].Hierarchy
	}
	if !same {
		return &ProblemError{
			"the population table has other quasi-identifiers than the table",
			"encode both with the same columns and hierarchies",
		}
	}
	return nil
}

// limitRows is the number of rows that may be suppressed.
func (p *Problem) limitRows() int {
	return int(math.Floor(p.SuppressionLimit * float64(p.Table.Rows())))
}

// sensitive is the position of a sensitive attribute by name.
func (p *Problem) sensitive(name, model string) (int, error) {
	for i := range p.Sensitive {
		if p.Sensitive[i].Name == name {
			return i, nil
		}
	}
	return 0, &ProblemError{
		fmt.Sprintf("%s asks for the sensitive attribute %q, which the table does not have", model, name),
		"name a sensitive attribute",
	}
}

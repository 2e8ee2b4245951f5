package ecg

import (
	"context"
	"fmt"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// Assessment is what the tailor found and decided for one table of a query.
type Assessment struct {
	Table  string
	Stages []Stage
	// Recoding is the way the table is shown.
	Recoding string
	// Threshold is the highest risk that the policy accepts, 1/k.
	Threshold float64
	// Loss is that of the query's own quasi-identifiers, and LossOf of each.
	Loss   float64
	LossOf map[string]float64
	// Risk is that of everything the chain has been shown: 1 / MinBlock.
	Risk     float64
	MinBlock int // subjects
}

// UnknownAttributeError names a quasi-identifier that the table has not.
type UnknownAttributeError struct{ Table, Attribute string }

func (e *UnknownAttributeError) Error() string {
	return fmt.Sprintf("table %s has no quasi-identifier %s", e.Table, e.Attribute)
}

// Tailor assesses the stages of a query on the present partition of a chain.
// It returns the partition to be shown, which refines the given one or is the
// very same, and the assessment. Every block of it meets the requirements; an
// *anonymize.UnmetError says that not even the table as a whole does.
//
// The last stage holds the combination of all, so the choice made for it
// applies to every stage before.
func Tailor(ctx context.Context, present *anonymize.Partition, stages []Stage, k int,
	requirements []anonymize.Requirement,
) (*anonymize.Partition, *Assessment, error) {
	a := &Assessment{Recoding: "local", Threshold: 1 / float64(k), LossOf: make(map[string]float64)}
	shown := present
	for i := range stages {
		s := &stages[i]
		a.Table = s.Table
		columns, err := positions(present.Table(), s)
		if err != nil {
			return nil, nil, err
		}
		s.RiskBefore = 1 / float64(present.SmallestClass(columns))
		if i < len(stages)-1 {
			continue
		}
		shown, err = present.Refine(ctx, anonymize.Refinement{Columns: columns, Requirements: requirements})
		if err != nil {
			return nil, nil, err
		}
		for j, c := range columns {
			a.LossOf[s.Attributes[j]] = shown.Loss([]int{c})
		}
		a.Loss = shown.Loss(columns)
	}
	a.MinBlock = shown.MinBlock()
	a.Risk = 1 / float64(a.MinBlock)
	for i := range stages {
		s := &stages[i]
		columns, err := positions(present.Table(), s)
		if err != nil {
			return nil, nil, err
		}
		s.RiskAfter, s.Loss = a.Risk, shown.Loss(columns)
		if s.RiskBefore > a.Threshold {
			s.Candidates = []Candidate{{
				Attributes: s.Attributes, Recoding: a.Recoding, Risk: s.RiskAfter, Loss: s.Loss, Chosen: true,
			}}
		}
	}
	a.Stages = stages
	return shown, a, nil
}

// positions finds the columns of a stage's combination.
func positions(t *anonymize.Table, s *Stage) ([]int, error) {
	columns := make([]int, len(s.Attributes))
	for i, name := range s.Attributes {
		if columns[i] = t.Column(name); columns[i] < 0 {
			return nil, &UnknownAttributeError{s.Table, name}
		}
	}
	return columns, nil
}

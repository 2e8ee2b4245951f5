package anonymize

import (
	"context"
	"errors"
	"fmt"
)

// Refinement asks for a finer partition.
type Refinement struct {
	// Columns are the quasi-identifiers whose loss is to fall, by position in
	// the table, none twice.
	Columns []int
	// Requirements must hold for every block; one of them is a [BlockK].
	Requirements []Requirement
	// Weights says how much each of Columns matters, all above 0; nil says
	// equally.
	Weights []float64
}

// finished records a refinement that was carried to its end.
type finished struct {
	columns      []int // ascending
	requirements string
}

// Refine splits blocks so that the weighted loss over the columns falls, as
// far as every block still meets the requirements. Blocks never merge: each
// block of the result lies within one block of p. The result is the same for
// the same rows in any order. Refining again along the same columns, or some
// of them, under the same requirements returns p itself.
//
// It fails with an [*UnmetError] if a block of p does not meet the
// requirements, with the context's error if that ends first, and on a
// refinement that makes no sense.
func (p *Partition) Refine(ctx context.Context, r Refinement) (*Partition, error) {
	columns, weights, err := r.check(p.Table())
	if err != nil {
		return nil, fmt.Errorf("refine: %w", err)
	}
	must, err := bind(p.Table(), r.Requirements)
	if err != nil {
		return nil, fmt.Errorf("refine: %w", err)
	}
	if p.isFinished(columns, must.name) {
		return p, nil
	}
	if err := p.unmet(must); err != nil {
		return nil, err
	}
	done := append(append([]finished(nil), p.finished...), finished{columns, must.name})
	s := newSplitter(p.ground, columns, weights, must)
	blockAt, blocks, err := s.split(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("refine: %w", err)
	}
	return assemble(p.ground, blockAt, blocks, done), nil
}

// check validates the refinement and returns columns in ascending order with
// their weights.
func (r Refinement) check(t *Table) ([]int, []float64, error) {
	if len(r.Columns) == 0 {
		return nil, nil, errors.New("no columns to refine along")
	}
	if r.Weights != nil && len(r.Weights) != len(r.Columns) {
		return nil, nil, fmt.Errorf("%d weights for %d columns", len(r.Weights), len(r.Columns))
	}
	weightOf := make([]float64, len(t.columns))
	for i, c := range r.Columns {
		if c < 0 || c >= len(t.columns) {
			return nil, nil, fmt.Errorf("no column %d in a table of %d", c, len(t.columns))
		}
		if weightOf[c] != 0 {
			return nil, nil, fmt.Errorf("column %d is named twice", c)
		}
		weightOf[c] = 1
		if r.Weights != nil {
			weightOf[c] = r.Weights[i]
		}
		if !(weightOf[c] > 0) || weightOf[c] > 1e9 {
			return nil, nil, fmt.Errorf("weight of column %d must be above 0 and at most 1e9", c)
		}
	}
	var columns []int
	var weights []float64
	for c, w := range weightOf {
		if w > 0 {
			columns = append(columns, c)
			weights = append(weights, w)
		}
	}
	return columns, weights, nil
}

// isFinished says whether the columns are among those of a refinement that was
// carried to its end under the same requirements.
func (p *Partition) isFinished(columns []int, requirements string) bool {
	for _, f := range p.finished {
		if f.requirements != requirements {
			continue
		}
		have := make(map[int]bool, len(f.columns))
		for _, c := range f.columns {
			have[c] = true
		}
		all := true
		for _, c := range columns {
			all = all && have[c]
		}
		if all {
			return true
		}
	}
	return false
}

// unmet finds the first block that does not meet the requirements.
func (p *Partition) unmet(must *requirements) error {
	if p.Table().Rows() == 0 {
		return &UnmetError{Requirement: must.name}
	}
	for b := range p.Blocks() {
		if int(p.subjects[b]) < must.k || !must.meetsOthers(p.Tuples(uint32(b))) {
			return &UnmetError{Requirement: must.name, Block: uint32(b)}
		}
	}
	return nil
}

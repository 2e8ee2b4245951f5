package anonymize

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Refinement asks for a finer partition.
type Refinement struct {
	// Columns are the quasi-identifiers whose loss is to fall, by position in
	// the table, none twice.
	Columns []int
	// Requirements must hold for every block; one of them is a [BlockK].
	Requirements []Requirement
	// Weights says how much each of Columns matters, all above 0; nil says 1
	// for each.
	Weights []float64
	// Outlook says, for every column of the table, how much it matters to
	// later refinements, where a column of this one has its weight: 0 or more.
	// It keeps room for them, at the price of some loss now. nil says
	// [DefaultOutlook] for each.
	Outlook []float64
}

// MaxOutlookCost is the most that the outlook may cost an answer: where a partition
// that looks at the columns asked for alone would lose less by more than that,
// on average over these columns, it is taken instead.
const MaxOutlookCost = 0.35

// DefaultOutlook is the weight of a column that a refinement does not ask for.
// Chains of 20 queries lose the least at about 0.7, first queries at 0; the
// figures are in docs/decisions/local-recoding.md.
const DefaultOutlook = 0.5

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
	t := p.Table()
	columns, weights, err := r.check(t)
	if err != nil {
		return nil, fmt.Errorf("refine: %w", err)
	}
	must, err := bind(t, r.Requirements)
	if err != nil {
		return nil, fmt.Errorf("refine: %w", err)
	}
	if p.isFinished(columns, must.name) {
		return p, nil
	}
	if err := p.unmet(must); err != nil {
		return nil, err
	}
	_, d, err := draftBlocks(ctx, p, columns, weights, must)
	if err != nil {
		return nil, fmt.Errorf("refine: %w", err)
	}
	return d.partition(p, columns, must), nil
}

// finish records that nothing is left to gain along the columns, nor along
// those that show every value. It returns p itself if that is on record.
func (p *Partition) finish(columns []int, requirements string) *Partition {
	if p.isFinished(columns, requirements) {
		return p
	}
	columns = slices.Clone(columns)
	for c := range p.Table().columns {
		if !slices.Contains(columns, c) && p.IsExact(c) {
			columns = append(columns, c)
		}
	}
	slices.Sort(columns)
	done := *p
	done.finished = append(slices.Clone(p.finished), finished{columns, requirements})
	return &done
}

// check validates the refinement and returns its columns in ascending order,
// and the weight of every column of the table.
func (r Refinement) check(t *Table) (columns []int, weights []float64, err error) {
	n := len(t.columns)
	if len(r.Columns) == 0 {
		return nil, nil, errors.New("no columns to refine along")
	}
	if r.Weights != nil && len(r.Weights) != len(r.Columns) {
		return nil, nil, fmt.Errorf("%d weights for %d columns", len(r.Weights), len(r.Columns))
	}
	if r.Outlook != nil && len(r.Outlook) != n {
		return nil, nil, fmt.Errorf("an outlook on %d columns for a table of %d", len(r.Outlook), n)
	}
	weights = make([]float64, n)
	for c := range weights {
		weights[c] = DefaultOutlook
		if r.Outlook != nil {
			weights[c] = r.Outlook[c]
		}
		if !(weights[c] >= 0 && weights[c] <= heaviest) {
			return nil, nil, fmt.Errorf("outlook on column %d must be from 0 to %g", c, heaviest)
		}
	}
	for i, c := range r.Columns {
		if c < 0 || c >= n {
			return nil, nil, fmt.Errorf("no column %d in a table of %d", c, n)
		}
		if slices.Contains(r.Columns[:i], c) {
			return nil, nil, fmt.Errorf("column %d is named twice", c)
		}
		weights[c] = 1
		if r.Weights != nil {
			weights[c] = r.Weights[i]
		}
		if !(weights[c] > 0 && weights[c] <= heaviest) {
			return nil, nil, fmt.Errorf("weight of column %d must be above 0 and at most %g", c, heaviest)
		}
	}
	columns = slices.Sorted(slices.Values(r.Columns))
	return columns, weights, nil
}

// heaviest is the largest weight: sums over all rows stay far from overflow.
const heaviest = 1e6

// isFinished says whether the columns are among those of a refinement that was
// carried to its end under the same requirements.
func (p *Partition) isFinished(columns []int, requirements string) bool {
	for _, f := range p.finished {
		if f.requirements != requirements {
			continue
		}
		missing := func(c int) bool { return !slices.Contains(f.columns, c) }
		if !slices.ContainsFunc(columns, missing) {
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
		if int(p.subjects[b]) < must.k || len(must.others) > 0 && !must.meetsOthers(p.Tuples(uint32(b))) {
			return &UnmetError{Requirement: must.name, Block: uint32(b)}
		}
	}
	return nil
}

// Assert fails with an [*UnmetError] where a block does not meet the requirements.
func (p *Partition) Assert(rs []Requirement) error {
	must, err := bind(p.Table(), rs)
	if err != nil {
		return err
	}
	return p.unmet(must)
}

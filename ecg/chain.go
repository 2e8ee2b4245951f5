package ecg

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// The recodings of a chain.
const (
	Local      = "local"       // blocks are cut where it helps most
	FullDomain = "full_domain" // one level a column
)

// Chain is the material of a chain: the partition that its audience has been
// shown. Whatever is shown next refines it, so that no answer has to be judged
// against those before.
type Chain struct {
	Present      *anonymize.Partition
	Requirements []anonymize.Requirement
	Gate         Gate
	Recodings    []string // Local, FullDomain; none means Local
	Loss         LossModel
	// Work bounds the candidates of a stage: no more are worked out than go
	// into so many values, tuples times columns; 0 means DefaultWork, and no
	// more than 16. One always is.
	Work int
	// Eager has every stage compare its own ways, for an account of the query.
	// The last stage chooses for all in any case.
	Eager bool
}

// DefaultWork lets a table of 40,000 tuples and five columns compare two ways at
// the last stage of a query, and one of 10,000 all of them: a first answer stays
// a matter of tenths of a second (docs/decisions/candidates.md).
const DefaultWork = 7 << 16

// mostWays is the number of ways that are worked out at most by default.
const mostWays = 16

// LossModel measures the information loss of columns in a partition, in [0, 1].
type LossModel string

// The loss models. The empty one is Loss.
const (
	Loss              LossModel = "loss" // [Iyengar2002]
	NonUniformEntropy LossModel = "nue"  // [PrasserBild2016]
	ModificationRate  LossModel = "mr"   // [Chen]
)

func (m LossModel) of(p *anonymize.Partition, columns []int) float64 {
	switch m {
	case NonUniformEntropy:
		return p.EntropyLoss(columns)
	case ModificationRate:
		return p.Modified(columns)
	}
	return p.Loss(columns)
}

// UnknownAttributeError names a quasi-identifier that the table has not.
type UnknownAttributeError struct{ Attribute string }

func (e *UnknownAttributeError) Error() string {
	return fmt.Sprintf("the table has no quasi-identifier %s", e.Attribute)
}

// affordable is the number of ways that may be worked out.
func (c *Chain) affordable() int {
	table := c.Present.Table()
	// A small table has its price too.
	price := max(table.Tuples(), 4096) * len(table.Columns())
	if c.Work == 0 {
		return min(DefaultWork/price, mostWays)
	}
	return c.Work / price
}

// Defers implements [Material].
func (c *Chain) Defers() bool { return !c.Eager }

// columns finds the columns of attributes.
func (c *Chain) columns(attributes []string) ([]int, error) {
	columns := make([]int, len(attributes))
	for i, name := range attributes {
		if columns[i] = c.Present.Table().Column(name); columns[i] < 0 {
			return nil, &UnknownAttributeError{name}
		}
	}
	return columns, nil
}

// Assess implements [Material]. A combination that a refinement has been
// carried to its end for is settled: what it shows stays as it is.
func (c *Chain) Assess(_ context.Context, attributes []string, on *Outcome) (*Outcome, error) {
	columns, err := c.columns(attributes)
	if err != nil {
		return nil, err
	}
	p := c.Present
	if on != nil {
		p = on.Partition
	}
	if c.finished(p, columns) {
		return c.settled(p, columns), nil
	}
	o := &Outcome{}
	classes := p.Classes()
	for i, column := range columns {
		if p.IsExact(column) {
			continue
		}
		classes = classes.Exactly(column)
		subjects := classes.Subjects()
		o.Risk = RiskOf(subjects, c.Gate.K)
		if o.Source == nil && !c.Gate.Accepts(o.Risk) {
			o.Source = sourceOf(attributes[i], subjects, c.Gate.K)
		}
	}
	if o.Source != nil {
		return o, nil
	}
	exact, err := p.Exactly(columns, c.Requirements)
	var unmet *anonymize.UnmetError
	if errors.As(err, &unmet) {
		return o, nil
	}
	if err != nil {
		return nil, err
	}
	o.Feasible, o.Partition, o.Risk, o.Loss = true, exact, c.riskOf(exact), c.Loss.of(exact, columns)
	return o, nil
}

// finished says whether a combination is settled in every recoding of the chain.
func (c *Chain) finished(p *anonymize.Partition, columns []int) bool {
	return p.IsFinished(columns, c.Requirements, !slices.Contains(c.recodings(), Local))
}

// settled is the outcome of showing what is shown already.
func (c *Chain) settled(p *anonymize.Partition, columns []int) *Outcome {
	return &Outcome{
		Feasible: true, Settled: true, Partition: p, Risk: c.riskOf(p),
		Loss: c.Loss.of(p, columns),
	}
}

func (c *Chain) riskOf(p *anonymize.Partition) Risk {
	subjects := make([]uint32, p.Blocks())
	for block := range subjects {
		subjects[block] = uint32(p.Subjects(uint32(block)))
	}
	return RiskOf(subjects, c.Gate.K)
}

func sourceOf(attribute string, subjects []uint32, k int) *Source {
	s := &Source{Attribute: attribute, Smallest: int(slices.Min(subjects))}
	for _, n := range subjects {
		if int(n) < k {
			s.Classes++
			s.Subjects += int(n)
		}
	}
	return s
}

// DeIdentify implements [Material].
func (c *Chain) DeIdentify(ctx context.Context, attributes []string, way Way) (*Outcome, error) {
	columns, err := c.columns(attributes)
	if err != nil {
		return nil, err
	}
	generalized, err := c.columns(way.Generalized)
	if err != nil {
		return nil, err
	}
	exact := slices.DeleteFunc(slices.Clone(columns), func(column int) bool {
		return slices.Contains(generalized, column)
	})
	shown, err := c.refine(ctx, exact, generalized, way.Recoding, c.Requirements)
	var unmet *anonymize.UnmetError
	if errors.As(err, &unmet) {
		return c.withheld(columns, exact), nil
	}
	if err != nil {
		return nil, err
	}
	return &Outcome{
		Feasible: true, Partition: shown, Risk: c.riskOf(shown),
		Loss: c.Loss.of(shown, columns),
	}, nil
}

// refine shows some columns as they are and generalizes others as little as
// the requirements allow. Where the gate is on the average of risks, blocks
// grow until it is met.
func (c *Chain) refine(ctx context.Context, exact, generalized []int, recoding string,
	requirements []anonymize.Requirement,
) (*anonymize.Partition, error) {
	return c.passing(requirements, func(requirements []anonymize.Requirement) (*anonymize.Partition,
		error,
	) {
		p, err := c.Present.Exactly(exact, requirements)
		switch {
		case err != nil || len(generalized) == 0:
		case recoding == FullDomain:
			p, err = c.fullDomain(ctx, p, generalized, requirements)
		default:
			p, err = p.Refine(ctx, anonymize.Refinement{Columns: generalized, Requirements: requirements})
		}
		var unmet *anonymize.UnmetError
		if errors.As(err, &unmet) && len(exact) == 0 && len(requirements) > len(c.Requirements) &&
			c.Gate.Accepts(c.riskOf(c.Present)) {
			return c.Present, nil // there is no room left below the gate
		}
		return p, err
	})
}

// passing makes a partition that passes the gate. Where that is on the average of
// risks, blocks grow until it is met.
func (c *Chain) passing(
	requirements []anonymize.Requirement, made func([]anonymize.Requirement) (*anonymize.Partition,
		error),
) (*anonymize.Partition, error) {
	for k := c.Gate.K; ; {
		p, err := made(requirements)
		if err != nil || c.Gate.Measure != "average" || c.Gate.Accepts(c.riskOf(p)) {
			return p, err
		}
		// Blocks of 1/threshold subjects have that average at most, and of more
		// subjects than there are, there are none: the loop ends. It steps up
		// in proportion to what is too much, a little short of it.
		tooMuch := c.riskOf(p).Average / c.Gate.Threshold
		k = max(k+k/4+1, int(min(0.8*tooMuch*float64(k), math.MaxInt32)))
		requirements = append(slices.Clone(c.Requirements), anonymize.BlockK{K: k})
	}
}

// withheld is the outcome of a way that is not feasible: even if all that it
// generalizes were withheld, showing the rest would have this risk.
func (c *Chain) withheld(columns, exact []int) *Outcome {
	classes := c.Present.Classes()
	for _, column := range exact {
		classes = classes.Exactly(column)
	}
	return &Outcome{
		Risk: RiskOf(classes.Subjects(), c.Gate.K),
		Loss: float64(len(columns)-len(exact)) / float64(len(columns)),
	}
}

// Shown implements [Material].
func (c *Chain) Shown(attributes []string, in *Outcome) Values {
	columns, err := c.columns(attributes)
	if err != nil {
		return Values{} // the stage has been assessed: it cannot be
	}
	p := in.Partition
	return Values{
		Risk: RiskOf(p.ShownAlike(columns), c.Gate.K), Loss: c.Loss.of(p, columns),
		Modified: p.Modified(columns),
	}
}

// Everything implements [Material].
func (c *Chain) Everything(in *Outcome) Values {
	all := make([]int, len(in.Partition.Table().Columns()))
	for i := range all {
		all[i] = i
	}
	return Values{
		Risk: c.riskOf(in.Partition), Loss: c.Loss.of(in.Partition, all),
		Modified: in.Partition.Modified(all),
	}
}

package ecg

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// Assessment is what the tailor found and decided for one table of a query.
type Assessment struct {
	Table  string
	Stages []Stage
	// Recoding is the way the table is shown: that of the last choice, "none"
	// where all is shown as it is.
	Recoding string
	Gate     Gate
	// Partition is what the audience is shown with this query's answer.
	Partition *anonymize.Partition
	// Loss is that of the query's quasi-identifiers, LossOf that of each, and
	// LossOfAll what generalizing all of them at once would have lost.
	Loss      float64
	LossOf    map[string]float64
	LossOfAll float64
	// Score is the running sum of local risks after the last stage.
	Score float64
}

// RiskError says that a stage cannot be brought below the threshold. It names
// columns, and no values.
type RiskError struct {
	Stage    string
	Source   *Source
	Possible int
}

func (e *RiskError) Error() string {
	return fmt.Sprintf("none of %d ways to de-identify stage %s meets the threshold", e.Possible, e.Stage)
}

// Tailor assesses the stages of one branch of a query in order ([Chen] §4):
// where showing a stage's combination as it is would raise the risk above the
// gate, it compares the ways to de-identify it and takes the one with the least
// loss, then the lowest risk, then the fewest attributes, then the first name.
// A choice may revise those of earlier stages of the query; the last one
// applies to all of them.
//
// The outcome never loses more than generalizing all of the query's attributes
// at once. score is the sum of local risks before the query. It fails with a
// [*RiskError] where no way meets the gate.
func Tailor(ctx context.Context, m Material, stages []Stage, gate Gate, score float64) (*Assessment, error) {
	t := &tailoring{Material: m, gate: gate}
	for i := range stages {
		if err := t.stage(ctx, &stages[i]); err != nil {
			return nil, err
		}
	}
	if err := t.settle(ctx, stages); err != nil {
		return nil, err
	}
	a := &Assessment{
		Stages: stages, Recoding: "none", Gate: gate, LossOf: make(map[string]float64), Score: score, LossOfAll: t.lossOfAll,
	}
	if t.way != nil {
		a.Recoding = t.way.Recoding
	}
	for i := range stages {
		s := &stages[i]
		a.Table = s.Table
		s.Local, s.Aggregate = m.Shown(s.Attributes, t.now)
		s.RiskAfter, s.Loss = s.Aggregate.Risk.Highest, s.Local.Loss
		a.Score += s.Local.Risk.Highest
		s.Score = a.Score
		if i == len(stages)-1 {
			a.Loss = s.Loss
			for _, name := range s.Attributes {
				alone, _ := m.Shown([]string{name}, t.now)
				a.LossOf[name] = alone.Loss
			}
		}
	}
	if t.now != nil {
		a.Partition = t.now.Partition
	}
	return a, nil
}

// tailoring is the state between stages.
type tailoring struct {
	Material
	gate      Gate
	now       *Outcome // of the stages so far
	way       *Way     // the last choice, nil while all is shown as it is
	all       *Outcome // of generalizing all attributes of the latest stage
	lossOfAll float64
}

// stage assesses one stage and acts on it.
func (t *tailoring) stage(ctx context.Context, s *Stage) error {
	before, err := t.Assess(ctx, s.Attributes, t.now)
	if err != nil {
		return err
	}
	s.Before, s.RiskBefore, s.Source = before.Risk, before.Risk.Highest, before.Source
	t.all = nil
	if before.Feasible && t.gate.Accepts(before.Risk) {
		s.Action = ActionNone
		if before.Settled {
			s.Action = ActionKept
			t.way = nil
		}
		t.now, t.lossOfAll = before, before.Loss
		return nil
	}
	s.Action = ActionGeneralize
	ways, possible := t.Ways(s.Attributes)
	s.Considered, s.Possible = len(ways), possible
	outcomes := make([]*Outcome, len(ways))
	best := -1
	for i, way := range ways {
		if outcomes[i], err = t.DeIdentify(ctx, s.Attributes, way); err != nil {
			return err
		}
		o := outcomes[i]
		acceptable := o.Feasible && t.gate.Accepts(o.Risk)
		s.Candidates = append(s.Candidates, Candidate{
			Attributes: way.Generalized, Recoding: way.Recoding, Risk: o.Risk.Highest, Loss: o.Loss, Feasible: acceptable,
		})
		if acceptable && (best < 0 || better(&s.Candidates[i], &s.Candidates[best])) {
			best = i
		}
		if acceptable && t.all == nil && len(way.Generalized) == len(ways[0].Generalized) {
			t.all, t.lossOfAll = o, o.Loss
		}
	}
	if best < 0 {
		return &RiskError{Stage: s.Name, Source: s.Source, Possible: possible}
	}
	s.Candidates[best].Chosen = true
	t.now, t.way = outcomes[best], &ways[best]
	slices.SortStableFunc(s.Candidates, func(x, y Candidate) int {
		if x.Feasible != y.Feasible {
			return cmp.Compare(y.rank(), x.rank())
		}
		return compare(&x, &y)
	})
	return nil
}

// settle looks back where the last stage could keep the choice of an earlier
// one: generalizing all attributes together may lose less.
func (t *tailoring) settle(ctx context.Context, stages []Stage) error {
	if t.way == nil || t.all != nil || len(stages) == 0 {
		return nil
	}
	last := &stages[len(stages)-1]
	ways, possible := t.Ways(last.Attributes)
	all, err := t.DeIdentify(ctx, last.Attributes, ways[0])
	if err != nil {
		return err
	}
	if !all.Feasible || !t.gate.Accepts(all.Risk) {
		return nil
	}
	t.lossOfAll = all.Loss
	if all.Loss < t.now.Loss {
		last.Action, last.Considered, last.Possible = ActionGeneralize, 1, possible
		last.Candidates = []Candidate{{
			Attributes: ways[0].Generalized, Recoding: ways[0].Recoding, Risk: all.Risk.Highest, Loss: all.Loss, Feasible: true, Chosen: true,
		}}
		t.now, t.way = all, &ways[0]
	}
	return nil
}

func (c *Candidate) rank() int {
	if c.Feasible {
		return 1
	}
	return 0
}

func better(x, y *Candidate) bool { return compare(x, y) < 0 }

// compare puts the candidate that loses less first, then that of lower risk,
// of fewer attributes, and of the first name.
func compare(x, y *Candidate) int {
	return cmp.Or(
		cmp.Compare(x.Loss, y.Loss), cmp.Compare(x.Risk, y.Risk),
		cmp.Compare(len(x.Attributes), len(y.Attributes)),
		strings.Compare(strings.Join(x.Attributes, ","), strings.Join(y.Attributes, ",")),
		strings.Compare(x.Recoding, y.Recoding))
}

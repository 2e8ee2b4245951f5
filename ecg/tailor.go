package ecg

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// Assessment is what the tailor found and decided for one table of a query.
type Assessment struct {
	Table  string
	Stages []Stage
	// Recoding is the way the table is shown: that of the last choice, "kept"
	// where an earlier query has settled it, "none" where all is shown as it is.
	Recoding string
	Gate     Gate
	// Partition is what the audience is shown with this query's answer.
	Partition *anonymize.Partition
	// Loss is that of the query's quasi-identifiers, LossOf that of each, and
	// LossOfAll what generalizing all of them at once would have lost.
	Loss      float64
	LossOf    map[string]float64
	LossOfAll float64
	// CoarseOf is the share of the rows whose value of an attribute is not the table's,
	// and Estimated are the attributes that the query compares, joins or groups by, where an
	// estimate places rows: EstimatedOf them, which are fewer where a range takes whole labels.
	CoarseOf    map[string]float64
	Estimated   []string
	EstimatedOf map[string]float64
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
	return fmt.Sprintf("none of %d ways to de-identify stage %s meets the threshold", e.Possible,
		e.Stage)
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
func Tailor(
	ctx context.Context, m Material, stages []Stage, gate Gate, score float64,
) (*Assessment, error) {
	t := &tailoring{Material: m, gate: gate}
	for i := range stages {
		if err := t.stage(ctx, &stages[i], i == len(stages)-1); err != nil {
			return nil, err
		}
	}
	a := &Assessment{
		Stages: stages, Recoding: "none", Gate: gate, LossOf: make(map[string]float64), Score: score,
		LossOfAll: t.lossOfAll,
	}
	switch {
	case t.way != nil:
		a.Recoding = t.way.Recoding
	case t.now != nil && t.now.Settled && t.now.Loss > 0:
		a.Recoding = ActionKept
	}
	var everything Values
	if len(stages) > 0 {
		everything = m.Everything(t.now)
	}
	for i := range stages {
		s := &stages[i]
		a.Table = s.Table
		s.Local, s.Aggregate = m.Shown(s.Attributes, t.now), everything
		s.RiskAfter, s.Loss = s.Aggregate.Risk.Highest, s.Local.Loss
		a.Score += s.Local.Risk.Highest
		s.Score = a.Score
		if i == len(stages)-1 {
			a.Loss = s.Loss
			for _, name := range s.Attributes {
				a.LossOf[name] = m.Shown([]string{name}, t.now).Loss
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
	lossOfAll float64  // of generalizing all attributes of the latest stage
}

// stage assesses one stage and acts on it. At the last one it looks back: where
// something has been generalized, another way may lose less by now.
func (t *tailoring) stage(ctx context.Context, s *Stage, last bool) error {
	before, err := t.Assess(ctx, s.Attributes, t.now)
	if err != nil {
		return err
	}
	s.Before, s.RiskBefore, s.Source = before.Risk, before.Risk.Highest, before.Source
	if !t.acceptable(before) {
		s.Action = ActionGeneralize
		if !last && t.Defers() {
			return nil // the last stage, whose combination holds this one, chooses for it
		}
		return t.choose(ctx, s, last, nil)
	}
	t.now, t.lossOfAll, s.Action = before, before.Loss, ActionNone
	switch {
	case before.Settled:
		s.Action, t.way = ActionKept, nil
	case last && t.way != nil:
		return t.choose(ctx, s, last, before)
	}
	return nil
}

func (t *tailoring) acceptable(o *Outcome) bool { return o.Feasible && t.gate.Accepts(o.Risk) }

// choose works out the ways to de-identify a stage and takes the best. present
// is what it is to be better than, nil where something has to be done. Before
// the last stage only the ways that generalize everything are worked out, if
// they serve: the choice is made again.
func (t *tailoring) choose(ctx context.Context, s *Stage, last bool, present *Outcome) error {
	ways, possible := t.Whole(s.Attributes)
	whole := len(ways)
	outcomes, err := t.workOut(ctx, s.Attributes, ways)
	if err == nil && (last || !t.acceptable(outcomes[0])) {
		others := t.Others(ctx, s.Attributes, outcomes[0])
		var more []*Outcome
		more, err = t.workOut(ctx, s.Attributes, others)
		ways, outcomes = append(ways, others...), append(outcomes, more...)
	}
	if err != nil {
		return err
	}
	s.Considered, s.Possible = len(ways), possible
	best, all := -1, false
	for i, way := range ways {
		o := outcomes[i]
		acceptable := t.acceptable(o)
		s.Candidates = append(s.Candidates, Candidate{
			Attributes: way.Generalized, Recoding: way.Recoding, Risk: o.Risk.Highest, Loss: o.Loss,
			Feasible: acceptable,
		})
		if acceptable && (best < 0 || compare(&s.Candidates[i], &s.Candidates[best]) < 0) {
			best = i
		}
		if acceptable && !all && i < whole {
			all, t.lossOfAll = true, o.Loss
		}
	}
	switch {
	case present != nil && (best < 0 || outcomes[best].Loss >= present.Loss):
	case best < 0:
		return &RiskError{Stage: s.Name, Source: s.Source, Possible: possible}
	default:
		s.Action, s.Candidates[best].Chosen = ActionGeneralize, true
		t.now, t.way = outcomes[best], &ways[best]
	}
	slices.SortStableFunc(s.Candidates, func(x, y Candidate) int {
		return cmp.Or(cmp.Compare(y.rank(), x.rank()), compare(&x, &y))
	})
	return nil
}

// workOut finds the outcomes of some ways, as many at a time as there are
// processors.
func (t *tailoring) workOut(
	ctx context.Context, attributes []string, ways []Way,
) ([]*Outcome, error) {
	outcomes := make([]*Outcome, len(ways))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, way := range ways {
		group.Go(func() (err error) {
			outcomes[i], err = t.DeIdentify(ctx, attributes, way)
			return err
		})
	}
	return outcomes, group.Wait()
}

func (c *Candidate) rank() int {
	if c.Feasible {
		return 1
	}
	return 0
}

// compare puts the candidate that loses less first, then that of lower risk,
// of fewer attributes, and of the first name.
func compare(x, y *Candidate) int {
	return cmp.Or(
		cmp.Compare(x.Loss, y.Loss), cmp.Compare(x.Risk, y.Risk),
		cmp.Compare(len(x.Attributes), len(y.Attributes)),
		strings.Compare(strings.Join(x.Attributes, ","), strings.Join(y.Attributes, ",")),
		strings.Compare(x.Recoding, y.Recoding))
}

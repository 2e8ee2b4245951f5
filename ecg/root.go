package ecg

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// RootPlan says what a root partition is made for.
type RootPlan struct {
	Requirements []anonymize.Requirement // that each block meets
	Gate         Gate                    // that the whole passes
	Recoding     string                  // Local or FullDomain
	// Workload are the combinations of attributes that are expected to be asked
	// for; nil means that all attributes matter alike. An attribute that the table
	// has not counts for nothing.
	Workload [][]string
	Progress func(share float64) // as of [anonymize.RootPlan]; nil for nobody
}

// MakeRoot partitions a table along all its columns as finely as a plan allows.
// Whatever is shown of the table is a coarsening of it. It fails with an
// [*anonymize.UnmetError] where not even everybody together meets the
// requirements.
func MakeRoot(ctx context.Context, t *anonymize.Table, plan RootPlan) (*anonymize.Partition, error) {
	c := &Chain{Present: anonymize.NewPartition(t), Requirements: plan.Requirements, Gate: plan.Gate}
	if plan.Recoding == FullDomain {
		return c.refine(ctx, nil, allColumns(c.Present), FullDomain, plan.Requirements)
	}
	return c.passing(plan.Requirements, func(requirements []anonymize.Requirement) (*anonymize.Partition, error) {
		return anonymize.Root(ctx, t, anonymize.RootPlan{Requirements: requirements, Weights: plan.weights(t), Progress: plan.Progress})
	})
}

// RefineRoot cuts within the blocks of a partition as far as a plan allows.
func RefineRoot(ctx context.Context, p *anonymize.Partition, plan RootPlan) (*anonymize.Partition, error) {
	c := &Chain{Present: p, Requirements: plan.Requirements, Gate: plan.Gate}
	return c.refine(ctx, nil, allColumns(p), plan.Recoding, plan.Requirements)
}

// weights are those of the table's columns for the workload.
func (plan RootPlan) weights(t *anonymize.Table) []float64 {
	var w anonymize.Workload
	for _, combination := range plan.Workload {
		if columns := columnsAmong(t, combination); columns != nil {
			w = append(w, columns)
		}
	}
	if w == nil {
		return nil
	}
	return w.Weights(t)
}

// columnsAmong finds those attributes of a combination that a table has.
func columnsAmong(t *anonymize.Table, combination []string) []int {
	var columns []int
	for _, name := range combination {
		if column := t.Column(name); column >= 0 && !slices.Contains(columns, column) {
			columns = append(columns, column)
		}
	}
	return columns
}

func allColumns(p *anonymize.Partition) []int {
	all := make([]int, len(p.Table().Columns()))
	for i := range all {
		all[i] = i
	}
	return all
}

// Root is a partition that was made before anybody asked. Queries are assessed on
// it, and change nothing. It is safe for concurrent use.
type Root struct {
	Partition *anonymize.Partition
	Gate      Gate
	Recoding  string

	mu     sync.Mutex
	stored map[string]asStored // combination -> risk if it were shown as it is
	shown  map[string]Values   // combination -> what it is shown by
}

// asStored is the risk of a combination in the table as it is, and where it comes
// from.
type asStored struct {
	Risk
	source *Source // nil where no class has fewer than k subjects
}

// NewRoot is a root for queries to be assessed on.
func NewRoot(p *anonymize.Partition, gate Gate, recoding string) *Root {
	return &Root{Partition: p, Gate: gate, Recoding: recoding, stored: make(map[string]asStored), shown: make(map[string]Values)}
}

// Assess tells what the stages of a query come to: the risk that each combination
// would have if it were shown as it is, and the risk and the loss with which it is
// shown. It depends on the root alone, not on who asks or what was asked before.
// It fails with an [*UnknownAttributeError].
func (r *Root) Assess(stages []Stage) (*Assessment, error) {
	a := &Assessment{Stages: stages, Recoding: "none", Gate: r.Gate, LossOf: make(map[string]float64), Partition: r.Partition}
	everything := r.values(allColumns(r.Partition))
	chain := &Chain{Present: r.Partition}
	for i := range stages {
		s := &stages[i]
		a.Table = s.Table
		columns, err := chain.columns(s.Attributes)
		if err != nil {
			return nil, err
		}
		stored := r.asStored(columns)
		s.Before, s.Source = stored.Risk, stored.source
		s.RiskBefore, s.Local, s.Aggregate = s.Before.Highest, r.values(columns), everything
		s.RiskAfter, s.Loss = everything.Risk.Highest, s.Local.Loss
		a.Score += s.Local.Risk.Highest
		s.Score = a.Score
		s.Action = ActionNone
		if s.Local.Modified > 0 {
			s.Action, a.Recoding = ActionGeneralize, r.Recoding
			s.Candidates = []Candidate{{
				Attributes: chain.inexact(s.Attributes, r.Partition), Recoding: r.Recoding,
				Risk: s.Local.Risk.Highest, Loss: s.Loss, Feasible: true, Chosen: true,
			}}
			s.Considered, s.Possible = 1, 1
		}
		a.Loss = s.Loss
	}
	if len(stages) > 0 {
		for _, name := range stages[len(stages)-1].Attributes {
			a.LossOf[name] = r.values([]int{r.Partition.Table().Column(name)}).Loss
		}
	}
	return a, nil
}

// combination is a name for a set of columns.
func combination(columns []int) string { return fmt.Sprint(slices.Sorted(slices.Values(columns))) }

// values are what a combination is shown by.
func (r *Root) values(columns []int) Values {
	set := combination(columns)
	r.mu.Lock()
	v, known := r.shown[set]
	r.mu.Unlock()
	if known {
		return v
	}
	p := r.Partition
	v = Values{Risk: RiskOf(p.ShownAlike(columns), r.Gate.K), Loss: p.Loss(columns), Modified: p.Modified(columns)}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shown[set] = v
	return v
}

// asStored measures a combination in the order in which the query uses it. Where
// its first columns, or two of it, are known to set somebody apart, so does all of
// it: the other measures are then those of the part, below which the whole's are
// not.
func (r *Root) asStored(columns []int) asStored {
	r.mu.Lock()
	stored, known := r.stored[fmt.Sprint(columns)]
	for i := 0; !known && i < len(columns); i++ {
		for j := range i {
			if stored = r.stored[combination([]int{columns[i], columns[j]})]; stored.Highest == 1 {
				known = true
				break
			}
		}
	}
	r.mu.Unlock()
	if known {
		return stored
	}
	stored = asStored{}
	t := r.Partition.Table()
	classes := t.Everyone()
	for _, c := range columns {
		classes = classes.Exactly(c)
		subjects := classes.Subjects()
		stored.Risk = RiskOf(subjects, r.Gate.K)
		if stored.source == nil && stored.Highest > 1/float64(r.Gate.K) {
			stored.source = sourceOf(t.Columns()[c].Name, subjects, r.Gate.K)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stored[fmt.Sprint(columns)] = stored
	return stored
}

// Warm measures what most queries ask: every column, every two, and all, until the
// context ends.
func (r *Root) Warm(ctx context.Context) {
	all := allColumns(r.Partition)
	r.values(all)
	for i := range all {
		for j := range i {
			if ctx.Err() != nil {
				return
			}
			r.asStored([]int{j, i})
		}
		r.asStored(all[i : i+1])
		r.values(all[i : i+1])
	}
}

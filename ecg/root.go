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
func MakeRoot(
	ctx context.Context, t *anonymize.Table, plan RootPlan,
) (*anonymize.Partition, error) {
	c := &Chain{Present: anonymize.NewPartition(t), Requirements: plan.Requirements, Gate: plan.Gate}
	if plan.Recoding == FullDomain {
		return c.refine(ctx, nil, allColumns(c.Present), FullDomain, plan.Requirements)
	}
	return c.passing(plan.Requirements, func(requirements []anonymize.Requirement) (
		*anonymize.Partition, error,
	) {
		return anonymize.Root(ctx, t, anonymize.RootPlan{
			Requirements: requirements,
			Weights:      plan.weights(t), Progress: plan.Progress,
		})
	})
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

// Shown is what a release shows of its quasi-identifiers: classes of rows with the
// same labels. It is not changed once a [Root] has it.
type Shown struct {
	Attributes []string
	Labels     [][]Label  // [attribute][number]
	Classes    [][]uint32 // [attribute][class] -> number of the label
	Rows       []uint32   // of each class
	Subjects   []uint32   // distinct ones of each class
	Blocks     int
	MinBlock   int // subjects of the smallest block
}

// Label is what is lost where a cell shows it.
type Label struct {
	Share float64 // of the domain, in [0, 1]
	Exact bool    // it is the value
	// Low and High are its ends, as of [Coordinate], where it is Bounded.
	Low, High float64
	Bounded   bool
}

// loss is the mean share of their domains that the cells of some attributes cover,
// and modified the share of those cells that are not exact.
func (s *Shown) loss(attributes []int) (loss, modified float64) {
	rows := 0.0
	for _, a := range attributes {
		for class, number := range s.Classes[a] {
			n := float64(s.Rows[class])
			rows += n
			label := s.Labels[a][number]
			loss += n * label.Share
			if !label.Exact {
				modified += n
			}
		}
	}
	if rows == 0 {
		return 0, 0
	}
	return loss / rows, modified / rows
}

// alike are the subjects of the classes that some attributes by themselves make of
// the rows. Where subjects have several rows, a class is taken to have no more than
// the largest of those that it is put together from: the risk is an upper bound.
func (s *Shown) alike(attributes []int, oneRow bool) []uint32 {
	// Keys of all attributes together would take several times the memory.
	numberOf, numbers := make([]uint32, len(s.Rows)), min(1, len(s.Rows))
	for _, a := range attributes {
		numbers = anonymize.Refine(numberOf, func(class int) uint32 { return s.Classes[a][class] })
	}
	subjects := make([]uint32, numbers)
	for class, number := range numberOf {
		if oneRow {
			subjects[number] += s.Subjects[class]
		} else {
			subjects[number] = max(subjects[number], s.Subjects[class])
		}
	}
	return subjects
}

// Root is a partition that was made before anybody asked, as its release shows it.
// Queries are assessed on it, and change nothing. It is safe for concurrent use.
type Root struct {
	Shown    *Shown
	Gate     Gate
	Recoding string

	stored map[string]StoredRisk
	oneRow bool
	mu     sync.Mutex
	shown  map[string]Values // combination -> what it is shown by
	// labelled are the rows of each label, by attribute, where that has been asked for.
	labelled [][]float64
}

// NewRoot is a root for queries to be assessed on. Of the table as it is, the risk of
// some combinations is known.
func NewRoot(s *Shown, gate Gate, recoding string, stored []StoredRisk) *Root {
	r := &Root{
		Shown: s, Gate: gate, Recoding: recoding, stored: make(map[string]StoredRisk),
		oneRow: true, shown: make(map[string]Values),
	}
	for class := range s.Rows {
		r.oneRow = r.oneRow && s.Rows[class] == s.Subjects[class]
	}
	for _, of := range stored {
		r.stored[fmt.Sprint(slices.Sorted(slices.Values(of.Attributes)))] = of
	}
	return r
}

// Assess tells what the stages of a query come to: the risk that each combination
// would have if it were shown as it is, and the risk and the loss with which it is
// shown. It depends on the root alone, not on who asks or what was asked before.
// It fails with an [*UnknownAttributeError].
func (r *Root) Assess(stages []Stage) (*Assessment, error) {
	a := &Assessment{
		Stages: stages, Recoding: "none", Gate: r.Gate, LossOf: make(map[string]float64),
		CoarseOf: make(map[string]float64), EstimatedOf: make(map[string]float64),
	}
	everything := r.values(r.all())
	for i := range stages {
		s := &stages[i]
		a.Table = s.Table
		attributes, err := r.places(s.Attributes)
		if err != nil {
			return nil, err
		}
		s.Before, s.Source = r.asStored(s.Attributes)
		s.RiskBefore, s.Local, s.Aggregate = s.Before.Highest, r.values(attributes), everything
		s.RiskAfter, s.Loss = everything.Risk.Highest, s.Local.Loss
		a.Score += s.Local.Risk.Highest
		s.Score = a.Score
		s.Action = ActionNone
		if s.Local.Modified > 0 {
			s.Action, a.Recoding = ActionGeneralize, r.Recoding
			s.Candidates = []Candidate{{
				Attributes: r.inexact(s.Attributes), Recoding: r.Recoding,
				Risk: s.Local.Risk.Highest, Loss: s.Loss, Feasible: true, Chosen: true,
			}}
			s.Considered, s.Possible = 1, 1
		}
		a.Loss = s.Loss
	}
	if len(stages) > 0 {
		last := stages[len(stages)-1]
		for _, name := range last.Attributes {
			at := slices.Index(r.Shown.Attributes, name)
			of := r.values([]int{at})
			a.LossOf[name], a.CoarseOf[name] = of.Loss, of.Modified
			placed := 0.0
			if slices.Contains(last.Exactly, name) {
				placed = of.Modified
			} else if bounds := last.Bounds[name]; of.Modified > 0 && bounds != nil {
				placed = r.placed(at, bounds)
			}
			if placed > 0 {
				a.Estimated, a.EstimatedOf[name] = append(a.Estimated, name), placed
			}
		}
	}
	return a, nil
}

// Loss is that of some attributes, which the root has; of all where none is named.
func (r *Root) Loss(attributes ...string) float64 {
	places, err := r.places(attributes)
	if err != nil {
		return 0
	}
	if len(places) == 0 {
		places = r.all()
	}
	return r.values(places).Loss
}

// places finds the attributes of a combination.
func (r *Root) places(attributes []string) ([]int, error) {
	places := make([]int, len(attributes))
	for i, name := range attributes {
		if places[i] = slices.Index(r.Shown.Attributes, name); places[i] < 0 {
			return nil, &UnknownAttributeError{name}
		}
	}
	return places, nil
}

func (r *Root) all() []int {
	all := make([]int, len(r.Shown.Attributes))
	for i := range all {
		all[i] = i
	}
	return all
}

// inexact are those attributes of a combination of which some cell is generalized.
func (r *Root) inexact(attributes []string) []string {
	out := []string{}
	for _, name := range attributes {
		if r.values([]int{slices.Index(r.Shown.Attributes, name)}).Modified > 0 {
			out = append(out, name)
		}
	}
	return out
}

// values are what a combination is shown by.
func (r *Root) values(attributes []int) Values {
	set := fmt.Sprint(slices.Sorted(slices.Values(attributes)))
	r.mu.Lock()
	v, known := r.shown[set]
	r.mu.Unlock()
	if known {
		return v
	}
	v.Risk = RiskOf(r.Shown.alike(attributes, r.oneRow), r.Gate.K)
	v.Loss, v.Modified = r.Shown.loss(attributes)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shown[set] = v
	return v
}

// asStored is the risk of a combination, in the order in which the query uses it, if
// it were shown as the table had it when the root was made; and where that comes
// from. Where only parts of the combination have been measured, it is that of the
// riskiest part, below which the whole's is not.
func (r *Root) asStored(attributes []string) (risk Risk, source *Source) {
	for i := range attributes {
		part := r.riskiest(attributes[:i+1])
		if source == nil && part.Classes > 0 {
			source = &Source{
				Attribute: attributes[i], Classes: part.Classes, Subjects: part.Subjects,
				Smallest: part.Smallest,
			}
		}
		risk = part.Risk
	}
	return risk, source
}

// riskiest is the part of a combination that has been measured and sets most people
// apart.
func (r *Root) riskiest(attributes []string) StoredRisk {
	if whole, known := r.stored[fmt.Sprint(slices.Sorted(slices.Values(attributes)))]; known {
		return whole
	}
	var worst StoredRisk
	for _, part := range r.stored {
		if !slices.ContainsFunc(part.Attributes, func(name string) bool {
			return !slices.Contains(attributes, name)
		}) && part.exceeds(worst) {
			worst = part
		}
	}
	return worst
}

// Warm measures what most queries ask: every attribute, and all of them.
func (r *Root) Warm() {
	all := r.all()
	r.values(all)
	for i := range all {
		r.values(all[i : i+1])
	}
}

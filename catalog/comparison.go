package catalog

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/ecg"
)

// Bounds of a [Comparison]: about so many rows are looked at, for so long.
const (
	ComparedRows   = 5_000
	comparisonTime = 15 * time.Second
)

// Comparison is what models of the sensitive columns would cost: each alone beside k, on the same
// sample of the subjects. A sample loses more than the whole.
type Comparison struct {
	Subjects     int
	Share        float64 // of the subjects that were looked at
	Loss         float64 // by k alone
	Alternatives []Alternative
	Skipped      int // alternatives for which there was no time
}

// Alternative is a model that a policy has, or could have.
type Alternative struct {
	Requirement
	Asked bool
	Unmet bool // all together do not meet it
	// Loss is that of a root. Withheld is the share of the rows whose value would not be shown,
	// under blind cuts, which lose what k loses.
	Loss, Withheld float64
}

// steps are parameters of each model from loose to strict; of a model that a policy has not, the
// second one is proposed.
var steps = map[string][]float64{
	"l_diversity": {2, 3, 4, 5, 6, 8}, "entropy_l_diversity": {2, 3, 4, 5, 6, 8},
	"recursive_l_diversity": {2, 3, 4, 5, 6, 8}, "alpha": {0.7, 0.5, 0.4, 0.3, 0.2, 0.1},
	"t_closeness": {0.5, 0.3, 0.2, 0.1, 0.05}, "beta_likeness": {4, 2, 1, 0.5},
	"enhanced_beta_likeness": {4, 2, 1, 0.5}, "delta_disclosure": {3, 2, 1, 0.5},
}

// proposedC is the c of recursive diversity where a policy has none.
const proposedC = 2

// alternatives are the models of a column that are compared: those that the policy asks for, each
// beside the next stricter parameter, and one of each other kind.
func (r *Relation) alternatives(column *Column) []Alternative {
	var out []Alternative
	for _, model := range []string{
		"l_diversity", "entropy_l_diversity", "recursive_l_diversity", "alpha", "t_closeness",
		"beta_likeness", "enhanced_beta_likeness", "delta_disclosure",
	} {
		at := slices.IndexFunc(r.Requirements, func(q Requirement) bool {
			return q.Column == column.Name && q.Model == model
		})
		if at < 0 {
			q := Requirement{Model: model, Column: column.Name, Parameter: steps[model][1]}
			switch {
			case model == "recursive_l_diversity":
				q.C = proposedC
			case model == "t_closeness" && slices.Contains([]string{"N", "D", "T"}, column.Category):
				q.Distance = "ordered"
			}
			out = append(out, Alternative{Requirement: q})
			continue
		}
		asked := r.Requirements[at]
		out = append(out, Alternative{Requirement: asked, Asked: true})
		stricter := asked
		for _, step := range steps[model] {
			falls := steps[model][0] > steps[model][1]
			if falls && step < asked.Parameter || !falls && step > asked.Parameter {
				stricter.Parameter = step
				out = append(out, Alternative{Requirement: stricter})
				break
			}
		}
	}
	return out
}

// NewComparison makes roots of a sample of the table under models of its sensitive columns, those
// that have one first. r need not be in force, see [NewForecast].
func NewComparison(ctx context.Context, tx pgx.Tx, r *Relation) (*Comparison, error) {
	until := time.Now().Add(comparisonTime)
	c := &Comparison{}
	columns := slices.Clone(r.required())
	for i := range r.Columns {
		k := &r.Columns[i]
		if k.Class != Sensitive || slices.Contains(columns, k.Name) {
			continue
		}
		has, err := HasOrder(ctx, tx, k)
		if err != nil {
			return nil, err
		}
		if has {
			columns = append(columns, k.Name)
		}
	}
	all := *r
	all.Requirements = nil
	for _, name := range columns {
		of := r.alternatives(r.Column(name))
		c.Alternatives = append(c.Alternatives, of...)
		for _, a := range of {
			all.Requirements = append(all.Requirements, a.Requirement)
		}
	}
	f := &Forecast{}
	name := pgx.Identifier{r.Schema, r.Name}.Sanitize()
	if err := tx.QueryRow(ctx, "SELECT count(*) FROM "+name).Scan(&f.Rows); err != nil {
		return nil, fmt.Errorf("count the rows: %w", err)
	}
	e, err := f.read(ctx, tx, &all, name, ComparedRows)
	if err != nil || e.table == nil {
		return nil, err
	}
	c.Subjects, c.Share = f.Subjects, f.Share
	plain := *r
	plain.Requirements = nil
	root, err := ecg.MakeRoot(ctx, e.table, plain.rootPlan(everyone, e))
	if err != nil {
		return nil, err
	}
	c.Loss = root.Loss(everyColumn(e.table))
	e.refer(&all)
	for i := range c.Alternatives {
		if time.Now().After(until) {
			c.Skipped = len(c.Alternatives) - i
			c.Alternatives = c.Alternatives[:i]
			break
		}
		if err := c.Alternatives[i].measure(ctx, plain, e, root); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// HasOrder says whether values of a column can be told to be equal, as tailor.require asks.
func HasOrder(ctx context.Context, tx pgx.Tx, k *Column) (has bool, err error) {
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_catalog.pg_opclass o
		JOIN pg_catalog.pg_am m ON m.oid = o.opcmethod AND m.amname = 'btree'
		WHERE o.opcdefault AND (o.opcintype = pg_catalog.to_regtype($1)
			OR $2 = 'S' AND o.opcintype = 'pg_catalog.text'::pg_catalog.regtype
			OR $2 = 'A' AND o.opcintype = 'pg_catalog.anyarray'::pg_catalog.regtype))`,
		k.Type, k.Category).Scan(&has)
	return has, err
}

// measure makes the root under a model, if it would be another one than by k alone.
func (a *Alternative) measure(
	ctx context.Context, r Relation, e *cohort, plain *anonymize.Partition,
) error {
	r.Requirements = []Requirement{a.Requirement}
	if r.BlindCuts {
		a.Loss = plain.Loss(everyColumn(e.table))
		a.Withheld = withheldShare(&r, e, plain)[a.Column]
		return nil
	}
	root, err := ecg.MakeRoot(ctx, e.table, r.rootPlan(everyone, e))
	if unmet := (*anonymize.UnmetError)(nil); asUnmet(err, &unmet) {
		a.Unmet = true
		return nil
	}
	if err != nil {
		return err
	}
	a.Loss = root.Loss(everyColumn(e.table))
	return nil
}

// everyColumn are the places of a table's columns.
func everyColumn(t *anonymize.Table) []int {
	var all []int
	for i := range t.Columns() {
		all = append(all, i)
	}
	return all
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// recoding is one way to recode a table.
type recoding struct {
	name string
	// foreign are the flags that it has no use for. They are refused, so that
	// nobody relies on what is not done.
	foreign []string
	run     func(ctx context.Context, o *anonymizeOptions, p *anonymize.Problem,
		stderr io.Writer) (*recoded, error)
}

var recodings = []recoding{
	{"full_domain", nil, recodeFullDomain},
	{"local", []string{"search", "base-partition"}, recodeLocal},
	{"cell", []string{"search", "base-partition", "time-limit"}, recodeCells},
}

// recoded is a table after recoding.
type recoded struct {
	label func(row, column int) string
	// suppressed says of a row that it belongs to no class that meets the models;
	// nil where no row can be.
	suppressed func(row int) bool
	found      time.Time // when the search ended; after it, results are measured
	// report has what depends on the kind of recoding.
	report anonymizeReport
}

func parseRecoding(name string, given []string) (*recoding, error) {
	i := slices.IndexFunc(recodings, func(r recoding) bool { return r.name == name })
	if i < 0 {
		return nil, &anonymize.ProblemError{
			What:   fmt.Sprintf("unknown recoding %q", name),
			Remedy: "use full_domain, local or cell",
		}
	}
	for _, f := range recodings[i].foreign {
		if slices.Contains(given, f) {
			return nil, &anonymize.ProblemError{
				What: fmt.Sprintf("--%s has no meaning in %s recoding", f, name), Remedy: "leave it out",
			}
		}
	}
	return &recodings[i], nil
}

// recodeFullDomain shows each column at one level, and suppresses rows.
func recodeFullDomain(
	ctx context.Context, o *anonymizeOptions, p *anonymize.Problem, stderr io.Writer,
) (*recoded, error) {
	progress, done := progressLine(stderr)
	r, err := anonymize.Search(ctx, p, anonymize.Options{Algorithm: o.algorithm, Progress: progress})
	done()
	if err != nil {
		return nil, err
	}
	found := time.Now()
	t, err := anonymize.Transform(p, r.Levels)
	if err != nil {
		return nil, err
	}
	return &recoded{t.Label, t.Suppressed, found, anonymizeReport{
		Search: o.search, LatticeSize: r.Lattice, NodesChecked: r.Checked, NodesRolledUp: r.RolledUp,
		Optimal: r.Optimal, Levels: r.Levels, Loss: t.Score, LossPerAttribute: t.ByColumn,
		SuppressedRows: t.SuppressedRows, EquivalenceClasses: t.Classes, MinClassSize: t.SmallestClass,
	}}, nil
}

// recodeLocal shows each block of a partition under labels of its own.
func recodeLocal(
	ctx context.Context, o *anonymizeOptions, p *anonymize.Problem, _ io.Writer,
) (*recoded, error) {
	if err := o.onlyLoss(p); err != nil {
		return nil, err
	}
	requirements, err := anonymize.BlockRequirements(p)
	if err != nil {
		return nil, err
	}
	columns := everyColumn(p.Table)
	part, err := anonymize.NewPartition(p.Table).
		Refine(ctx, anonymize.Refinement{Columns: columns, Requirements: requirements})
	if err != nil {
		return nil, err
	}
	found := time.Now()
	label := func(tuple uint32, column int) string { return part.Label(part.BlockOf()[tuple], column) }
	report := anonymizeReport{Search: "none"}
	for _, c := range columns {
		report.LossPerAttribute = append(report.LossPerAttribute, part.Loss([]int{c}))
	}
	return newRecoded(p.Table, label, found, report, o), nil
}

// recodeCells shows values as they are, save for cells that are withheld.
func recodeCells(
	_ context.Context, o *anonymizeOptions, p *anonymize.Problem, _ io.Writer,
) (*recoded, error) {
	if err := o.onlyLoss(p); err != nil {
		return nil, err
	}
	k, err := leastSubjects(p)
	if err != nil {
		return nil, err
	}
	columns := everyColumn(p.Table)
	cells, err := anonymize.SuppressCells(p.Table, [][]int{columns}, k-1)
	if err != nil {
		return nil, err
	}
	found := time.Now()
	withheld := cells.WithheldCells(columns)
	report := anonymizeReport{
		Search: "none", SuppressedRows: cells.WithheldRows(),
		SuppressedCells: &withheld,
	}
	if float64(report.SuppressedRows) > o.limit*float64(p.Table.Rows()) {
		return nil, fmt.Errorf("%d rows would be withheld in every column; raise --suppression-limit "+
			"or lower k", report.SuppressedRows)
	}
	for _, c := range columns {
		report.LossPerAttribute = append(report.LossPerAttribute, cells.ModificationRate([]int{c}))
	}
	return newRecoded(p.Table, cells.Label, found, report, o), nil
}

// newRecoded completes the report of a table that is recoded by tuples.
func newRecoded(
	t *anonymize.Table, label func(tuple uint32, column int) string, found time.Time,
	report anonymizeReport, o *anonymizeOptions,
) *recoded {
	report.Loss = o.mean.Of(report.LossPerAttribute)
	report.EquivalenceClasses, report.MinClassSize = anonymize.ShownClasses(t, label)
	tuples := t.TupleOfRow()
	return &recoded{func(row, column int) string {
		return label(tuples[row], column)
	}, nil, found, report}
}

// onlyLoss asserts that nothing but loss is to be minimized.
func (o *anonymizeOptions) onlyLoss(p *anonymize.Problem) error {
	if _, ok := p.Quality.(anonymize.Loss); ok {
		return nil
	}
	return &anonymize.ProblemError{
		What:   fmt.Sprintf("%s recoding does not minimize %v", o.recoding.name, p.Quality),
		Remedy: "use --quality loss",
	}
}

// leastSubjects is the k that the models ask for. All others are refused, as
// single cells are withheld for k alone.
func leastSubjects(p *anonymize.Problem) (int, error) {
	requirements, err := anonymize.BlockRequirements(p)
	if err != nil {
		return 0, err
	}
	k := 0
	for _, r := range requirements {
		size, ok := r.(anonymize.BlockK)
		if !ok {
			return 0, &anonymize.ProblemError{
				What: fmt.Sprintf("cell recoding does not know %v", r), Remedy: "leave out the model, or use " +
					"local or full_domain",
			}
		}
		k = max(k, size.K)
	}
	if k < 2 {
		return 0, &anonymize.ProblemError{
			What:   fmt.Sprintf("k = %d withholds nothing", k),
			Remedy: "give k of at least 2",
		}
	}
	return k, nil
}

func everyColumn(t *anonymize.Table) []int {
	columns := make([]int, len(t.Columns()))
	for c := range columns {
		columns[c] = c
	}
	return columns
}

// recode runs a recoding within the time limit.
func (o *anonymizeOptions) recode(
	ctx context.Context, p *anonymize.Problem, stderr io.Writer,
) (*recoded, error) {
	limited := ctx
	if o.timeLimit > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, o.timeLimit)
		defer cancel()
	}
	r, err := o.recoding.run(limited, o, p, stderr)
	switch {
	case ctx.Err() != nil: // the user, not the limit
		return nil, context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("nothing found within %v; allow more time", o.timeLimit)
	}
	return r, err
}

// recodingHelp is what --help says of the kinds beside the flags.
const recodingHelp = `
recodings:
  full_domain  shows each column at one level of its hierarchy and suppresses
               whole rows within --suppression-limit, with the least --quality
  local        cuts the rows into blocks that each hold k subjects and meet
               --require; each block has labels of its own and no row is
               suppressed. Loss is the share of the domain that a label covers
  cell         withholds single cells (*). A combination of the values of all
               quasi-identifiers is unsafe if fewer than k subjects show it, a
               withheld cell being a value like others; cells are withheld
               until none is. Loss is the share of cells withheld; rows withheld
               in every column count as suppressed
A row that full_domain suppresses shows * in every column, sensitive and kept
ones too. Columns that no flag names are left out, and listed.
Of --require, cell takes highest_risk alone; local takes all but the risks of
the whole table (average_risk, sample_uniqueness, records_at_risk) and, with
--subject, alpha_k.
Of local and cell the report has levels null, search "none", lattice_size 0 and
optimal false; of cell, suppressed_cells as well.
`

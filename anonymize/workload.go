package anonymize

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Workload is a list of queries, each the quasi-identifiers it asks for, by
// position in a table.
type Workload [][]int

// WorkloadError says why a workload cannot be read. Line counts from 1.
type WorkloadError struct {
	Line   int
	Reason string
}

func (e *WorkloadError) Error() string {
	return fmt.Sprintf("workload line %d: %s", e.Line, e.Reason)
}

// ReadWorkload reads one query a line, names of columns separated by commas.
// Empty lines and lines that start with # are skipped. It fails with a
// *[WorkloadError] on a column that the table does not have or that a query
// names twice, and without any query.
func ReadWorkload(r io.Reader, t *Table) (Workload, error) {
	var w Workload
	lines := bufio.NewScanner(r)
	line := 0
	for lines.Scan() {
		line++
		text := strings.TrimSpace(lines.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		var query []int
		for name := range strings.SplitSeq(text, ",") {
			c := t.Column(strings.TrimSpace(name))
			if c < 0 {
				return nil, &WorkloadError{line, fmt.Sprintf("no quasi-identifier %q", strings.TrimSpace(name))}
			}
			if slices.Contains(query, c) {
				return nil, &WorkloadError{line, fmt.Sprintf("column %q is named twice", t.columns[c].Name)}
			}
			query = append(query, c)
		}
		w = append(w, query)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read workload: %w", err)
	}
	if len(w) == 0 {
		return nil, errors.New("the workload has no query")
	}
	return w, nil
}

// shares are the shares that the columns have in the mean loss of the queries:
// 1 together, 0 for a column that none names.
func (w Workload) shares(t *Table) (shares []float64, named int) {
	shares = make([]float64, len(t.columns))
	for _, query := range w {
		for _, c := range query {
			if shares[c] == 0 {
				named++
			}
			shares[c] += 1 / float64(len(query)) / float64(len(w))
		}
	}
	return shares, named
}

// Seed is the refinement that prepares a chain for the workload: along all the
// columns it names, each with the weight that it has in the mean loss of the
// queries (on average 1). No room is kept for columns that it does not name.
func (w Workload) Seed(t *Table, requirements []Requirement) Refinement {
	shares, named := w.shares(t)
	r := Refinement{Requirements: requirements, Outlook: make([]float64, len(shares))}
	for c, share := range shares {
		if share > 0 {
			r.Columns = append(r.Columns, c)
			r.Weights = append(r.Weights, share*float64(named))
		}
	}
	return r
}

// unnamed is the weight of a column that a workload does not name, beside an
// average of 1: it is shown where that costs the others next to nothing.
const unnamed = 0.02

// Weights are those of a [RootPlan] that prepares a root for the workload: for
// each column of the table the weight that it has in the mean loss of the
// queries, on average 1 over those that it names.
func (w Workload) Weights(t *Table) []float64 {
	weights, named := w.shares(t)
	for c, share := range weights {
		weights[c] = max(share*float64(named), unnamed)
	}
	return weights
}

// WorkloadReport says what a chain of queries lost, and how well it kept the
// subjects apart.
type WorkloadReport struct {
	Queries  []QueryReport `json:"queries"`
	MeanLoss float64       `json:"mean_loss"`
	// Smallest block, in subjects, and number of blocks of the common
	// refinement: rows that agree in every label of every answer.
	SmallestBlock int `json:"smallest_block"`
	Blocks        int `json:"blocks"`
}

// QueryReport is what one query of a chain lost.
type QueryReport struct {
	Columns []string `json:"columns"`
	Loss    float64  `json:"loss"`
}

// Run answers the queries as one chain that starts from p. prepare turns the
// columns of a query into a refinement. The common refinement is computed from
// the text of the released labels, not from the partition.
func (w Workload) Run(
	ctx context.Context, p *Partition, prepare func(columns []int) Refinement,
) (*WorkloadReport, error) {
	return w.answer(p.Table(), func(query []int) (*Partition, error) {
		next, err := p.Refine(ctx, prepare(query))
		p = next
		return next, err
	})
}

// Read answers the queries from the labels of a root, all of the same one.
func (w Workload) Read(root *Partition) *WorkloadReport {
	report, _ := w.answer(root.Table(), func([]int) (*Partition, error) { return root, nil })
	return report
}

// answer reports on the queries, each answered from the partition that show
// gives for its columns.
func (w Workload) answer(
	t *Table, show func(query []int) (*Partition, error),
) (*WorkloadReport, error) {
	report := &WorkloadReport{}
	linked := NewCommonRefinement(t.Rows())
	for i, query := range w {
		p, err := show(query)
		if err != nil {
			return nil, fmt.Errorf("query %d: %w", i+1, err)
		}
		q := QueryReport{Loss: p.Loss(query)}
		for _, c := range query {
			q.Columns = append(q.Columns, t.columns[c].Name)
			linked.Add(func(row int) string { return p.Label(p.blockOf[t.tupleOfRow[row]], c) })
		}
		report.Queries = append(report.Queries, q)
		report.MeanLoss += q.Loss / float64(len(w))
	}
	report.SmallestBlock, report.Blocks = linked.Smallest(func(row int) uint32 {
		return t.Subject(uint32(row))
	})
	return report, nil
}

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

func (e *WorkloadError) Error() string { return fmt.Sprintf("workload line %d: %s", e.Line, e.Reason) }

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

// Seed is the refinement that prepares a chain for the workload: along all the
// columns it names, each with the weight that it has in the mean loss of the
// queries (on average 1). No room is kept for columns that it does not name.
func (w Workload) Seed(t *Table, requirements []Requirement) Refinement {
	weights := make([]float64, len(t.columns))
	named := 0.0
	for _, query := range w {
		for _, c := range query {
			if weights[c] == 0 {
				named++
			}
			weights[c] += 1 / float64(len(query)) / float64(len(w))
		}
	}
	r := Refinement{Requirements: requirements, Outlook: make([]float64, len(weights))}
	for c, share := range weights {
		if share > 0 {
			r.Columns = append(r.Columns, c)
			r.Weights = append(r.Weights, share*named)
		}
	}
	return r
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
func (w Workload) Run(ctx context.Context, p *Partition, prepare func(columns []int) Refinement) (*WorkloadReport, error) {
	t := p.Table()
	report := &WorkloadReport{}
	linked := NewCommonRefinement(t.Rows())
	for i, query := range w {
		next, err := p.Refine(ctx, prepare(query))
		if err != nil {
			return nil, fmt.Errorf("query %d: %w", i+1, err)
		}
		p = next
		q := QueryReport{Loss: p.Loss(query)}
		for _, c := range query {
			q.Columns = append(q.Columns, t.columns[c].Name)
			linked.Add(func(row int) string { return p.Label(p.blockOf[t.tupleOfRow[row]], c) })
		}
		report.Queries = append(report.Queries, q)
		report.MeanLoss += q.Loss / float64(len(w))
	}
	report.SmallestBlock, report.Blocks = linked.Smallest(func(row int) uint32 { return t.Subject(uint32(row)) })
	return report, nil
}

package fidelity

import (
	"math"
	"slices"
	"strings"
)

// TableSummary is what a report tells of one table, of the queries that read it. It holds no true
// figure: errors are rounded to a thousandth, and told where there are leastCells at least, since
// the error of one cell and its released value would give the true one.
type TableSummary struct {
	Queries  int        `json:"queries"`
	Compared int        `json:"compared"`
	Coverage *float64   `json:"coverage"` // share of the groups; nil for none
	Cells    int        `json:"cells"`    // the large ones
	Median   *float64   `json:"median"`   // of their errors, as P90 nil for too few
	P90      *float64   `json:"p90"`
	Columns  []ColumnOf `json:"columns"`
	Refused  []Refusal  `json:"refused"`
}

// ColumnOf is a quasi-identifier of the table that queries use.
type ColumnOf struct {
	Name    string   `json:"name"`
	Queries int      `json:"queries"`
	Share   float64  `json:"share"` // of all error, as in Cost
	Median  *float64 `json:"median"`
	P90     *float64 `json:"p90"`
}

// Refusal is a query that releases do not answer.
type Refusal struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

const leastCells = 10

// Tables sums a report up by the tables that its queries read.
func (r *Report) Tables() map[string]*TableSummary {
	by := make(map[string][]Result)
	for _, q := range r.Queries {
		tables := slices.Clone(q.reads)
		for _, u := range q.Uses { // all that is known of one that was refused
			if !slices.Contains(tables, u.Table) {
				tables = append(tables, u.Table)
			}
		}
		for _, table := range tables {
			by[table] = append(by[table], q)
		}
	}
	out := make(map[string]*TableSummary)
	for table, queries := range by {
		of := &Report{Queries: queries}
		of.sumUp()
		out[table] = of.ofTable(table)
	}
	return out
}

func (r *Report) ofTable(table string) *TableSummary {
	s := &TableSummary{
		Queries: len(r.Queries), Compared: r.Summary.Outcomes[Compared],
		Coverage: rounded(r.Summary.Coverage, leastCells), Cells: r.Summary.Large.Cells,
		Median:  rounded(r.Summary.Large.Median, r.Summary.Large.Cells),
		P90:     rounded(r.Summary.Large.P90, r.Summary.Large.Cells),
		Columns: []ColumnOf{}, Refused: []Refusal{},
	}
	for _, c := range r.Columns {
		if c.Table == table {
			s.Columns = append(s.Columns, ColumnOf{
				c.Column, c.Queries, *rounded(&c.Share, leastCells),
				rounded(c.Median, c.cells.Cells), rounded(c.P90, c.cells.Cells),
			})
		}
	}
	for _, q := range r.Queries {
		if q.Outcome == Refused {
			s.Refused = append(s.Refused, Refusal{q.Name, q.Reason})
		}
	}
	slices.SortStableFunc(s.Refused, func(a, b Refusal) int {
		return strings.Compare(a.Reason, b.Reason)
	})
	return s
}

// rounded is nil for what stands for too few cells.
func rounded(v *float64, cells int) *float64 {
	if v == nil || cells < leastCells {
		return nil
	}
	out := math.Round(*v*1000) / 1000
	return &out
}

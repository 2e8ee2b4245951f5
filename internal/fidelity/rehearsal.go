package fidelity

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/internal/svgplot"
)

// AtK is how far off the answers would be with another k.
type AtK struct {
	K int `json:"k"`
	// Queries were compared: those that read one table, by its plain name, which can be
	// rehearsed.
	Queries int    `json:"queries"`
	Reason  string `json:"reason"` // why there are no figures, "" if there are
	Large   Cells  `json:"large"`
}

// Rehearse makes temporary tables in a session of the owner's that stand before protected
// tables, with what releases would show with another k, and names these tables
// (schema.table). A reason says why it cannot.
type Rehearse func(
	ctx context.Context, conn *pgx.Conn, k int,
) (tables []string, reason string, err error)

// AtOtherK runs the queries of a report that were compared on releases with each k, and adds
// the figures to the report. Queries that read several tables are left out, and those that name
// theirs with a schema or behind a view.
func (r *Runner) AtOtherK(ctx context.Context, report *Report, ks []int, rehearse Rehearse) error {
	rehearsal := r.tables
	rehearsal.conn = nil
	defer rehearsal.close()
	for _, k := range ks {
		conn, err := rehearsal.ready(ctx)
		if err != nil {
			return err
		}
		at := AtK{K: k}
		var tables []string
		if tables, at.Reason, err = rehearse(ctx, conn, k); err != nil {
			return err
		}
		for i := range report.Queries {
			q := &report.Queries[i]
			if at.Reason != "" || q.Outcome != Compared || len(q.reads) != 1 ||
				!slices.Contains(tables, q.reads[0]) {
				continue
			}
			compared, err := r.compareAt(ctx, &rehearsal, q)
			if err != nil {
				return err
			}
			if compared != nil {
				at.Queries++
				at.Large.addAll(&compared.Large)
			}
		}
		at.Large.sumUp()
		if at.Queries == 0 && at.Reason == "" {
			at.Reason = "no query reads one table that can be rehearsed"
		}
		report.AtK = append(report.AtK, at)
	}
	return nil
}

// compareAt compares a query's answer over temporary tables with that of the table, nil if it
// cannot.
func (r *Runner) compareAt(ctx context.Context, rehearsal *side, q *Result) (*Comparison, error) {
	statement, err := ReadStatement(q.SQL, func(name string) bool { return r.aggregates[name] })
	_, table, _ := strings.Cut(q.reads[0], ".")
	if err != nil || statement.Qualified || !slices.Contains(statement.Tables, table) {
		return nil, nil
	}
	truth, _, err := r.tables.run(ctx, q.SQL)
	if err == nil {
		var shown *Answer
		if shown, _, err = rehearsal.run(ctx, q.SQL); err == nil {
			if c, err := Compare(truth, shown, statement, r.AtLeast); err == nil {
				return c, nil
			}
			return nil, nil
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, nil
}

// plotAtK draws errors by k, an empty chart's text if there are none.
func (r *Report) plotAtK() (string, error) {
	median, high := svgplot.Line{Name: "median"}, svgplot.Line{Name: "90th percentile"}
	for _, at := range r.AtK {
		if at.Large.Median == nil {
			continue
		}
		median.Points = append(median.Points, [2]float64{float64(at.K), 100 * *at.Large.Median})
		high.Points = append(high.Points, [2]float64{float64(at.K), 100 * *at.Large.P90})
	}
	if len(median.Points) == 0 {
		return "", nil
	}
	var b strings.Builder
	chart := svgplot.Chart{
		Title: "Relative error by k", X: "k", Y: "error, %", Lines: []svgplot.Line{median, high},
	}
	err := chart.Write(&b)
	return b.String(), err
}

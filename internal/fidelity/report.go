package fidelity

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Note stands in every report.
const Note = "This report holds true figures of protected tables: keep it as you keep the tables."

// The outcomes of a query.
const (
	Compared      = "compared"
	NotComparable = "not_comparable" // both sides answer, and rows cannot be matched
	Refused       = "refused"        // the table answers, releases do not
	Failed        = "failed"         // PostgreSQL's error on the table, or on both sides
	Unprotected   = "unprotected"    // no protected table is read: not run
	SyntaxError   = "syntax_error"   // not run
	NoQuery       = "no_query"       // not run
)

var allOutcomes = []string{
	Compared, NotComparable, Refused, Failed, Unprotected, SyntaxError, NoQuery,
}

// Report is what tailor fidelity tells. Its JSON keys are documented in docs/policies.md.
type Report struct {
	Note      string    `json:"note"`
	Made      time.Time `json:"made"`
	Database  string    `json:"database"`
	Reader    string    `json:"reader"`
	AtLeast   float64   `json:"at_least"`
	TimeoutMS int64     `json:"statement_timeout_ms"`
	// Releases are those of the tables that the owner's role owns: what has changed since they were
	// copied counts as error.
	Releases []Release `json:"releases"`
	Summary  Summary   `json:"summary"`
	Columns  []Cost    `json:"columns"`
	Queries  []Result  `json:"queries"`
	AtK      []AtK     `json:"at_k,omitempty"`
}

// Release is what an audience is shown of a table.
type Release struct {
	Table    string    `json:"table"`
	Audience string    `json:"audience"`
	Copied   time.Time `json:"copied"`   // when the table was as it is shown
	Subjects int64     `json:"subjects"` // who are shown
	Waiting  int64     `json:"waiting"`  // who wait to be shown, to go, or to be shown as they are now
}

// Summary is over all queries that were compared. Large and Small pool their cells.
type Summary struct {
	Queries  int            `json:"queries"`
	Outcomes map[string]int `json:"outcomes"`
	Groups   Groups         `json:"groups"`
	// Coverage is the share of the groups of the true answers that the release has; nil if
	// there is none.
	Coverage *float64 `json:"coverage"`
	Large    Cells    `json:"large"`
	Small    Cells    `json:"small"`
}

// Use is a quasi-identifier that a query uses, and the first place where it acts: scan, join,
// group, projection or order. The place is "" if the query was not planned and names the column.
type Use struct {
	Table  string `json:"table"`
	Column string `json:"column"`
	Place  string `json:"place"`
}

// Failure is an error of PostgreSQL or of Tailor.
type Failure struct {
	SQLState string `json:"sqlstate"`
	Message  string `json:"message"`
	Hint     string `json:"hint"`
}

// Result is what became of a query.
type Result struct {
	Number       int         `json:"number"`
	Line         int         `json:"line"`
	Name         string      `json:"name"`
	SQL          string      `json:"sql"`
	Outcome      string      `json:"outcome"`
	Reason       string      `json:"reason"` // "" if compared
	Uses         []Use       `json:"uses"`
	TrueMS       float64     `json:"true_ms"`
	ReleaseMS    float64     `json:"release_ms"`
	TrueError    *Failure    `json:"true_error"`
	ReleaseError *Failure    `json:"release_error"`
	Comparison   *Comparison `json:"comparison"` // nil if not compared

	reads []string // protected tables
}

// failed words which side failed.
func (r *Result) failed() string {
	switch {
	case r.ReleaseError == nil:
		return "on the table: " + r.TrueError.Message
	case r.TrueError == nil:
		return "on the release: " + r.ReleaseError.Message
	}
	return "on both sides: " + r.ReleaseError.Message
}

// Cost is what a quasi-identifier has to do with errors.
type Cost struct {
	Table  string `json:"table"`
	Column string `json:"column"`
	// Queries use the column: Compared of them were compared, Refused refused.
	Queries  int `json:"queries"`
	Compared int `json:"compared"`
	Refused  int `json:"refused"`
	// Share of all error: the mean error of the large cells of each query is divided evenly
	// among the quasi-identifiers that the query uses. 0 if there is no error.
	Share float64 `json:"share"`
	// Median and P90 are over the large cells of the queries that use the column.
	Median *float64 `json:"median"`
	P90    *float64 `json:"p90"`
	// Missing groups of these queries, without the small ones.
	Missing int `json:"missing"`

	cells Cells
}

// sumUp computes what is over all queries.
func (r *Report) sumUp() {
	s := &r.Summary
	s.Queries, s.Outcomes = len(r.Queries), make(map[string]int)
	for _, outcome := range allOutcomes {
		s.Outcomes[outcome] = 0
	}
	for i := range r.Queries {
		q := &r.Queries[i]
		s.Outcomes[q.Outcome]++
		if c := q.Comparison; c != nil {
			s.Groups.add(c.Groups)
			s.Large.addAll(&c.Large)
			s.Small.addAll(&c.Small)
		}
	}
	s.Large.sumUp()
	s.Small.sumUp()
	if s.Groups.True > 0 {
		share := float64(s.Groups.Matched) / float64(s.Groups.True)
		s.Coverage = &share
	}
	r.Columns = costs(r.Queries)
}

// costs lists the quasi-identifiers that queries use, the one with the greatest share of the
// error first.
func costs(queries []Result) []Cost {
	out := []Cost{}
	total := 0.0
	for i := range queries {
		q := &queries[i]
		for _, u := range q.Uses {
			at := slices.IndexFunc(
				out,
				func(c Cost) bool { return c.Table == u.Table && c.Column == u.Column },
			)
			if at < 0 {
				at = len(out)
				out = append(out, Cost{Table: u.Table, Column: u.Column})
			}
			c := &out[at]
			c.Queries++
			if q.Outcome == Refused {
				c.Refused++
			}
			if q.Comparison == nil {
				continue
			}
			c.Compared++
			c.Missing += q.Comparison.Groups.Missing - q.Comparison.Groups.MissingSmall
			c.cells.addAll(&q.Comparison.Large)
			if mean := q.Comparison.Large.Mean; mean != nil {
				c.Share += *mean / float64(len(q.Uses))
				total += *mean / float64(len(q.Uses))
			}
		}
	}
	for i := range out {
		out[i].cells.sumUp()
		out[i].Median, out[i].P90 = out[i].cells.Median, out[i].cells.P90
		if total > 0 {
			out[i].Share /= total
		}
	}
	slices.SortFunc(out, func(a, b Cost) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(b.Refused, a.Refused),
			strings.Compare(a.Table, b.Table), strings.Compare(a.Column, b.Column))
	})
	return out
}

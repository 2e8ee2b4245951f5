package fidelity

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"
)

// WriteText writes the report for a terminal.
func (r *Report) WriteText(w io.Writer) error {
	p := &page{}
	p.line("%s\n", r.Note)
	s := &r.Summary
	p.line(
		"%s as %s is shown it: %d queries, %s",
		shown(r.Database),
		shown(r.Reader),
		s.Queries,
		outcomes(s.Outcomes),
	)
	p.line("cells of at least %g people: %s", r.AtLeast, figures(&s.Large))
	p.line("smaller cells: %s", figures(&s.Small))
	p.line("groups: %s\n", coverage(s.Groups))
	p.releases(r.Releases)
	p.queries(r)
	p.columns(r.Columns)
	p.atK(r.AtK)
	p.reasons(r.Queries)
	p.worst(r.Queries)
	_, err := io.WriteString(w, p.String())
	return err
}

// page collects text.
type page struct{ strings.Builder }

func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// table writes aligned rows, cells parted by tabs.
func (p *page) table(header string, rows []string) {
	t := tabwriter.NewWriter(p, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, header)
	for _, row := range rows {
		fmt.Fprintln(t, row)
	}
	_ = t.Flush() // a Builder takes everything
	p.line("")
}

// releases says of when releases are: what has changed since counts as error.
func (p *page) releases(releases []Release) {
	for _, r := range releases {
		p.line("%s is shown as of %s, %d people; %d wait to be shown as they are", shown(r.Table),
			r.Copied.Local().Format("2006-01-02 15:04"), r.Subjects, r.Waiting)
	}
	if releases != nil {
		p.line("")
	}
}

// textName is how much of a query's name stands in a table.
const textName = 36

func (p *page) queries(r *Report) {
	var rows []string
	for i := range r.Queries {
		q := &r.Queries[i]
		row := fmt.Sprintf(
			"%d\t%s\t%s",
			q.Number,
			shown(shortened(q.Name, textName)),
			strings.ReplaceAll(q.Outcome, "_", " "),
		)
		if c := q.Comparison; c != nil {
			row += fmt.Sprintf(
				"\t%d/%d\t%d\t%d\t%s\t%s\t%s\t%d\t%s",
				c.Groups.Matched,
				c.Groups.True,
				c.Groups.Extra,
				c.Large.Cells,
				percent(c.Large.Median),
				percent(c.Large.P90),
				percent(c.Large.Max),
				c.Small.Cells,
				percent(c.Small.Median),
			)
		}
		rows = append(rows, row)
	}
	p.table("#\tQUERY\tOUTCOME\tGROUPS\tEXTRA\tCELLS\tMEDIAN\t90 %\tMAX\tSMALL\tMEDIAN", rows)
}

func (p *page) columns(columns []Cost) {
	if len(columns) == 0 {
		return
	}
	var rows []string
	for _, c := range columns {
		rows = append(
			rows,
			fmt.Sprintf(
				"%s.%s\t%s\t%d\t%d\t%s\t%s\t%d",
				shown(c.Table),
				shown(c.Column),
				percent(&c.Share),
				c.Queries,
				c.Refused,
				percent(c.Median),
				percent(c.P90),
				c.Missing,
			),
		)
	}
	p.table("COLUMN\tOF THE ERROR\tQUERIES\tREFUSED\tMEDIAN\t90 %\tGROUPS MISSING", rows)
}

// atK lists the errors with other k.
func (p *page) atK(list []AtK) {
	if len(list) == 0 {
		return
	}
	var rows []string
	for _, at := range list {
		rows = append(rows, fmt.Sprintf("%d\t%d\t%d\t%s\t%s\t%s\t%s", at.K, at.Queries, at.Large.Cells,
			percent(at.Large.Median), percent(at.Large.P90), percent(at.Large.Max), at.Reason))
	}
	p.table("K\tQUERIES\tCELLS\tMEDIAN\t90 %\tMAX\t", rows)
}

// reasons says why queries were not compared.
func (p *page) reasons(queries []Result) {
	for i := range queries {
		q := &queries[i]
		if q.Outcome == Compared {
			continue
		}
		p.line("query %d, line %d: %s", q.Number, q.Line, shown(q.why()))
	}
}

// why is the SQLSTATE and the reason that a query was not compared.
func (r *Result) why() string {
	failure := r.ReleaseError
	if failure == nil {
		failure = r.TrueError
	}
	if failure == nil || failure.SQLState == "" {
		return r.Reason
	}
	text := failure.SQLState + " " + r.Reason
	if failure.Hint != "" {
		text += "; " + failure.Hint
	}
	return text
}

// worst lists the worst large cells of each query.
func (p *page) worst(queries []Result) {
	var rows []string
	for i := range queries {
		if c := queries[i].Comparison; c != nil {
			for _, w := range c.Large.Worst {
				rows = append(rows, fmt.Sprintf("%d\t%s\t%s\t%.6g\t%.6g\t%s", queries[i].Number,
					shown(strings.Join(w.Group, ", ")), shown(w.Measure), w.True, w.Release, percent(&w.Error)))
			}
		}
	}
	if rows != nil {
		p.line("")
		p.table("#\tWORST CELLS\tMEASURE\tTRUE\tRELEASE\tERROR", rows)
	}
}

// figures words the errors of cells.
func figures(c *Cells) string {
	text := "none compared"
	if c.Cells > 0 {
		text = fmt.Sprintf(
			"%d compared, error median %s, 90th percentile %s, max %s",
			c.Cells,
			percent(c.Median),
			percent(c.P90),
			percent(c.Max),
		)
	}
	if c.Undefined > 0 {
		text += fmt.Sprintf(
			"; %d without a relative error (true value 0, or NULL on one side)",
			c.Undefined,
		)
	}
	if c.Other > 0 {
		text += fmt.Sprintf("; %d of %d that are no numbers differ", c.Differing, c.Other)
	}
	return text
}

func coverage(g Groups) string {
	text := fmt.Sprintf("%d of %d true ones are in the release", g.Matched, g.True)
	if g.Missing > 0 {
		text += fmt.Sprintf(" (%d of %d missing are small)", g.MissingSmall, g.Missing)
	}
	text += fmt.Sprintf("; %d only in the release", g.Extra)
	if g.Extra > 0 {
		text += fmt.Sprintf(" (%d small)", g.ExtraSmall)
	}
	return text
}

func outcomes(counts map[string]int) string {
	var out []string
	for _, outcome := range allOutcomes {
		if n := counts[outcome]; n > 0 {
			out = append(out, fmt.Sprintf("%d %s", n, strings.ReplaceAll(outcome, "_", " ")))
		}
	}
	return strings.Join(out, ", ")
}

func percent(share *float64) string {
	if share == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100**share)
}

// shown keeps a text on one line, and from moving a terminal's cursor.
func shown(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '�'
		}
		return r
	}, strings.Join(strings.Fields(s), " "))
}

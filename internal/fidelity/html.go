package fidelity

import (
	_ "embed"
	"html/template"
	"io"
	"strings"

	"github.com/hiatus-tailor/tailor/internal/svgplot"
)

//go:embed report.html.tmpl
var reportHTML string

// WriteHTML writes the report as one page without scripts.
func (r *Report) WriteHTML(w io.Writer) error {
	t, err := template.New("fidelity").Funcs(template.FuncMap{
		"percent":  percent,
		"share":    func(v float64) string { return percent(&v) },
		"figures":  func(c Cells) string { return figures(&c) },
		"coverage": coverage,
		"outcomes": outcomes,
		"words":    func(s string) string { return strings.ReplaceAll(s, "_", " ") },
		"why":      func(r Result) string { return r.why() },
		"list":     func(names []string) string { return strings.Join(names, ", ") },
		"plot":     r.plot,
		"plotAtK": func() (template.HTML, error) {
			drawn, err := r.plotAtK()
			return template.HTML(drawn), err // its texts are escaped by svgplot
		},
	}).Parse(reportHTML)
	if err != nil {
		return err
	}
	return t.Execute(w, r)
}

// plot draws the errors of each query that was compared, "" if there are none.
func (r *Report) plot() (template.HTML, error) {
	median, high := svgplot.Line{
		Name: "median",
		Dots: true,
	}, svgplot.Line{
		Name: "90th percentile",
		Dots: true,
	}
	for i := range r.Queries {
		q := &r.Queries[i]
		if q.Comparison == nil || q.Comparison.Large.Median == nil {
			continue
		}
		median.Points = append(
			median.Points,
			[2]float64{float64(q.Number), 100 * *q.Comparison.Large.Median},
		)
		high.Points = append(high.Points, [2]float64{float64(q.Number), 100 * *q.Comparison.Large.P90})
	}
	if len(median.Points) == 0 {
		return "", nil
	}
	chart := svgplot.Chart{
		Title: "Relative error of each query",
		X:     "query",
		Y:     "error, %",
		Lines: []svgplot.Line{median, high},
	}
	var b strings.Builder
	err := chart.Write(&b)
	return template.HTML(b.String()), err // its texts are escaped by svgplot
}

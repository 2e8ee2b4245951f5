// Command values counts what can be computed from released values: relative errors of
// random COUNT queries over Adult, by values raked to margins and by other ways to read
// generalized labels. It prints the table and writes the section "Counts by released
// values" of docs/experiments.md with its plot.
//
//	go run ./internal/experiments/values -data DIR
//
// DIR is the folder of the reference data, see package refdata. Nothing depends on the
// machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/hiatus-tailor/tailor/internal/experiments/page"
	"github.com/hiatus-tailor/tailor/internal/svgplot"
)

func main() {
	data := flag.String("data", "", "folder of the reference data")
	docs := flag.String("docs", "docs", "folder to write to")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *data, *docs); err != nil {
		fmt.Fprintln(os.Stderr, "values:", err)
		os.Exit(1)
	}
}

const introduction = `## Counts by released values

1,000 random COUNT queries over Adult (30,162 people, seven quasi-identifiers) with one
to four conditions, each met by 0.1 to 10 % of the people: ranges of 1 to 20 years of
age, and values of the other columns. Relative error against the table, by

- *raked*: the values that a release shows, drawn once ([values](decisions/values.md));
- *even*: expected counts if each label is spread evenly over its leaves;
- *likelihood*: expected counts by the maximum-likelihood distribution of each column,
  estimated from the labels alone (EM, as if labels were coarse at random);
- *middle*: the middle of an age label; other labels stand for themselves alone;
- *Mondrian*: strict median cuts into ranges of leaves, spread evenly; a range of countries that
  begins with the one where nine of ten were born counts each alike.

All but the last read the same root. "≥ 50" are queries that 50 people meet or more.
`

func run(ctx context.Context, data, docs string) error {
	p := &page.Section{Name: "values", Docs: docs}
	p.Printf("%s", introduction)
	ks := []int{2, 5, 10, 20, 50}
	var rows [][]string
	var lines []svgplot.Line
	for _, k := range ks {
		results, err := measure(ctx, data, k)
		if err != nil {
			return err
		}
		for i, r := range results {
			row := []string{fmt.Sprint(k), r.name}
			for _, v := range []float64{r.all.mean, r.all.median, r.all.ninety, r.large.mean, r.large.median, r.large.ninety} {
				row = append(row, fmt.Sprintf("%.1f", 100*v))
			}
			rows = append(rows, row)
			if len(lines) <= i {
				lines = append(lines, svgplot.Line{Name: r.name})
			}
			lines[i].Points = append(lines[i].Points, [2]float64{float64(k), 100 * r.large.mean})
		}
	}
	p.Table([]string{"k", "by", "mean, %", "median, %", "90 %, %", "≥ 50: mean, %", "median, %", "90 %, %"}, rows)
	for _, row := range rows {
		fmt.Println(row)
	}
	err := p.Plot("values", &svgplot.Chart{Title: "Relative error of counts of at least 50 people", X: "k", Y: "mean error, %", Lines: lines, LogY: true})
	if err != nil {
		return err
	}
	return p.Write()
}

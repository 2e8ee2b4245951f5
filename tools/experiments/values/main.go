// Command values counts what can be computed from released values: relative errors of
// random COUNT queries over Adult and the demo, by values raked to margins and by other
// ways to read generalized labels. It prints the tables and writes the section "Counts by
// released values" of docs/experiments.md with its plots.
//
//	go run ./tools/experiments/values -data DIR
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

	"github.com/hiatus-tailor/tailor/internal/svgplot"
	"github.com/hiatus-tailor/tailor/tools/experiments/page"
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

Random COUNT queries over Adult (30,162 people, seven quasi-identifiers) and the demo
(50,000 patients, five): relative error against the table, mean / 90th percentile in
percent. In brackets, the least and the greatest of these over four workloads, each
answered by four draws of the values. Kinds of workloads:

- *values*: 400 queries with one to three conditions, each that a column has the value of
  some person; at least 50 people meet all. Births are asked for by calendar year;
- *ranges*: the same, with 1 to 20 years of age or birth;
- *mix*: 1,000 queries with one to four conditions about one person and ranges as before,
  which 0.1 to 10 % of the people meet; *mix, ≥ 50*: at least 50 people.

Ways to read what is released:

- *raked*: the values that a release shows, drawn once ([values](decisions/values.md));
- *even*: expected counts if each label is spread evenly over what it covers;
- *likelihood*: expected counts by the maximum-likelihood distribution of each column,
  estimated from the labels alone (EM, as if labels were coarse at random);
- *middle*: the middle of a label of ages or births; other labels stand for themselves alone;
- *full-domain*: the anonymized file of least loss that shows each column by one level of
  its hierarchy and suppresses at most 5 % of the rows, spread evenly;
- *Mondrian*: strict median cuts into ranges, spread evenly; a range of countries that
  begins with the one where nine of ten were born counts each alike.

All but the last two read the same root. For comparison:

- *bound*: how far the counts of tables that have the same labels and the same margins are
  from their mean. Tables are drawn at random by exchanging values of people whose labels
  cover both. If each such table is as likely to be the true one, no function of labels
  and margins errs less on average, with or without chance;
- *block*: each row shows the true value of some member of its block, in each column of
  another one. That is no function of labels and margins, see
  [values](decisions/values.md), What was considered.
`

func run(ctx context.Context, data, docs string) error {
	adult, err := adultDataset(data)
	if err != nil {
		return err
	}
	demo, err := demo()
	if err != nil {
		return err
	}
	p := &page.Section{Name: "values", Docs: docs}
	p.Printf("%s", introduction)
	for _, d := range []*dataset{adult, demo} {
		if err := report(ctx, p, d); err != nil {
			return err
		}
	}
	return p.Write()
}

// report writes what is about one table.
func report(ctx context.Context, p *page.Section, d *dataset) error {
	p.Printf("\n### %s\n", d.title)
	drawn := make([][]workload, len(kinds))
	for i := range kinds {
		for seed := range uint64(workloads) {
			drawn[i] = append(drawn[i], kinds[i].draw(d, seed+1))
		}
	}
	var lines []svgplot.Line
	head := []string{"k"}
	var rows [][]string
	for _, k := range []int{2, 5, 10, 20, 50} {
		results, err := measure(ctx, d, k, drawn)
		if err != nil {
			return err
		}
		row := []string{fmt.Sprint(k)}
		for i, r := range results {
			if len(lines) <= i {
				lines, head = append(lines, svgplot.Line{Name: r.name}), append(head, r.name)
			}
			lines[i].Points = append(lines[i].Points,
				[2]float64{float64(k), 100 * r.errors[mix].mean.middle})
			row = append(row, fmt.Sprintf("%.1f / %.1f", 100*r.errors[mix].mean.middle,
				100*r.errors[mix].ninety.middle))
		}
		rows = append(rows, row)
		if k == 5 {
			tabulate(p, results)
		}
	}
	p.Printf("The mix, of at least 50 people, by k:\n")
	p.Table(head, rows)
	for _, row := range rows {
		fmt.Println(row)
	}
	return p.Plot("values-"+d.name, &svgplot.Chart{
		Title: "Relative error of counts of at least 50 people, " + d.title, X: "k", Y: "mean error, %",
		Lines: lines, LogY: true,
	})
}

// tabulate writes a table of all kinds of queries for k = 5.
func tabulate(p *page.Section, results []result) {
	p.Printf("\nk = 5:\n")
	head := []string{"by"}
	for _, k := range kinds {
		head = append(head, k.name)
	}
	var rows [][]string
	for _, r := range results {
		row := []string{r.name}
		for _, e := range r.errors {
			row = append(row, e.mean.String()+" / "+e.ninety.String())
		}
		rows = append(rows, row)
		fmt.Println(row)
	}
	p.Table(head, rows)
}

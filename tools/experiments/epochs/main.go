// Command epochs measures releases that live on while people come and go: what newcomers'
// cohorts cost, how long newcomers wait and how many rows are of people who have left. It
// prints the table and writes the section "A release that lives on" of docs/experiments.md
// with its plot.
//
//	go run ./tools/experiments/epochs -data DIR
//
// DIR is the folder of the reference data, see package refdata. Nothing depends on the
// machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"

	"github.com/hiatus-tailor/tailor/internal/svgplot"
	"github.com/hiatus-tailor/tailor/tools/experiments/adult"
	"github.com/hiatus-tailor/tailor/tools/experiments/page"
)

func main() {
	data := flag.String("data", "", "folder of the reference data")
	docs := flag.String("docs", "docs", "folder to write to")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *data, *docs); err != nil {
		fmt.Fprintln(os.Stderr, "epochs:", err)
		os.Exit(1)
	}
}

// attributes are the quasi-identifiers.
var attributes = []string{
	"sex", "age", "race", "marital-status", "education", "native-country",
	"workclass",
}

const introduction = `## A release that lives on

Adult, 7 quasi-identifiers; 20,000 people, of whom 0.2 % leave and as many come with each of
100 copies; k = 5 decides who may go ([epochs](decisions/epochs.md)).

- *root for*: the k that blocks are made for; larger blocks let people go, and lose more;
- *cohorts of*: how many newcomers are partitioned by themselves;
- *shown*: all blocks of a cohort, or those that lose no more than so many times what the
  first root does, or that somebody is in who has waited for so many copies, while the others
  wait for better company;
- *loss*: in the end, and in relation to a root made at once over those who are there then;
- *waited*: copies, on average, those who wait still counted with the time that they have;
- *not shown*: the share of the people in the table who wait in the end;
- *left*: the share of rows that are of people who have left.
`

func run(ctx context.Context, data, docs string) error {
	p := &page.Section{Name: "epochs", Docs: docs}
	p.Printf("%s", introduction)
	table, err := adult.Read(data, attributes)
	if err != nil {
		return err
	}
	a := &people{columns: table.Columns(), leaves: make([][]uint32, len(attributes))}
	of := table.TupleOfRow()
	for _, row := range rand.New(rand.NewPCG(1, 2)).Perm(len(of)) {
		for c := range a.leaves {
			a.leaves[c] = append(a.leaves[c], table.Leaf(c, of[row]))
		}
	}
	var rows [][]string
	whole, fitting := svgplot.Line{Name: "whole cohorts"}, svgplot.Line{Name: "blocks that fit"}
	for _, least := range []int{5, 10, 20} {
		first, err := a.partition(ctx, everybody(start), least)
		if err != nil {
			return err
		}
		for _, r := range rulesFor(least) {
			o, err := simulate(ctx, a, first, r)
			if err != nil {
				return err
			}
			shown := "all"
			if r.fit > 0 {
				shown = fmt.Sprintf("≤ %g", r.fit)
				if r.copies > 0 {
					shown += fmt.Sprintf(", or %d copies", r.copies)
				}
			}
			row := []string{
				fmt.Sprint(least), fmt.Sprint(r.cohort), shown, fmt.Sprintf("%.3f",
					o.loss), fmt.Sprintf("%.2f", o.relative),
				fmt.Sprintf("%.1f", o.waited), fmt.Sprintf("%.1f %%",
					100*o.waiting), fmt.Sprintf("%.1f %%", 100*o.stale),
			}
			fmt.Println(row)
			rows = append(rows, row)
			if least > 5 {
				continue
			}
			line := &whole
			if r.fit > 0 {
				line = &fitting
			}
			line.Points = append(line.Points, [2]float64{o.waited, o.relative})
		}
	}
	p.Table([]string{
		"root for", "cohorts of", "shown", "loss", "of a root at once", "waited",
		"not shown", "left",
	}, rows)
	fitting.Dots = true
	err = p.Plot("epochs", &svgplot.Chart{
		Title: "What newcomers cost, k = 5", X: "copies waited, mean", Y: "loss, of a root made at once",
		Lines: []svgplot.Line{whole, fitting},
	})
	if err != nil {
		return err
	}
	return p.Write()
}

func rulesFor(least int) (out []rule) {
	for _, cohort := range []int{100, 250, 500, 1000} {
		out = append(out, rule{root: least, cohort: cohort})
	}
	if least > 5 {
		return out
	}
	for _, fit := range []float64{2, 4, 6, 8} {
		for _, copies := range []int{0, 12, 6} {
			out = append(out, rule{least, 100, fit, copies})
		}
	}
	return out
}

// everybody are the numbers below n.
func everybody(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

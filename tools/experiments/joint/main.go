// Command joint measures what can be computed from codes that are published together with
// demographics: relative errors of prevalences, by group size and by what clusters are
// formed by. It prints the table and writes the section "Codes together with
// demographics" of docs/experiments.md with its plot.
//
//	go run ./tools/experiments/joint -data DIR
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
		fmt.Fprintln(os.Stderr, "joint:", err)
		os.Exit(1)
	}
}

const introduction = `## Codes together with demographics

The discharges of nhds2010-631 (58,302 people) with synthetic age, sex and area (nine
areas in three regions), which depend on the codes of a person. Codes are published
together with the three by [a joint publication](decisions/joint.md), m = 2, one
reconstruction. Relative errors in percent, median / 90th percentile, over all cells of
100 people or more: of people with a code by ten years of age and sex; by twenty years of
age, sex and area; of people with two codes; and of these by twenty years of age and sex.

- *groups of n*: by demographics first, then codes within groups of n people or more;
- *codes alone*: a publication of the codes by themselves, read with everybody's
  demographics at random;
- *codes generalized*: groups of 40 k, in each of which codes are generalized along the
  code list (three digits, two, one, nothing) until any m of them have k records; read with
  a code at random of those below, by how frequent each is over all;
- *codes first*: clusters formed by codes, each with the labels that cover it.
`

func run(ctx context.Context, data, docs string) error {
	d, err := load(data)
	if err != nil {
		return err
	}
	p := &page.Section{Name: "joint", Docs: docs}
	p.Printf("%s", introduction)
	var rows [][]string
	lines := make([]svgplot.Line, len(questions))
	for i, q := range questions {
		lines[i].Name = q.name
	}
	add := func(k int, name string, shown []person, size int) {
		row := []string{fmt.Sprint(k), name}
		for i, q := range questions {
			median, ninety := relativeErrors(d.truth[i], q.count(shown))
			row = append(row, fmt.Sprintf("%.1f / %.1f", 100*median, 100*ninety))
			if k == 5 && size > 0 {
				lines[i].Points = append(lines[i].Points, [2]float64{float64(size), 100 * median})
			}
		}
		fmt.Println(row)
		rows = append(rows, row)
	}
	for _, k := range []int{5, 10} {
		for _, size := range []int{k, 5 * k, 10 * k, 20 * k, 40 * k, 80 * k} {
			shown, err := d.demographicsFirst(ctx, k, usual, size)
			if err != nil {
				return err
			}
			add(k, fmt.Sprintf("groups of %d", size), shown, size)
		}
		for name, variant := range d.others(ctx, k) {
			shown, err := variant()
			if err != nil {
				return err
			}
			add(k, name, shown, 0)
		}
	}
	head := []string{"k", "by"}
	for _, q := range questions {
		head = append(head, q.name)
	}
	p.Table(head, rows)
	err = p.Plot(
		"joint",
		&svgplot.Chart{
			Title: "Median error of prevalences, k = 5",
			X:     "people in a group",
			Y:     "error, %",
			Lines: lines,
			LogX:  true,
		},
	)
	if err != nil {
		return err
	}
	if err := d.frontier(ctx, p, head); err != nil {
		return err
	}
	return p.Write()
}

// frontier draws what more candidates, and more codes that are known, cost.
func (d *dataset) frontier(ctx context.Context, p *page.Section, head []string) error {
	p.Printf("\nGroups of 40 k by how many candidates there are, and how many codes are known:\n\n")
	var rows [][]string
	var lines []svgplot.Line
	for _, m := range []int{1, 2, 3} {
		pairs := svgplot.Line{Name: fmt.Sprintf("two codes, m = %d", m)}
		single := svgplot.Line{Name: fmt.Sprintf("code, twenty years, sex, area, m = %d", m)}
		for _, k := range []int{2, 5, 10, 20} {
			shown, err := d.demographicsFirst(ctx, k, m, 40*k)
			if err != nil {
				return err
			}
			row := []string{fmt.Sprintf("%d, %d", k, m)}
			for i, q := range questions {
				median, ninety := relativeErrors(d.truth[i], q.count(shown))
				row = append(row, fmt.Sprintf("%.1f / %.1f", 100*median, 100*ninety))
				switch i {
				case 1:
					single.Points = append(single.Points, [2]float64{float64(k), 100 * median})
				case 2:
					pairs.Points = append(pairs.Points, [2]float64{float64(k), 100 * median})
				}
			}
			fmt.Println(row)
			rows = append(rows, row)
		}
		lines = append(lines, single, pairs)
	}
	p.Table(append([]string{"k, m"}, head[2:]...), rows)
	return p.Plot(
		"joint-frontier",
		&svgplot.Chart{
			Title: "Median error, groups of 40 k",
			X:     "k",
			Y:     "error, %",
			Lines: lines,
			LogX:  true,
		},
	)
}

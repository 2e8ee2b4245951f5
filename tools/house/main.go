// Command house measures how the tree is built: for each package its files and lines, the
// largest group of files that need each other, the methods of its largest types, and lines
// that are too long. It prints a table in Markdown, and judges nothing:
// docs/decisions/house.md says what is aimed at.
//
// A file needs another one of its package if it uses an identifier that is declared there: a
// name of the package, a method or a field. A group is a strongly connected component of
// that graph. Files of tests are counted for long lines only.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// core are the packages whose totals are printed: those that a query runs through.
const core = "proxy,catalog,planner,extension"

func main() {
	flags := flag.NewFlagSet("house", flag.ExitOnError)
	total := flags.String("total", core, "packages to print totals of, by commas")
	all := flags.Bool("all", false, "list every file of the largest groups")
	_ = flags.Parse(os.Args[1:])
	patterns := flags.Args()
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	if err := run(os.Stdout, patterns, strings.Split(*total, ","), *all); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, patterns, total []string, all bool) error {
	packages, err := load(patterns)
	if err != nil {
		return err
	}
	var houses []*house
	sum := &house{name: "together: " + strings.Join(total, ", ")}
	for _, p := range packages {
		h, err := measure(p)
		if err != nil {
			return fmt.Errorf("%s: %w", p.ImportPath, err)
		}
		houses = append(houses, h)
		for _, name := range total {
			if h.name == name {
				sum.add(h)
			}
		}
	}
	slices.SortFunc(houses, func(x, y *house) int { return strings.Compare(x.name, y.name) })
	writeTable(out, append(houses, sum), all)
	return nil
}

// writeTable writes the table, and if all is asked for the files of each group.
func writeTable(out io.Writer, houses []*house, all bool) {
	fmt.Fprintln(out, "| package | files | code | lines | group "+
		"| types: methods (files) | long lines | in tests |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|---|")
	for _, h := range houses {
		group, types := "", "" // of a sum there is none
		if len(h.group) > 0 {
			group = fmt.Sprint(len(h.group))
		}
		if len(h.types) > 0 {
			types = h.largestTypes(3)
		}
		fmt.Fprintf(out, "| %s | %d | %d | %d | %s | %s | %d | %d |\n",
			h.name, h.files, h.code, h.lines, group, types, h.long, h.longInTests)
	}
	for _, h := range houses {
		if all && len(h.group) > 1 {
			fmt.Fprintf(out, "\n%s: %s\n", h.name, strings.Join(h.group, " "))
		}
	}
}

// Command scale measures how Tailor's costs grow with the rows of a table: making a release,
// bringing it up to date, statements over it, bytes and memory. Each size has a PostgreSQL
// and a proxy of its own. It ends with the exponents by which each figure has grown: 1 is in
// step with the rows.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"os/signal"
	"strconv"
	"strings"

	"github.com/hiatus-tailor/tailor/catalog"
)

func main() {
	binary := flag.String("tailor", "bin/tailor", "the `TAILOR` under test")
	sizes := flag.String("rows", "1000000", "numbers of `ROWS`, with blanks between them, in order")
	dir := flag.String("dir", os.TempDir(), "`FOLDER` for the databases: 600 bytes a row")
	partRows := flag.Int("part-rows", catalog.DefaultPartRows, "`NUMBER` for the proxy's flag")
	only := flag.Bool("release-only", false, "make releases and measure nothing else")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	as := stand{binary: *binary, dir: *dir, partRows: *partRows, releaseOnly: *only}
	if err := run(ctx, as, strings.Fields(*sizes)); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// figure is something measured, at each size.
type figure struct {
	name, unit string
	values     []float64
}

// figures are in the order in which they were measured first.
type figures []*figure

func (f *figures) note(name, unit string, value float64) {
	fmt.Fprintf(os.Stderr, "  %-34s %12.3f %s\n", name, value, unit)
	for _, known := range *f {
		if known.name == name && known.unit == unit {
			known.values = append(known.values, value)
			return
		}
	}
	*f = append(*f, &figure{name, unit, []float64{value}})
}

func run(ctx context.Context, s stand, sizes []string) error {
	var measured figures
	var rows []float64
	for _, text := range sizes {
		n, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stderr, n, "rows")
		s.rows, s.into = n, &measured
		if err := measure(ctx, s); err != nil {
			return fmt.Errorf("%d rows: %w", n, err)
		}
		rows = append(rows, float64(n))
	}
	print(rows, measured)
	return nil
}

// print writes a table in Markdown, a line for each figure.
func print(rows []float64, measured figures) {
	fmt.Print("| measured |")
	for _, n := range rows {
		fmt.Printf(" 10^%.3g rows |", math.Log10(n))
	}
	fmt.Print(" exponent |\n|---|")
	fmt.Println(strings.Repeat("---|", len(rows)+1))
	for _, f := range measured {
		fmt.Printf("| %s, %s |", f.name, f.unit)
		for _, v := range f.values {
			fmt.Printf(" %s |", strconv.FormatFloat(v, 'g', 3, 64))
		}
		last := len(rows) - 1
		if last == 0 || len(f.values) <= last || f.values[0] <= 0 {
			fmt.Println(" |")
			continue
		}
		fmt.Printf(" %.2f |\n", math.Log(f.values[last]/f.values[0])/math.Log(rows[last]/rows[0]))
	}
}

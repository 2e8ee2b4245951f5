// Command benchproxy compares three ways to one PostgreSQL in one run: direct,
// through PgBouncer in session mode, and through tailor. It prints the medians
// of transactions a second (pgbench -S), of a large result and of logins, with
// the processor time that each way costs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

// options are the flags.
type options struct {
	binary   string
	other    string
	rounds   int
	clients  int
	duration time.Duration
	rows     int
	only     string
}

// wants says whether a measure is to be taken.
func (o options) wants(name string) bool {
	return o.only == "" || slices.Contains(strings.Split(o.only, ","), name)
}

func main() {
	var o options
	flag.StringVar(&o.binary, "tailor", "bin/tailor", "the tailor under test")
	flag.StringVar(&o.other, "other", "",
		"another tailor to run beside it, such as one without a change")
	flag.IntVar(&o.rounds, "rounds", 5, "the median is taken of this many")
	flag.IntVar(&o.clients, "clients", 8, "pgbench clients, and programs of the rush")
	flag.DurationVar(&o.duration, "duration", 5*time.Second, "of one run of pgbench")
	flag.IntVar(&o.rows, "rows", 1_000_000, "of the large result and of the protected table")
	flag.StringVar(&o.only, "only", "", "measures to take, comma-separated; empty for all")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench-proxy:", err)
		os.Exit(1)
	}
}

// measure is one figure, taken of each way in turn, so many times a round.
type measure struct {
	name, unit string
	times      int
	take       measured
}

func run(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp("", "tailor-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	s, err := newStand(ctx, dir, o)
	if err != nil {
		return err
	}
	defer s.stop()
	measures := []measure{
		{"simple", "tps", 1, s.pgbench(s.clients, s.duration, "-S", "-M", "simple")},
		{"extended", "tps", 1, s.pgbench(s.clients, s.duration, "-S", "-M", "extended")},
		{"prepared", "tps", 1, s.pgbench(s.clients, s.duration, "-S", "-M", "prepared")},
		{"rows", "rows/s", 1, s.largeResult},
		// The client's keys are most of a login, and what else the machine does changes
		// their price by more than the ways differ: many short turns.
		{"logins", "logins/s", 4, s.pgbench(s.clients, s.duration*2/5, "-C", "-f", s.one)},
		// As many programs, which keep the processors busy between them.
		{"rush", "logins/s", 2, atOnce(s.clients, s.pgbench(1, s.duration*2/5, "-C", "-f", s.one))},
	}
	fmt.Printf("%-9s %-10s %12s %8s %9s %12s\n", "", "", "median", "direct", "pgbouncer",
		"µs CPU each")
	for _, m := range measures {
		if !o.wants(m.name) {
			continue
		}
		if err := s.compare(ctx, m); err != nil {
			return err
		}
	}
	if o.wants("idle") {
		if err := s.idle(ctx); err != nil {
			return err
		}
	}
	if o.wants("protected") {
		return s.protected(ctx)
	}
	return nil
}

// compare takes a measure of every way in turn, round by round, so that what
// else the machine does falls on all alike, and nobody always comes after the
// same. Ratios are the medians of those of the rounds.
func (s *stand) compare(ctx context.Context, m measure) error {
	rates := make(map[string][]float64)
	costs := make(map[string][]float64)
	for round := range s.rounds * m.times {
		for i := range s.ways {
			w := s.ways[(i+round)%len(s.ways)]
			before := w.cpu()
			n, rate, err := m.take(ctx, w)
			if err != nil {
				return errors.Join(fmt.Errorf("%s, %s: %w", m.name, w.name, err), ctx.Err())
			}
			rates[w.name] = append(rates[w.name], rate)
			costs[w.name] = append(costs[w.name], float64((w.cpu()-before).Microseconds())/float64(n))
		}
	}
	for _, w := range s.ways {
		fmt.Printf("%-9s %-10s %12.0f %8.2f %9.2f %12.2f  %s\n", m.name, w.name, median(rates[w.name]),
			ratio(rates[w.name], rates["direct"]), ratio(rates[w.name], rates["pgbouncer"]),
			median(costs[w.name]), m.unit)
	}
	return nil
}

// ratio is the median of the ratios of rates that were taken in the same rounds.
func ratio(rates, others []float64) float64 {
	ratios := make([]float64, len(rates))
	for i := range rates {
		ratios[i] = rates[i] / others[i]
	}
	return median(ratios)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

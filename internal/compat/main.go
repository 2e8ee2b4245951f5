// Command compat runs the test suites of PostgreSQL drivers twice, against a
// PostgreSQL directly and through tailor, and says which tests differ. It fails
// where one does.
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
)

func main() {
	binary := flag.String("tailor", "bin/tailor", "the tailor under test")
	only := flag.String("only", "", "suites to run, comma-separated; empty for all")
	verbose := flag.Bool("v", false, "print what the suites print")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	same, err := run(ctx, *binary, *only, *verbose)
	if err != nil {
		fmt.Fprintln(os.Stderr, "compat:", err)
	}
	if err != nil || !same {
		stop()
		os.Exit(1)
	}
}

// run reports whether every suite came out the same both ways.
func run(ctx context.Context, binary, only string, verbose bool) (same bool, err error) {
	s, err := newStand(ctx, binary)
	if err != nil {
		return false, err
	}
	defer s.stop()
	same = true
	for _, suite := range suites {
		if only != "" && !slices.Contains(strings.Split(only, ","), suite.name) {
			continue
		}
		outcomes := make([]results, 2)
		for i, port := range []string{s.direct, s.proxied} {
			fresh := suite.database
			if err := s.reset(ctx, fresh, suite.setup); err != nil {
				return false, fmt.Errorf("%s: %w", suite.name, err)
			}
			if outcomes[i], err = suite.run(ctx, s, port, verbose); err != nil {
				return false, fmt.Errorf("%s: %w", suite.name, err)
			}
		}
		if !report(suite.name, outcomes[0], outcomes[1]) {
			same = false
		}
	}
	return same, nil
}

// results are the outcomes of tests by name: pass, fail or skip.
type results map[string]string

func (r results) count(outcome string) int {
	n := 0
	for _, o := range r {
		if o == outcome {
			n++
		}
	}
	return n
}

// report prints both counts and what differs, and says whether nothing does.
func report(name string, direct, proxied results) bool {
	fmt.Printf("%-10s direct: %d pass, %d fail, %d skip; through tailor: %d pass, %d fail, %d skip\n", name,
		direct.count("pass"), direct.count("fail"), direct.count("skip"),
		proxied.count("pass"), proxied.count("fail"), proxied.count("skip"))
	same := len(direct) > 0
	all := maps.Clone(direct)
	maps.Copy(all, proxied)
	for _, test := range slices.Sorted(maps.Keys(all)) {
		if direct[test] != proxied[test] {
			fmt.Printf("  %s: directly %q, through tailor %q\n", test, direct[test], proxied[test])
			same = false
		}
	}
	return same
}

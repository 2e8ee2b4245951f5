// Command compat runs the test suites of PostgreSQL and its drivers twice,
// against a PostgreSQL directly and through tailor, and says which tests differ.
// Its suite of clients reads a protected table by real programs, and says which
// read something else than pgx does.
// It ends with 1 where one does, and with 3 where none does but a suite's source
// was not to be had.
package main

import (
	"context"
	"errors"
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
	err := run(ctx, *binary, *only, *verbose)
	stop()
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "compat:", err)
	if errors.Is(err, errNotObtained) && !errors.Is(err, errDiffers) {
		os.Exit(3)
	}
	os.Exit(1)
}

// errDiffers says that a test came out otherwise through tailor.
var errDiffers = errors.New("tests differ")

// run compares suites. It goes on after one that differs or is not to be had.
func run(ctx context.Context, binary, only string, verbose bool) error {
	chosen, err := choose(only)
	if err != nil {
		return err
	}
	s, err := newStand(ctx, binary)
	if err != nil {
		return err
	}
	defer s.stop()
	var problems []error
	for _, suite := range chosen {
		same, err := s.compare(ctx, suite, verbose)
		switch {
		case err != nil && !errors.Is(err, errNotObtained):
			return fmt.Errorf("%s: %w", suite.name, err)
		case err != nil:
			fmt.Printf("%-10s %v\n", suite.name, err)
			problems = append(problems, fmt.Errorf("%s: %w", suite.name, errNotObtained))
		case !same:
			problems = append(problems, fmt.Errorf("%s: %w", suite.name, errDiffers))
		}
	}
	return errors.Join(problems...)
}

// choose finds suites by their names, comma-separated; empty for all.
func choose(only string) (chosen []suite, err error) {
	if only == "" {
		return suites, nil
	}
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(suites, func(s suite) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no suite %q", name)
		}
		chosen = append(chosen, suites[i])
	}
	return chosen, nil
}

// compare runs one suite both ways and reports whether it came out the same.
func (s *stand) compare(ctx context.Context, suite suite, verbose bool) (same bool, err error) {
	if suite.check != nil {
		return suite.check(ctx, s, verbose)
	}
	outcomes := make([]results, 2)
	for i, port := range []string{s.direct, s.proxied} {
		if err := s.reset(ctx, suite.database, suite.setup); err != nil {
			return false, err
		}
		if outcomes[i], err = suite.run(ctx, s, port, verbose); err != nil {
			return false, err
		}
	}
	return report(suite.name, outcomes[0], outcomes[1]), nil
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
	fmt.Printf("%-10s direct: %d pass, %d fail, %d skip; through tailor: %d pass, %d fail, %d skip\n",
		name,
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

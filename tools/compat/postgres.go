package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/hiatus-tailor/tailor/internal/pgcluster"
)

// regressLine is what pg_regress and pg_isolation_regress print for a test.
var regressLine = regexp.MustCompile(`^(?:test|\s)\s*(\S+)\s+\.\.\. (ok|FAILED|failed)`)

// regressSuite runs the tests of a schedule with the driver in a folder of
// PostgreSQL's source, from a copy that the server may write to.
func regressSuite(
	folder, driver, schedule string,
) func(context.Context, *stand, string, bool) (results, error) {
	return func(ctx context.Context, s *stand, port string, verbose bool) (results, error) {
		source, err := obtained(ctx, "scripts/postgres-tests")
		if err != nil {
			return nil, err
		}
		bin, err := pgcluster.Binaries()
		if err != nil {
			return nil, err
		}
		dir := filepath.Join(s.dir, "regress-"+port, filepath.Base(folder))
		if err := os.CopyFS(dir, os.DirFS(filepath.Join(source, folder))); err != nil {
			return nil, err
		}
		if err := os.MkdirAll(filepath.Join(dir, "results"), 0o755); err != nil {
			return nil, err
		}
		if output, err := exec.CommandContext(ctx, "chmod", "-R", "a+rwX", filepath.Dir(dir)).
			CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w: %s", err, output)
		}
		command := exec.CommandContext(ctx, "./"+driver, "--bindir="+bin, "--inputdir="+dir,
			"--outputdir="+dir, "--dlpath="+dir,
			"--host=127.0.0.1", "--port="+port, "--user="+owner, "--dbname="+s.database,
			"--schedule="+schedule, "--max-concurrent-tests=20")
		command.Dir = dir
		command.Env = append(os.Environ(), "PGPASSWORD="+owner, "PGSSLMODE=disable")
		output, err := command.CombinedOutput()
		found := make(results)
		for line := range strings.Lines(string(output)) {
			if match := regressLine.FindStringSubmatch(line); match != nil {
				found[match[1]] = map[bool]string{true: "pass", false: "fail"}[match[2] == "ok"]
			}
		}
		if verbose {
			fmt.Print(string(output))
			differences, _ := os.ReadFile(filepath.Join(dir, "regression.diffs"))
			fmt.Print(string(differences))
		}
		var exit *exec.ExitError
		if errors.As(err, &exit) && len(found) > 0 { // failing tests are compared, not fatal
			err = nil
		}
		if err != nil {
			err = fmt.Errorf("%w: %s", err, output)
		}
		return found, err
	}
}

// pipelineSuite runs libpq's pipeline tests. Where PostgreSQL keeps a trace of
// the messages that a test exchanges, every message must be as there.
func pipelineSuite(ctx context.Context, s *stand, port string, verbose bool) (results, error) {
	source, err := obtained(ctx, "scripts/postgres-tests")
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(source, "src/test/modules/libpq_pipeline")
	program := filepath.Join(folder, "libpq_pipeline")
	names, err := exec.CommandContext(ctx, program, "tests").Output()
	if err != nil {
		return nil, err
	}
	found := make(results)
	for _, name := range strings.Fields(string(names)) {
		trace := filepath.Join(s.dir, name+".trace")
		command := exec.CommandContext(ctx, program, "-r", "700", "-t", trace, name, "")
		command.Env = environment(port, s.database)
		output, err := command.CombinedOutput()
		if err == nil {
			err = sameTrace(filepath.Join(folder, "traces", name+".trace"), trace)
		}
		found[name] = map[bool]string{true: "pass", false: "fail"}[err == nil]
		if verbose && err != nil {
			fmt.Printf("%s: %v\n%s", name, err, output)
		}
	}
	return found, nil
}

// sameTrace compares messages with those expected; not every test has any.
func sameTrace(expected, actual string) error {
	want, err := os.ReadFile(expected)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	got, err := os.ReadFile(actual)
	if err != nil {
		return err
	}
	if !bytes.Equal(want, got) {
		return fmt.Errorf("the messages are\n%s, expected\n%s", got, want)
	}
	return nil
}

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// suite is a driver's own tests, or PostgreSQL's.
type suite struct {
	name     string
	database string // made anew before each run
	setup    string
	run      func(ctx context.Context, s *stand, port string, verbose bool) (results, error)
	// In place of the two runs: whether all came out as it should.
	check func(ctx context.Context, s *stand, verbose bool) (same bool, err error)
}

// suites begin with PostgreSQL's own: some of its tests want that nothing has been
// notified on the server before.
var suites = []suite{
	{name: "regress", database: "regression", run: regressSuite("src/test/regress", "pg_regress",
		"parallel_schedule")},
	{name: "isolation", database: "isolation_regression", run: regressSuite("src/test/isolation",
		"pg_isolation_regress", "isolation_schedule")},
	{name: "pipeline", database: "pipeline", run: pipelineSuite},
	{
		name: "pgx", database: "pgx_test", setup: "CREATE EXTENSION hstore; CREATE EXTENSION ltree; " +
			"CREATE DOMAIN uint64 AS numeric(20,0)",
		run: goSuite("github.com/jackc/pgx/v5@v5.12.0", ""),
	},
	{
		name: "pq", database: "pqgo", setup: "CREATE EXTENSION hstore",
		run: goSuite("github.com/lib/pq@v1.12.3", "TestAuth|TestSSL|Example"),
	},
	{name: "psycopg2", database: "python", run: lineSuite("/usr/bin/python3", "psycopg2_test.py")},
	{name: "psycopg3", database: "python", run: lineSuite("/usr/bin/python3", "psycopg3_test.py")},
	{name: "node-pg", database: "node", run: nodeSuite("pg_test.cjs")},
	{name: "postgres.js", database: "node", run: nodeSuite("postgres_test.cjs")},
	{name: "jdbc", database: "jdbc", run: lineSuite("java", "-cp", "/usr/share/java/postgresql.jar",
		"Jdbc.java")},
	{name: "clients", check: clientsSuite},
}

// environment tells all drivers where to connect.
func environment(port, database string) []string {
	return append(os.Environ(),
		"PGHOST=127.0.0.1", "PGPORT="+port, "PGUSER="+role, "PGPASSWORD="+role, "PGDATABASE="+database,
		"PGSSLMODE=disable",
		fmt.Sprintf("PGX_TEST_DATABASE=host=127.0.0.1 port=%s user=%s password=%s dbname=%s "+
			"sslmode=disable", port, role, role, database))
}

// goSuite runs the tests of a module, from a copy of its source. skip names
// those that need a server set up for them on a fixed port.
func goSuite(module, skip string) func(context.Context, *stand, string, bool) (results, error) {
	return func(ctx context.Context, s *stand, port string, verbose bool) (results, error) {
		dir, err := s.source(ctx, module)
		if err != nil {
			return nil, err
		}
		command := exec.CommandContext(ctx, "go", "test", "-json", "-count=1", "-p=1", "-parallel=1",
			"-timeout=10m", "-skip="+skip, "./...")
		command.Dir = dir
		command.Env = append(environment(port, s.database), "GOFLAGS=-mod=mod", "GOWORK=off")
		output, err := command.StdoutPipe()
		if err != nil {
			return nil, err
		}
		command.Stderr = os.Stderr
		if err := command.Start(); err != nil {
			return nil, err
		}
		found := make(results)
		lines := bufio.NewScanner(output)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			var event struct{ Action, Package, Test, Output string }
			if json.Unmarshal(lines.Bytes(), &event) != nil {
				continue
			}
			if verbose {
				fmt.Print(event.Output)
			}
			if event.Test != "" && (event.Action == "pass" || event.Action == "fail" ||
				event.Action == "skip") {
				found[event.Package+" "+temporary.ReplaceAllString(event.Test, "")] = event.Action
			}
		}
		_ = command.Wait() // failing tests are compared, not fatal
		return found, lines.Err()
	}
}

// temporary is the part of a test's name that differs from run to run.
var temporary = regexp.MustCompile(`/tmp/[^/]+/\d+`)

// source copies a module out of the module cache, where nothing can be written.
func (s *stand) source(ctx context.Context, module string) (string, error) {
	dir := filepath.Join(s.dir, strings.NewReplacer("/", "_", "@", "_").Replace(module))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	output, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", module).Output()
	if err != nil {
		return "", fmt.Errorf("download %s: %w", module, err)
	}
	var found struct{ Dir string }
	if err := json.Unmarshal(output, &found); err != nil {
		return "", err
	}
	if err := os.CopyFS(dir, os.DirFS(found.Dir)); err != nil {
		return "", err
	}
	return dir, exec.CommandContext(ctx, "chmod", "-R", "u+w", dir).Run()
}

// lineSuite runs a program of this folder, which prints a line for each test:
// its outcome and its name.
func lineSuite(
	program string, args ...string,
) func(context.Context, *stand, string, bool) (results, error) {
	return func(ctx context.Context, s *stand, port string, verbose bool) (results, error) {
		return lines(ctx, environment(port, s.database), verbose, program, args...)
	}
}

// nodeSuite is a lineSuite that uses Node's drivers.
func nodeSuite(script string) func(context.Context, *stand, string, bool) (results, error) {
	return func(ctx context.Context, s *stand, port string, verbose bool) (results, error) {
		modules, err := obtained(ctx, "scripts/npm-packages", "npm-drivers",
			"pg@8.23.1", "pg-cursor@2.22.0", "pg-query-stream@4.17.0", "pg-copy-streams@7.0.0",
			"postgres@3.4.9")
		if err != nil {
			return nil, err
		}
		return lines(ctx, append(environment(port, s.database), "NODE_PATH="+modules), verbose, "node",
			script)
	}
}

func lines(
	ctx context.Context, environment []string, verbose bool, program string, args ...string,
) (results, error) {
	command := exec.CommandContext(ctx, program, args...)
	command.Dir = "tools/compat/testdata"
	command.Env = environment
	output, err := command.CombinedOutput()
	if verbose || err != nil {
		fmt.Print(string(output))
	}
	found := make(results)
	for line := range strings.Lines(string(output)) {
		outcome, test, ok := strings.Cut(strings.TrimSpace(line), " ")
		if ok && (outcome == "pass" || outcome == "fail") {
			found[test] = outcome
		}
	}
	return found, err
}

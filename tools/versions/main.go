// Command versions runs tests of package tests on several major versions of PostgreSQL, whose
// binaries come by npm, and prints a table of topics by versions: what passed, failed and was
// skipped. A topic is a file of tests. It ends with 1 if a test fails.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	versions := flag.String("versions", "14 15 16 17 18", "major `VERSIONS`, with blanks between them")
	run := flag.String("run", ".", "tests to run, as of go test")
	skip := flag.String("skip", "", "tests to leave out, as of go test")
	flag.Parse()
	failed, err := compare(strings.Fields(*versions), *run, *skip)
	if err != nil {
		fmt.Fprintln(os.Stderr, "versions:", err)
	}
	if err != nil || failed {
		os.Exit(1)
	}
}

// outcome counts the tests of a topic on one version.
type outcome struct {
	passed, skipped int
	failed          []string
}

func compare(versions []string, run, skip string) (failed bool, err error) {
	topics, err := topicsOf("tests")
	if err != nil {
		return false, err
	}
	table := make(map[string]map[string]*outcome) // by topic and version
	for _, version := range versions {
		bin, err := exec.Command("scripts/postgres-binaries", version).Output()
		if err != nil {
			return false, fmt.Errorf("PostgreSQL %s: %w", version, err)
		}
		fmt.Fprintln(os.Stderr, "PostgreSQL", version)
		args := []string{"test", "-json", "-count=1", "-timeout", "40m", "-run", run}
		if skip != "" {
			args = append(args, "-skip", skip)
		}
		command := exec.Command("go", append(args, "./tests")...)
		command.Env = append(os.Environ(), "TAILOR_PG_BIN="+strings.TrimSpace(string(bin)))
		command.Stderr = os.Stderr
		output, err := command.StdoutPipe()
		if err != nil {
			return false, err
		}
		if err := command.Start(); err != nil {
			return false, err
		}
		if err := count(output, version, topics, table); err != nil {
			return false, err
		}
		var ended *exec.ExitError
		if err := command.Wait(); errors.As(err, &ended) {
			failed = true
		} else if err != nil {
			return false, err
		}
	}
	write(os.Stdout, versions, table)
	return failed, nil
}

// topicsOf are the topics by the names of their tests.
func topicsOf(folder string) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		return nil, err
	}
	topics := make(map[string]string)
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		topic := strings.ReplaceAll(strings.TrimSuffix(filepath.Base(file), "_test.go"), "_", " ")
		for _, declared := range parsed.Decls {
			if f, ok := declared.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Test") {
				topics[f.Name.Name] = topic
			}
		}
	}
	return topics, nil
}

// count reads what go test says, and hands on what tests that fail print.
func count(
	from io.Reader, version string, topics map[string]string, into map[string]map[string]*outcome,
) error {
	printed := make(map[string][]string) // by test
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) == 0 && err == io.EOF {
			return nil
		}
		if err != nil && err != io.EOF {
			return err
		}
		var event struct{ Action, Test, Output string }
		if json.Unmarshal(line, &event) != nil {
			fmt.Fprint(os.Stderr, string(line))
			continue
		}
		name, _, sub := strings.Cut(event.Test, "/")
		if event.Action == "output" {
			printed[name] = append(printed[name], event.Output)
		}
		if sub || name == "" && event.Action != "fail" {
			continue
		}
		topic := topics[name]
		if into[topic] == nil {
			into[topic] = make(map[string]*outcome)
		}
		if into[topic][version] == nil {
			into[topic][version] = &outcome{}
		}
		switch o := into[topic][version]; event.Action {
		case "pass":
			o.passed++
		case "skip":
			o.skipped++
		case "fail":
			if name != "" {
				o.failed = append(o.failed, name)
			}
			fmt.Fprint(os.Stderr, strings.Join(printed[name], ""))
		}
		if event.Action != "output" && event.Action != "run" {
			delete(printed, name)
		}
	}
}

func write(to io.Writer, versions []string, table map[string]map[string]*outcome) {
	fmt.Fprintf(to, "| topic | %s |\n|---%s|\n", strings.Join(versions, " | "),
		strings.Repeat("|---", len(versions)))
	for _, topic := range slices.Sorted(maps.Keys(table)) {
		if topic == "" {
			continue
		}
		cells := make([]string, len(versions))
		for i, version := range versions {
			cells[i] = cell(table[topic][version])
		}
		fmt.Fprintf(to, "| %s | %s |\n", topic, strings.Join(cells, " | "))
	}
}

// cell is how many tests passed, and which did not.
func cell(o *outcome) string {
	if o == nil {
		return ""
	}
	parts := []string{fmt.Sprint(o.passed)}
	if o.skipped > 0 {
		parts = append(parts, fmt.Sprintf("%d skipped", o.skipped))
	}
	for _, name := range o.failed {
		parts = append(parts, "**"+name+"**")
	}
	return strings.Join(parts, ", ")
}

package documents

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

const runbook = "docs/runbook.md"

// heading is one of a message or an alert. One of a long message may end with … in its place.
var heading = regexp.MustCompile("(?m)^### `?(.+?)`?$")

// headings of the runbook.
func headings(t *testing.T) map[string]bool {
	t.Helper()
	found := make(map[string]bool)
	for _, m := range heading.FindAllStringSubmatch(document(t, runbook), -1) {
		found[m[1]] = true
	}
	return found
}

// loggers are the folders whose programs tell operators something.
var loggers = []string{
	"proxy", "catalog", "cmd/tailor", "internal/audit", "internal/console", "internal/logqueue",
}

// TestTheRunbookHasEachWarningAndError: whatever the proxy logs at these levels has a section,
// and each section of the log is one that is logged.
func TestTheRunbookHasEachWarningAndError(t *testing.T) {
	known := headings(t)
	said := make(map[string]bool)
	for _, folder := range loggers {
		for _, m := range messages(t, folder) {
			name := headingOf(known, m)
			said[name] = true
			if name == "" {
				t.Errorf("%s has no section %q, which %s logs", runbook, m, folder)
			}
		}
	}
	if len(said) < 15 {
		t.Errorf("only %d messages are found: has the way of logging changed?", len(said))
	}
	for name := range known {
		if !said[name] && !strings.HasPrefix(name, "Tailor") {
			t.Errorf("%s has a section %q, which nobody logs", runbook, name)
		}
	}
}

// headingOf finds the heading of a message, "" for none.
func headingOf(known map[string]bool, message string) string {
	for name := range known {
		start, long := strings.CutSuffix(name, " …")
		if name == message || long && strings.HasPrefix(message, start) {
			return name
		}
	}
	return ""
}

// messages are the texts that a folder's sources log as warnings and errors.
func messages(t *testing.T, folder string) (out []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: no sources: %v", folder, err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			argument := logged(n)
			if argument == nil {
				return true
			}
			text, ok := constant(argument)
			if !ok {
				t.Errorf("%s logs a message that is no constant", path)
			}
			out = append(out, text)
			return true
		})
	}
	return out
}

// logged is the message of a call that logs a warning or an error, else nil. Other functions of
// these names are those of http and of errors.
func logged(n ast.Node) ast.Expr {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return nil
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	if id, ok := method.X.(*ast.Ident); ok && id.Name == "http" {
		return nil
	}
	switch method.Sel.Name {
	case "Warn", "Error":
		return call.Args[0]
	case "WarnContext", "ErrorContext":
		return call.Args[1]
	case "Log", "LogAttrs":
		if len(call.Args) > 2 {
			return call.Args[2] // of any level: no such call may hide one
		}
	}
	return nil
}

// constant is the value of a literal, or of a sum of them.
func constant(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, ok := constant(e.X)
		right, also := constant(e.Y)
		return left + right, ok && also && e.Op == token.ADD
	}
	return "", false
}

// TestTheRunbookHasEachSQLSTATE: those that Tailor gives clients.
func TestTheRunbookHasEachSQLSTATE(t *testing.T) {
	text := document(t, runbook)
	codes := regexp.MustCompile(`Code = "(\w{5})"`).FindAllStringSubmatch(
		document(t, "internal/sqlstate/sqlstate.go"), -1)
	if len(codes) < 20 {
		t.Errorf("only %d codes are found", len(codes))
	}
	for _, code := range codes {
		if !strings.Contains(text, "`"+code[1]+"`") {
			t.Errorf("%s says nothing of %s", runbook, code[1])
		}
	}
}

// alerts is docs/alerts.yaml.
type alerts struct {
	Groups []struct {
		Rules []struct {
			Alert, Expr string
			Labels      struct{ Severity string }
			Annotations struct {
				Summary string
				Runbook string `yaml:"runbook_url"`
			}
		}
	}
}

var (
	metric = regexp.MustCompile(`\b((?:tailor|process|go)_\w+|up)\b`)
	made   = regexp.MustCompile(`"((?:tailor|process|go)_[a-z_]+)"`)
)

// TestAlertsAreOfMetricsThatThereAre: and each says how grave it is, and has a section in the
// runbook, to which it links.
func TestAlertsAreOfMetricsThatThereAre(t *testing.T) {
	var file alerts
	if err := yaml.Unmarshal([]byte(document(t, "docs/alerts.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	exposed := exposed(t)
	sections := headings(t)
	alerted := make(map[string]bool)
	for _, group := range file.Groups {
		for _, r := range group.Rules {
			alerted[r.Alert] = true
			if !sections[r.Alert] || !strings.HasSuffix(r.Annotations.Runbook,
				runbook+"#"+strings.ToLower(r.Alert)) {
				t.Errorf("%s: no section of %s, or no link to it", r.Alert, runbook)
			}
			grave := r.Labels.Severity == "critical" || r.Labels.Severity == "warning"
			if r.Annotations.Summary == "" || !grave {
				t.Errorf("%s: no summary, or severity %q", r.Alert, r.Labels.Severity)
			}
			named := metric.FindAllString(r.Expr, -1)
			for _, name := range named {
				if !exposed[name] {
					t.Errorf("%s: there is no metric %s", r.Alert, name)
				}
			}
			if len(named) == 0 {
				t.Errorf("%s is of no metric", r.Alert)
			}
		}
	}
	for name := range sections {
		if strings.HasPrefix(name, "Tailor") && !alerted[name] {
			t.Errorf("%s has a section %s, of which there is no alert", runbook, name)
		}
	}
}

// TestTheDashboardIsOfMetricsThatThereAre: each panel has a place of its own.
func TestTheDashboardIsOfMetricsThatThereAre(t *testing.T) {
	var dashboard struct {
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(document(t, "docs/grafana.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	exposed := exposed(t)
	shown := make(map[string]bool)
	taken := make(map[[2]int]string)
	for _, p := range dashboard.Panels {
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if taken[at] != "" || at[0] >= 24 {
					t.Errorf("%q lies over %q, or beside the page", p.Title, taken[at])
				}
				taken[at] = p.Title
			}
		}
		for _, target := range p.Targets {
			named := metric.FindAllString(target.Expr, -1)
			if len(named) == 0 {
				t.Errorf("%q is of no metric", p.Title)
			}
			for _, name := range named {
				shown[strings.TrimSuffix(name, "_bucket")] = true
				if !exposed[name] {
					t.Errorf("%q: there is no metric %s", p.Title, name)
				}
			}
		}
	}
	for name := range exposed {
		if strings.HasPrefix(name, "tailor_") && !shown[series.ReplaceAllString(name, "")] &&
			name != "tailor_connections_total" {
			t.Errorf("no panel shows %s", name)
		}
	}
}

// series are those of a histogram.
var series = regexp.MustCompile(`_(bucket|sum|count)$`)

// exposed are the metrics that a proxy makes, those of histograms under the names of their
// series, and Prometheus's own.
func exposed(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{"up": true}
	for _, path := range []string{"proxy/metrics.go", "cmd/tailor/operations.go"} {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range made.FindAllStringSubmatch(string(text), -1) {
			names[m[1]] = true
			if strings.HasSuffix(m[1], "_seconds") {
				names[m[1]+"_bucket"], names[m[1]+"_sum"], names[m[1]+"_count"] = true, true, true
			}
		}
	}
	if len(names) < 10 {
		t.Errorf("only %d metrics are found", len(names))
	}
	return names
}

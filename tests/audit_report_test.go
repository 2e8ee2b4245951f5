package tests

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

var updateReport = flag.Bool("update-report", false, "write the report of the hospital anew")

// dbaDSN is that of the database administrator, who owns the tables and has no rights beyond
// that and tailor_admin's.
func (s *testCluster) dbaDSN() string {
	return fmt.Sprintf("postgres://dba:dba@%s/hospital?sslmode=disable", s.cluster.Address())
}

// reportOf makes a report in a format and returns its text.
func (s *testCluster) reportOf(t *testing.T, format string, args ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "report")
	args = append([]string{"report", "--dsn", s.dbaDSN(), "--format", format, "--out", out}, args...)
	stdout, stderr, code := tailor(t, args...)
	text, err := os.ReadFile(out)
	if err != nil || code != 0 || stdout != "" || stderr != "" {
		t.Fatalf("%s: exit code %d: %s%s", format, code, stdout, stderr)
	}
	if info, err := os.Stat(out); err != nil || info.Mode() != 0o600 {
		t.Errorf("%s: mode %v, %v", format, info.Mode(), err)
	}
	return string(text)
}

// allShown waits until all protected tables are shown as their policies say.
func allShown(t *testing.T, direct *pgx.Conn) {
	t.Helper()
	waitFor(t, func() bool {
		return one[bool](t, direct, `SELECT count(*) = (SELECT count(*) FROM tailor.protection
				WHERE active IS NOT NULL) AND NOT bool_or(behind) FROM tailor.all_epochs`)
	})
}

func TestTheReportTellsWhatWasReleasedToWhom(t *testing.T) {
	s, err := newStand(filepath.Join(stands, "report"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	p := s.serve(t, "--audit-sql", "full")
	direct := s.superuser(t)
	allShown(t, direct)
	user := someQueries(t, p)
	conn := connect(t, p.dsn(user))
	for _, sql := range []string{
		"SELECT age, zip, sex FROM patients WHERE zip <> 'canary' AND '<script>' <> 'a|b'",
		"SELECT name FROM patients",
		`SELECT "for A & <b> ""1""".age FROM patients AS "for A & <b> ""1"""`,
	} {
		_, _ = conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
	}
	waitFor(t, func() bool {
		return one[int](t, direct, `SELECT count(*) FROM tailor.audit
			WHERE principal = $1 AND rows IS NOT NULL`, user) == 8
	})
	for format, want := range map[string][]string{
		"md": {
			"| " + strings.ReplaceAll(user, "_", `\_`) + " | public.patients | 7 | 0 | 0 | 8005 |",
			"| refused | 42501 | 1 |", "| diagnosis | sensitive | as it is | 100.0 % |",
			"SELECT age, zip, sex FROM patients WHERE zip <> $1", "| S1 ",
			"Yes, as far as the database", `| public.patients | A &amp; &lt;b> "1" | 4000 |`,
		},
		"html": {
			">" + user + "</td>", "<td>42501</td>", "zip &lt;&gt; $1", "<td>S1 ",
			"Yes, as far as the database", "<td>A &amp; &lt;b&gt; &#34;1&#34;</td>",
		},
		"json": {`"principal": "` + user + `"`, `"report_form": 1`},
	} {
		text := s.reportOf(t, format, "--since", "1h")
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s lacks %q:\n%s", format, w, text)
			}
		}
		if strings.Contains(text, "canary") || strings.Contains(text, "<script") {
			t.Errorf("%s shows a literal", format)
		}
	}
	// What was written of the log over: the report says so, and is made.
	mustExec(t, direct, `UPDATE tailor.audit_log SET record = replace(record::text, '"rows":1',
		'"rows":2')::json WHERE position = (SELECT min(position) FROM tailor.audit_log)`)
	mustExec(t, direct, `UPDATE tailor.audit_entry SET principal = 'nobody'
		WHERE position = (SELECT min(position) FROM tailor.audit_entry)`)
	text := s.reportOf(t, "md", "--since", "1h")
	for _, want := range []string{
		"was verified and is not whole", "**The record of what was asked has faults",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("after a change of the log: no %q in\n%s", want, text)
		}
	}
}

// moving are the parts of a report that are others each time.
var moving = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d`), "TIME"},
	{regexp.MustCompile(`chain [0-9a-f]{32}: records 1 to \d+`), "chain LOG: records 1 to N"},
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "HASH"},
	{regexp.MustCompile(`epoch \d+, chain \d+`), "epoch N, chain N"},
	{regexp.MustCompile(`record [0-9a-f]{32}`), "record ID"},
}

// TestTheReportOfTheHospitalIsAsReviewed has the whole text; -update-report writes it.
func TestTheReportOfTheHospitalIsAsReviewed(t *testing.T) {
	s, err := newStand(filepath.Join(stands, "report_hospital"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	p := s.serve(t)
	direct := s.superuser(t)
	allShown(t, direct)
	conn := connect(t, p.dsn("researcher"))
	for _, sql := range []string{
		"SELECT age, count(*) FROM patients WHERE sex = 'female' GROUP BY age",
		"SELECT avg(cost) FROM visits",
		"SELECT name FROM patients",
	} {
		_, _ = conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
	}
	waitFor(t, func() bool {
		return one[int](t, direct, `SELECT count(*) FROM tailor.audit WHERE rows IS NOT NULL`) == 3
	})
	got := s.reportOf(t, "md", "--since", "1h")
	for _, m := range moving {
		got = m.what.ReplaceAllString(got, m.by)
	}
	golden := filepath.Join("testdata", "report.txt")
	if *updateReport {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || got != string(want) {
		t.Errorf("%v: the report is\n%s\nwant\n%s", err, got, want)
	}
	printsWell(t, s)
}

// printsWell makes a PDF, and none if there is nothing that can.
func printsWell(t *testing.T, s *testCluster) {
	out := filepath.Join(t.TempDir(), "report.pdf")
	args := []string{
		"report", "--dsn", s.dbaDSN(), "--since", "1h", "--format", "pdf", "--out", out,
	}
	without := exec.Command(binary, args...)
	without.Env = []string{"PATH=/nowhere"}
	said, err := without.CombinedOutput()
	if err == nil || without.ProcessState.ExitCode() != 1 ||
		!strings.Contains(string(said), "chromium") {
		t.Errorf("without chromium: %v, %s", err, said)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("without chromium there is a file")
	}
	if _, err := exec.LookPath("chromium"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("chromium is not installed; scripts/prepare installs it")
		}
		t.Skip("chromium is not installed; scripts/prepare installs it")
	}
	if _, stderr, code := tailor(t, args...); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if text, err := os.ReadFile(out); err != nil || len(text) < 10_000 ||
		!strings.HasPrefix(string(text), "%PDF-") {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

// oddReport has a table and columns of names that are markup, whose policy has values that
// no release shows: in a list, in a query.
const oddReport = `
CREATE TABLE "o|d<b>d_*" (id integer PRIMARY KEY, "c|<i>_" text, hidden text);
INSERT INTO "o|d<b>d_*" SELECT n, CASE n WHEN 1 THEN 'canary-a' ELSE 'common' END, 'canary-b'
	FROM generate_series(1, 100) n;
CALL tailor.define_hierarchy('odd', 'table',
	'{"paths": [["canary-a", "few"], ["common", "many"]]}');
CALL tailor.protect('"o|d<b>d_*"', subject => 'id', k => 5);
CALL tailor.classify('"o|d<b>d_*"', 'c|<i>_', 'quasi_identifier', hierarchy => 'odd');
CALL tailor.activate('"o|d<b>d_*"');
CALL tailor.define_dataset('"odd set"', $q$
	SELECT id, "c|<i>_", hidden = 'canary-c' AS found FROM "o|d<b>d_*" $q$, subject => 'id');
CALL tailor.classify('"odd set"', 'found', 'non_sensitive');
CALL tailor.activate('"odd set"');`

func TestAReportNamesWhatHasChangedInAPolicy(t *testing.T) {
	s, err := newStand(filepath.Join(stands, "report_changes"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	s.serve(t)
	direct := s.superuser(t)
	allShown(t, direct)
	before := filepath.Join(t.TempDir(), "before.json")
	first := s.reportOf(t, "html", "--since", "1h", "--json", before)
	if !strings.Contains(first, "protected for the first time") {
		t.Errorf("the first report lacks the first policies:\n%s", first)
	}
	dba := connect(t, s.dbaDSN())
	for _, sql := range []string{
		`CALL tailor.protect('patients', subject => 'id', k => 8)`,
		`CALL tailor.classify('patients', 'cost', 'sensitive')`,
		`CALL tailor.define_hierarchy('sex', 'table', '{"paths": [["female", "canary-e"],
			["male", "canary-e"]]}')`,
		`CALL tailor.departures('patients', 'at_once')`,
		`CALL tailor.activate('patients')`, `CALL tailor.forget_chains('visits')`,
	} {
		mustExec(t, dba, sql)
	}
	mustExec(t, direct, `CREATE ROLE newcomer LOGIN; CALL tailor.grant_reader('newcomer');
		GRANT INSERT ON visits TO newcomer; REVOKE tailor_reader FROM researcher`)
	mustExec(t, dba, oddReport)
	told := []string{
		"k: 8, before 5", "column cost: sensitive, as it is; before: non-sensitive, as it is",
		"the hierarchy of column sex: changed", "departures: Who leaves the table is not shown",
		"gone: researcher", "newcomer", "visits: readers were shown it anew, 1 time so far",
	}
	for format, escaped := range map[string][]string{
		"md":   {`public."o\|d&lt;b>d\_\*"`, `| c\|&lt;i>\_ |`},
		"html": {`public.&#34;o|d&lt;b&gt;d_*&#34;`, `<td>c|&lt;i&gt;_<wbr/></td>`},
		"json": nil,
	} {
		text := s.reportOf(t, format, "--previous", before)
		want := append(escaped, told...)
		if format != "json" {
			want = append(want, "Since the report of")
		}
		for _, w := range want {
			if format == "md" && !strings.Contains(w, `\`) {
				w = strings.ReplaceAll(w, "_", `\_`)
			}
			if !strings.Contains(text, w) {
				t.Errorf("%s lacks %q:\n%s", format, w, text)
			}
		}
		if strings.Contains(text, "canary") {
			t.Errorf("%s tells a value:\n%s", format, text)
		}
		if format == "html" {
			isAPageOfItsOwn(t, text)
		}
	}
	told = []string{"k: 8, before 5"}
	if text := s.reportOf(t, "md", "--since", one[string](t, direct, `SELECT
			to_char(created - interval '1 ms', 'YYYY-MM-DD"T"HH24:MI:SS.USOF":00"')
			FROM tailor.policy_history WHERE relation = 'patients'::regclass AND version = 2`),
	); !strings.Contains(text, told[0]) || strings.Contains(text, "newcomer (") {
		t.Errorf("without the report before:\n%s", text)
	}
	othersTables(t, s, direct)
}

// othersTables: who has not the rights of the owner is told of the policies alone, and that
// this is so.
func othersTables(t *testing.T, s *testCluster, direct *pgx.Conn) {
	mustExec(t, direct, `CREATE ROLE auditor LOGIN PASSWORD 'auditor'; GRANT tailor_admin TO auditor`)
	stdout, stderr, code := tailor(t, "report", "--since", "1h", "--dsn",
		strings.Replace(s.dbaDSN(), "dba:dba", "auditor:auditor", 1))
	if code != 0 || !strings.Contains(stdout, "auditor has not the rights of their owner") ||
		!strings.Contains(stdout, "| diagnosis | sensitive | as it is | – | – |") {
		t.Errorf("exit code %d: %s%s", code, stderr, stdout)
	}
}

// isAPageOfItsOwn wants HTML to be well-formed, to run nothing and to ask for nothing, and its
// links to lead somewhere.
func isAPageOfItsOwn(t *testing.T, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	d.Entity = xml.HTMLEntity
	ids := make(map[string]bool)
	var links []string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		switch e.Name.Local {
		case "script", "link", "img", "iframe", "object", "embed", "form", "svg":
			t.Errorf("has an element %s", e.Name.Local)
		}
		for _, a := range e.Attr {
			switch name := a.Name.Local; {
			case name == "id":
				ids[a.Value] = true
			case name == "href" && strings.HasPrefix(a.Value, "#"):
				links = append(links, a.Value[1:])
			case name == "href" || name == "src" || name == "style" || strings.HasPrefix(name, "on"):
				t.Errorf("has an attribute %s=%q", name, a.Value)
			}
		}
	}
	if strings.Contains(text, "url(") || strings.Contains(text, "@import") {
		t.Error("the style asks for something")
	}
	if len(links) < 10 {
		t.Errorf("%d links in the table of contents", len(links))
	}
	for _, id := range links {
		if !ids[id] {
			t.Errorf("#%s leads nowhere", id)
		}
	}
}

func TestReportsAreWrittenInWholeOrNotAtAll(t *testing.T) {
	out := filepath.Join(t.TempDir(), "report")
	if err := os.WriteFile(out, []byte("the last one"), 0o600); err != nil {
		t.Fatal(err)
	}
	dsn := shared.dbaDSN()
	to := []string{"--dsn", dsn, "--since", "1h"}
	other := filepath.Join(t.TempDir(), "other.json")
	text, err := json.Marshal(map[string]any{
		"report_form": 1, "made": "2026-01-01T00:00:00Z", "database": "another",
	})
	if err == nil {
		err = os.WriteFile(other, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		code int
		said string
	}{
		"no period":            {[]string{"--dsn", dsn}, 2, "--since"},
		"no database":          {[]string{"--since", "1h"}, 2, "--dsn"},
		"an unknown format":    {append(to[:4:4], "--format", "doc"), 2, "--format"},
		"no time":              {[]string{"--dsn", dsn, "--since", "soon"}, 2, "--help"},
		"no server":            {append(to[:4:4], "--dsn", "postgres://dba:x@127.0.0.1:1/x"), 1, "--dsn"},
		"no report before":     {[]string{"--dsn", dsn, "--previous", out}, 1, "no report in JSON"},
		"a file that is not":   {[]string{"--dsn", dsn, "--previous", out + "x"}, 1, "no such file"},
		"of another database":  {[]string{"--dsn", dsn, "--previous", other}, 1, "another database"},
		"a folder that is not": {append(to[:4:4], "--json", "/nowhere/x"), 1, "/nowhere"},
		"the same file twice":  {append(to[:4:4], "--json", out), 2, "same file"},
	} {
		_, stderr, code := tailor(t, append([]string{"report", "--out", out}, c.args...)...)
		if code != c.code || !strings.Contains(stderr, c.said) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d, want %d; %s", name, code, c.code, stderr)
		}
		if text, err := os.ReadFile(out); err != nil || string(text) != "the last one" {
			t.Errorf("%s: the file holds %q, %v", name, text, err)
		}
	}
	_, stderr, code := tailor(t, append([]string{"report", "--format", "pdf"}, to...)...)
	if code != 2 || !strings.Contains(stderr, "--out") {
		t.Errorf("a PDF to the standard output: exit code %d, %s", code, stderr)
	}
}

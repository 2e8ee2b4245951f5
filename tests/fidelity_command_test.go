package tests

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hiatus-tailor/tailor/internal/fidelity"
)

func TestFidelityWritesFilesForTheirOwnerOnly(t *testing.T) {
	p := shared.serve(t)
	for format, wants := range map[string][]string{
		"text": {"WORST CELLS", "refused", "public.patients.age", "42501 permission denied for column"},
		"html": {"<svg", "</html>", "Single years of age", "42501 permission denied for column"},
		"json": {`"outcome": "refused"`},
	} {
		out := filepath.Join(t.TempDir(), "fidelity")
		code, stdout, stderr := tool(
			t,
			fidelityArgs(t, p, "--workload", hospitalWorkload, "--format", format, "--out", out)...)
		raw, err := os.ReadFile(out)
		if err != nil || code != 0 || stdout != "" || stderr != "" {
			t.Fatalf("%s: exit %d, %q, %q, %v", format, code, stdout, stderr, err)
		}
		if info, err := os.Stat(out); err != nil || info.Mode() != fs.FileMode(0o600) {
			t.Errorf("%s: mode %v, %v", format, info.Mode(), err)
		}
		for _, want := range append(wants, fidelity.Note) {
			if !strings.Contains(string(raw), want) {
				t.Errorf("%s: no %q in\n%s", format, want, raw)
			}
		}
		if strings.Contains(string(raw), "<script") {
			t.Errorf("%s has a script", format)
		}
	}
}

// TestFidelityKeepsWhatItHasMeasured holds what the console is given against the report.
func TestFidelityKeepsWhatItHasMeasured(t *testing.T) {
	p := shared.serve(t)
	workload := workloadFile(t, `-- ages
SELECT age, count(*) FROM patients GROUP BY age;
-- one cell
SELECT avg(cost) FROM visits;
-- names
SELECT name, age FROM patients;`)
	code, stdout, stderr := tool(t, fidelityArgs(t, p, "--workload", workload, "--at-least", "1",
		"--format", "json", "--keep")...)
	if code != 0 || stderr != "" {
		t.Fatalf("exit %d, %s", code, stderr)
	}
	var report fidelity.Report
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatal(err)
	}
	direct := shared.superuser(t)
	kept := func(table string) (s fidelity.TableSummary) {
		t.Helper()
		raw := one[[]byte](t, direct, `SELECT summary FROM tailor.fidelity f
			JOIN tailor.protection p USING (relation) WHERE f.version = p.active
			AND f.author = 'dba' AND relation = '`+table+`'::regclass`)
		if err := json.Unmarshal(raw, &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	ages := report.Queries[0].Comparison.Large
	got := kept("public.patients")
	if got.Queries != 2 || got.Compared != 1 || got.Cells != ages.Cells || got.Cells < 50 {
		t.Errorf("kept of patients: %+v, measured %d cells", got, ages.Cells)
	}
	if got.Median == nil || math.Abs(*got.Median-*ages.Median) > 0.000501 ||
		got.P90 == nil || math.Abs(*got.P90-*ages.P90) > 0.000501 {
		t.Errorf("kept are %v and %v of %v and %v", got.Median, got.P90, *ages.Median, *ages.P90)
	}
	if len(got.Refused) != 1 || got.Refused[0].Name != "names" ||
		!strings.Contains(got.Refused[0].Reason, "permission denied") {
		t.Errorf("refused: %+v", got.Refused)
	}
	// The error of a single cell would give the true figure away.
	if v := kept("public.visits"); v.Cells != 1 || v.Median != nil || v.P90 != nil {
		t.Errorf("kept of one cell: %+v", v)
	}
	// No reader: one who administers policies would keep every table from being activated.
	mustExec(t, direct, `CREATE ROLE keeps_others LOGIN PASSWORD 'keeps_others' IN ROLE tailor_admin`)
	_, err := connect(t, fmt.Sprintf("postgres://%[1]s:%[1]s@%[2]s/hospital?sslmode=disable",
		"keeps_others",
		p.cluster.Address())).Exec(t.Context(), `CALL tailor.keep_fidelity('public.patients', '{}')`)
	if codeIn(err) != "42501" {
		t.Errorf("somebody who does not own the table keeps a summary: %v", err)
	}
}

func TestFidelitySaysWhatIsWrong(t *testing.T) {
	p := shared.serve(t)
	reader, address := p.reader(t), p.cluster.Address()
	direct := func(user string) string {
		return fmt.Sprintf("postgres://%[1]s:%[1]s@%[2]s/hospital?sslmode=disable", user, address)
	}
	workload := workloadFile(t, "SELECT count(*) FROM patients")
	for _, c := range []struct {
		claim, dsn, proxy, workload string
		more                        []string
		code                        int
		fault                       string
	}{
		{"no owner", "", p.dsn(reader), workload, nil, 2, "--dsn is missing"},
		{"no proxy", direct("dba"), "", workload, nil, 2, "--proxy is missing"},
		{"no workload", direct("dba"), p.dsn(reader), "", nil, 2, "--workload is missing"},
		{
			"an unknown format", direct("dba"), p.dsn(reader), workload,
			[]string{"--format", "xml"},
			2, "none of text, json, html",
		},
		{
			"nobody at least", direct("dba"), p.dsn(reader), workload,
			[]string{"--at-least", "0"},
			2, "--at-least",
		},
		{
			"no time", direct("dba"), p.dsn(reader), workload,
			[]string{"--statement-timeout", "0"},
			2, "--statement-timeout",
		},
		{
			"a wrong password", "postgres://dba:nonsense@" + address + "/hospital?sslmode=disable",
			p.dsn(reader), workload,
			nil, 1, "28P01; check user, password and database of --dsn",
		},
		{
			"a DSN that is none", "host=a port=nonsense", p.dsn(reader), workload,
			nil, 2, "the DSN cannot be read",
		},
		{
			"no proxy there", direct("dba"), "postgres://x:nonsense@127.0.0.1:1/hospital", workload,
			nil, 1, "check --proxy",
		},
		{
			"PostgreSQL for the proxy", direct("dba"), direct(reader), workload,
			nil, 1, "leads to PostgreSQL and not to a proxy",
		},
		{"an owner for the reader", direct("dba"), p.dsn("dba"), workload, nil, 1, "is no reader"},
		{
			"a reader for the owner", direct(reader), p.dsn(reader), workload,
			nil, 1, "connect as the owner",
		},
		{
			"two databases", strings.Replace(direct("dba"), "/hospital", "/postgres", 1),
			p.dsn(reader), workload,
			nil, 1, "different databases",
		},
		{
			"an empty workload", direct("dba"), p.dsn(reader), workloadFile(t, "-- nothing\n;"),
			nil, 1, "holds no query",
		},
		{
			"no file", direct("dba"), p.dsn(reader), filepath.Join(t.TempDir(), "none.sql"),
			nil, 1, "no such file",
		},
		{
			"no folder for the report", direct("dba"), p.dsn(reader), workload,
			[]string{"--out", filepath.Join(t.TempDir(), "a", "b")},
			1, "no such file",
		},
	} {
		t.Run(c.claim, func(t *testing.T) {
			code, stdout, stderr := tool(
				t,
				append(
					[]string{"fidelity", "--dsn", c.dsn, "--proxy", c.proxy, "--workload", c.workload},
					c.more...)...)
			if code != c.code || stdout != "" || !strings.Contains(stderr, c.fault) ||
				strings.Count(stderr, "\n") != 1 ||
				!strings.Contains(stderr, "; ") {
				t.Errorf("exit %d, %q, %q", code, stdout, stderr)
			}
			if strings.Contains(stderr, "nonsense") {
				t.Errorf("a password is shown: %s", stderr)
			}
		})
	}
	if code, stdout, _ := tool(t, "fidelity", "--help"); code != 0 ||
		!strings.Contains(stdout, "-at-least") ||
		!strings.Contains(stdout, "docs/policies.md") {
		t.Errorf("help: exit %d, %s", code, stdout)
	}
}

func TestFidelityCanBeInterrupted(t *testing.T) {
	p := shared.serve(t)
	direct := p.superuser(t)
	out := filepath.Join(t.TempDir(), "report")
	workload := workloadFile(
		t,
		"SELECT count(*) AS interrupted FROM patients, generate_series(1, 1000000000)",
	)
	cmd := exec.CommandContext(
		t.Context(),
		binary,
		fidelityArgs(t, p, "--workload", workload, "--out", out)...)
	said := &safeBuffer{}
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	const running = `SELECT count(*) > 0 FROM pg_stat_activity 
		WHERE query LIKE '%AS interrupted%' AND state = 'active' AND pid <> pg_backend_pid()`
	waitFor(t, func() bool { return one[bool](t, direct, running) })
	_ = cmd.Process.Signal(syscall.SIGTERM) // which no shell has its children ignore
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 1 ||
		!strings.Contains(said.String(), "interrupted; nothing was written") {
		t.Errorf("exit %d, %s", code, said)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a report was written")
	}
	waitFor(t, func() bool { return !one[bool](t, direct, running) })
}

// TestFidelityRunsNoReadersCode has a reader whose sessions look into a schema of the reader's
// own first, where a function fails if it runs as anybody else.
func TestFidelityRunsNoReadersCode(t *testing.T) {
	p := shared.serve(t)
	reader := p.reader(t)
	super := shared.superuser(t)
	mustExec(t, super, fmt.Sprintf(`CREATE SCHEMA lab_%[1]s AUTHORIZATION %[1]s`, reader))
	own := connect(t, fmt.Sprintf("postgres://%[1]s:%[1]s@%[2]s/hospital?sslmode=disable", reader,
		p.cluster.Address()))
	mustExec(t, own, fmt.Sprintf(`SET search_path = lab_%[1]s;
GRANT USAGE ON SCHEMA lab_%[1]s TO PUBLIC;
CREATE FUNCTION upper(text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
	IF current_user <> '%[1]s' THEN RAISE 'caught'; END IF;
	RETURN pg_catalog.upper($1); END $$;
ALTER ROLE %[1]s IN DATABASE hospital SET search_path = lab_%[1]s, pg_catalog, public`, reader))
	workload := workloadFile(t,
		"SELECT sex, count(*) FROM patients WHERE upper(sex) = 'MALE' GROUP BY sex")
	run := func() (int, string) {
		code, stdout, stderr := tool(t, "fidelity", "--proxy", p.dsn(reader), "--workload", workload,
			"--dsn", fmt.Sprintf("postgres://dba:dba@%s/hospital?sslmode=disable", p.cluster.Address()))
		return code, stdout + stderr
	}
	refused := func(claim string) {
		t.Helper()
		if code, told := run(); code != 1 || !strings.Contains(told, "schema lab_"+reader) ||
			strings.Contains(told, "P0001") {
			t.Errorf("%s: exit %d, %s", claim, code, told)
		}
	}
	refused("a schema of the reader's")
	mustExec(t, super, fmt.Sprintf(
		`ALTER SCHEMA lab_%[1]s OWNER TO dba; REVOKE ALL ON SCHEMA lab_%[1]s FROM %[1]s`, reader))
	refused("a function of the reader's")
	mustExec(t, super, fmt.Sprintf(`DROP FUNCTION lab_%[1]s.upper(text)`, reader))
	if code, told := run(); code != 0 || !strings.Contains(told, "1 compared") {
		t.Errorf("with nothing of the reader's: exit %d, %s", code, told)
	}
}

package tests

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hiatus-tailor/tailor/internal/demodata"
)

// TestPolicyInit guides through the hospital before anything of it is protected.
func TestPolicyInit(t *testing.T) {
	const database = "first_policy"
	conn := makeDatabase(t, database, demodata.Schema+`;
CREATE TABLE nobody_yet (id int PRIMARY KEY, age int);
CREATE TABLE scales (id int PRIMARY KEY, weight float8, day date);
INSERT INTO scales SELECT n, CASE WHEN n = 7 THEN float8 'NaN' ELSE 50 + n % 40 END,
	CASE WHEN n = 7 THEN date 'infinity' ELSE date '2020-01-01' + n % 50 END
	FROM generate_series(1, 400) n;
CREATE VIEW elders AS SELECT * FROM patients WHERE age > 60;
GRANT SELECT ON zip_city TO PUBLIC;`)
	if err := demodata.Fill(t.Context(), conn, demodata.MinPatients); err != nil {
		t.Fatal(err)
	}
	dsn := shared.cluster.SuperuserDSN(database)
	if code, _, stderr := tool(t, "policy", "init", "--dsn", dsn, "--yes"); code != 1 ||
		!strings.Contains(stderr, "run tailor install") {
		t.Errorf("not installed: exit %d, %q", code, stderr)
	}
	if err := shared.install(t.Context(), database); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		run  func(t *testing.T, dsn string)
	}{
		{"answers that end early leave nothing behind", endsWithoutAFile},
		{"an interrupt leaves nothing behind", interruptedWithoutAFile},
		{"a file that is there is not overwritten", overwritesNothing},
		{"answers of a pipe are what the file says", takesAnswers},
		{"what is suggested can be applied and read", appliesWhatIsSuggested},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, dsn) })
	}
}

// initialize runs policy init with answers.
func initialize(t *testing.T, answers string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, append([]string{"policy", "init"}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(answers), &out, &errs
	_ = cmd.Run() // its code tells
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// assertEmpty wants a folder without files, hidden ones too.
func assertEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

func endsWithoutAFile(t *testing.T, dsn string) {
	for answers, want := range map[string]struct {
		code  int
		fault string
	}{
		"":                        {2, "no terminal and has no answers; run it in a terminal, or add"},
		"\n\n\n":                  {1, "the answers end before the last question; nothing was written"},
		strings.Repeat("\n", 100): {0, ""},
	} {
		dir := t.TempDir()
		code, stdout, stderr := initialize(t, answers, "--dsn", dsn, "--out",
			filepath.Join(dir, "p.yaml"))
		if code != want.code || !strings.Contains(stderr, want.fault) {
			t.Errorf("%q: exit %d, %q\n%s", answers, code, stderr, stdout)
		}
		if want.code != 0 {
			assertEmpty(t, dir)
		}
	}
	if code, stdout, stderr := tool(t, "policy", "init", "--dsn", dsn, "--out", "-"); code != 2 ||
		stdout != "" || !strings.Contains(stderr, "no terminal") {
		t.Errorf("the null device: exit %d, %q, %q", code, stdout, stderr)
	}
}

// interruptedWithoutAFile sends Ctrl-C while a question waits.
func interruptedWithoutAFile(t *testing.T, dsn string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := t.TempDir()
	cmd := exec.CommandContext(ctx, binary, "policy", "init", "--dsn", dsn,
		"--out", filepath.Join(dir, "p.yaml"))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	part := make([]byte, 1000)
	for !strings.Contains(said.String(), "whom is a row about?") {
		n, err := stdout.Read(part)
		if err != nil {
			t.Fatalf("%v after %q, %q", err, said.String(), errs.String())
		}
		said.Write(part[:n])
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, stdout)
	_ = cmd.Wait() // its code tells
	code := cmd.ProcessState.ExitCode()
	if code != 1 || !strings.Contains(errs.String(), "interrupt") {
		t.Errorf("exit %d, %q", code, errs.String())
	}
	assertEmpty(t, dir)
}

func overwritesNothing(t *testing.T, dsn string) {
	path := policyFile(t, "kept")
	code, _, stderr := tool(t, "policy", "init", "--dsn", dsn, "--yes", "--out", path)
	if code != 2 || !strings.Contains(stderr, "add --force") {
		t.Errorf("exit %d, %q", code, stderr)
	}
	if kept, err := os.ReadFile(path); err != nil || string(kept) != "kept" {
		t.Errorf("%q, %v", kept, err)
	}
	if code, _, stderr := tool(t, "policy", "init", "--dsn", dsn, "--yes", "--force", "--out",
		path); code != 0 {
		t.Errorf("exit %d, %q", code, stderr)
	}
	if code, _, stderr := tool(t, "policy", "lint", path); code != 0 {
		t.Error(stderr)
	}
}

// takesAnswers leaves out all tables but the patients, and hides their diagnosis.
func takesAnswers(t *testing.T, dsn string) {
	path := filepath.Join(t.TempDir(), "p.yaml")
	answers := []string{
		"x",                                        // icd9
		"id",                                       // patients
		"", "", "", "", "", "q", "", "q", "h", "k", // name to cost
		"x",      // scales
		"",       // zip_city, which everybody may read
		"x", "x", // diagnoses, visits
		"3",
	}
	code, stdout, stderr := initialize(t, strings.Join(answers, "\n"), "--dsn", dsn, "--out", path)
	last := stdout[strings.LastIndex(strings.TrimSuffix(stdout, "\n"), "\n")+1:]
	if code != 0 || !strings.HasSuffix(last, "tailor policy plan --dsn DSN "+path+"\n") {
		t.Fatalf("exit %d, %q\n%s", code, stderr, stdout)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"k: 11",
		"diagnosis: {class: direct_identifier} # as answered; suggested was sensitive",
		"cost: {class: non_sensitive} # as answered; suggested was quasi-identifier",
		"ssn: {class: direct_identifier} # medium confidence: its values are US social security",
		"# public.nobody_yet: it is empty", "# public.elders: a view;",
		"# public.zip_city: everybody may read it", "# public.visits: as answered",
	} {
		if !strings.Contains(string(raw), line) {
			t.Errorf("the file does not say %s", line)
		}
	}
	if strings.Contains(string(raw), "public.visits:\n") {
		t.Errorf("it has a table that was left out:\n%s", raw)
	}
	if code, stdout, stderr := tool(t, "policy", "plan", "--dsn", dsn, path); code != 0 ||
		!strings.Contains(stdout, "Plan: 1 tables to protect") {
		t.Errorf("exit %d, %q\n%s", code, stderr, stdout)
	}
}

// appliesWhatIsSuggested plans and applies the file as it was written, and reads through a
// proxy.
func appliesWhatIsSuggested(t *testing.T, dsn string) {
	path := filepath.Join(t.TempDir(), "p.yaml")
	code, stdout, stderr := tool(t, "policy", "init", "--dsn", dsn, "--yes", "--out", path)
	if code != 0 || strings.Contains(stdout, "q, s, k, h") {
		t.Fatalf("exit %d, %q\n%s", code, stderr, stdout)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const endless = "NaN and infinite values have no place in a hierarchy"
	if text := string(raw); strings.Count(text, "subject: patient_id\n") != 2 ||
		!strings.Contains(text, "set_valued: {column: code, m: 2}") ||
		strings.Count(text, endless) != 2 {
		t.Errorf("the file does not say whom visits and diagnoses are about:\n%s", text)
	}
	code, stdout, stderr = tool(t, "policy", "plan", "--dsn", dsn, path)
	if code != 0 || !strings.Contains(stdout, "Plan: 5 tables to protect") ||
		strings.Contains(stdout, "  ! ") || strings.Contains(stdout, "  ? ") {
		t.Fatalf("exit %d, %q\n%s", code, stderr, stdout)
	}
	if code, stdout, stderr = tool(t, "policy", "apply", "--dsn", dsn, path); code != 0 ||
		!strings.HasPrefix(stdout, "applied: 5 of 5 tables activated") {
		t.Fatalf("exit %d, %q\n%s", code, stderr, stdout)
	}
	if _, stdout, _ = tool(t, "policy", "init", "--dsn", dsn, "--yes", "--out", "-"); stdout != "" {
		t.Errorf("tables that are protected are drafted again:\n%s", stdout)
	}
	conn := connect(t, dsn)
	mustExec(t, conn, `CREATE ROLE first_reader LOGIN PASSWORD 'first_reader';
CALL tailor.grant_reader('first_reader')`)
	p := shared.serve(t, "--service-dsn", shared.cluster.ServiceDSN("first_policy"))
	p.database = "first_policy"
	reader := connect(t, p.dsn("first_reader"))
	if n := one[int](t, reader, `SELECT count(*) FROM patients`); n != demodata.MinPatients {
		t.Errorf("%d patients are read", n)
	}
	if n := one[int](t, reader, `SELECT max(age) FROM patients`); n < 60 || n > 119 {
		t.Errorf("the oldest is %d", n)
	}
	for _, table := range []string{"visits", "diagnoses"} {
		if n := one[int](t, reader, `SELECT count(*) FROM `+table); n < demodata.MinPatients {
			t.Errorf("%d rows of %s are read", n, table)
		}
	}
	for _, column := range []string{"name", "ssn", "id"} {
		refused(t, reader, "42501", `SELECT `+column+` FROM patients`)
	}
}

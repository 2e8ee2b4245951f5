package tests

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// tailor runs a command of the binary and returns what it printed and its exit
// code.
func tailor(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// someQueries asks a few things as a reader of its own and waits until all of
// it is recorded.
func someQueries(t *testing.T, p *testProxy) (user string) {
	t.Helper()
	user = p.reader(t)
	conn := connect(t, p.dsn(user))
	for range 5 {
		if n := one[int](t, conn, "SELECT count(age) FROM patients",
			pgx.QueryExecModeSimpleProtocol); n != patients {
			t.Fatal(n)
		}
	}
	direct := p.superuser(t)
	waitFor(t, func() bool {
		return one[int](t, direct, `SELECT count(*) FROM tailor.audit WHERE principal = $1 AND rows = 1`,
			user) == 5
	})
	return user
}

func TestTamperingWithTheAuditFileIsFound(t *testing.T) {
	p := shared.serve(t)
	someQueries(t, p)
	p.stop(t)
	whole, err := os.ReadFile(p.auditTo)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	lines = lines[:len(lines)-1]
	if len(lines) < 10 {
		t.Fatalf("%d lines, want 10", len(lines))
	}
	var last struct{ Hash string }
	if err := json.Unmarshal(lines[len(lines)-1], &last); err != nil {
		t.Fatal(err)
	}
	dsn := shared.cluster.SuperuserDSN("hospital")
	join := func(parts ...[][]byte) []byte {
		var all []byte
		for _, p := range parts {
			all = append(all, bytes.Join(p, nil)...)
		}
		return all
	}
	altered := bytes.Clone(whole)
	altered[bytes.Index(altered, []byte(`"principal":"`))+14] ^= 1
	cases := []struct {
		claim   string
		content []byte
		args    []string
		want    string // in a fault; empty for none
	}{
		{"an untouched file", whole, nil, ""},
		{"an untouched file and table", whole, []string{"--dsn", dsn}, ""},
		{"an untouched file with its head", whole, []string{"--anchor", last.Hash}, ""},
		{"a byte changed", altered, nil, "was altered"},
		{"a record removed", join(lines[:3], lines[4:]), nil, "record 4 of chain"},
		{"two records swapped", join(lines[:3], lines[4:5], lines[3:4], lines[5:]), nil, "is missing"},
		{"a record repeated", join(lines[:4], lines[3:]), nil, "comes again"},
		{"the first records removed", join(lines[2:]), nil, "records 1 to 2"},
		{
			"the tail cut, by the database", join(lines[:len(lines)-2]),
			[]string{"--dsn", dsn},
			"the tail of chain",
		},
		{
			"the tail cut, by a hash noted before", join(lines[:len(lines)-2]),
			[]string{"--anchor", last.Hash},
			"noted earlier, is missing",
		},
		{
			"a line that was never finished", whole[:len(whole)-20],
			[]string{"--dsn", dsn},
			"the tail of chain",
		},
	}
	for _, c := range cases {
		t.Run(c.claim, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			if err := os.WriteFile(path, c.content, 0o600); err != nil {
				t.Fatal(err)
			}
			// Only this file's chain is asked for: the table has those of other tests.
			out, stderr, code := tailor(t, append([]string{"audit", "--verify", "--file", path},
				c.args...)...)
			if c.want == "" && code != 0 {
				t.Errorf("exit code %d: %s %s", code, out, stderr)
			}
			if c.want != "" && (code != 1 || !strings.Contains(out, c.want)) {
				t.Errorf("exit code %d, want 1 and %q: %s %s", code, c.want, out, stderr)
			}
		})
	}
}

func TestTamperingWithTheAuditTableIsFound(t *testing.T) {
	s, err := newStand(filepath.Join(stands, "tampering"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	// Two proxies write: two chains, both whole.
	one1, two := s.serve(t), s.serve(t)
	someQueries(t, one1)
	connect(t, two.dsn("dba"))
	if out, _, _ := two.psql(t, "dba", "-Atc",
		"SELECT count(*) FROM patients"); strings.TrimSpace(out) != fmt.Sprint(patients) {
		t.Fatal(out)
	}
	one1.stop(t)
	two.stop(t)
	conn := s.superuser(t)
	dsn := s.cluster.SuperuserDSN("hospital")
	out, stderr, code := tailor(t, "audit", "--verify", "--dsn", dsn, "--format", "json")
	var report struct{ Chains []struct{ Log string } }
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != 0 ||
		len(report.Chains) != 2 {
		t.Fatalf("two proxies: exit code %d, %s %s", code, out, stderr)
	}
	cases := []struct{ claim, sql, want string }{
		{
			"a line changed",
			`UPDATE tailor.audit_log SET record = replace(record::text, '"principal":"test', ` +
				`'"principal":"best')::json WHERE sequence = 1`, "was altered",
		},
		{
			"a list that shows something else",
			`UPDATE tailor.audit_entry SET principal = 'nobody' WHERE principal <> 'dba'`,
			"lists show something else",
		},
		{
			"a list that leaves something out", `DELETE FROM tailor.audit_entry WHERE verdict = 'passed'`,
			"lists do not show it",
		},
		{"a record removed", `DELETE FROM tailor.audit_log WHERE sequence = 2`, "record 2 of chain"},
		{"the tail cut", `DELETE FROM tailor.audit_log l USING tailor.audit_head h WHERE l.log = h.log ` +
			`AND l.sequence > 3`, "the tail of chain"},
		{"the tail cut, and the head with it", `DELETE FROM tailor.audit_log l WHERE sequence > 3;
			UPDATE tailor.audit_head h SET sequence = 3, hash = (SELECT record ->> 'hash'
				FROM tailor.audit_log l WHERE l.log = h.log AND sequence = 3)
			WHERE sequence > 3;
			DELETE FROM tailor.audit_entry e WHERE NOT EXISTS (SELECT FROM tailor.audit_log l
				WHERE l.position = e.position)`, "FILE"},
		{
			"a chain removed",
			`DELETE FROM tailor.audit_log WHERE log = (SELECT min(log) FROM tailor.audit_log)`,
			"is missing, all",
		},
	}
	for _, c := range cases {
		t.Run(c.claim, func(t *testing.T) {
			mustExec(t, conn, `CREATE SCHEMA saved; CREATE TABLE saved.audit_log AS TABLE tailor.audit_log;
				CREATE TABLE saved.audit_entry AS TABLE tailor.audit_entry;
					CREATE TABLE saved.audit_head AS TABLE tailor.audit_head`)
			defer mustExec(t, conn, `TRUNCATE tailor.audit_log, tailor.audit_entry, tailor.audit_head;
				INSERT INTO tailor.audit_log OVERRIDING SYSTEM VALUE TABLE saved.audit_log;
				INSERT INTO tailor.audit_entry TABLE saved.audit_entry;
					INSERT INTO tailor.audit_head TABLE saved.audit_head; DROP SCHEMA saved CASCADE`)
			mustExec(t, conn, c.sql)
			args := []string{"audit", "--verify", "--dsn", dsn}
			want := c.want
			if want == "FILE" { // only the other sink knows
				args, want = append(args, "--file", one1.auditTo), "which the file has, are missing"
			}
			out, stderr, code := tailor(t, args...)
			if code != 1 || !strings.Contains(out, want) {
				t.Errorf("exit code %d, want 1 and %q: %s %s", code, want, out, stderr)
			}
		})
	}
}

func TestAFailedInsertLeavesFileAndTableTheSame(t *testing.T) {
	s, err := newStand(filepath.Join(stands, "mended"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	p := s.serve(t)
	user := s.reader(t)
	conn := connect(t, p.dsn(user))
	direct := s.superuser(t)
	count := func() error {
		_, err := conn.Exec(t.Context(), "SELECT count(age) FROM patients",
			pgx.QueryExecModeSimpleProtocol)
		return err
	}
	if err := count(); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, "ALTER TABLE tailor.audit_entry RENAME TO audit_entry_away")
	for range 3 {
		var answer *pgconn.PgError
		if err := count(); !errors.As(err, &answer) || answer.Code != "KA005" {
			t.Errorf("while the table is away: %v, want KA005", err)
		}
		if _, err := conn.Exec(t.Context(), "SELECT 1"); err != nil {
			t.Error(err)
		}
	}
	mustExec(t, direct, "ALTER TABLE tailor.audit_entry_away RENAME TO audit_entry")
	if err := count(); err != nil {
		t.Errorf("with the table back: %v", err)
	}
	waitFor(t, func() bool {
		return one[int](t, direct,
			`SELECT count(*) FROM tailor.audit WHERE verdict = 'refused' AND sqlstate = 'KA005'`) == 3
	})
	p.stop(t)
	out, stderr, code := tailor(t, "audit", "--verify", "--dsn", s.cluster.SuperuserDSN("hospital"),
		"--file", p.auditTo)
	if code != 0 {
		t.Errorf("%s %s", out, stderr)
	}
	inFile := len(p.records(t))
	if n := one[int](t, direct, `SELECT count(*) FROM tailor.audit`); n != inFile {
		t.Errorf("the table shows %d records, the file %d", n, inFile)
	}
}

func TestHowAnAnswerEndedIsRecorded(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	conn := connect(t, p.dsn(user))
	simple := pgx.QueryExecModeSimpleProtocol
	_, _ = conn.Exec(t.Context(), "SELECT age, zip FROM patients", simple)
	_, _ = conn.Exec(t.Context(), "SELECT diagnosis::int FROM patients", simple)
	_, _ = conn.Exec(t.Context(), "SELECT name FROM patients", simple)
	_, _ = conn.Exec(t.Context(), "SELEC 1")
	_, _ = conn.Exec(t.Context(), "SELECT nothing_like_it FROM numbers", pgx.QueryExecModeDescribeExec)
	if _, err := pgx.Connect(t.Context(), strings.Replace(p.dsn(user), user+"@", "wrong@",
		1)); err == nil {
		t.Fatal("a wrong password was accepted")
	}
	type row struct {
		verdict, sqlstate, event string
		rows                     *int64
	}
	want := []row{
		{"released", "", "statement", ptr(int64(patients))},
		{"failed", "22P02", "statement", ptr(int64(0))},
		{"refused", "42501", "statement", ptr(int64(0))},
		{"failed", "42601", "statement", ptr(int64(0))},
		{"failed", "42703", "statement", ptr(int64(0))},
		{"refused", "28P01", "login", nil},
	}
	direct := shared.superuser(t)
	var got []row
	waitFor(t, func() bool {
		rows, err := direct.Query(context.Background(),
			`SELECT verdict, sqlstate, event, rows FROM tailor.audit WHERE principal = $1 ORDER BY position`,
			user)
		if err != nil {
			t.Fatal(err)
		}
		got, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (v row, err error) {
			return v, r.Scan(&v.verdict, &v.sqlstate, &v.event, &v.rows)
		})
		if err != nil {
			t.Fatal(err)
		}
		return len(got) == len(want) && got[0].rows != nil && got[1].verdict == "failed"
	})
	for i := range want {
		w, g := want[i], got[i]
		if g.verdict != w.verdict || g.sqlstate != w.sqlstate || g.event != w.event ||
			(g.rows == nil) != (w.rows == nil) || g.rows != nil && *g.rows != *w.rows {
			t.Errorf("record %d: %+v, want %+v", i, g, w)
		}
	}
	for _, args := range [][]string{
		{"--file", p.auditTo},
		{"--dsn", shared.cluster.SuperuserDSN("hospital")},
	} {
		args = append([]string{"audit", "--principal", user, "--format", "json"}, args...)
		for filter, n := range map[string]int{
			"--verdict=failed": 3, "--verdict=refused": 2, "--relation=patients": 2, "--risk-above=0.9": 0,
			"--loss-above=0.00001": 1, "--since=1h": 6, "--until=2020-01-01": 0, "--limit=4": 4,
		} {
			out, stderr, code := tailor(t, append(args, filter)...)
			if lines := strings.Count(out, "\n"); code != 0 || lines != n {
				t.Errorf("%v %s: %d statements, want %d; exit code %d %s", args, filter, lines, n, code, stderr)
			}
		}
		for _, filter := range []string{
			"--risk-above=7", "--loss-above=NaN", "--verdict=bad",
			"--limit=-1",
		} {
			if _, stderr, code := tailor(t, append(args, filter)...); code != 2 || !strings.Contains(stderr,
				"--help") {
				t.Errorf("%s: exit code %d, %s", filter, code, stderr)
			}
		}
		out, _, _ := tailor(t, append(args, "--totals")...)
		var totals []map[string]any
		if err := json.Unmarshal([]byte(out), &totals); err != nil || len(totals) != 2 ||
			totals[1]["relation"] != "public.patients" || totals[1]["released"] != 1.0 ||
			totals[1]["failed"] != 1.0 ||
			totals[0]["refused"] != 2.0 || totals[1]["rows"] != float64(patients) {
			t.Errorf("totals: %s", out)
		}
	}
}

func TestFollowingShowsWhatComes(t *testing.T) {
	p := shared.serve(t, "--audit-file-bytes", "1048576")
	user := someQueries(t, p)
	for _, source := range [][]string{
		{"--file", p.auditTo},
		{"--dsn", shared.cluster.SuperuserDSN("hospital")},
	} {
		seen := &safeBuffer{}
		follower := exec.Command(binary, append([]string{
			"audit", "--follow", "--limit", "1",
			"--principal", user,
		}, source...)...)
		follower.Stdout = seen
		if err := follower.Start(); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { return strings.Count(seen.String(), "\n") == 1 })
		conn := connect(t, p.dsn(user))
		long := "SELECT count(age)" + strings.Repeat(", 1 AS "+strings.Repeat("c", 40), 1000) +
			" FROM patients"
		aside := func() int {
			names, _ := filepath.Glob(p.auditTo + ".0*")
			return len(names)
		}
		before, asked := aside(), 1
		for aside() < before+2 { // on and on, through two changes of files
			if _, err := conn.Exec(t.Context(), long, pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Fatal(err)
			}
			asked++
		}
		waitFor(t, func() bool { return strings.Count(seen.String(), "\n") >= asked })
		if err := follower.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if err := follower.Wait(); err != nil || strings.Count(seen.String(), "\n") != asked {
			t.Errorf("%v shows %d statements, want %d: %v", source, strings.Count(seen.String(), "\n"),
				asked, err)
		}
	}
}

func ptr[T any](v T) *T { return &v }

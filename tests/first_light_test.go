package tests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hiatus-tailor/tailor/internal/demodata"
)

const k = 5

func TestPsqlShowsEveryPatientInBlocksOfAtLeastK(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	stdout, stderr, ok := p.psql(t, user, "-At", "-c", "SELECT age, zip, sex, diagnosis FROM patients")
	if !ok {
		t.Fatalf("psql failed: %s", stderr)
	}
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if len(lines) != patients {
		t.Errorf("%d rows, want every one of %d patients", len(lines), patients)
	}
	classes := make(map[string]int)
	for _, line := range lines {
		classes[line[:strings.LastIndexByte(line, '|')]]++
	}
	for shown, n := range classes {
		if n < k {
			t.Errorf("%s is shown for %d patients, want at least %d", shown, n, k)
		}
	}
	if len(classes) < 100 {
		t.Errorf("only %d combinations are shown: far too much was lost", len(classes))
	}
	if !regexp.MustCompile(
		`NOTICE:  patients: generalized by blocks of at least \d+ subjects, information loss \d+\.\d %`).
		MatchString(stderr) {
		t.Errorf("no notice that says what was generalized and lost: %q", stderr)
	}
}

func TestCountsAreExactAndAggregatesWork(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	if out, _, _ := p.psql(t, user, "-At", "-c",
		"SELECT count(*) FROM patients"); strings.TrimSpace(out) != fmt.Sprint(patients) {
		t.Errorf("count(*) = %s, want %d", out, patients)
	}
	direct := shared.superuser(t)
	out, stderr, ok := p.psql(t, user, "-At", "-c",
		"SELECT sex, avg(age), count(*) FROM patients WHERE age >= 30 GROUP BY sex ORDER BY sex")
	if !ok {
		t.Fatal(stderr)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if strings.HasPrefix(lines[0], "*|") {
		lines = lines[1:] // some, of whom the sex would tell too much
	}
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "female|") || !strings.HasPrefix(lines[1],
		"male|") {
		t.Fatalf("groups: %q", lines)
	}
	for _, line := range lines {
		var average float64
		var count int
		fields := strings.Split(line, "|")
		if _, err := fmt.Sscan(fields[1], &average); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscan(fields[2], &count); err != nil {
			t.Fatal(err)
		}
		truth := one[float64](t, direct,
			"SELECT avg(age)::float8 FROM patients WHERE age >= 30 AND sex = $1", fields[0])
		if average < truth-3 || average > truth+3 {
			t.Errorf("avg(age) of %s = %.2f, far from %.2f", fields[0], average, truth)
		}
	}
}

func TestPsqlDescribesTables(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	for _, command := range []string{
		`\d`, `\d patients`, `\d+ patients`, `\d research.patients`,
		`\dX`, `\dt+`, `\dp patients`, `\d+ *.zip_city`,
	} {
		out, stderr, ok := p.psql(t, user, "-v", "ON_ERROR_STOP=1", "-c", command)
		if !ok || !strings.Contains(out, "patients") && !strings.Contains(out, "zip_city") &&
			command != `\dX` {
			t.Errorf("%s: %s%s", command, out, stderr)
		}
	}
}

func TestRefusals(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	direct := shared.superuser(t)
	mustExec(t, direct,
		`CREATE FUNCTION public.read_patients() RETURNS bigint LANGUAGE sql `+
			`AS 'SELECT count(*) FROM public.patients WHERE name IS NOT NULL'`)
	mustExec(t, direct,
		`CREATE VIEW public.old_patients AS SELECT name FROM public.patients WHERE age > 90; `+
			`GRANT SELECT ON public.old_patients TO PUBLIC`)
	t.Cleanup(func() {
		_, _ = direct.Exec(context.Background(),
			`DROP FUNCTION public.read_patients(); DROP VIEW public.old_patients`)
	})
	cases := []struct{ claim, sql, code string }{
		{"a direct identifier is hidden", `SELECT name FROM patients`, "42501"},
		{"a hidden column cannot filter", `SELECT count(*) FROM patients WHERE ssn LIKE '9%'`, "42501"},
		{"a hidden column cannot sort", `SELECT age FROM patients ORDER BY name`, "42501"},
		{"a hidden column cannot join", `SELECT 1 FROM patients p JOIN numbers n ON n.n = p.id`, "42501"},
		{
			"a hidden column cannot hide behind an alias",
			`SELECT q.* FROM (SELECT p.name AS age FROM public.patients p) q`, "42501",
		},
		{"a system column is hidden", `SELECT ctid FROM patients`, "42501"},
		{"the table's oid is hidden", `SELECT p.tableoid FROM patients p`, "42501"},
		{"a whole row is no value", `SELECT p FROM patients p`, "0A000"},
		{"a row as JSON is no value", `SELECT row_to_json(p) FROM patients p`, "0A000"},
		{"statistics are hidden", `SELECT * FROM pg_stats WHERE tablename = 'patients'`, "42501"},
		{"statistics are hidden under their schema", `SELECT * FROM pg_catalog.pg_statistic`, "42501"},
		{"DO reads under the reader's role", `DO $$ BEGIN PERFORM * FROM patients; END $$`, "42501"},
		{"a function reads under the reader's role", `SELECT read_patients()`, "42501"},
		{"a view over a hidden column is refused", `SELECT * FROM old_patients`, "42501"},
		{"COPY of the table is refused", `COPY patients TO STDOUT`, "42501"},
		{"COPY of a hidden column is refused", `COPY (SELECT name FROM patients) TO STDOUT`, "42501"},
		{
			"COPY into a file of the server is refused", `COPY (SELECT age FROM patients) TO '/tmp/x'`,
			"42501",
		},
		{
			"EXPLAIN of a hidden column", `EXPLAIN ANALYZE SELECT age FROM patients WHERE name = 'x'`,
			"42501",
		},
		{
			"EXPLAIN of what keeps rows", `EXPLAIN ANALYZE CREATE TABLE mine AS SELECT age FROM patients`,
			"0A000",
		},
		{"writing is refused", `DELETE FROM patients`, "42501"},
		{"updating is refused", `UPDATE patients SET age = 1`, "42501"},
		{"a lasting table made of it is refused", `CREATE TABLE mine AS SELECT * FROM patients`, "0A000"},
		{"locking is refused", `SELECT age FROM patients FOR UPDATE`, "0A000"},
		{"the stored copy cannot be read", `SELECT * FROM tailor_store.epoch_1`, "42501"},
		{"the tuples cannot be read", `SELECT * FROM tailor_store.tuples_1`, "42501"},
		{"the partition cannot be read", `SELECT * FROM tailor.chain`, "42501"},
		{"a release is not read by its own name", `SELECT * FROM tailor_release.chain_1`, "42501"},
		{
			"a release is not read through the search path",
			`SET search_path = tailor_release; SELECT * FROM tailor_release.chain_1`, "42501",
		},
		{"verifiers cannot be read", `SELECT tailor.verifier('dba')`, "42501"},
		{
			"a query in a string reads under the reader's role",
			`SELECT query_to_xml('SELECT name FROM public.patients', true, true, '')`, "42501",
		},
		{"escaped names are recognized", `SELECT U&"n\0061me" FROM U&"p\0061tients"`, "0A000"},
		{"an unknown column is PostgreSQL's own error", `SELECT nothing FROM patients`, "42703"},
		{"a syntax error is PostgreSQL's own error", `SELECT age FROM patients WHERE`, "42601"},
		{"a deep expression is too complex", `SELECT age FROM patients WHERE 1 = ` +
			strings.Repeat("1+", 40000) + "1", "54001"},
		{"a long text is too long", `SELECT age FROM patients WHERE sex = '` +
			strings.Repeat("x", 1<<20) + "'", "54000"},
	}
	// A new view is known to the proxy a moment later.
	waitFor(t, func() bool {
		_, stderr, _ := p.psql(t, user, "-c", "SELECT * FROM old_patients")
		return strings.Contains(stderr, `"old_patients"`)
	})
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeSimpleProtocol,
		pgx.QueryExecModeCacheStatement,
	} {
		conn := connect(t, p.dsn(user))
		for _, c := range cases {
			t.Run(fmt.Sprintf("%s/%s", mode, c.claim), func(t *testing.T) {
				rows, err := conn.Query(t.Context(), c.sql, mode)
				if err == nil {
					rows.Close()
					err = rows.Err()
				}
				var answer *pgconn.PgError
				if !errors.As(err, &answer) {
					t.Fatalf("not refused: %v", err)
				}
				if answer.Code != c.code {
					t.Errorf("SQLSTATE %s (%s), want %s", answer.Code, answer.Message, c.code)
				}
			})
		}
		if n := one[int](t, conn, "SELECT count(*) FROM patients"); n != patients {
			t.Errorf("after all refusals the session counts %d", n)
		}
	}
}

func TestARootOutlivesRestarts(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	direct := shared.superuser(t)
	shown := make(disclosed)
	first := connect(t, p.dsn(user))
	if n := shown.answer(t, first, "SELECT token, age, zip, sex FROM patients"); n != patients {
		t.Fatalf("%d people, want %d", n, patients)
	}
	if least := shown.smallestClass(); least < k {
		t.Fatalf("smallest class after one query: %d", least)
	}
	shown.answer(t, first, "SELECT token, birth_date, race FROM patients")
	p.kill()

	p = shared.serve(t)
	again := connect(t, p.dsn(user))
	before := one[int](t, direct,
		`SELECT generation FROM tailor.chain WHERE relation = 'patients'::regclass`)
	shown.answer(t, again, "SELECT token, age, zip, sex FROM patients")
	after := one[int](t, direct,
		`SELECT generation FROM tailor.chain WHERE relation = 'patients'::regclass`)
	if before != after {
		t.Errorf("asking again after a restart moved the chain from generation %d to %d", before, after)
	}
	shown.answer(t, again,
		"SELECT q.* FROM (SELECT p.token, birth_date, zip FROM public.patients p) q")
	if least := shown.smallestClass(); least < k {
		t.Errorf("smallest class of the common refinement: %d, want at least %d", least, k)
	}
	for column, name := range []string{"age", "zip", "sex"} {
		assertTruthful(t, direct, shown, 0, column, name)
		assertTruthful(t, direct, shown, 2, column, name)
	}
	for column, name := range []string{"birth_date", "race"} {
		assertTruthful(t, direct, shown, 1, column, name)
	}
}

func TestEveryBlockMeetsLDiversity(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	shown := make(disclosed)
	conn := connect(t, p.dsn(user))
	shown.answer(t, conn, "SELECT token, age, birth_date, zip, sex, race FROM patients")
	values := make(map[string]map[string]bool)
	rows, err := shared.superuser(t).Query(t.Context(), "SELECT token::text, diagnosis FROM patients")
	if err != nil {
		t.Fatal(err)
	}
	var token, diagnosis string
	_, err = pgx.ForEachRow(rows, []any{&token, &diagnosis}, func() error {
		class := shown[token][0]
		if values[class] == nil {
			values[class] = make(map[string]bool)
		}
		values[class][diagnosis] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for class, diagnoses := range values {
		if len(diagnoses) < 2 {
			t.Errorf("%s: every member has the same diagnosis", class)
		}
	}
}

func TestAdministratorSeesTheTableItself(t *testing.T) {
	p := shared.serve(t)
	conn := connect(t, p.dsn("dba"))
	name := one[string](t, conn, "SELECT name FROM patients WHERE ssn = $1", demodata.CanarySSN)
	if name != demodata.CanaryName {
		t.Errorf("the administrator sees %q", name)
	}
}

func TestEachStatementLeavesOneRecordBeforeItsFirstRow(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	conn := connect(t, p.dsn(user))
	statements := []struct{ sql, verdict string }{
		{"SELECT age, sex FROM patients", "released"},
		{"SELECT count(*) FROM patients", "released"},
		{"SELECT name FROM patients WHERE ssn = '987-65-4320'", "refused"},
		{"SELECT sum(square) FROM numbers", "passed"},
		{"SELECT 1 / 0", "failed"},
	}
	for i, s := range statements {
		rows, _ := conn.Query(t.Context(), s.sql, pgx.QueryExecModeSimpleProtocol)
		if rows.Next() && s.verdict == "released" {
			if n := len(p.records(t)); n != i+1 {
				t.Errorf("%q: %d records when the first row arrived, want %d", s.sql, n, i+1)
			}
		}
		rows.Close()
		waitFor(t, func() bool { return len(p.records(t)) == i+1 })
	}
	// The extended protocol, a prepared statement run twice: two records.
	for range 2 {
		var n int
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM patients WHERE age > $1", 40).
			Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	want := len(statements) + 2
	waitFor(t, func() bool { return len(p.records(t)) == want })
	for i, r := range p.records(t) {
		if i < len(statements) && r["verdict"] != statements[i].verdict {
			t.Errorf("record %d: verdict %v, want %s", i, r["verdict"], statements[i].verdict)
		}
		if r["principal"] != user {
			t.Errorf("record %d: principal %v", i, r["principal"])
		}
	}
	records := p.records(t)
	if sql := records[2]["sql"].(string); strings.Contains(sql, "987") {
		t.Errorf("a record holds a literal: %s", sql)
	}
	stages := records[0]["stages"].([]any)
	if len(stages) == 0 {
		t.Error("a released query has no stages in its record")
	}
	direct := shared.superuser(t)
	waitFor(t, func() bool {
		return one[int](t, direct, `SELECT count(*) FROM tailor.audit WHERE principal = $1`, user) == want
	})
}

// records reads the statements in the audit file.
func (p *testProxy) records(t *testing.T) []map[string]any {
	t.Helper()
	data, err := os.ReadFile(p.auditTo)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(data), "\n")
	var out []map[string]any
	for _, line := range lines[:len(lines)-1] { // the last may be on its way to the disk
		if line == "" {
			continue
		}
		var r map[string]any
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("audit line: %v", err)
		}
		if r["event"] == nil {
			out = append(out, r)
		}
	}
	return out
}

func waitFor(t *testing.T, met func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !met() {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestWithoutAuditProtectedQueriesAreRefusedAndOthersPass(t *testing.T) {
	p := shared.serve(t, "--metrics", "127.0.0.1:0")
	available := func() bool {
		_, text := get(t, p.operations(t)+"/metrics")
		return strings.Contains(text, "\ntailor_audit_available 1\n")
	}
	user := shared.reader(t)
	conn := connect(t, p.dsn(user))
	direct := shared.superuser(t)
	mustExec(t, direct, "ALTER TABLE tailor.audit_log RENAME TO audit_log_away")
	restore := func() {
		_, _ = direct.Exec(context.Background(),
			"ALTER TABLE IF EXISTS tailor.audit_log_away RENAME TO audit_log")
	}
	t.Cleanup(restore)
	_, err := conn.Exec(t.Context(), "SELECT age FROM patients")
	var answer *pgconn.PgError
	if !errors.As(err, &answer) || answer.Code != "KA005" {
		t.Errorf("without an audit log: %v, want KA005", err)
	}
	if available() {
		t.Error("the metrics tell nothing of it")
	}
	if n := one[int](t, conn, "SELECT count(*) FROM numbers"); n != 10000 {
		t.Errorf("an unprotected query counts %d", n)
	}
	restore()
	if n := one[int](t, conn, "SELECT count(*) FROM patients"); n != patients {
		t.Errorf("with the audit log back: %d", n)
	}
	if !available() {
		t.Error("the metrics tell nothing of its being back")
	}
}

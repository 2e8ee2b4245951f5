package tests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// tool runs a command of the binary to its end.
func tool(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// export writes the rows of a query to a CSV file with a header.
func export(t *testing.T, conn *pgx.Conn, query string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "export.csv")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.PgConn().CopyTo(t.Context(), f,
		"COPY ("+query+") TO STDOUT (FORMAT csv, HEADER)"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// oddTable makes a table whose names need quotes, with NULL, and drops it when
// the test ends.
func oddTable(t *testing.T) (conn *pgx.Conn, name string) {
	t.Helper()
	conn = shared.superuser(t)
	mustExec(t, conn, `CREATE SCHEMA "Odd ""Schema."`)
	t.Cleanup(func() { dropAfter(t, `DROP SCHEMA "Odd ""Schema." CASCADE`) })
	name = `"Odd ""Schema."."The Table; --"`
	mustExec(t, conn, `CREATE TABLE `+name+` AS
		SELECT n AS id, n / 2 AS person, (n % 7)::int AS "Age",
			CASE WHEN n % 5 > 0 THEN 'w' || n % 3 END AS "ward ""x""",
		       DATE '2020-01-01' + n % 4 AS day, (n % 3 = 0) AS flag, NULLIF(n % 6, 0) * 1.5 AS cost
		FROM generate_series(1, 200) n`)
	return conn, name
}

// dropAfter runs a statement after the context of the test has ended.
func dropAfter(t *testing.T, sql string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, shared.cluster.SuperuserDSN("hospital"))
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Errorf("%s: %v", sql, err)
	}
}

func TestAssessOfATableGivesTheFiguresOfItsExport(t *testing.T) {
	conn, odd := oddTable(t)
	mustExec(t, conn, `CREATE VIEW "Odd ""Schema.".some_visits AS SELECT * FROM visits `+
		`WHERE patient_id IN (SELECT id FROM patients ORDER BY id LIMIT 500)`)
	dsn := shared.cluster.SuperuserDSN("hospital")
	for claim, c := range map[string]struct {
		table string
		flags []string
	}{
		"a table by its name": {"patients", []string{
			"--qid", "age,sex,zip", "--sensitive",
			"diagnosis,cost",
		}},
		"a table with its schema": {"public.patients", []string{
			"--qid", "birth_date,race",
			"--sensitive", "ward",
		}},
		"subjects of several rows": {`"Odd ""Schema.".some_visits`, []string{
			"--qid", "ward,day",
			"--sensitive", "cost", "--subject", "patient_id",
		}},
		"quotes, NULL and other": {odd, []string{
			"--qid", `Age,ward "x",flag`, "--sensitive",
			"cost,day",
		}},
		"a column in several parts": {odd, []string{
			"--qid", `Age,person`, "--sensitive", "Age",
			"--subject", "person",
		}},
	} {
		t.Run(claim, func(t *testing.T) {
			for _, format := range []string{"json", "text"} {
				flags := append([]string{"assess", "--format", format}, c.flags...)
				code, got, stderr := tool(t, append(flags, "--dsn", dsn, "--table", c.table)...)
				if code != 0 || stderr != "" {
					t.Fatalf("exit %d: %s", code, stderr)
				}
				file := export(t, conn, "SELECT * FROM "+c.table)
				code, want, stderr := tool(t, append(flags, "--csv", file, "--delimiter", ",")...)
				if code != 0 {
					t.Fatalf("exit %d: %s", code, stderr)
				}
				if got != want {
					t.Errorf("the table gives\n%s\nits export\n%s", got, want)
				}
			}
		})
	}
}

func TestAssessTellsNULLFromTheEmptyText(t *testing.T) {
	conn, _ := oddTable(t)
	mustExec(t, conn, `CREATE TABLE "Odd ""Schema.".empty AS `+
		`SELECT unnest(ARRAY[NULL, NULL, '', '', '', 'x', 'x']) AS v`)
	code, got, stderr := tool(t, "assess", "--dsn", shared.cluster.SuperuserDSN("hospital"), "--table",
		`"Odd ""Schema.".empty`, "--qid", "v")
	if code != 0 || !strings.Contains(got, "k = 2, 3 classes of up to 3") {
		t.Errorf("exit %d: %s%s", code, got, stderr)
	}
}

func TestAssessOfATableFailsInOneLineAndQuotesNothing(t *testing.T) {
	conn, odd := oddTable(t)
	mustExec(t, conn, `CREATE VIEW "Odd ""Schema.".faulty AS SELECT ('canary' || id)::int AS v FROM `+
		odd)
	mustExec(t, conn, `CREATE SEQUENCE "Odd ""Schema.".numbers`)
	user := shared.reader(t)
	dsn := shared.cluster.SuperuserDSN("hospital")
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	for claim, c := range map[string]struct {
		dsn, table, column string
		code               int
	}{
		"nobody listens": {
			fmt.Sprintf("postgres://u:canary@127.0.0.1:%d/d", port),
			"patients", "age", 1,
		},
		"no such database": {shared.cluster.SuperuserDSN("nowhere"), "patients", "age", 1},
		"a wrong password": {fmt.Sprintf("postgres://%s:canary@%s/hospital?sslmode=disable",
			user, shared.cluster.Address()), "patients", "age", 1},
		"no right to read": {fmt.Sprintf("postgres://%s:%s@%s/hospital?sslmode=disable", user,
			user, shared.cluster.Address()), "public.patients", "age", 1},
		"no such table":                {dsn, "nowhere.patients", "age", 1},
		"what is no name":              {dsn, `patients" WHERE 1/0 = 1; --`, "age", 1},
		"what is no table":             {dsn, `"Odd ""Schema.".numbers`, "last_value", 1},
		"a view that fails on a value": {dsn, `"Odd ""Schema.".faulty`, "v", 1},
		"no such column":               {dsn, "patients", `age" FROM patients; --`, 2},
		"a system column":              {dsn, "patients", "ctid", 2},
		"a malformed DSN":              {"postgres://u:canary@[/", "patients", "age", 2},
		"no table":                     {dsn, "", "age", 2},
		"no columns":                   {dsn, "patients", "", 2},
	} {
		args := []string{"assess", "--dsn", c.dsn, "--table", c.table, "--qid", c.column}
		code, stdout, stderr := tool(t, args...)
		if code != c.code || stdout != "" || strings.Count(stderr, "\n") != 1 ||
			!strings.Contains(stderr, ";") {
			t.Errorf("%s: exit %d, %q, want %d and one line with a hint", claim, code, stderr, c.code)
		}
		if strings.Contains(stderr, "canary") {
			t.Errorf("%s: %q quotes a value or a password", claim, stderr)
		}
	}
	for _, flags := range [][]string{
		{"--csv", "f"},
		{"--original", "f"},
		{"--hierarchy", "age=f"},
		{"--delimiter", ","},
	} {
		args := append([]string{"assess", "--dsn", dsn, "--table", "patients", "--qid", "age"}, flags...)
		if code, _, stderr := tool(t, args...); code != 2 {
			t.Errorf("%s with --table: exit %d, %s", flags[0], code, stderr)
		}
	}
}

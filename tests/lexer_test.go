package tests

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// TestAStringEndsWhereThePlannerSaysItEnds tries to hide SQL in what the planner
// takes for strings and PostgreSQL, by the settings of the session, may not.
func TestAStringEndsWhereThePlannerSaysItEnds(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	conn := connect(t, p.dsn(user))
	mustExec(t, conn, `SELECT age, zip FROM patients LIMIT 1`)
	release := fmt.Sprintf("tailor_release.chain_%d",
		one[int](t, shared.superuser(t),
			`SELECT chain FROM tailor.chain WHERE relation = 'patients'::regclass`))
	for name, c := range map[string]struct{ setting, text string }{
		"a backslash": {
			"standard_conforming_strings = off",
			`SELECT '\', ', age, zip, diagnosis FROM ` + release + ` --', count(*) FROM patients`,
		},
		"in a condition": {
			"standard_conforming_strings = off",
			`SELECT count(*) FROM patients WHERE ward <> '\' UNION ALL SELECT age FROM ` + release + ` --'`,
		},
		"national": {
			"standard_conforming_strings = off",
			`SELECT N'\', ', age, zip, diagnosis FROM ` + release + ` --', count(*) FROM patients`,
		},
		"continued": {
			"standard_conforming_strings = off",
			"SELECT 'a'\n'\\', ', age, zip, diagnosis FROM " + release + " --', count(*) FROM patients",
		},
		"half of a character of SJIS": {
			"client_encoding = 'SJIS'",
			"SELECT E'\xC2\x81\x5C', age, zip FROM " + release + " --', count(*) FROM patients",
		},
		"half of a character of GBK": {
			"client_encoding = 'GBK'",
			"SELECT E'\xC2\x81\x5C', age, zip FROM " + release + " --', count(*) FROM patients",
		},
	} {
		t.Run(name, func(t *testing.T) {
			mustExec(t, conn, "SET "+c.setting)
			results, err := conn.PgConn().Exec(t.Context(), c.text).ReadAll()
			mustExec(t, conn, "RESET client_encoding")
			mustExec(t, conn, "RESET standard_conforming_strings")
			if err == nil && (len(results) != 1 || len(results[0].Rows) > 1) {
				t.Errorf("%d rows came of a text that was planned as one", len(results[0].Rows))
			}
		})
	}
	mustExec(t, conn, "SET standard_conforming_strings = off")
	mustExec(t, conn, "SET escape_string_warning = off")
	matched := one[int](t, conn,
		`SELECT count(*) FROM patients WHERE zip ~ '^[\d*]+$' AND ward <> '\'`)
	if matched != patients {
		t.Errorf("a pattern with a backslash matches %d of %d", matched, patients)
	}
	_, err := conn.Exec(t.Context(),
		`SELECT count(*) FROM patients WHERE zip ~ '\d\d' AND no_such = 1`)
	if err == nil || !strings.Contains(err.Error(), "no_such") {
		t.Error(err)
	}
}

func TestReadersGetNoCopyOfTheServersLog(t *testing.T) {
	p := shared.serve(t)
	config, err := pgx.ParseConfig(p.dsn(shared.reader(t)))
	if err != nil {
		t.Fatal(err)
	}
	var severities []string
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		severities = append(severities, n.SeverityUnlocalized)
	}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	mustExec(t, conn, `SET client_min_messages = debug1`)
	mustExec(t, conn, `SET trace_sort = on`)
	mustExec(t, conn, `SELECT DISTINCT ward FROM patients ORDER BY ward`)
	mustExec(t, conn, `DO $$ BEGIN RAISE LOG 'seen'; RAISE WARNING 'mine'; END $$`)
	for _, s := range severities {
		if s != "NOTICE" && s != "WARNING" {
			t.Errorf("a notice of severity %s", s)
		}
	}
	if !slices.Contains(severities, "WARNING") {
		t.Error("warnings are kept back too")
	}
}

package tests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// rowsOf runs statements by the simple protocol, in one message each, and
// returns the rows of all their answers.
func rowsOf(t *testing.T, conn *pgx.Conn, statements ...string) (rows []string) {
	t.Helper()
	for _, sql := range statements {
		results, err := conn.PgConn().Exec(t.Context(), sql).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		for _, r := range results {
			for _, row := range r.Rows {
				rows = append(rows, string(bytes.Join(row, []byte("|"))))
			}
		}
	}
	return rows
}

// verdicts counts the records of a verdict whose text has a word.
func (p *testProxy) verdicts(t *testing.T, verdict, word string) (n int) {
	t.Helper()
	for _, r := range p.records(t) {
		if r["verdict"] == verdict && strings.Contains(fmt.Sprint(r["sql"]), word) {
			n++
		}
	}
	return n
}

func TestCursorsShowReleasesAndEveryFetchIsRecorded(t *testing.T) {
	p := shared.serve(t)
	conn := connect(t, p.dsn(shared.reader(t)))
	want := rowsOf(t, conn, "SELECT age, zip FROM patients ORDER BY zip, age, token")
	const query = "SELECT age, zip FROM patients ORDER BY zip, age, token"
	for claim, statements := range map[string][]string{
		"as psycopg2 does": {
			"BEGIN", "DECLARE c CURSOR WITHOUT HOLD FOR " + query,
			"FETCH FORWARD 100 FROM c", "FETCH ALL FROM c", "CLOSE c", "COMMIT",
		},
		"as ODBC does": {
			`BEGIN;declare "SQL_CUR0x1" cursor with hold for ` + query + `;fetch 100 in "SQL_CUR0x1"`,
			`fetch 100 in "SQL_CUR0x1"`,
			"COMMIT", `fetch 3000 in "SQL_CUR0x1"`, `fetch all in "SQL_CUR0x1"`, `close "SQL_CUR0x1"`,
		},
		"held before its first fetch": {
			"BEGIN", "DECLARE h CURSOR WITH HOLD FOR " + query, "COMMIT",
			"FETCH ALL FROM h", "CLOSE h",
		},
		"held out of a transaction": {
			"DECLARE h CURSOR WITH HOLD FOR " + query, "FETCH ALL FROM h",
			"CLOSE ALL",
		},
		"scrolled": {
			"BEGIN", "DECLARE s SCROLL CURSOR FOR " + query, "MOVE 10 IN s",
			"MOVE BACKWARD ALL IN s", "FETCH ALL IN s", "END",
		},
	} {
		t.Run(claim, func(t *testing.T) {
			if got := rowsOf(t, conn, statements...); strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("%d rows, want %d, or another order", len(got), len(want))
			}
		})
	}
	if n := p.verdicts(t, "released", "DECLARE"); n < 4 {
		t.Errorf("%d cursors are recorded", n)
	}
	if n := p.verdicts(t, "released", "FETCH"); n < 5 {
		t.Errorf("%d fetches are recorded", n)
	}
	t.Run("by the extended protocol", func(t *testing.T) {
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(t.Context()) }()
		for _, sql := range []string{"DECLARE e CURSOR FOR " + query, "FETCH 10 FROM e"} {
			if _, err := tx.Exec(t.Context(), sql, pgx.QueryExecModeExec); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
		}
		r := conn.PgConn().ExecParams(t.Context(), "FETCH 2 FROM e", nil, nil, nil, nil).Read()
		if r.Err != nil || len(r.Rows) != 2 || string(bytes.Join(r.Rows[0], []byte("|"))) != want[10] {
			t.Errorf("%v, %d rows", r.Err, len(r.Rows))
		}
	})
}

// TestCursorsAreKeptByTheExtendedProtocol declares one WITH HOLD outside of a
// transaction, whose rows the server reads at Sync.
func TestCursorsAreKeptByTheExtendedProtocol(t *testing.T) {
	p := shared.serve(t)
	conn := connect(t, p.dsn(shared.reader(t)))
	mustExec(t, conn, "DECLARE h CURSOR WITH HOLD FOR SELECT age FROM patients")
	if got := rowsOf(t, conn, "FETCH ALL FROM h"); len(got) != patients {
		t.Errorf("%d rows, want %d", len(got), patients)
	}
}

// TestCursorsAreNoWayPastTheRecord fetches where no record could be made.
func TestCursorsAreNoWayPastTheRecord(t *testing.T) {
	p := shared.serve(t)
	conn := connect(t, p.dsn(shared.reader(t)))
	for claim, statements := range map[string][]string{
		"a fetch beside another statement": {
			"BEGIN", "DECLARE c CURSOR FOR SELECT age FROM patients",
			"SELECT 1; FETCH 1 FROM c",
		},
		"a fetch inside DO": {
			"BEGIN", "DECLARE c CURSOR FOR SELECT age FROM patients",
			"DO $$ DECLARE r record; c refcursor := 'c'; BEGIN FETCH c INTO r; END $$",
		},
	} {
		t.Run(claim, func(t *testing.T) {
			defer func() { _, _ = conn.Exec(t.Context(), "ROLLBACK") }()
			rowsOf(t, conn, statements[:2]...)
			_, err := conn.Exec(t.Context(), statements[2], pgx.QueryExecModeSimpleProtocol)
			var answer *pgconn.PgError
			if !errors.As(err, &answer) || answer.Code != "0A000" {
				t.Errorf("%v, want 0A000", err)
			}
		})
	}
}

func TestCopyAndTemporaryTablesHoldWhatIsReleased(t *testing.T) {
	p := shared.serve(t)
	conn := connect(t, p.dsn(shared.reader(t)))
	want := rowsOf(t, conn, "SELECT age, zip FROM patients ORDER BY zip, age, token")
	var copied bytes.Buffer
	tag, err := conn.PgConn().CopyTo(t.Context(), &copied,
		"COPY (SELECT age, zip FROM patients ORDER BY zip, age, token) TO STDOUT (DELIMITER '|')")
	if err != nil || tag.RowsAffected() != patients ||
		strings.TrimSpace(copied.String()) != strings.Join(want, "\n") {
		t.Errorf("%v, %d rows are copied, or other ones", err, tag.RowsAffected())
	}
	values := rowsOf(t, conn, "SET tailor.representation = 'value'",
		"SELECT age, zip FROM patients ORDER BY zip, age, token", "RESET tailor.representation")
	rowsOf(t, conn, "CREATE TEMP TABLE kept AS SELECT age, zip, token FROM patients",
		"SELECT age, zip, token INTO TEMP kept_too FROM patients")
	for _, table := range []string{"kept", "kept_too"} {
		if got := rowsOf(t, conn, "SELECT age, zip FROM "+table+
			" ORDER BY zip, age, token"); strings.Join(got, "\n") != strings.Join(values, "\n") {
			t.Errorf("%s: %d rows, or other ones", table, len(got))
		}
	}
	if got := rowsOf(t, conn, "CREATE TEMP TABLE patients AS SELECT 1 AS one",
		"SELECT * FROM patients", "SELECT count(*) FROM public.patients", "DROP TABLE pg_temp.patients",
		"SELECT count(*) FROM patients"); strings.Join(got, " ") != fmt.Sprintf("1 %[1]d %[1]d",
		patients) {
		t.Errorf("a temporary table of the protected table's name: %q", got)
	}
}

func TestViewsOverProtectedTablesAreReplacedByTheirDefinition(t *testing.T) {
	p := shared.serve(t)
	direct := shared.superuser(t)
	mustExec(t, direct,
		`CREATE VIEW public.elderly AS SELECT age AS years, zip, diagnosis FROM patients WHERE age > 60;
		CREATE VIEW public.elderly_by_zip (area, people) AS SELECT zip, count(*) FROM elderly
			GROUP BY zip;
		CREATE MATERIALIZED VIEW public.elderly_stored AS SELECT age FROM patients`)
	t.Cleanup(func() {
		_, _ = direct.Exec(context.Background(),
			`DROP VIEW elderly_by_zip, elderly; DROP MATERIALIZED VIEW elderly_stored`)
	})
	conn := connect(t, p.dsn(shared.reader(t)))
	waitFor(t, func() bool {
		_, err := conn.Exec(t.Context(), "SELECT * FROM elderly_by_zip", pgx.QueryExecModeSimpleProtocol)
		return err == nil
	})
	for _, c := range []struct{ claim, view, table string }{
		{
			"with its own names", "SELECT years, zip, diagnosis FROM elderly ORDER BY 1, 2, 3",
			"SELECT age, zip, diagnosis FROM patients WHERE age > 60 ORDER BY 1, 2, 3",
		},
		{
			"by star", "SELECT * FROM elderly e ORDER BY 1, 2, 3",
			"SELECT age, zip, diagnosis FROM patients WHERE age > 60 ORDER BY 1, 2, 3",
		},
		{
			"view over view", "SELECT v.* FROM public.elderly_by_zip v ORDER BY 1, 2",
			"SELECT * FROM (SELECT zip, count(*) FROM patients WHERE age > 60 GROUP BY zip) q ORDER " +
				"BY 1, 2",
		},
	} {
		got, want := rowsOf(t, conn, c.view), rowsOf(t, conn, c.table)
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: %d rows, want %d; first %q, want %q", c.claim, len(got), len(want), got[0],
				want[0])
		}
	}
	_, err := conn.Exec(t.Context(), "SELECT * FROM elderly_stored", pgx.QueryExecModeSimpleProtocol)
	var answer *pgconn.PgError
	if !errors.As(err, &answer) || answer.Code != "0A000" {
		t.Errorf("a materialized view: %v", err)
	}
}

// TestODBCReadsACursorBehindSavepoints fetches as psqlODBC does with UseDeclareFetch=1 and
// Protocol=7.4-2: each batch behind a savepoint, in one text.
func TestODBCReadsACursorBehindSavepoints(t *testing.T) {
	p := shared.serve(t)
	conn := connect(t, p.dsn(shared.reader(t)))
	want := rowsOf(t, conn, "SELECT age, zip FROM patients")
	for _, hold := range []string{"", "with hold "} {
		got := rowsOf(t, conn, `BEGIN;declare "SQL_CUR0x1" cursor `+hold+
			`for SELECT age, zip FROM patients;fetch 100 in "SQL_CUR0x1"`)
		for n := 0; len(got) < len(want) && n < 100; n++ {
			got = append(got, rowsOf(t, conn, `SAVEPOINT _EXEC_SVP_1;fetch 100 in "SQL_CUR0x1"`,
				"RELEASE _EXEC_SVP_1")...)
		}
		if len(got) != len(want) {
			t.Errorf("%d rows, want %d", len(got), len(want))
		}
		again := rowsOf(t, conn, "SAVEPOINT s;MOVE ABSOLUTE 0 IN \"SQL_CUR0x1\";ROLLBACK TO s;RELEASE "+
			"s;fetch all in \"SQL_CUR0x1\";close \"SQL_CUR0x1\"", "COMMIT")
		if len(again) != 0 && len(again) != len(want) {
			t.Errorf("%d rows again", len(again))
		}
	}
	if n := p.verdicts(t, "released", "fetch"); n < 2*patients/100 {
		t.Errorf("%d fetches are recorded", n)
	}
}

// TestClosedCursorsAreForgotten: a cursor over a protected table that is open no more, or
// that a text does not name, keeps no other text from fetching.
func TestClosedCursorsAreForgotten(t *testing.T) {
	p := shared.serve(t)
	conn := connect(t, p.dsn(shared.reader(t)))
	const other = "DECLARE u CURSOR FOR SELECT n FROM numbers ORDER BY n; FETCH 3 FROM u; SELECT 0; " +
		"CLOSE u"
	for _, end := range []string{"ROLLBACK", "COMMIT", "CLOSE c", "END", "ABORT", "SELECT 1/0", ""} {
		for _, hold := range []string{"", "WITH HOLD "} {
			rowsOf(t, conn, "BEGIN", "DECLARE c CURSOR "+hold+"FOR SELECT age FROM patients")
			if end != "" {
				_, err := conn.Exec(t.Context(), end, pgx.QueryExecModeSimpleProtocol)
				if code := codeIn(err); code != "" && code != "22012" {
					t.Fatalf("%s: %v", end, err)
				}
			}
			if conn.PgConn().TxStatus() == 'E' {
				rowsOf(t, conn, "ROLLBACK")
			}
			text := "BEGIN; " + other + "; COMMIT"
			if end == "" || end == "CLOSE c" {
				text = other
			}
			if got := rowsOf(t, conn, text); strings.Join(got, " ") != "1 2 3 0" {
				t.Errorf("after %q: %q", end, got)
			}
			rowsOf(t, conn, "ROLLBACK", "CLOSE ALL")
		}
	}
}

package tests

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// TestPreparedBySQLAnswersAsTheStatementDoes runs statements with their
// parameters, and with arguments in place of them.
func TestPreparedBySQLAnswersAsTheStatementDoes(t *testing.T) {
	p := shared.serve(t)
	conn := connect(t, p.dsn(shared.reader(t)))
	for _, c := range []struct{ claim, prepare, execute, same string }{
		{
			"declared types", "PREPARE q (int, text) AS SELECT age, zip, token FROM patients WHERE age > " +
				"$1 AND sex = $2 ORDER BY age, zip, token",
			"EXECUTE q (30, 'male')",
			"SELECT age, zip, token FROM patients WHERE age > 30 AND sex = 'male' ORDER BY age, zip, token",
		},
		{
			"inferred types",
			"PREPARE q AS SELECT count(*), min(age) FROM patients WHERE age BETWEEN $1 AND $2 LIMIT $3",
			"execute q ('20', 40.0, 7)",
			"SELECT count(*), min(age) FROM patients WHERE age BETWEEN 20 AND 40",
		},
		{
			"no parameters", `PREPARE q AS SELECT sex, count(*) FROM patients GROUP BY sex ORDER BY sex; ` +
				`-- by sex`,
			"/* all */ EXECUTE q;", "SELECT sex, count(*) FROM patients GROUP BY sex ORDER BY sex",
		},
		{
			"lists and NULL",
			"PREPARE q (int[], text) AS SELECT count(*) FROM patients WHERE age = ANY ($1) OR zip = $2",
			"EXECUTE q (ARRAY[20, 21], NULL)", "SELECT count(*) FROM patients WHERE age IN (20, 21)",
		},
		{
			"an expression, once", "PREPARE q (int) AS SELECT count(*) FROM patients WHERE age > $1",
			"EXECUTE q (10 + length('twenty chars, at least'))",
			"SELECT count(*) FROM patients WHERE age > 32",
		},
		{
			"a string without its length",
			"PREPARE q (varchar(2), char) AS SELECT count(*) FROM patients WHERE sex = $1 OR sex = $2",
			"EXECUTE q ('male', 'female')", "SELECT count(*) FROM patients WHERE sex IN ('male', 'female')",
		},
		{
			"a name of its own", `PREPARE "q" AS SELECT $1::int + count(*) AS n FROM patients`,
			`EXECUTE "q" (-5)`, "SELECT count(*) - 5 FROM patients",
		},
		{
			"kept in a temporary table", "PREPARE q (int) AS SELECT age FROM patients WHERE age > $1",
			"CREATE TEMP TABLE kept AS EXECUTE q (50); SELECT count(*) FROM kept; DROP TABLE kept",
			"SELECT count(*) FROM patients WHERE age > 50",
		},
		{
			"twice in one text", "PREPARE q (int) AS SELECT count(*) FROM patients WHERE age > $1",
			"BEGIN; EXECUTE q (90); EXECUTE q (20); COMMIT",
			"SELECT count(*) FROM patients WHERE age > 90; SELECT count(*) FROM patients WHERE age > 20",
		},
	} {
		t.Run(c.claim, func(t *testing.T) {
			want := rowsOf(t, conn, c.same)
			for _, mode := range []pgx.QueryExecMode{
				pgx.QueryExecModeSimpleProtocol,
				pgx.QueryExecModeExec,
			} {
				if _, err := conn.Exec(t.Context(), c.prepare, mode); err != nil {
					t.Fatal(err)
				}
				if got := rowsOf(t, conn, c.execute); strings.Join(got, "\n") != strings.Join(want, "\n") {
					t.Errorf("%d rows, want %d, or other ones: %.200q, want %.200q", len(got), len(want),
						got, want)
				}
				rowsOf(t, conn, "DEALLOCATE q")
			}
		})
	}
}

// TestErrorsOfEXECUTEHaveAPlaceInTheClientsText compares places with those that
// PostgreSQL names where it names one; where it does not, it is the EXECUTE.
func TestErrorsOfEXECUTEHaveAPlaceInTheClientsText(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	conn := connect(t, p.dsn(user))
	direct := shared.superuser(t)
	rowsOf(t, direct,
		"PREPARE q (int, date) AS SELECT count(*) FROM patients WHERE age > $1 AND birth_date > $2")
	rowsOf(t, conn,
		"PREPARE q (int, date) AS SELECT count(*) FROM patients WHERE age > $1 AND birth_date > $2")
	for _, execute := range []string{
		"EXECUTE q ('x', '2000-01-01')", "/* Ä */ EXECUTE q (1, lower('Ö') || 2::foo)",
		"EXECUTE q (1 + nothing(2), NULL)", "EXECUTE q (3, '2000')",
	} {
		var place [2]int32
		for i, c := range []*pgx.Conn{conn, direct} {
			_, err := c.Exec(t.Context(), execute, pgx.QueryExecModeSimpleProtocol)
			var refused *pgconn.PgError
			if !errors.As(err, &refused) {
				t.Fatalf("%s: %v", execute, err)
			}
			place[i] = refused.Position
		}
		if place[0] != place[1] || place[0] == 0 {
			t.Errorf("%s: position %d, PostgreSQL's is %d", execute, place[0], place[1])
		}
	}
	rowsOf(t, conn, "PREPARE twice AS SELECT $1::int, age FROM patients WHERE age > $1")
	_, err := conn.Exec(t.Context(), "SELECT 1; EXECUTE twice (length(user))",
		pgx.QueryExecModeSimpleProtocol)
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "0A000" || refused.Position == 0 {
		t.Errorf("%v", err)
	}
}

// TestEachExecuteIsDecidedAndRecorded looks at messages, at what a row is called
// and at the record.
func TestEachExecuteIsDecidedAndRecorded(t *testing.T) {
	p := shared.serve(t)
	conn := connect(t, p.dsn(shared.reader(t)))
	rowsOf(t, conn,
		"PREPARE q (int) AS SELECT age, $1, count(*) FROM patients WHERE age > $1 GROUP BY age")
	if n := p.verdicts(t, "released", ""); n > 0 {
		t.Errorf("PREPARE is recorded as %d releases", n)
	}
	result := conn.PgConn().Exec(t.Context(), "EXECUTE q (30)")
	results, err := result.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range results[0].FieldDescriptions {
		names = append(names, f.Name)
	}
	if got := strings.Join(names, " "); got != "age ?column? count" ||
		!strings.HasPrefix(results[0].CommandTag.String(), "SELECT ") {
		t.Errorf("columns %s, %s", got, results[0].CommandTag)
	}
	for range 3 {
		rows, err := conn.Query(t.Context(), "EXECUTE q (40)", pgx.QueryExecModeExec)
		if err != nil {
			t.Fatal(err)
		}
		rows.Close()
		if rows.Err() != nil || rows.CommandTag().RowsAffected() == 0 {
			t.Fatalf("%v, %s", rows.Err(), rows.CommandTag())
		}
	}
	if n := p.verdicts(t, "released", "WHERE age > CAST"); n != 4 {
		t.Errorf("%d runs are recorded, want 4", n)
	}
	if got := rowsOf(t, conn, `PREPARE "Größe '" (text) AS SELECT count(*), $1 FROM patients`,
		`EXECUTE "Größe '" ('Öl \' || chr(39))`, `DEALLOCATE "Größe '"`); len(got) != 1 ||
		!strings.HasSuffix(got[0], `|Öl \'`) {
		t.Errorf("of a name and an argument with other letters: %q", got)
	}
	for _, text := range rowsOf(t, conn,
		"SELECT statement FROM pg_prepared_statements WHERE from_sql") {
		if !strings.Contains(text, "/* tailor keeps ") || strings.Count(text, "/* tailor ") != 1 {
			t.Errorf("the server shows more than the client's text: %.300s", text)
		}
	}
}

// TestWhatEXECUTEStandsForIsAskedEachTime changes, in between, what it depends on.
func TestWhatEXECUTEStandsForIsAskedEachTime(t *testing.T) {
	p := shared.serve(t)
	conn := connect(t, p.dsn(shared.reader(t)))
	const count = "PREPARE q (int) AS SELECT count(*) FROM patients WHERE age > $1"
	for _, c := range []struct {
		claim      string
		statements []string
		code       string // of the last, "" where it answers
	}{
		{"forgotten", []string{count, "DEALLOCATE q", "EXECUTE q (1)"}, "26000"},
		{"all forgotten", []string{count, "DEALLOCATE ALL", "EXECUTE q (1)"}, "26000"},
		{"discarded", []string{count, "DISCARD ALL", "EXECUTE q (1)"}, "26000"},
		{"never prepared", []string{count, "EXECUTE other (1)"}, "26000"},
		{"taken", []string{count, count}, "42P05"},
		{"taken by an unprotected one", []string{"PREPARE q AS SELECT 1", count}, "42P05"},
		{"taken by a message", []string{"parse q", count}, "42P05"},
		{"too many arguments", []string{count, "EXECUTE q (1, 2)"}, "42601"},
		{"too few arguments", []string{count, "EXECUTE q"}, "42601"},
		{"an argument of another type", []string{count, "EXECUTE q ('many')"}, "22P02"},
		{"a subquery as argument", []string{count, "EXECUTE q ((SELECT age FROM numbers))"}, "0A000"},
		{"a column as argument", []string{count, "EXECUTE q (age)"}, "42703"},
		{"a table as argument", []string{count, "EXECUTE q ((SELECT max(age) FROM patients))"}, "42501"},
		{"an expression for two", []string{"PREPARE q AS SELECT $1::float8, count(*) FROM patients " +
			"WHERE age > $1", "EXECUTE q (random())"}, "0A000"},
		{"no transaction left", []string{count, "BEGIN", "SELEC", "EXECUTE q (1)"}, "25P02"},
		{"replaced in a block", []string{
			count,
			"DO $$ BEGIN EXECUTE 'DEALLOCATE q'; EXECUTE 'PREPARE q (int) AS SELECT 4711'; END $$",
			"EXECUTE q (1)",
		}, ""},
		{"replaced by one over the release", []string{
			count, "DO $$ BEGIN EXECUTE 'DEALLOCATE q'; EXECUTE format('PREPARE q (int) AS SELECT age " +
				"FROM %s', (SELECT max(oid)::regclass FROM pg_class WHERE relkind = 'v' AND relname ~ " +
				"'^chain_[0-9]+$' AND has_table_privilege(oid, 'SELECT') AND EXISTS (SELECT FROM " +
				"pg_attribute a WHERE a.attrelid = pg_class.oid AND attname = 'age'))); END $$",
			"EXECUTE q (1)",
		}, "42501"},
		{"hidden by a temporary table", []string{
			count, "CREATE TEMP TABLE patients (age int)",
			"EXECUTE q (1)",
		}, ""},
		{"EXPLAIN", []string{count, "EXPLAIN EXECUTE q (1)"}, ""},
		{"EXPLAIN ANALYZE", []string{count, "EXPLAIN (ANALYZE, VERBOSE) EXECUTE q (1)"}, ""},
		{"EXPLAIN of Tailor's own", []string{count, "EXPLAIN (TAILOR) EXECUTE q (1)"}, ""},
		{"kept for others", []string{count, "CREATE TABLE kept AS EXECUTE q (1)"}, "0A000"},
		{"inside a block", []string{count, "DO $$ BEGIN EXECUTE 'EXECUTE q (1)'; END $$"}, "42501"},
		{"behind its PREPARE in one text", []string{count + "; EXECUTE q (1)"}, "0A000"},
		{"behind DEALLOCATE in one text", []string{count, "DEALLOCATE r; EXECUTE q (1)"}, "26000"},
		{"prepared beside another", []string{"SELECT 1; " + count}, "0A000"},
		{"an unprotected one beside a protected table", []string{
			"PREPARE q AS SELECT 1",
			"SELECT count(*) FROM patients; EXECUTE q",
		}, "0A000"},
		{"a hidden column", []string{"PREPARE q AS SELECT name FROM patients"}, "42501"},
		{"a type of one's own", []string{
			"CREATE DOMAIN pg_temp.mine AS int",
			"PREPARE q (pg_temp.mine) AS SELECT count(*) FROM patients WHERE age > $1",
		}, "42501"},
		{"a name of Tailor's own", []string{"PREPARE tailor_own_1 AS SELECT age FROM patients"}, "42501"},
		{"a failed second PREPARE", []string{
			count, "PREPARE q AS SELECT sex FROM patients",
			"EXECUTE q (1)",
		}, ""},
	} {
		t.Run(c.claim, func(t *testing.T) {
			defer rowsOf(t, conn, "ROLLBACK", "DISCARD ALL")
			for i, sql := range c.statements {
				var err error
				if name, ok := strings.CutPrefix(sql, "parse "); ok {
					_, err = conn.PgConn().Prepare(t.Context(), name, "SELECT age FROM patients", nil)
				} else {
					_, err = conn.PgConn().Exec(t.Context(), sql).ReadAll()
				}
				if got := codeIn(err); i == len(c.statements)-1 && got != c.code {
					t.Errorf("ends with %q, want %q: %v", got, c.code, err)
				}
			}
		})
	}
}

// TestExecuteInAPipelineReadsNothing sends EXECUTE where the server cannot be
// asked what it stands for.
func TestExecuteInAPipelineReadsNothing(t *testing.T) {
	p := shared.serve(t)
	f := dial(t, p.dsn(shared.reader(t)))
	f.send(t, &pgproto3.Query{String: "PREPARE q AS SELECT age FROM patients"})
	f.untilReady(t, 1)
	parse := func(sql string) []pgproto3.FrontendMessage {
		return []pgproto3.FrontendMessage{
			&pgproto3.Parse{Query: sql}, &pgproto3.Bind{},
			&pgproto3.Execute{},
		}
	}
	f.send(t, append(append(parse("SELECT 1"), parse("EXECUTE q")...), &pgproto3.Sync{})...)
	if got := f.untilReady(t, 1); !strings.Contains(got, "42501") {
		t.Errorf("answered with %s", got)
	}
	f.send(t, append(parse("EXECUTE q"), &pgproto3.Sync{})...)
	if got := f.untilReady(t, 1); strings.Contains(got, "E:") {
		t.Errorf("by itself it is answered with %.300s", got)
	}
	// The server's own statement under the name reads nothing either.
	f.send(t, &pgproto3.Bind{PreparedStatement: "q"}, &pgproto3.Execute{}, &pgproto3.Sync{})
	if got := f.untilReady(t, 1); !strings.Contains(got, "42501") {
		t.Errorf("bound by message it is answered with %.300s", got)
	}
}

// TestPreparedBySQLKeepsItsSharedConnection is about sessions that share them.
func TestPreparedBySQLKeepsItsSharedConnection(t *testing.T) {
	p := shares(t, 2)
	user := limited(t, 2)
	holder := connect(t, p.dsn(user))
	rowsOf(t, holder, "PREPARE q (int) AS SELECT count(*) FROM patients WHERE age > $1")
	defer inDemand(t, p, user, 3)()
	other := connect(t, p.dsn(user))
	for range 10 {
		if got := rowsOf(t, holder, "EXECUTE q (-1)"); len(got) != 1 {
			t.Fatalf("%q", got)
		}
		if _, err := conn1(t, other, "EXECUTE q (-1)"); codeIn(err) != "26000" {
			t.Fatalf("another session: %v", err)
		}
	}
}

// TestACancelRequestEndsTheQuestionOfExecute: the client's statement is
// cancelled, whoever runs what at the moment.
func TestACancelRequestEndsTheQuestionOfExecute(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	conn := connect(t, p.dsn(user))
	rowsOf(t, conn, "PREPARE q AS SELECT count(*) FROM patients")
	holder, watcher := shared.superuser(t), shared.superuser(t)
	waits := func() bool {
		return one[bool](t, watcher,
			`SELECT EXISTS (SELECT FROM pg_locks JOIN pg_stat_activity USING (pid)
			WHERE relation = 'pg_catalog.pg_namespace'::regclass AND NOT granted AND usename = $1)`, user)
	}
	waits() // so that it needs no look at the catalog while that is locked
	for range 2 {
		mustExec(t, holder, "BEGIN; LOCK TABLE pg_catalog.pg_namespace IN ACCESS EXCLUSIVE MODE")
		answered := make(chan error, 1)
		go func() {
			_, err := conn.PgConn().Exec(t.Context(), "EXECUTE q").ReadAll()
			answered <- err
		}()
		waitFor(t, waits)
		if err := conn.PgConn().CancelRequest(t.Context()); err != nil {
			t.Fatal(err)
		}
		err := soonOf(t, answered)
		mustExec(t, holder, "ROLLBACK")
		if codeIn(err) != "57014" {
			t.Errorf("%v, want 57014", err)
		}
	}
	if got := rowsOf(t, conn, "EXECUTE q"); len(got) != 1 {
		t.Errorf("afterwards: %q", got)
	}
}

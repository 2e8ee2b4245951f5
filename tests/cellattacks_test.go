package tests

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// cellAnswer asks one statement and returns its rows as text, or the error, and
// the notices.
func cellAnswer(t *testing.T, dsn, sql string, settings ...string) (rows [][]string, notices []string, failed error) {
	t.Helper()
	conn, told := noticing(t, dsn)
	for _, s := range settings {
		exec1(t, conn, s)
	}
	*told = nil
	results, err := conn.PgConn().Exec(t.Context(), sql).ReadAll()
	if err != nil {
		return nil, *told, err
	}
	for _, row := range results[len(results)-1].Rows {
		var cells []string
		for _, c := range row {
			cells = append(cells, string(c))
		}
		rows = append(rows, cells)
	}
	return rows, *told, nil
}

// TestOperatorsOfAnAccompliceSeeNoRows has somebody other than the reader make
// the operators, in a schema that the reader puts first.
func TestOperatorsOfAnAccompliceSeeNoRows(t *testing.T) {
	p, direct := serveStaff(t, "accomplice", 3, 9000)
	user := shared.reader(t)
	exec1(t, direct, `CREATE SCHEMA scratch; CREATE ROLE mallory LOGIN PASSWORD 'mallory'; GRANT ALL ON SCHEMA scratch TO mallory; GRANT USAGE ON SCHEMA scratch TO PUBLIC`)
	t.Cleanup(func() {
		if _, err := direct.Exec(context.Background(), `DROP SCHEMA scratch CASCADE; DROP OWNED BY mallory; DROP ROLE mallory`); err != nil {
			t.Error(err)
		}
	})
	path := `SET search_path = scratch, public, pg_catalog`
	asked := `SELECT token, sum(pay), count(*) FROM staff WHERE unit = 'secret' AND pay > 1 GROUP BY token`
	if got, _, err := cellAnswer(t, p.dsn(user), asked, path); err != nil || len(got) > 0 {
		t.Fatalf("before there are operators: %q, %v", got, err)
	}
	operators := `
		CREATE FUNCTION scratch.always(a bigint, b integer) RETURNS boolean LANGUAGE sql AS 'SELECT true';
		CREATE OPERATOR scratch.>= (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = scratch.always);
		CREATE FUNCTION scratch.never(a bigint, b integer) RETURNS boolean LANGUAGE sql AS 'SELECT false';
		CREATE OPERATOR scratch.< (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = scratch.never);
		CREATE FUNCTION scratch.tells(a numeric, b integer) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE NOTICE ''saw %'', a; RETURN true; END';
		CREATE OPERATOR scratch.> (LEFTARG = numeric, RIGHTARG = integer, FUNCTION = scratch.tells);
		CREATE OPERATOR scratch.= (LEFTARG = numeric, RIGHTARG = integer, FUNCTION = scratch.tells);
		CREATE OPERATOR scratch.<> (LEFTARG = numeric, RIGHTARG = integer, FUNCTION = scratch.tells);
		CREATE OPERATOR scratch.< (LEFTARG = numeric, RIGHTARG = integer, FUNCTION = scratch.tells);
		CREATE OPERATOR scratch.<= (LEFTARG = numeric, RIGHTARG = integer, FUNCTION = scratch.tells);
		CREATE OPERATOR scratch.>= (LEFTARG = numeric, RIGHTARG = integer, FUNCTION = scratch.tells);
		CREATE FUNCTION scratch.tells(a text, b text) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE NOTICE ''saw %'', a; RETURN true; END';
		CREATE OPERATOR scratch.= (LEFTARG = text, RIGHTARG = text, FUNCTION = scratch.tells);
		CREATE OPERATOR scratch.~~ (LEFTARG = text, RIGHTARG = text, FUNCTION = scratch.tells);
		CREATE OPERATOR scratch.!~~ (LEFTARG = text, RIGHTARG = text, FUNCTION = scratch.tells);
		CREATE OPERATOR scratch.~~* (LEFTARG = text, RIGHTARG = text, FUNCTION = scratch.tells);
		CREATE OPERATOR scratch.!~~* (LEFTARG = text, RIGHTARG = text, FUNCTION = scratch.tells)`
	exec1(t, direct, `SET SESSION AUTHORIZATION mallory;`+operators+`; RESET SESSION AUTHORIZATION`)
	got, told, err := cellAnswer(t, p.dsn(user), asked, path)
	if refused, ok := asRefusal(err); !ok || refused.Code != "42501" || len(told) > 0 {
		t.Errorf("groups of one: %q, notices %.300q, %v", got, told, err)
	}

	// A superuser's are answered beside, and none of them is ever called: as for
	// one that is made when all that could look has looked.
	exec1(t, direct, `DO $$ DECLARE o record; BEGIN
		FOR o IN SELECT oid::regoperator AS name FROM pg_operator WHERE oprnamespace = 'scratch'::regnamespace LOOP
			EXECUTE format('ALTER OPERATOR %s OWNER TO CURRENT_USER', o.name);
		END LOOP; END $$`)
	for _, s := range []string{
		asked,
		`SELECT count(*) FROM staff WHERE pay = 1 OR pay IN (1, 2) OR pay NOT IN (1, 2) OR pay BETWEEN 1 AND 2 OR pay NOT BETWEEN 1 AND 2 OR 1 < pay`,
		`SELECT count(*) FROM staff WHERE pay IS DISTINCT FROM 1 AND (pay IS NOT DISTINCT FROM 1 OR pay != 1 OR pay <= ANY ('{1}'))`,
		`SELECT count(*) FROM staff WHERE unit = 'x' OR unit LIKE 'x%' OR unit NOT LIKE 'x%' OR unit ILIKE 'x%' OR unit NOT ILIKE 'x%' OR unit = ANY ('{x}')`,
		`SELECT count(*) FILTER (WHERE pay > 1 AND pay IN (1, 2)), sum(pay) FILTER (WHERE pay BETWEEN 1 AND 2 OR unit LIKE 'x') FROM staff`,
	} {
		got, told, err := cellAnswer(t, p.dsn(user), s, path)
		if err != nil || strings.Contains(strings.Join(told, " "), "saw") || s == asked && len(got) > 0 {
			t.Errorf("%s: %q, notices %.300q, %v", s, got, told, err)
		}
	}
}

// TestOperatorsMadeAfterTheProxyLookedEndTheStatement calls what is part of each
// statement.
func TestOperatorsMadeAfterTheProxyLookedEndTheStatement(t *testing.T) {
	_, direct := serveStaff(t, "late_operator", 3, 9000)
	if !one[bool](t, direct, `SELECT tailor.left_out(5, 0, NULL, 0)`) {
		t.Error("nothing is left out, and there is no answer")
	}
	exec1(t, direct, `CREATE ROLE latecomer; GRANT CREATE ON SCHEMA public TO latecomer; SET ROLE latecomer;
		CREATE FUNCTION public.late(a numeric, b integer) RETURNS boolean LANGUAGE sql AS 'SELECT true';
		CREATE OPERATOR public.> (LEFTARG = numeric, RIGHTARG = integer, FUNCTION = public.late); RESET ROLE`)
	t.Cleanup(func() {
		if _, err := direct.Exec(context.Background(), `DROP OWNED BY latecomer; DROP ROLE latecomer`); err != nil {
			t.Error(err)
		}
	})
	refusedWith(t, direct, "42501", `SELECT tailor.left_out(5, 0, NULL, 0)`)
}

// TestNoParameterMakesACastThatFailsForOnePerson compares a bigint with an oid.
func TestNoParameterMakesACastThatFailsForOnePerson(t *testing.T) {
	p, direct := serveStaff(t, "cell_casts", 3, 9000)
	user := shared.reader(t)
	exec1(t, direct, `ALTER TABLE staff ADD big bigint, ADD exact numeric; UPDATE staff SET big = id, exact = id; UPDATE staff SET big = -5, exact = 1e400 WHERE id = 1001;
		CALL tailor.classify('public.staff', 'big', 'sensitive'); CALL tailor.classify('public.staff', 'exact', 'sensitive')`)
	exec1(t, direct, `CALL tailor.activate('public.staff')`)
	conn := connect(t, p.dsn(user))
	waitFor(t, func() bool {
		_, err := conn.Exec(t.Context(), `SELECT count(*) FROM staff WHERE big > 0`)
		return err == nil
	})
	outcome := func(condition string, oid uint32, pay int) string {
		if _, err := conn.PgConn().Prepare(t.Context(), "", fmt.Sprintf(`SELECT count(*) FROM staff WHERE unit = 'secret' AND pay = %d AND %s`, pay, condition), []uint32{oid}); err != nil {
			return err.Error()
		}
		return fmt.Sprint(conn.PgConn().ExecPrepared(t.Context(), "", [][]byte{[]byte("7")}, nil, nil).Read().Err)
	}
	for _, oid := range []uint32{26, 24, 2202, 2205, 2206, 4089, 28, 29} {
		if got := outcome("big = $1", oid, 9002); !strings.Contains(got, "parameters over table") {
			t.Errorf("type %d: %s", oid, got)
		}
	}
	for _, condition := range []string{"big = $1", "exact = $1", "exact IN ($1, 3)", "exact BETWEEN $1 AND $1", "$1 < exact"} {
		for _, oid := range []uint32{0, 26, 700, 701, 1700} {
			if extreme, other := outcome(condition, oid, 9001), outcome(condition, oid, 9002); extreme != other || oid != 26 && extreme != "<nil>" {
				t.Errorf("%s, type %d: whose value is extreme is told: %s / %s", condition, oid, extreme, other)
			}
		}
	}
}

// TestAggregatesOverflowForNoGroupThatIsNotShown stores the largest numbers of
// their types for one person, of whom nothing may show.
func TestAggregatesOverflowForNoGroupThatIsNotShown(t *testing.T) {
	p, direct := serveStaff(t, "cell_overflow", 3, 9000)
	user := shared.reader(t)
	exec1(t, direct, `ALTER TABLE staff ADD thin real, ADD days interval; UPDATE staff SET thin = bonus, days = '1 day';
		UPDATE staff SET bonus = 1.7e308, thin = 3.4e38 WHERE unit = 'secret';
		CALL tailor.classify('public.staff', 'thin', 'sensitive'); CALL tailor.classify('public.staff', 'days', 'sensitive')`)
	exec1(t, direct, `CALL tailor.activate('public.staff'); CALL tailor.forget_chains('public.staff')`)
	conn := connect(t, p.dsn(user))
	waitFor(t, func() bool {
		_, err := conn.Exec(t.Context(), `SELECT count(*) FROM staff WHERE thin > 0`)
		return err == nil
	})
	for _, f := range []string{"sum", "avg", "stddev", "stddev_pop", "variance", "var_pop"} {
		for column, of := range map[string]string{"bonus": "float8", "thin": "real"} {
			kind := of
			if f != "sum" {
				kind = "float8"
			}
			asked := fmt.Sprintf(`SELECT unit, round(%[1]s(%[2]s)::numeric, 3), pg_catalog.concat(%[1]s(%[2]s)::text) FROM staff GROUP BY unit ORDER BY unit`, f, column)
			got, err := conn.Exec(t.Context(), asked)
			if err != nil || got.RowsAffected() < 4 {
				t.Errorf("%s: %v, %v", asked, got, err)
			}
			conn := connect(t, p.dsn(user))
			sum := fmt.Sprintf(`SELECT %s(%s) FROM staff WHERE unit = 'ward0'`, f, column)
			shown, err := conn.Prepare(t.Context(), "types", sum)
			if err != nil {
				t.Fatal(err)
			}
			if want := map[string]uint32{"float8": 701, "real": 700}[kind]; shown.Fields[0].DataTypeOID != want {
				t.Errorf("%s is of type %d, want %d", sum, shown.Fields[0].DataTypeOID, want)
			}
			var through, plain float64
			if err := conn.QueryRow(t.Context(), sum).Scan(&through); err != nil {
				t.Fatal(err)
			}
			if err := direct.QueryRow(t.Context(), sum).Scan(&plain); err != nil || through < plain*(1-1e-6) || through > plain*(1+1e-6) {
				t.Errorf("%s: %v, PostgreSQL says %v, %v", sum, through, plain, err)
			}
		}
	}
	refusedWith(t, conn, "0A000", `SELECT sum(days) FROM staff`)
}

// TestNoCellOfAnAnswerIsTheDifferenceOfTwo asks for cells that differ in one
// person.
func TestNoCellOfAnAnswerIsTheDifferenceOfTwo(t *testing.T) {
	p, _ := serveStaff(t, "cell_difference", 3, 9000)
	user := shared.reader(t)
	for _, asked := range []string{
		`SELECT count(*) - count(*) FILTER (WHERE unit <> 'secret' OR pay > 9001), sum(pay) - sum(pay) FILTER (WHERE unit <> 'secret' OR pay > 9001) FROM staff`,
		`SELECT sum(grade) FILTER (WHERE unit NOT IN ('secret')) FROM staff`,
		`SELECT avg(bonus) FILTER (WHERE pay IS DISTINCT FROM 9001) FROM staff`,
	} {
		rows, _, err := cellAnswer(t, p.dsn(user), asked)
		if err != nil || len(rows) != 1 || strings.Join(rows[0], "") != "" {
			t.Errorf("%s: %q, %v", asked, rows, err)
		}
	}
	for _, condition := range []string{`unit <> 'secret'`, `pay IS DISTINCT FROM 9001`, `NOT (unit = 'secret' AND pay > 9001)`, `age >= 0 AND unit <> 'secret'`} {
		asked := `SELECT unit, count(*), sum(grade) FROM staff WHERE ` + condition + ` GROUP BY unit`
		rows, told, err := cellAnswer(t, p.dsn(user), asked)
		if err != nil || len(rows) > 0 || !strings.Contains(strings.Join(told, " "), "nothing is shown: the condition leaves out fewer than 5 subjects") {
			t.Errorf("%s: %q, notices %q, %v", asked, rows, told, err)
		}
	}
	for _, condition := range []string{`bonus > 0`, `unit = 'ward0'`, `age >= 40`} {
		if rows, _, err := cellAnswer(t, p.dsn(user), `SELECT unit, count(*) FROM staff WHERE `+condition+` GROUP BY unit`); err != nil || len(rows) == 0 {
			t.Errorf("%s: %q, %v", condition, rows, err)
		}
	}
}

// TestPatternsOverNondeterministicCollationsAreRefused asks for what PostgreSQL
// fails at where a row gets that far.
func TestPatternsOverNondeterministicCollationsAreRefused(t *testing.T) {
	p, direct := serveStaff(t, "cell_collation", 3, 9000)
	user := shared.reader(t)
	exec1(t, direct, `CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
		ALTER TABLE staff ALTER unit TYPE text COLLATE loose; CALL tailor.activate('public.staff')`)
	conn := connect(t, p.dsn(user))
	refusedByPlan := func(sql string) bool { // not by the server, which gets as far as a row
		_, err := conn.Exec(t.Context(), sql)
		refused, ok := asRefusal(err)
		return ok && refused.Code == "0A000" && strings.Contains(refused.Message, "patterns are not defined")
	}
	waitFor(t, func() bool { return refusedByPlan(`SELECT count(*) FROM staff WHERE unit LIKE 'w%'`) })
	for _, sql := range []string{
		`SELECT count(*) FROM staff WHERE grade = 77 AND pay = 9001 AND unit NOT ILIKE 'w%'`,
		`SELECT count(*) FROM staff WHERE grade = 77 AND pay = 9004 AND unit NOT ILIKE 'w%'`,
		`SELECT count(*) FILTER (WHERE unit LIKE 'w%') FROM staff`,
	} {
		if !refusedByPlan(sql) {
			t.Errorf("%s is not refused", sql)
		}
	}
	if n := table(t, conn, `SELECT count(*) FROM staff WHERE unit = 'WARD0' OR sex LIKE 'f%'`); len(n) != 1 {
		t.Errorf("others: %v", n)
	}
}

// TestNoCursorIsReadWhenAnAggregateEndsItsTransaction opens a cursor WITH HOLD in
// a function, in a pipeline whose transaction a statement over aggregates ends:
// the server reads the cursor then.
func TestNoCursorIsReadWhenAnAggregateEndsItsTransaction(t *testing.T) {
	p, direct := serveStaff(t, "cell_cursor", 3, 9000)
	conn, err := pgconn.Connect(t.Context(), p.dsn(shared.reader(t)))
	if err != nil {
		t.Fatal(err)
	}
	run := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql).ReadAll(); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	const asked = `SELECT count(*) FROM staff`
	run(asked)
	chain := one[int](t, direct, `SELECT chain FROM tailor.chain`)
	run(fmt.Sprintf(`CREATE FUNCTION pg_temp.opens() RETURNS int LANGUAGE plpgsql AS
		$$ BEGIN EXECUTE 'DECLARE other CURSOR WITH HOLD FOR SELECT * FROM tailor_release.chain_%d'; RETURN 1; END $$`, chain))
	run(`PREPARE opens AS SELECT pg_temp.opens()`)
	run(asked)
	hijacked, err := conn.Hijack()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hijacked.Conn.Close() }()
	rows, codes := talk(t, hijacked.Frontend, &pgproto3.Parse{Query: `EXECUTE opens`}, &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Query{String: asked})
	if rows > 2 || !slices.Equal(codes, []string{"0A000"}) {
		t.Errorf("%d rows, errors %v", rows, codes)
	}
	if rows, _ := talk(t, hijacked.Frontend, &pgproto3.Query{String: `FETCH ALL FROM other`}); rows > 0 {
		t.Errorf("the cursor has %d rows", rows)
	}
}

package tests

import (
	"fmt"
	"strings"
	"testing"
)

// TestNoObjectOfAReadersOwnRunsSQLBesideAProtectedTable has types, casts, domains,
// views and operators of the reader's own run a function of PostgreSQL's that
// reads SQL from a string, in a text that is recorded for something else.
func TestNoObjectOfAReadersOwnRunsSQLBesideAProtectedTable(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	mustExec(t, shared.superuser(t), fmt.Sprintf(`CREATE SCHEMA own_%[1]s AUTHORIZATION %[1]s`, user))
	mustExec(t, connect(t, p.dsn(user)), "SELECT age FROM patients LIMIT 1")
	stolen := fmt.Sprintf("SELECT ''a''::tsquery, plainto_tsquery(max(diagnosis)) FROM tailor_rel' "+
		"|| 'ease.chain_%d",
		one[int](t, shared.superuser(t),
			`SELECT chain FROM tailor.chain WHERE relation = 'patients'::regclass`))
	// Plain texts, for what stands in a definition.
	literal := strings.ReplaceAll(stolen, "' || '", "")
	for _, attack := range []struct {
		name    string
		before  []string
		attempt string
	}{
		{
			"a domain of the session's own",
			[]string{`CREATE DOMAIN pg_temp.dd AS text CHECK (ts_rewrite('a'::tsquery, VALUE) IS NOT NULL)`},
			`SELECT count(*), CAST('{stolen}' AS dd) FROM patients`,
		},
		{
			"what stands beside a label",
			[]string{`CREATE DOMAIN pg_temp.dd AS text CHECK (ts_rewrite('a'::tsquery, VALUE) IS NOT NULL)`},
			`SELECT (CASE WHEN tailor.label(age) > '' THEN '{stolen}' END)::dd FROM patients LIMIT 1`,
		},
		{
			"what stands beside bounds",
			[]string{`CREATE DOMAIN pg_temp.dd AS text CHECK (ts_rewrite('a'::tsquery, VALUE) IS NOT NULL)`},
			`SELECT tailor.bounds(age), coalesce(NULL::dd, '{stolen}') FROM patients ` +
				`WHERE tailor.exact(age) LIMIT 1`,
		},
		{
			"what stands beside codes",
			[]string{`CREATE DOMAIN pg_temp.dd AS text CHECK (ts_rewrite('a'::tsquery, VALUE) IS NOT NULL)`},
			`SELECT max(code), CAST('{stolen}' AS dd) FROM diagnoses`,
		},
		{
			"a code that cases are counted of",
			[]string{`CREATE DOMAIN pg_temp.dd AS text CHECK (ts_rewrite('a'::tsquery, VALUE) IS NOT NULL)`},
			`SELECT lower FROM tailor.case_count('diagnoses', ARRAY['{stolen}'::dd]::text[])`,
		},
		{
			"a name of a column that xmltable makes",
			[]string{`CREATE DOMAIN pg_temp.dd AS text CHECK (ts_rewrite('a'::tsquery, VALUE) IS NOT NULL)`},
			`SELECT x.a FROM patients, xmltable('/r' PASSING xmlparse(CONTENT '<r><a>' || '{stolen}' || ` +
				`'</a></r>') COLUMNS a dd) x LIMIT 1`,
		},
		{
			"an array of it",
			[]string{`CREATE DOMAIN pg_temp.dd AS text CHECK (ts_rewrite('a'::tsquery, VALUE) IS NOT NULL)`},
			`SELECT count(*), ARRAY['{stolen}']::dd[] FROM patients`,
		},
		{
			"a literal of it",
			[]string{`CREATE DOMAIN pg_temp.dd AS text CHECK (ts_rewrite('a'::tsquery, VALUE) IS NOT NULL)`},
			`SELECT count(*), dd '{literal}' FROM patients`,
		},
		{
			"a domain with the name of a type",
			[]string{`CREATE DOMAIN pg_temp.text ` +
				`AS pg_catalog.text CHECK (ts_rewrite('a'::tsquery, VALUE) IS NOT NULL)`},
			`SELECT count(*), CAST('{stolen}' AS text) FROM patients`,
		},
		{
			"a row type that holds it",
			[]string{
				`CREATE DOMAIN pg_temp.dd AS text CHECK (ts_rewrite('a'::tsquery, VALUE) IS NOT NULL)`,
				`CREATE TYPE pg_temp.pair AS (n int, d pg_temp.dd)`,
			},
			`SELECT count(*), ROW(1, '{stolen}')::pair FROM patients`,
		},
		{
			"a column of it in a list of definitions",
			[]string{`CREATE DOMAIN pg_temp.dd AS text CHECK (ts_rewrite('a'::tsquery, VALUE) IS NOT NULL)`},
			`SELECT count(*) FROM patients, ` +
				`json_to_recordset(json_build_array(json_build_object('a', '{stolen}'))) AS x(a dd)`,
		},
		{
			"a row of a table with a column of it",
			[]string{
				`CREATE DOMAIN pg_temp.dd AS text CHECK (VALUE IS NULL ` +
					`OR ts_rewrite('a'::tsquery, VALUE) IS NOT NULL)`,
				`CREATE TEMP TABLE holder (a pg_temp.dd)`, `INSERT INTO holder VALUES (NULL)`,
			},
			`SELECT count(*), jsonb_populate_record(h, jsonb_build_object('a', '{stolen}')) ` +
				`FROM patients, holder h GROUP BY h`,
		},
		{
			"a cast that nobody writes",
			[]string{
				`CREATE TYPE pg_temp.e AS ENUM ('a')`,
				`CREATE FUNCTION pg_temp.f(pg_temp.e) RETURNS tsquery LANGUAGE sql VOLATILE AS $$ ` +
					`SELECT ts_rewrite('a'::tsquery, '{literal}') $$`,
				`CREATE CAST (pg_temp.e AS tsquery) WITH FUNCTION pg_temp.f(pg_temp.e) AS IMPLICIT`,
				`CREATE TEMP TABLE lever (a pg_temp.e)`, `INSERT INTO lever VALUES ('a')`,
			},
			`SELECT count(*), 'b'::tsquery || l.a FROM patients, lever l GROUP BY l.a`,
		},
		{
			"a view of the session's own",
			[]string{`DO $x$ BEGIN EXECUTE $$CREATE TEMP VIEW looking AS ` +
				`SELECT ts_rewrite('a'::tsquery, '{literal}') AS q$$; END $x$`},
			`SELECT count(*), max(q::text) FROM patients, looking`,
		},
		{
			"a view of the reader's own",
			[]string{`DO $x$ BEGIN EXECUTE $$CREATE VIEW {own}.looking AS ` +
				`SELECT ts_rewrite('a'::tsquery, '{literal}') AS q$$; END $x$`},
			`SELECT count(*), max(q::text) FROM patients, {own}.looking`,
		},
		{
			"a function on the search path",
			[]string{`CREATE FUNCTION {own}.looks(text) RETURNS tsquery LANGUAGE sql VOLATILE AS $$ ` +
				`SELECT ts_rewrite('a'::tsquery, $1) $$`},
			`SELECT count(*), looks('{stolen}') FROM patients`,
		},
		{
			"a function that fits better than PostgreSQL's own of its name",
			[]string{`CREATE FUNCTION {own}.length(varchar) RETURNS tsquery LANGUAGE sql VOLATILE AS $$ ` +
				`SELECT ts_rewrite('a'::tsquery, $1::text) $$`},
			`SELECT count(*), length(('{stolen}')::varchar) FROM patients`,
		},
		{
			"a function in the place of a column",
			[]string{
				`CREATE TEMP TABLE one AS SELECT 1 AS n`,
				`CREATE FUNCTION {own}.looks(one) RETURNS tsquery LANGUAGE sql VOLATILE AS $$ ` +
					`SELECT ts_rewrite('a'::tsquery, '{literal}') $$`,
			},
			`SELECT count(*), max(one.looks::text) FROM patients, one`,
		},
		{
			"a function in the place of a field",
			[]string{
				`CREATE TEMP TABLE one AS SELECT 1 AS n`,
				`CREATE FUNCTION {own}.looks(one) RETURNS tsquery LANGUAGE sql VOLATILE AS $$ ` +
					`SELECT ts_rewrite('a'::tsquery, '{literal}') $$`,
			},
			`SELECT count(*), max((one).looks::text) FROM patients, one`,
		},
		{
			"an aggregate",
			[]string{`CREATE AGGREGATE {own}.looking(text) (SFUNC = ts_rewrite, STYPE = tsquery, ` +
				`INITCOND = 'a')`},
			`SELECT count(*), looking('{stolen}') FROM patients`,
		},
		{
			"an operator",
			[]string{`CREATE OPERATOR {own}.### (LEFTARG = tsquery, RIGHTARG = text, ` +
				`FUNCTION = ts_rewrite)`},
			`SELECT count(*), 'a'::tsquery ### ('{stolen}')::text FROM patients`,
		},
		{
			"an operator of a name that PostgreSQL has",
			[]string{`CREATE OPERATOR {own}.+ (LEFTARG = tsquery, RIGHTARG = text, FUNCTION = ts_rewrite)`},
			`SELECT count(*), 'a'::tsquery + ('{stolen}')::text FROM patients`,
		},
		{
			"an operator of a sort or a comparison with many",
			[]string{
				`CREATE FUNCTION {own}.like(tsquery, text) RETURNS boolean LANGUAGE sql VOLATILE AS $$ ` +
					`SELECT ts_rewrite($1, $2) IS NOT NULL $$`,
				`CREATE OPERATOR {own}.~~ (LEFTARG = tsquery, RIGHTARG = text, FUNCTION = {own}.like)`,
			},
			`SELECT count(*), 'a'::tsquery LIKE ('{stolen}')::text FROM patients`,
		},
	} {
		t.Run(attack.name, func(t *testing.T) {
			conn := connect(t, p.dsn(user))
			filled := strings.NewReplacer("{stolen}", stolen, "{literal}", literal, "{own}",
				"own_"+user).Replace
			mustExec(t, conn, "SET statement_timeout = '10s'; SET search_path = public, own_"+user)
			for _, statement := range attack.before {
				rowsOf(t, conn, filled(statement))
			}
			rows, err := simply(t, conn, filled(attack.attempt))
			if err == nil || codeIn(err) == "" {
				t.Errorf("%.60s, %v", fmt.Sprint(rows), err)
			}
		})
	}
}

// TestAParameterIsOfNoTypeOfAReadersOwn gives a parameter of a statement over a
// protected table, by its number, the type of a domain that runs SQL.
func TestAParameterIsOfNoTypeOfAReadersOwn(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	conn := connect(t, p.dsn(user))
	rowsOf(t, conn, `CREATE DOMAIN pg_temp.dd `+
		`AS text CHECK (ts_rewrite('a'::tsquery, VALUE) IS NOT NULL)`)
	of := one[uint32](t, conn, `SELECT 'pg_temp.dd'::regtype::oid`)
	chain := one[int](t, shared.superuser(t),
		`SELECT coalesce((SELECT chain FROM tailor.chain WHERE relation = 'patients'::regclass), 0)`)
	if chain == 0 {
		mustExec(t, conn, "SELECT age FROM patients LIMIT 1")
		chain = one[int](t, shared.superuser(t),
			`SELECT chain FROM tailor.chain WHERE relation = 'patients'::regclass`)
	}
	stolen := fmt.Sprintf("SELECT 'a'::tsquery, plainto_tsquery(max(diagnosis)) FROM "+
		"tailor_release.chain_%d", chain)
	result := conn.PgConn().ExecParams(t.Context(), "SELECT count(*), $1::text IS NULL FROM patients",
		[][]byte{[]byte(stolen)}, []uint32{of}, nil, nil).Read()
	if codeIn(result.Err) != "0A000" && codeIn(result.Err) != "42501" {
		t.Errorf("%d rows, %v", len(result.Rows), result.Err)
	}
}

// TestNothingThatRunsAQueryStandsBesideARecordedOne: all of a text has one ticket.
func TestNothingThatRunsAQueryStandsBesideARecordedOne(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	mustExec(t, shared.superuser(t), fmt.Sprintf(
		`CREATE SCHEMA beside_%[1]s AUTHORIZATION %[1]s`, user))
	conn := connect(t, p.dsn(user))
	mustExec(t, conn, "SELECT age FROM patients LIMIT 1")
	chain := one[int](t, shared.superuser(t),
		`SELECT chain FROM tailor.chain WHERE relation = 'patients'::regclass`)
	rowsOf(t, conn, fmt.Sprintf(`SET search_path = public, beside_%[1]s; DO $x$ BEGIN
		EXECUTE 'CREATE MATERIALIZED VIEW beside_%[1]s.mine AS SELECT * FROM tailor_rel' ||
		'ease.chain_%[2]d WITH NO DATA';
		EXECUTE 'CREATE TEMP VIEW behind AS SELECT age FROM tailor_rel' || 'ease.chain_%[2]d'; END $x$`,
		user, chain),
		"CREATE TEMP TABLE kept (n int)")
	for _, statement := range []string{
		"REFRESH MATERIALIZED VIEW mine", "CREATE TABLE copied AS SELECT * FROM behind",
		"CREATE MATERIALIZED VIEW copied AS SELECT * FROM behind", "INSERT INTO kept SELECT 1",
		"ANALYZE kept", "CREATE INDEX ON kept (n)", "REINDEX TABLE kept", "CLUSTER", "NOTIFY told, 'x'",
		"COPY kept FROM STDIN", "CALL beside()", "DO $$ BEGIN END $$",
		"CREATE RULE r AS ON INSERT TO kept DO NOTHING",
	} {
		for _, text := range []string{
			"SELECT count(*) FROM patients; " + statement,
			statement + "; SELECT count(*) FROM patients",
		} {
			if _, err := simply(t, conn, text); codeIn(err) != "0A000" {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

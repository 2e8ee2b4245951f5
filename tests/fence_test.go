package tests

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// fenced has a table for every kind of release: values stored as arrays, as rows and
// as labels; a child with what it shows of its parent; codes, by themselves and together
// with a column of the parent; aggregates only; and no quasi-identifier at all.
const fenced = `
REVOKE CREATE ON SCHEMA public FROM PUBLIC; -- which versions before 15 grant
CREATE TABLE people (id int PRIMARY KEY, age int, zip text, weight numeric(5, 1), ward text);
CREATE INDEX ON people (age); CREATE INDEX ON people (zip); CREATE INDEX ON people (ward);
CREATE TABLE visits (person int NOT NULL REFERENCES people, day date, fee int);
CREATE TABLE codes (person int NOT NULL, code text);
CREATE TABLE drugs (person int NOT NULL REFERENCES people, drug text);
CREATE TABLE pay (id int PRIMARY KEY, age int, amount int);
CREATE TABLE beds (id int PRIMARY KEY, ward text);
INSERT INTO people SELECT g, g * 7 % 90, lpad((g * 13 % 300)::text, 5, '35'), g % 50 + 40.5,
    'ward ' || g % 5 FROM generate_series(1, 400) g;
INSERT INTO visits SELECT 1 + g % 400, date '2020-01-01' + g % 300, g
    FROM generate_series(1, 900) g;
INSERT INTO codes SELECT g, c::text FROM generate_series(1, 300) g, generate_series(1, 1 + g % 3) c;
INSERT INTO drugs SELECT g, 'drug ' || c FROM generate_series(1, 400) g,
    generate_series(1, 1 + g % 3) c;
INSERT INTO pay SELECT g, g % 60, g * 31 % 997 FROM generate_series(1, 300) g;
INSERT INTO beds SELECT g, 'ward ' || g % 5 FROM generate_series(1, 300) g;`

const fencedPolicy = `
CALL tailor.define_hierarchy('age', 'interval',
    '{"widths": [10, 20, 40], "lower": 0, "upper": 119}');
CALL tailor.define_hierarchy('weight', 'interval',
    '{"widths": [10, 20, 40], "lower": 0, "upper": 199}');
CALL tailor.define_hierarchy('zip', 'prefix', '{"keep": [4, 3, 2, 1]}');
CALL tailor.define_hierarchy('day', 'date',
    '{"levels": ["month", "year"], "lower": "1900-01-01", "upper": "2029-12-31"}');
CALL tailor.protect('public.people', subject => 'id', k => 5);
CALL tailor.classify('public.people', 'id', 'direct_identifier');
CALL tailor.classify('public.people', 'age', 'quasi_identifier', hierarchy => 'age');
CALL tailor.classify('public.people', 'zip', 'quasi_identifier', hierarchy => 'zip');
CALL tailor.classify('public.people', 'weight', 'quasi_identifier', hierarchy => 'weight');
CALL tailor.classify('public.people', 'ward', 'sensitive');
CALL tailor.protect('public.visits', subject => 'person', k => 5);
CALL tailor.classify('public.visits', 'person', 'direct_identifier');
CALL tailor.classify('public.visits', 'day', 'quasi_identifier', hierarchy => 'day');
CALL tailor.classify('public.visits', 'fee', 'non_sensitive');
CALL tailor.protect('public.codes', subject => 'person', k => 5);
CALL tailor.classify('public.codes', 'person', 'direct_identifier');
CALL tailor.set_valued('public.codes', column_name => 'code');
CALL tailor.protect('public.drugs', subject => 'person', k => 5);
CALL tailor.classify('public.drugs', 'person', 'direct_identifier', action => 'pseudonym');
CALL tailor.set_valued('public.drugs', column_name => 'drug');
CALL tailor.joint('public.drugs', ARRAY['age']);
CALL tailor.protect('public.pay', subject => 'id', k => 5);
CALL tailor.rows('public.pay', false);
CALL tailor.classify('public.pay', 'id', 'direct_identifier');
CALL tailor.classify('public.pay', 'age', 'quasi_identifier', hierarchy => 'age');
CALL tailor.classify('public.pay', 'amount', 'sensitive');
CALL tailor.protect('public.beds', subject => 'id', k => 5);
CALL tailor.classify('public.beds', 'id', 'direct_identifier');
CALL tailor.classify('public.beds', 'ward', 'sensitive');
CALL tailor.shared_fact('public.beds', 'ward', 'accepted');
CALL tailor.grant_reader('researcher');
CALL tailor.activate('public.people');
CALL tailor.activate('public.visits');
CALL tailor.activate('public.codes');
CALL tailor.activate('public.drugs');
CALL tailor.activate('public.pay');
CALL tailor.activate('public.beds');`

// outer are forms in which the rows of a view can be shown to a function before what
// the view says of them is looked at: {v} is the view, {c} a column of
// it, {n} a condition that PostgreSQL expects few rows to meet.
var outer = []string{
	`SELECT count(*) FROM {v} WHERE pg_temp.tell({c})`,
	`SELECT count(*) FROM {v} WHERE pg_temp.dear({c})`,
	`SELECT count(*) FROM {v} WHERE pg_temp.told({c}) = 1`,
	`SELECT count(*) FROM {v} WHERE pg_temp.told({c}) = 1 AND {n}`,
	`SELECT count(*) FROM g LEFT JOIN {v} ON pg_temp.told({c}) = n AND {n}`,
	`SELECT count(*) FROM {v} JOIN g ON pg_temp.told({c}) = n`,
	`SELECT count(*) FROM g LEFT JOIN {v} ON pg_temp.tell({c})`,
	`SELECT count(*) FROM g LEFT JOIN {v} ON pg_temp.tell(({c}, n))`,
	`SELECT count(*) FROM {v} RIGHT JOIN g ON pg_temp.tell({c}) AND n > 0`,
	`SELECT count(*) FROM g LEFT JOIN {v} ON n = pg_temp.told({c})`,
	`SELECT count(*) FROM g FULL JOIN {v} ON n = pg_temp.told({c})`,
	`SELECT count(*) FROM g LEFT JOIN LATERAL (SELECT FROM {v} WHERE pg_temp.tell({c})) x ON true`,
	`SELECT count(*) FROM g LEFT JOIN (g h LEFT JOIN {v} ON pg_temp.tell({c})) ON true`,
	`SELECT count(*) FROM g LEFT JOIN ({v} a JOIN {v} b ON pg_temp.tell(a.{c})) ON true`,
	`SELECT count(*) FROM g WHERE NOT EXISTS (SELECT FROM {v} WHERE pg_temp.tell({c}) AND n > 0)`,
	`SELECT count(*) FROM g WHERE EXISTS (SELECT FROM {v} WHERE pg_temp.told({c}) = n)`,
	`SELECT count(*) FROM g WHERE n NOT IN (SELECT pg_temp.told({c}) FROM {v})`,
	`SELECT count(pg_temp.tell({c})) FROM g LEFT JOIN {v} ON true`,
	`SELECT count(*) FROM g LEFT JOIN {v} ON {c}::text > '' WHERE pg_temp.tell({c})`,
	`SELECT count(*) FROM g LEFT JOIN mine ON pg_temp.tell({c})`,
	`SELECT count(*) FROM g LEFT JOIN (SELECT {c} FROM {v} UNION ALL SELECT NULL) x ` +
		`ON pg_temp.tell({c})`,
	`SELECT count(*) FROM g LEFT JOIN (SELECT {c}, count(*) FROM {v} GROUP BY 1) x ` +
		`ON pg_temp.tell({c})`,
	`SELECT CASE WHEN n = 1 THEN (SELECT count(*) FROM {v} WHERE pg_temp.tell({c})) END FROM g`,
	`DO $$ BEGIN PERFORM FROM g LEFT JOIN {v} ON pg_temp.tell({c}); END $$`,
	// Nothing is found: no row, and no entry of an index. {x} is a value that no row has.
	`SELECT count(*) FROM {v} WHERE {c} = {x}`,
	`SELECT count(*) FROM g LEFT JOIN {v} ON {c} = {x}`,
	`SELECT count(*) FROM g LEFT JOIN {v} ON {c} > {x} AND n = 1`,
	`SELECT count(*) FROM g WHERE NOT EXISTS (SELECT FROM {v} WHERE {c} = {x})`,
	`DO $$ BEGIN PERFORM FROM g LEFT JOIN {v} ON {c} = {x}; END $$`,
}

// plans are settings that make PostgreSQL read a view in other ways.
var plans = []string{
	"RESET ALL", "SET enable_seqscan = off",
	"RESET ALL; SET enable_nestloop = off; SET enable_mergejoin = off", "SET enable_hashjoin = off",
	"RESET ALL; SET enable_nestloop = off; SET enable_mergejoin = off; SET enable_material = off",
	"RESET ALL; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET " +
		"min_parallel_table_scan_size = 0",
	"RESET ALL; SET join_collapse_limit = 1; SET from_collapse_limit = 1",
}

func TestNoJoinShowsAReleaseBeforeItAdmits(t *testing.T) {
	direct := makeDatabase(t, "fences", fenced)
	if err := shared.install(t.Context(), "fences"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, fencedPolicy)
	reader := connect(t, serveDatabase(t, "fences").dsn("researcher"))
	for _, sql := range []string{
		`SELECT age, zip, weight FROM people`,
		`SELECT p.age, day FROM visits v JOIN people p ON v.person = p.id`,
		`SELECT code FROM codes`, `SELECT age, drug FROM people p JOIN drugs d ON d.person = p.id`,
		`SELECT age, count(*) FROM pay GROUP BY age`, `SELECT ward FROM beds`,
	} {
		mustExec(t, reader, sql)
	}
	mustExec(t, direct, `GRANT TEMP ON DATABASE fences TO researcher`)
	some := plans[:2]
	if soaks() {
		some = plans
	}
	showsNothingInJoins(t, direct, "fences", 12, some)
}

// TestPostgreSQLReadsAReleaseInParallel also where only aggregates are answered, and codes.
func TestPostgreSQLReadsAReleaseInParallel(t *testing.T) {
	direct := makeDatabase(t, "parallel", fenced)
	if err := shared.install(t.Context(), "parallel"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, fencedPolicy)
	reader := connect(t, serveDatabase(t, "parallel").dsn("researcher"))
	mustExec(t, direct,
		`SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0`)
	for _, read := range []struct{ sql, table, column string }{
		{`SELECT age FROM people`, "people", "age"},
		{`SELECT avg(amount) FROM pay GROUP BY age`, "pay", "age"},
		{`SELECT code FROM codes`, "codes", "code"},
	} {
		mustExec(t, reader, read.sql)
		view := one[string](t, direct,
			`SELECT 'tailor_release.chain_' || chain FROM tailor.chain WHERE relation = $1::text::regclass`,
			read.table)
		if plan := strings.Join(rowsOf(t, direct, fmt.Sprintf("EXPLAIN SELECT %s, count(*) FROM %s "+
			"GROUP BY 1", read.column, view)), "\n"); !strings.Contains(plan, "Gather") {
			t.Errorf("%s is not read in parallel:\n%s", read.table, plan)
		}
	}
}

// TestNoParallelWorkerIsAskedToAdmit: since version 17 PostgreSQL gives a whole subquery to
// a worker, which is not the session that the ticket is for.
func TestNoParallelWorkerIsAskedToAdmit(t *testing.T) {
	direct := makeDatabase(t, "workers", fenced)
	if err := shared.install(t.Context(), "workers"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, fencedPolicy)
	reader := connect(t, serveDatabase(t, "workers").dsn("researcher"))
	force := "debug_parallel_query"
	if one[int](t, direct, `SELECT current_setting('server_version_num')::integer`) < 160000 {
		force = "force_parallel_mode"
	}
	for _, sql := range []string{
		`SELECT zip, count(*) FROM people GROUP BY zip ORDER BY 1`,
		`SELECT count(*) FROM (SELECT age FROM people UNION ALL SELECT age FROM people) x`,
		`SELECT count(*) FROM people p JOIN (SELECT age, count(*) FROM people GROUP BY age) x ` +
			`USING (age)`,
		`SELECT day, count(*) FROM visits v JOIN people p ON v.person = p.id GROUP BY day ORDER BY 1`,
		`SELECT count(*) FROM beds b LEFT JOIN (SELECT ward, max(zip) FROM people GROUP BY ward) x ` +
			`USING (ward)`,
		`SELECT code, count(*) FROM codes GROUP BY code ORDER BY 1`,
		`SELECT age, avg(amount) FROM pay GROUP BY age ORDER BY age`,
		`SELECT n, count(*) FROM (SELECT (SELECT count(*) FROM drugs d WHERE d.person = p.id) AS n
			FROM people p) x GROUP BY 1 ORDER BY 1`,
	} {
		want := rowsOf(t, reader, sql)
		for _, parallel := range []string{
			`SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0`,
			`SET ` + force + ` = on`,
		} {
			mustExec(t, reader, parallel)
			if got := rowsOf(t, reader, sql); !slices.Equal(got, want) {
				t.Errorf("%s: %s: %.200q, want %.200q", parallel, sql, got, want)
			}
			mustExec(t, reader, `RESET ALL`)
		}
	}
}

// showsNothingInJoins asks every view of a database's releases in all forms past the
// proxy, as the researcher, who has a function that tells what it is shown.
func showsNothingInJoins(
	t *testing.T, direct *pgx.Conn, database string, views int, plans []string,
) {
	t.Helper()
	config, err := pgx.ParseConfig(fmt.Sprintf(
		"postgres://researcher:researcher@%s/%s?sslmode=disable", shared.cluster.Address(), database))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if strings.HasPrefix(n.Message, "seen") {
			seen++
		}
	}
	past, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = past.Close(t.Context()) })
	mustExec(t, past, `CREATE TEMP TABLE g AS SELECT n FROM generate_series(1, 3) n; ANALYZE g;
CREATE FUNCTION pg_temp.tell(v anyelement) RETURNS boolean LANGUAGE plpgsql COST 0.0001
    AS $$ BEGIN RAISE NOTICE 'seen %', v; RETURN true; END $$;
CREATE FUNCTION pg_temp.tell(v record) RETURNS boolean LANGUAGE plpgsql COST 0.0001
    AS $$ BEGIN RAISE NOTICE 'seen %', v; RETURN true; END $$;
CREATE FUNCTION pg_temp.dear(v anyelement) RETURNS boolean LANGUAGE plpgsql COST 100000
    AS $$ BEGIN RAISE NOTICE 'seen %', v; RETURN true; END $$;
CREATE FUNCTION pg_temp.told(v anyelement) RETURNS integer LANGUAGE plpgsql STRICT IMMUTABLE
    COST 0.0001 AS $$ BEGIN RAISE NOTICE 'seen %', v; RETURN 1; END $$`)
	found := make(map[string]bool)
	wards := one[[]string](t, direct,
		`SELECT array_agg(attrelid::regclass::text) FROM pg_attribute WHERE attname = 'ward'`)
	for _, place := range rowsOf(t, direct,
		`SELECT c.oid::regclass, quote_ident(a.attname), a.atttypid::regtype FROM pg_class c
			JOIN pg_attribute a ON a.attrelid = c.oid
		WHERE c.relnamespace = 'tailor_release'::regnamespace
			AND has_table_privilege('researcher', c.oid, 'SELECT')
		  AND a.attname !~ 'tailor_(number|label|value|exact|low|high)_[^2]' -- which are all alike
		ORDER BY 1, a.attnum`) {
		view, column, _ := strings.Cut(place, "|")
		column, kind, _ := strings.Cut(column, "|")
		none := "'99999'::" + kind
		switch {
		case strings.HasSuffix(kind, "[]"):
			none = "'{}'::" + kind
		case kind == "date":
			none = "'infinity'::date"
		case kind == "boolean" || kind == "jsonb":
			none = "'true'::" + kind
		case kind == "smallint" || kind == "numeric":
			none = "9999::" + kind
		}
		found[view] = true
		few := "true"
		if slices.Contains(wards, view) {
			few = "ward = 'x'"
		}
		mustExec(t, past, fmt.Sprintf("CREATE OR REPLACE TEMP VIEW mine AS SELECT %s FROM %s",
			column, view))
		for _, plan := range plans {
			mustExec(t, past, plan)
			for _, form := range outer {
				if plan != plans[0] && strings.Contains(form, "pg_temp.") && !soaks() {
					continue
				}
				text := strings.NewReplacer("{v}", view, "{c}", column, "{n}", few, "{x}", none).Replace(form)
				if _, err := past.PgConn().Exec(t.Context(), text).ReadAll(); codeIn(err) != "42501" ||
					seen > 0 {
					t.Fatalf("%s: %s: a function was shown %d values, error %v", plan, text, seen, err)
				}
			}
		}
		mustExec(t, past, "DROP VIEW mine")
	}
	if len(found) != views {
		t.Fatalf("releases are %v", found)
	}
}

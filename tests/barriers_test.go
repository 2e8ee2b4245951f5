package tests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// TestViewsShowNoHiddenRowToAFunction asks each view of Tailor's that leaves rows out
// by who asks, with a function of the asker's own in the condition. PostgreSQL would
// call one that it takes for cheap before the view's own condition.
func TestViewsShowNoHiddenRowToAFunction(t *testing.T) {
	direct := makeDatabase(t, "barriers",
		`CREATE TABLE people (id int PRIMARY KEY, age int, height int);
INSERT INTO people SELECT g, g * 7 % 90, 150 + g * 11 % 50 FROM generate_series(1, 400) g;
CREATE ROLE barrier_lungs LOGIN PASSWORD 'barrier_lungs'; CREATE ROLE barrier_none LOGIN;
CREATE ROLE barrier_owner LOGIN; GRANT TEMP ON DATABASE barriers TO PUBLIC`)
	if err := shared.install(t.Context(), "barriers"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, `GRANT tailor_admin TO barrier_owner;
CALL tailor.define_hierarchy('n', 'interval',
    '{"widths": [10, 50, 100], "lower": 0, "upper": 299}');
CALL tailor.protect('people', 'id', 5); CALL tailor.chain_scope('people', 'project');
CALL tailor.classify('people', 'age', 'quasi_identifier', hierarchy => 'n');
CALL tailor.classify('people', 'height', 'quasi_identifier', hierarchy => 'n');
CALL tailor.project('lungs', 'people', '[["age"]]');
CALL tailor.grant_reader('barrier_lungs'); CALL tailor.grant_reader('barrier_none');
CALL tailor.join_project('lungs', 'barrier_lungs'); CALL tailor.activate('people')`)
	reader := connect(t, serveDatabase(t, "barriers").dsn("barrier_lungs"))
	mustExec(t, reader, `SELECT age FROM people`)
	mustExec(t, direct, `CALL tailor.erase('people', '7')`)

	for _, look := range []struct{ role, view string }{
		{"barrier_none", "research.tailor_margins"},
		{"barrier_none", "research.tailor_columns"},
		{"barrier_owner", "tailor.erasures"},
		{"barrier_owner", "tailor.epochs"},
	} {
		config, err := pgx.ParseConfig(shared.cluster.SuperuserDSN("barriers"))
		if err != nil {
			t.Fatal(err)
		}
		var seen []string
		config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { seen = append(seen, n.Message) }
		conn, err := pgx.ConnectConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(t.Context()) })
		mustExec(t, conn, "SET SESSION AUTHORIZATION "+look.role)
		mustExec(t, conn, `CREATE FUNCTION pg_temp.tell(v anyelement) RETURNS boolean LANGUAGE plpgsql
COST 0.0001 AS $$ BEGIN RAISE NOTICE 'seen %', v; RETURN true; END $$`)
		for _, plan := range []string{"RESET ALL", "SET enable_nestloop = off"} {
			mustExec(t, conn, plan)
			for _, column := range rowsOf(t, direct, fmt.Sprintf(
				`SELECT attname FROM pg_attribute WHERE attrelid = '%s'::regclass AND attnum > 0`, look.view)) {
				got := rowsOf(t, conn, fmt.Sprintf("SELECT FROM %s WHERE pg_temp.tell(%s)", look.view, column))
				if len(got) > 0 || len(seen) > 0 {
					t.Errorf("%s: %s: %d rows of %s, and a function is told %.100s",
						look.role, plan, len(got), look.view, strings.Join(seen, ", "))
				}
				seen = nil
			}
		}
	}
}

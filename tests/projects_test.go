package tests

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestProjectsHaveRootsOfTheirOwn has two groups of readers, who are shown one table
// by different roots, each finest along what its project has declared.
func TestProjectsHaveRootsOfTheirOwn(t *testing.T) {
	direct := makeDatabase(t, "projects",
		`CREATE TABLE people (id int PRIMARY KEY, age int, zip text, height int, token text);
		INSERT INTO people SELECT g, g * 7 % 90, lpad((g * 13 % 300)::text, 5, '35'),
			150 + g * 11 % 50, 't' || g FROM generate_series(1, 400) g;
		CREATE ROLE lungs_group; CREATE ROLE hearts_group;
			CREATE ROLE ann LOGIN PASSWORD 'ann' IN ROLE lungs_group;
		CREATE ROLE bob LOGIN PASSWORD 'bob' IN ROLE hearts_group; CREATE ROLE eve LOGIN PASSWORD 'eve'`)
	if err := shared.install(t.Context(), "projects"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct,
		`CALL tailor.define_hierarchy('n', 'interval',
			'{"widths": [10, 50, 100], "lower": 0, "upper": 299}');
		CALL tailor.define_hierarchy('zip', 'prefix', '{"keep": [4, 3, 2, 1]}');
		CALL tailor.protect('people', 'id', 5); CALL tailor.chain_scope('people', 'project');
		CALL tailor.classify('people', 'age', 'quasi_identifier', hierarchy => 'n');
			CALL tailor.classify('people', 'height', 'quasi_identifier', hierarchy => 'n');
		CALL tailor.classify('people', 'zip', 'quasi_identifier', hierarchy => 'zip');
			CALL tailor.classify('people', 'token', 'non_sensitive');
		CALL tailor.project('lungs', 'people', '[["age"]]');
			CALL tailor.project('hearts', 'people', '[["height"]]');
		CALL tailor.grant_reader('lungs_group'); CALL tailor.grant_reader('hearts_group');
			CALL tailor.grant_reader('eve');
		CALL tailor.join_project('lungs', 'lungs_group');
			CALL tailor.join_project('hearts', 'hearts_group'); CALL tailor.activate('people')`)
	p := serveDatabase(t, "projects")
	ann, bob, eve := connect(t, p.dsn("ann")), connect(t, p.dsn("bob")), connect(t, p.dsn("eve"))
	exact := func(conn *pgx.Conn, column string) (n int) {
		for _, label := range rowsOf(t, conn, "SELECT "+column+" FROM people") {
			if !strings.ContainsAny(label, "-*") {
				n++
			}
		}
		return n
	}
	if mine, theirs := exact(ann, "age"), exact(bob, "age"); mine <= theirs {
		t.Errorf("%d ages are exact for the project that declared them, %d for the other", mine, theirs)
	}
	if mine, theirs := exact(bob, "height"), exact(ann, "height"); mine <= theirs {
		t.Errorf("%d heights are exact for the project that declared them, %d for the other", mine,
			theirs)
	}
	for _, conn := range []*pgx.Conn{ann, bob} {
		shown := make(disclosed)
		shown.answer(t, conn, "SELECT token, age, zip, height FROM people")
		if least := shown.smallestClass(); least < 5 || len(shown) != 400 {
			t.Errorf("%d people in classes of %d", len(shown), least)
		}
	}

	// One reader, one root.
	refusedAs(t, eve, "SELECT age FROM people", "42501")
	refusedAs(t, direct, `CALL tailor.join_project('hearts', 'lungs_group')`, "55000")
	refusedAs(t, direct, `CALL tailor.join_project('none', 'eve')`, "42704")
	mustExec(t, direct, `GRANT hearts_group TO ann`)
	refusedAs(t, connect(t, p.dsn("ann")), "SELECT age FROM people", "42501")
	mustExec(t, direct,
		`REVOKE hearts_group FROM ann; ALTER ROLE ann RENAME TO anna; ALTER ROLE anna PASSWORD 'anna'`)
	anna := connect(t, p.dsn("anna"))
	if exact(anna, "age") <= exact(bob, "age") {
		t.Error("under another name the reader reads another root")
	}
	mustExec(t, anna, "SET tailor.project = 'lungs'")
	rowsOf(t, anna, "SELECT age FROM people LIMIT 1")
	mustExec(t, anna, "SET tailor.project = 'hearts'")
	refusedAs(t, anna, "SELECT age FROM people", "42704")
	refusedAs(t, direct, `CALL tailor.chain_scope('people', 'table'); CALL tailor.activate('people')`,
		"55000")

	// A session that goes on does not go on with a project that its role has left.
	mustExec(t, anna, "RESET tailor.project")
	mine := exact(anna, "age")
	mustExec(t, direct, `CALL tailor.leave_project('lungs', 'lungs_group')`)
	refusedAs(t, anna, "SELECT age FROM people", "42501")
	mustExec(t, direct, `CALL tailor.join_project('hearts', 'lungs_group')`)
	if exact(anna, "age") >= mine {
		t.Error("an open session reads the root of the project before")
	}

	// Who owns another table says nothing of who reads this one.
	mustExec(t, direct,
		`CREATE ROLE stranger LOGIN; GRANT tailor_admin TO stranger;
			CREATE TABLE strange (id int PRIMARY KEY, age int); ALTER TABLE strange OWNER TO stranger;
		SET SESSION AUTHORIZATION stranger; CALL tailor.protect('strange', 'id', 5);
		CALL tailor.classify('strange', 'age', 'quasi_identifier', hierarchy => 'n')`)
	for _, call := range []string{
		`CALL tailor.project('lungs', 'strange', '[["age"]]')`,
		`CALL tailor.join_project('lungs', 'eve')`, `CALL tailor.leave_project('hearts', 'lungs_group')`,
	} {
		refusedAs(t, direct, call, "42501")
	}

	// Restored into another cluster, numbers are those of other roles.
	const exchanged = `ALTER ROLE lungs_group RENAME TO was_lungs;
		ALTER ROLE hearts_group RENAME TO lungs_group; ALTER ROLE was_lungs RENAME TO hearts_group`
	const reading = `SELECT string_agg(project || readers::text, ' ' ORDER BY project)
		FROM tailor.projects`
	mustExec(t, direct, `RESET SESSION AUTHORIZATION`)
	before := one[string](t, direct, reading)
	mustExec(t, direct, exchanged)
	if of := one[string](t, direct, reading); of != "hearts{} lungs{}" {
		t.Errorf("roles by the numbers of others read for projects: %s", of)
	}
	_, err := connect(t, p.dsn("bob")).Exec(t.Context(), "SELECT age FROM people")
	assertState(t, err, "42501", "project")
	mustExec(t, direct, `CALL tailor.accept_restore()`)
	if of := one[string](t, direct, reading); of != before {
		t.Errorf("after a restore %s, before %s", of, before)
	}
	mustExec(t, direct, exchanged)
}

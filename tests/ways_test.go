package tests

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// TestWaysToRawRowsAreClosed opens ways to the rows of a table that go round
// its own privileges.
func TestWaysToRawRowsAreClosed(t *testing.T) {
	s, err := newStand(filepath.Join(stands, "ways"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	mustExec(t, s.superuser(t),
		`CREATE ROLE alice LOGIN; GRANT tailor_admin TO alice; CREATE SCHEMA alice AUTHORIZATION alice;
GRANT USAGE ON SCHEMA alice TO PUBLIC`)
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s *testCluster)
	}{
		{"a parent is not a way around", closesParents},
		{"a parent that comes later makes the policy stale", noticesParents},
		{"a view is not a way around", closesViews},
		{"a view of a partition is replaced or refused", knowsViewsOfParts},
		{"PostgreSQL keeps no samples of what releases show", keepsNoSamples},
		{"PostgreSQL shows no samples of codes", showsNoSamples},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, s) })
	}
}

// refusedWithHint wants an SQLSTATE and a hint with some words.
func refusedWithHint(t *testing.T, conn *pgx.Conn, sqlstate, hint, sql string, args ...any) {
	t.Helper()
	_, err := conn.Exec(t.Context(), sql, args...)
	var answer *pgconn.PgError
	if !errors.As(err, &answer) || answer.Code != sqlstate || !strings.Contains(answer.Hint, hint) {
		t.Errorf("%s: %#v, want SQLSTATE %s with hint %q", sql, err, sqlstate, hint)
	}
}

func closesParents(t *testing.T, s *testCluster) {
	alice, super, name := s.as(t, "alice"), s.superuser(t), s.reader(t)
	mustExec(t, super, `CREATE ROLE outsider LOGIN`)
	protect(t, alice, "alice.child")
	mustExec(t, alice, `CREATE TABLE alice.grandparent (id integer NOT NULL, secret text);
		CREATE TABLE alice.parent () INHERITS (alice.grandparent);
ALTER TABLE alice.child INHERIT alice.parent; GRANT SELECT ON alice.grandparent TO `+
		pgx.Identifier{name}.Sanitize())
	refusedWithHint(t, alice, "42501", "alice.grandparent", `CALL tailor.activate('alice.child')`)
	mustExec(t, alice, `REVOKE ALL ON alice.grandparent FROM `+name+
		`; CALL tailor.activate('alice.child')`)

	mustExec(t, alice, `GRANT SELECT (secret) ON alice.parent TO outsider`)
	refusedWithHint(t, alice, "42501", "alice.parent", `CALL tailor.grant_reader('outsider')`)
	mustExec(t, alice, `GRANT SELECT ON alice.parent TO `+name)
	found := false
	_, findings := doctor(t, s)
	for _, f := range findings {
		if f.Check == "privileges" && f.Object == "alice.parent" && f.Severity == "serious" {
			found = true
			mustExec(t, super, f.Mend)
		}
	}
	if !found {
		t.Errorf("the doctor does not see the parent: %+v", findings)
	}
	refused(t, s.as(t, name), "42501", `SELECT secret FROM alice.parent`)

	// A part has a parent that its table has not.
	mustExec(t, alice, `CREATE TABLE alice.beside (id integer NOT NULL);
		CREATE TABLE alice.heir () INHERITS (alice.child);
ALTER TABLE alice.heir INHERIT alice.beside; GRANT SELECT ON alice.beside TO PUBLIC`)
	refusedWithHint(t, alice, "42501", "alice.beside", `CALL tailor.activate('alice.child')`)
	mustExec(t, alice, `REVOKE ALL ON alice.beside FROM PUBLIC; REVOKE ALL (secret) ON alice.parent `+
		`FROM outsider`)
}

func noticesParents(t *testing.T, s *testCluster) {
	p := s.serve(t)
	alice, name := s.as(t, "alice"), s.reader(t)
	protect(t, alice, "alice.adopted")
	mustExec(t, alice, `CREATE TABLE alice.foster (id integer NOT NULL, secret text);
		GRANT SELECT ON alice.foster TO PUBLIC;
CALL tailor.activate('alice.adopted')`)
	reader := connect(t, p.dsn(name))
	waitFor(t, func() bool {
		_, err := reader.Exec(t.Context(), `SELECT age FROM alice.adopted`)
		return err == nil
	})
	mustExec(t, reader, `SELECT count(*) FROM alice.foster`)
	mustExec(t, alice, `ALTER TABLE alice.adopted INHERIT alice.foster`)
	waitFor(t, func() bool {
		_, err := reader.Exec(t.Context(), `SELECT age FROM alice.adopted`)
		var answer *pgconn.PgError
		return errors.As(err, &answer) && answer.Code == "KA004"
	})
	refused(t, reader, "0A000", `SELECT secret FROM alice.foster`)
	refusedWithHint(t, alice, "42501", "alice.foster", `CALL tailor.activate('alice.adopted')`)
	mustExec(t, alice, `REVOKE ALL ON alice.foster FROM PUBLIC; CALL tailor.activate('alice.adopted')`)
}

func closesViews(t *testing.T, s *testCluster) {
	alice, super, name := s.as(t, "alice"), s.superuser(t), s.reader(t)
	protect(t, alice, "alice.viewed")
	mustExec(t, alice, `CREATE VIEW alice.inner_view AS SELECT * FROM alice.viewed;
		CREATE VIEW alice.outer_view AS SELECT secret FROM alice.inner_view;
CREATE MATERIALIZED VIEW alice.stored AS SELECT secret FROM alice.viewed`)
	for _, view := range []string{"outer_view", "stored"} {
		mustExec(t, alice, `GRANT SELECT (secret) ON alice.`+view+` TO `+name)
		refusedWithHint(t, alice, "42501", "REVOKE ALL ON alice."+view,
			`CALL tailor.activate('alice.viewed')`)
		mustExec(t, alice, `REVOKE ALL ON alice.`+view+` FROM `+name+`; REVOKE ALL (secret) ON alice.`+
			view+` FROM `+name)
	}
	// A reader's own view has the rights of the reader, and stops nobody.
	mustExec(t, super, `CREATE SCHEMA readers; GRANT ALL ON SCHEMA readers TO PUBLIC`)
	mustExec(t, s.as(t, name), `CREATE VIEW readers.own AS SELECT secret FROM alice.viewed`)
	mustExec(t, alice, `CALL tailor.activate('alice.viewed'); CALL tailor.activate('alice.viewed')`)
	if one[int](t, super, `SELECT current_setting('server_version_num')::integer`) >= 150000 {
		mustExec(t, alice,
			`ALTER VIEW alice.inner_view SET (security_invoker); `+
				`GRANT SELECT ON alice.inner_view TO PUBLIC; CALL tailor.activate('alice.viewed')`)
	}
	// A parent's view shows the rows as well.
	mustExec(t, alice, `CREATE TABLE alice.viewed_parent (id integer NOT NULL, secret text);
		ALTER TABLE alice.viewed INHERIT alice.viewed_parent;
CREATE VIEW alice.of_parent AS SELECT secret FROM alice.viewed_parent;
    GRANT SELECT ON alice.of_parent TO PUBLIC`)
	refusedWithHint(t, alice, "42501", "alice.of_parent", `CALL tailor.activate('alice.viewed')`)
	mustExec(t, super, `REVOKE ALL ON SCHEMA readers FROM PUBLIC`)
	// As long as it does, nobody else becomes a reader.
	mustExec(t, super, `CREATE ROLE another LOGIN`)
	refusedWithHint(t, super, "42501", "alice.of_parent", `CALL tailor.grant_reader('another')`)
	mustExec(t, alice, `REVOKE ALL ON alice.of_parent FROM PUBLIC`)
}

func knowsViewsOfParts(t *testing.T, s *testCluster) {
	p := s.serve(t)
	alice, super, name := s.as(t, "alice"), s.superuser(t), s.reader(t)
	mustExec(t, alice, `CREATE TABLE alice.whole (id integer, shown text) PARTITION BY RANGE (id);
CREATE TABLE alice.piece PARTITION OF alice.whole FOR VALUES FROM (0) TO (100);
INSERT INTO alice.whole SELECT n, 'shown' FROM generate_series(1, 40) n;
CALL tailor.protect('alice.whole', subject => 'id', k => 5);
    CALL tailor.classify('alice.whole', 'shown', 'non_sensitive');
        CALL tailor.activate('alice.whole');
CREATE VIEW alice.of_piece AS SELECT id FROM alice.piece; GRANT SELECT ON alice.of_piece TO PUBLIC`)
	mustExec(t, super, `CREATE VIEW research.of_whole AS SELECT id FROM alice.whole; `+
		`GRANT SELECT ON research.of_whole TO PUBLIC`)
	reader := connect(t, p.dsn(name))
	waitFor(t, func() bool {
		_, err := reader.Exec(t.Context(), `SELECT shown FROM alice.whole`)
		return err == nil
	})
	mustExec(t, reader, `SELECT shown FROM research.whole`)
	refused(t, reader, "0A000", `SELECT id FROM alice.of_piece`)
	waitFor(t, endsWith(t, reader, "42501", `SELECT id FROM research.of_whole`))
	mustExec(t, super, `REVOKE ALL ON alice.of_piece, research.of_whole FROM PUBLIC`)
}

// keepsNoSamples looks at a copy that no proxy has taken in, at what is read without
// row-level security, and at payload that stands in averages.
func keepsNoSamples(t *testing.T, s *testCluster) {
	p := s.serve(t)
	reader, super := connect(t, p.dsn(s.reader(t))), s.superuser(t)
	mustExec(t, super, `CREATE TABLE wages (id integer PRIMARY KEY, age integer, pay integer);
		INSERT INTO wages SELECT n, n % 90, n * 7 FROM generate_series(1, 400) n;
CALL tailor.protect('wages', 'id', 5); CALL tailor.rows('wages', false);
CALL tailor.classify('wages', 'age', 'quasi_identifier', hierarchy => 'age');
    CALL tailor.classify('wages', 'pay', 'sensitive'); CALL tailor.activate('wages')`)
	answeredSoon(t, reader, `SELECT age, zip FROM patients`)
	answeredSoon(t, reader, `SELECT age, count(*) FROM wages GROUP BY age`)
	p.stop(t)
	mustExec(t, super, `CALL tailor.refresh('patients'); CALL tailor.refresh('wages')`)
	mustExec(t, super, `ANALYZE`)
	const sampled = `SELECT coalesce(string_agg(DISTINCT tablename || '.' || attname, ', '), '')
		FROM pg_stats JOIN pg_class c ON c.relname = tablename
			AND c.relnamespace = 'tailor_store'::regnamespace AND NOT c.relrowsecurity
		WHERE schemaname = 'tailor_store' AND tablename ~ $1`
	const numbers = ` AND attname ~ '^tailor (row|tuple|person|key|nth|subject|block|class|number)$'`
	wages := one[int](t, super, `SELECT chain FROM tailor.chain WHERE relation = 'wages'::regclass`)
	if one[bool](t, super, `SELECT EXISTS (SELECT FROM pg_stats WHERE attname = 'pay'
		AND schemaname = 'tailor_store' AND tablename = $1)`, fmt.Sprintf(`chain_%d_row`, wages)) {
		t.Error("wages are sampled")
	}
	for _, tables := range []string{`^epoch_\d+$`, `^chain_\d+(_g\d+)?_label$`} {
		if !one[bool](t, super,
			`SELECT EXISTS (SELECT FROM pg_class WHERE relnamespace = 'tailor_store'::regnamespace `+
				`AND relname ~ $1 AND reltuples > 0)`, tables) {
			t.Errorf("there are no tables %s", tables)
		}
		if columns := one[string](t, super, sampled+strings.Replace(numbers, "~", "!~", 1),
			tables); columns != "" {
			t.Errorf("sampled: %s", columns)
		}
		if columns := one[string](t, super, sampled+numbers, tables); columns == "" &&
			!strings.HasSuffix(tables, "_label$") {
			t.Errorf("of tables %s not even numbers are sampled", tables)
		}
	}
}

// showsNoSamples: where row-level security asks, PostgreSQL knows samples, and shows them to no
// operator of a reader's own.
func showsNoSamples(t *testing.T, s *testCluster) {
	p, name := s.serve(t), s.reader(t)
	answeredSoon(t, connect(t, p.dsn(name)), `SELECT code FROM diagnoses`)
	super := s.superuser(t)
	view := one[string](t, super, `SELECT 'tailor_release.chain_' || chain FROM tailor.chain
		WHERE relation = 'diagnoses'::regclass`)
	config, err := pgx.ParseConfig(fmt.Sprintf("postgres://%s:%[1]s@%s/hospital?sslmode=disable",
		name, s.cluster.Address()))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	config.OnNotice = func(*pgconn.PgConn, *pgconn.Notice) { seen++ }
	plan := func(role string) {
		t.Helper()
		config.User, seen = role, 0
		past, err := pgx.ConnectConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = past.Close(t.Context()) }()
		mustExec(t, past, `CREATE FUNCTION pg_temp.same(text, text) RETURNS boolean LANGUAGE plpgsql
				AS $$ BEGIN RAISE NOTICE '%', $1; RETURN false; END $$;
			CREATE OPERATOR pg_temp.=== (LEFTARG = text, RIGHTARG = text, PROCEDURE = pg_temp.same,
				RESTRICT = eqsel);
			EXPLAIN SELECT code FROM `+view+` WHERE code OPERATOR(pg_temp.===) 'none'`)
	}
	if plan(name); seen > 0 {
		t.Errorf("an operator was shown %d sampled values", seen)
	}
	mustExec(t, super, strings.Replace(`ALTER TABLE x DISABLE ROW LEVEL SECURITY`, "x",
		one[string](t, super, `SELECT 'tailor_store.epoch_' || max(epoch) FROM tailor.publication`), 1))
	if plan(name); seen == 0 {
		t.Error("without row-level security nothing is shown either")
	}
}

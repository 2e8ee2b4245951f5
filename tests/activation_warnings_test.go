package tests

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// TestActivationLooksAtWhatStandsRoundTheTable makes row security, generated
// columns, functions and views beside a table, before and after its activation.
func TestActivationLooksAtWhatStandsRoundTheTable(t *testing.T) {
	s, err := newStand(filepath.Join(stands, "roundabout"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	mustExec(t, s.superuser(t), `CREATE ROLE alice LOGIN;
GRANT tailor_admin TO alice;
CREATE SCHEMA alice AUTHORIZATION alice;
GRANT USAGE ON SCHEMA alice TO PUBLIC`)
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s *testCluster)
	}{
		{"row security makes the policy stale", noticesRowSecurity},
		{"what is computed from quasi-identifiers is not exact", refusesComputedColumns},
		{"functions and views are told of", tellsOfWaysRound},
		{"what everybody could read", takesFromEverybody},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, s) })
	}
}

// takesFromEverybody activates a table that everybody could read, Tailor among them.
func takesFromEverybody(t *testing.T, s *testCluster) {
	alice := s.superuser(t)
	mustExec(t, alice, `SET SESSION AUTHORIZATION alice;
		CREATE TABLE alice.free AS SELECT n AS id, n % 5 AS grade FROM generate_series(1, 100) n;
		ALTER TABLE alice.free ADD PRIMARY KEY (id);
		GRANT SELECT ON alice.free TO PUBLIC;
		CALL tailor.protect('alice.free', 'id', 5);
		CALL tailor.classify('alice.free', 'grade', 'non_sensitive');
		CALL tailor.activate('alice.free')`)
	if one[bool](t, alice, `SELECT has_table_privilege('tailor_reader', 'alice.free', 'SELECT')`) {
		t.Error("everybody may still read the table")
	}
}

// endsWith says whether a statement fails with an SQLSTATE; "" for success.
func endsWith(t *testing.T, conn *pgx.Conn, sqlstate, sql string) func() bool {
	return func() bool {
		_, err := conn.Exec(t.Context(), sql)
		var answer *pgconn.PgError
		return err == nil && sqlstate == "" || errors.As(err, &answer) && answer.Code == sqlstate
	}
}

func noticesRowSecurity(t *testing.T, s *testCluster) {
	alice := s.as(t, "alice")
	reader := connect(t, s.serve(t).dsn(s.reader(t)))
	protect(t, alice, "alice.secured")
	mustExec(t, alice, `CREATE TABLE alice.tied (id integer REFERENCES alice.secured, remark text);
INSERT INTO alice.tied SELECT n, 'told' FROM generate_series(1, 100) n;
CALL tailor.activate('alice.secured');
CALL tailor.protect('alice.tied', 'id', 5);
CALL tailor.classify('alice.tied', 'remark', 'sensitive');
CALL tailor.activate('alice.tied')`)
	const query, join = `SELECT age FROM alice.secured`, `SELECT s.age, t.remark
    FROM alice.secured s JOIN alice.tied t USING (id)`
	waitFor(t, endsWith(t, reader, "", query))
	waitFor(t, endsWith(t, reader, "", join))
	mustExec(t, alice, `CREATE POLICY own ON alice.secured USING (id > 50)`)
	waitFor(t, endsWith(t, reader, "", query))
	mustExec(t, alice, `ALTER TABLE alice.secured ENABLE ROW LEVEL SECURITY`)
	waitFor(t, endsWith(t, reader, "KA004", query))
	waitFor(t, endsWith(t, reader, "KA004", join))
	refused(t, alice, "0A000", `CALL tailor.activate('alice.secured')`)
	refused(t, alice, "0A000", `CALL tailor.refresh('alice.secured')`)
	_, findings := doctor(t, s)
	if !slices.ContainsFunc(findings, func(f finding) bool {
		return f.Check == "shape" && f.Object == "alice.secured"
	}) {
		t.Errorf("the doctor does not see it: %+v", findings)
	}
	mustExec(t, alice, `ALTER TABLE alice.secured DISABLE ROW LEVEL SECURITY`)
	waitFor(t, endsWith(t, reader, "", query))
	waitFor(t, endsWith(t, reader, "", join))
}

func refusesComputedColumns(t *testing.T, s *testCluster) {
	alice := s.as(t, "alice")
	protect(t, alice, "alice.computed")
	mustExec(t, alice, `ALTER TABLE alice.computed ADD next integer GENERATED ALWAYS
		AS (age + 1) STORED,
    ADD own text GENERATED ALWAYS AS (upper(secret)) STORED;
CALL tailor.classify('alice.computed', 'own', 'sensitive'); CALL tailor.activate('alice.computed')`)
	for _, class := range []string{"sensitive", "non_sensitive"} {
		mustExec(t, alice, `CALL tailor.classify('alice.computed', 'next', '`+class+`')`)
		refusedWithHint(t, alice, "22023", "direct_identifier", `CALL tailor.activate('alice.computed')`)
	}
	mustExec(t, alice, `CALL tailor.classify('alice.computed', 'next', 'quasi_identifier',
		hierarchy => 'age');
CALL tailor.classify('alice.computed', 'age', 'direct_identifier')`)
	mustExec(t, alice, `CALL tailor.activate('alice.computed')`)

	// In a partition, and over several columns.
	mustExec(t, alice, `CREATE TABLE alice.pieces (id integer NOT NULL, age integer,
		sum integer GENERATED ALWAYS AS (id + age) STORED) PARTITION BY RANGE (id);
CREATE TABLE alice.piece PARTITION OF alice.pieces FOR VALUES FROM (0) TO (1000);
INSERT INTO alice.pieces SELECT n, n % 50 FROM generate_series(1, 100) n;
CALL tailor.protect('alice.pieces', 'id', 5);
CALL tailor.classify('alice.pieces', 'age', 'quasi_identifier', hierarchy => 'age');
CALL tailor.classify('alice.pieces', 'sum', 'sensitive')`)
	refused(t, alice, "22023", `CALL tailor.activate('alice.pieces')`)

	// A column that is shown as it is, and later computed from another.
	if one[int](t, alice, `SELECT current_setting('server_version_num')::integer`) >= 170000 {
		reader := connect(t, s.serve(t).dsn(s.reader(t)))
		mustExec(t, alice, `ALTER TABLE alice.computed ALTER own SET EXPRESSION AS ('none');
CALL tailor.activate('alice.computed')`)
		waitFor(t, endsWith(t, reader, "", `SELECT own FROM alice.computed`))
		mustExec(t, alice, `ALTER TABLE alice.computed ALTER own SET EXPRESSION AS (age::text);
CALL tailor.classify('alice.computed', 'age', 'quasi_identifier', hierarchy => 'age')`)
		waitFor(t, endsWith(t, reader, "KA004", `SELECT own FROM alice.computed`))
		refused(t, alice, "22023", `CALL tailor.activate('alice.computed')`)
	}
}

func tellsOfWaysRound(t *testing.T, s *testCluster) {
	var told []string
	config, err := pgx.ParseConfig(s.cluster.SuperuserDSN("hospital"))
	if err != nil {
		t.Fatal(err)
	}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if n.SeverityUnlocalized == "WARNING" {
			told = append(told, n.Message+" "+n.Hint)
		}
	}
	alice, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = alice.Close(t.Context()) })
	name := s.reader(t)
	mustExec(t, alice, `SET SESSION AUTHORIZATION alice`)
	protect(t, alice, "alice.watched")
	mustExec(t, alice, `CALL tailor.activate('alice.watched')`)
	if len(told) > 0 {
		t.Errorf("told without a reason: %q", told)
	}
	mustExec(t, alice, `CREATE FUNCTION alice.peek() RETURNS bigint LANGUAGE sql SECURITY DEFINER
    AS 'SELECT count(*) FROM alice.watched';
CREATE FUNCTION alice.glance() RETURNS bigint LANGUAGE sql
    SECURITY DEFINER BEGIN ATOMIC SELECT count(*) FROM alice.watched;
END;
CREATE FUNCTION alice.closed() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS 'SELECT count(*)
    FROM alice.watched';
REVOKE EXECUTE ON FUNCTION alice.closed FROM PUBLIC;
CREATE FUNCTION alice.powerless() RETURNS bigint LANGUAGE sql AS 'SELECT count(*)
    FROM alice.watched'`)
	mustExec(t, alice, `CALL tailor.activate('alice.watched')`)
	toldTo := func(mend string) bool {
		return slices.ContainsFunc(told, func(text string) bool { return strings.Contains(text, mend) })
	}
	for word, want := range map[string]bool{
		"alice.peek()": true, "alice.glance()": true, "alice.closed()": false, "alice.powerless()": false,
	} {
		if is := toldTo("REVOKE EXECUTE ON ROUTINE " + word); is != want {
			t.Errorf("told of %s: %v, want %v: %q", word, is, want, told)
		}
	}
	_, findings := doctor(t, s)
	for _, function := range []string{"alice.peek()", "alice.glance()"} {
		if !slices.ContainsFunc(findings, func(f finding) bool {
			return f.Check == "functions" && f.Object == function && f.Severity == "serious"
		}) {
			t.Errorf("the doctor does not see %s: %+v", function, findings)
		}
	}

	told = nil
	mustExec(t, alice, `CREATE VIEW alice.pane AS SELECT * FROM alice.watched;
CREATE MATERIALIZED VIEW alice.photo AS SELECT * FROM alice.pane;
CREATE VIEW alice.mirror AS SELECT age FROM alice.photo;
GRANT SELECT ON alice.pane TO `+name+`;
GRANT SELECT ON alice.photo, alice.mirror TO PUBLIC`)
	refused(t, alice, "42501", `CALL tailor.activate('alice.watched')`)
	for _, view := range []string{"alice.pane", "alice.photo", "alice.mirror"} {
		if !toldTo("REVOKE ALL ON " + view) {
			t.Errorf("not told of %s: %q", view, told)
		}
	}
}

package tests

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// as is a direct connection of a role, whatever the server asks of it.
func (s *testCluster) as(t *testing.T, role string) *pgx.Conn {
	t.Helper()
	conn := s.superuser(t)
	mustExec(t, conn, "SET SESSION AUTHORIZATION "+pgx.Identifier{role}.Sanitize())
	return conn
}

// refused wants a statement to fail with an SQLSTATE.
func refused(t *testing.T, conn *pgx.Conn, sqlstate, sql string, args ...any) {
	t.Helper()
	_, err := conn.Exec(t.Context(), sql, args...)
	var answer *pgconn.PgError
	if !errors.As(err, &answer) || answer.Code != sqlstate {
		t.Errorf("%s: %v, want SQLSTATE %s", sql, err, sqlstate)
	}
}

// protect makes a table of 100 people in the schema of its owner and a draft
// for it: id hidden, age a quasi-identifier, shown and secret visible.
func protect(t *testing.T, owner *pgx.Conn, table string) {
	t.Helper()
	mustExec(t, owner, fmt.Sprintf(
		`CREATE TABLE %[1]s (id integer PRIMARY KEY, age integer, shown text, secret text);
INSERT INTO %[1]s SELECT n, 20 + n %% 50, 'shown', 'secret ' || n || ' of %[1]s'
    FROM generate_series(1, 100) n;
CALL tailor.protect('%[1]s', subject => 'id', k => 5);
CALL tailor.classify('%[1]s', 'age', 'quasi_identifier', hierarchy => 'age');
CALL tailor.classify('%[1]s', 'shown', 'non_sensitive');
CALL tailor.classify('%[1]s', 'secret', 'non_sensitive');`, table))
}

// TestAdministrators lets two administrators who trust each other in nothing,
// and readers with privileges by the way, try what the SQL side must refuse.
func TestAdministrators(t *testing.T) {
	s, err := newStand(filepath.Join(stands, "administrators"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	super := s.superuser(t)
	for _, name := range []string{"mallory", "alice"} {
		mustExec(t, super,
			fmt.Sprintf(`CREATE ROLE %[1]s LOGIN; GRANT tailor_admin TO %[1]s;
				CREATE SCHEMA %[1]s AUTHORIZATION %[1]s;
GRANT USAGE ON SCHEMA %[1]s TO PUBLIC`, name))
	}
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s *testCluster)
	}{
		{"a copy is built from the stored policy only", refusesForeignDocuments},
		{"building a copy runs nobody's code", runsNobodysCode},
		{"policies of others cannot be written", keepsPoliciesOfOthers},
		{"hierarchies of others cannot be redefined", keepsHierarchiesOfOthers},
		{"activation closes old releases", closesOldReleases},
		{"the scope is bound to the chains", bindsScope},
		{"privileges that are not inherited count", countsNoinherit},
		{"partitions are not a way around", closesPartitions},
		{"rows have one release", keepsReleasesApart},
		{"owners are not readers", refusesOwners},
		{"roles that bypass privileges are not readers", refusesBypass},
		{"a name in research is taken once", refusesHijack},
		{"the released shape does not answer", refusesShape},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, s) })
	}
}

func refusesForeignDocuments(t *testing.T, s *testCluster) {
	mallory := s.as(t, "mallory")
	mustExec(t, mallory,
		`CREATE TEMP VIEW bait AS SELECT 1 AS id; GRANT SELECT ON bait TO tailor_owner`)
	refused(t, mallory, "42883",
		`SELECT tailor.build_epoch('bait'::regclass, 1, '{"subject": "id", "columns": []}'::jsonb)`)
	refused(t, mallory, "42883",
		`CALL tailor.publish_shape('bait'::regclass, '{"subject": "id", "columns": []}'::jsonb)`)
	refused(t, mallory, "42501", `SELECT tailor.build_epoch('bait'::regclass, 1)`)
	refused(t, mallory, "42501", `CALL tailor.publish_shape('bait'::regclass, 1)`)
	refused(t, mallory, "42501", `CALL tailor.close_releases('public.patients')`)
	refused(t, mallory, "42809", `CALL tailor.protect('bait', subject => 'id', k => 5)`)
	refused(t, mallory, "55000", `CALL tailor.put_in_force('bait')`)
	refused(t, mallory, "42501", `CALL tailor.put_in_force('public.patients')`)
	refused(t, mallory, "42501", `CALL tailor.renew_copy('public.patients')`)
	refused(t, mallory, "42501", `SELECT nextval('tailor.catalog_version')`)
}

// runsNobodysCode hides a function in each place that reading a table looks
// at. A sequence tells whether it ran as tailor_owner: nothing rolls that back.
func runsNobodysCode(t *testing.T, s *testCluster) {
	mallory := s.as(t, "mallory")
	mustExec(t, mallory,
		`CREATE SEQUENCE mallory.caught; GRANT ALL ON SEQUENCE mallory.caught TO PUBLIC;
CREATE FUNCTION mallory.evil(float8) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF current_user = 'tailor_owner' THEN PERFORM nextval('mallory.caught'); END IF;
    RETURN $1;
END $$;
CREATE FUNCTION mallory.difference(float8, float8) RETURNS float8 LANGUAGE sql IMMUTABLE
    AS 'SELECT mallory.evil($1 - $2)';
CREATE TYPE mallory.span AS RANGE (subtype = float8, subtype_diff = mallory.difference)`)
	for i, attack := range []struct{ sqlstate, sql string }{
		{"42501", `CREATE INDEX ON %s ((mallory.evil(1)))`},
		{"42501", `CREATE INDEX ON %s (age) WHERE mallory.evil(1) > 0`},
		{"42501", `CREATE STATISTICS mallory.extra ON (mallory.evil(1) + age), (mallory.evil(2) + age) ` +
			`FROM %s`},
		{"42501", `ALTER TABLE %s ADD CHECK (mallory.evil(1) > 0)`},
		{"42501", `CREATE TABLE mallory.heir (CHECK (age > mallory.evil(-1))) INHERITS (%s)`},
		{"42501", `ALTER TABLE %[1]s ALTER shown TYPE mallory.span USING mallory.span(id, id + 1)`},
		{"0A000", `ALTER TABLE %[1]s ENABLE ROW LEVEL SECURITY;
CREATE POLICY evil ON %[1]s USING (mallory.evil(1) > 0)`},
	} {
		table := fmt.Sprintf("mallory.bait_%d", i)
		protect(t, mallory, table)
		mustExec(t, mallory, fmt.Sprintf(attack.sql, table))
		refused(t, mallory, attack.sqlstate, `CALL tailor.activate('`+table+`')`)
	}
	if one[bool](t, mallory, `SELECT is_called FROM mallory.caught`) {
		t.Error("an administrator's function ran with the rights of tailor_owner")
	}

	// Without the lock, what was checked could change before it is read.
	protect(t, mallory, "mallory.unlocked")
	refused(t, mallory, "55000", `CALL tailor.put_in_force('mallory.unlocked')`)
	mustExec(t, mallory, `CALL tailor.activate('mallory.unlocked')`)
	refused(t, mallory, "55000", `CALL tailor.renew_copy('mallory.unlocked')`)
	mustExec(t, mallory, `CALL tailor.refresh('mallory.unlocked')`)
}

func keepsPoliciesOfOthers(t *testing.T, s *testCluster) {
	alice, mallory := s.as(t, "alice"), s.as(t, "mallory")
	protect(t, alice, "alice.people")
	for _, sql := range []string{
		`UPDATE tailor.protection SET k = 2`,
		`DELETE FROM tailor.protection`,
		`INSERT INTO tailor.protection VALUES ('alice.people', 'id', 2)`,
		`UPDATE tailor.classification SET class = 'non_sensitive'`,
		`DELETE FROM tailor.requirement`,
		`UPDATE tailor.hierarchy SET definition = '{"widths": [1]}'`,
		`UPDATE tailor.policy_version SET policy = '{}'`,
		`INSERT INTO tailor.policy_version VALUES ('alice.people', 7, '{}')`,
		`SELECT FROM tailor.classification`,
		`CALL tailor.protect('alice.people', subject => 'id', k => 2)`,
		`CALL tailor.write_protection('alice.people', 'id', 2)`,
		`CALL tailor.classify('alice.people', 'id', 'non_sensitive')`,
		`CALL tailor.require('alice.people', 'l_diversity', 'shown', 2)`,
		`CALL tailor.chain_scope('alice.people', 'project')`,
		`CALL tailor.activate('alice.people')`,
		`CALL tailor.refresh('alice.people')`,
		`CALL tailor.forget_chains('alice.people')`,
	} {
		refused(t, mallory, "42501", sql)
	}
	if !one[bool](t, mallory, `SELECT tailor.draft('alice.people') IS NULL`) ||
		one[bool](t, alice, `SELECT tailor.draft('alice.people') IS NULL`) {
		t.Error("a draft is for the table's owner")
	}
}

func keepsHierarchiesOfOthers(t *testing.T, s *testCluster) {
	alice, mallory := s.as(t, "alice"), s.as(t, "mallory")
	const define = `CALL tailor.define_hierarchy('colour', 'table', '{"paths": [["red"], ["blue"]]}')`
	mustExec(t, alice, define)
	mustExec(t, alice, define)
	refused(t, mallory, "42501", define)
	refused(t, mallory, "42501", `CALL tailor.write_hierarchy('colour', 'date', '{}')`)
	mustExec(t, s.superuser(t), define)

	// A source is read with the caller's rights.
	refused(t, mallory, "42501",
		`CALL tailor.define_hierarchy('names', 'table', `+
			`'{"source": "public.patients", "columns": ["name"]}')`)
	mustExec(t, mallory, `CREATE TABLE mallory.tones AS SELECT 'pink' AS tone, 'red' AS colour;
CALL tailor.define_hierarchy('tone', 'table',
    '{"source": "mallory.tones", "columns": ["tone", "colour"]}')`)
	if owner := one[string](t, mallory,
		`SELECT owner FROM tailor.hierarchies WHERE name = 'tone'`); owner != "mallory" {
		t.Errorf("the hierarchy belongs to %s", owner)
	}
}

func closesOldReleases(t *testing.T, s *testCluster) {
	p := s.serve(t)
	alice, name := s.as(t, "alice"), s.reader(t)
	protect(t, alice, "alice.closing")
	mustExec(t, alice, `CALL tailor.activate('alice.closing')`)
	reader := connect(t, p.dsn(name))
	waitFor(t, func() bool {
		_, err := reader.Exec(t.Context(), `SELECT secret FROM alice.closing`)
		return err == nil
	})

	// Whoever may read the release now may not once another policy is in force,
	// whatever tailor.admit lets in.
	super := s.superuser(t)
	release := one[string](t, s.superuser(t),
		`SELECT 'tailor_release.chain_' || chain FROM tailor.chain `+
			`WHERE relation = 'alice.closing'::regclass`)
	mayRead := func() bool {
		return one[bool](t, super, `SELECT has_table_privilege($1, $2, 'SELECT')`, name, release)
	}
	if !mayRead() {
		t.Fatal("the reader has no privilege on the release")
	}
	mustExec(t, super, `GRANT SELECT ON `+release+` TO PUBLIC`)
	mustExec(t, alice, `CALL tailor.classify('alice.closing', 'secret', 'direct_identifier'); `+
		`CALL tailor.activate('alice.closing')`)
	if mayRead() {
		t.Error("the release of the old policy is still open to its reader")
	}

	// Its chain goes on, without the column.
	waitFor(t, func() bool {
		_, err := reader.Exec(t.Context(), `SELECT shown FROM alice.closing`)
		return err == nil
	})
	refused(t, reader, "42501", `SELECT secret FROM alice.closing`)
	if one[bool](t, super,
		`SELECT EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass($1) `+
			`AND attname = 'secret')`, release+"_g1") {
		t.Error("the new release still has the hidden column")
	}
}

func bindsScope(t *testing.T, s *testCluster) {
	p := s.serve(t)
	alice, name := s.as(t, "alice"), s.reader(t)
	protect(t, alice, "alice.scoped")
	mustExec(t, alice, `CALL tailor.activate('alice.scoped')`)
	// Nobody has been shown anything yet.
	mustExec(t, alice, `CALL tailor.chain_scope('alice.scoped', 'table'); `+
		`CALL tailor.activate('alice.scoped')`)
	reader := connect(t, p.dsn(name))
	waitFor(t, func() bool {
		_, err := reader.Exec(t.Context(), `SELECT age FROM alice.scoped`)
		return err == nil
	})
	mustExec(t, alice, `CALL tailor.chain_scope('alice.scoped', 'project')`)
	refused(t, alice, "55000", `CALL tailor.activate('alice.scoped')`)
	mustExec(t, alice, `CALL tailor.refresh('alice.scoped')`)
	mustExec(t, alice, `CALL tailor.forget_chains('alice.scoped'); `+
		`CALL tailor.activate('alice.scoped')`)
}

func countsNoinherit(t *testing.T, s *testCluster) {
	alice, super, name := s.as(t, "alice"), s.superuser(t), s.reader(t)
	protect(t, alice, "alice.lent")
	mustExec(t, super, fmt.Sprintf(
		`CREATE ROLE staff NOLOGIN; CREATE ROLE nurses NOLOGIN; GRANT staff TO nurses; `+
			`GRANT nurses TO %[1]s; ALTER ROLE %[1]s NOINHERIT`, name))
	if one[int](t, super, `SELECT current_setting('server_version_num')::integer`) >= 160000 {
		mustExec(t, super, `GRANT nurses TO `+name+` WITH INHERIT FALSE, SET TRUE`)
	}
	mustExec(t, alice, `GRANT SELECT (secret) ON alice.lent TO staff`)
	refused(t, alice, "42501", `CALL tailor.activate('alice.lent')`)
	mustExec(t, alice, `REVOKE ALL ON alice.lent FROM staff; CALL tailor.activate('alice.lent')`)

	// The same for a role that is to become a reader.
	mustExec(t, super, `CREATE ROLE borrower NOLOGIN NOINHERIT; GRANT staff TO borrower`)
	mustExec(t, alice, `GRANT SELECT ON alice.lent TO staff`)
	refused(t, alice, "42501", `CALL tailor.grant_reader('borrower')`)
	mustExec(t, alice, `REVOKE ALL ON alice.lent FROM staff`)
	mustExec(t, super, `ALTER ROLE borrower INHERIT; CALL tailor.grant_reader('borrower')`)

	// An owner can give back what he took from himself.
	mustExec(t, alice, `CREATE TABLE alice.orphan (id integer, shown text);
CALL tailor.protect('alice.orphan', subject => 'id', k => 5);
    CALL tailor.classify('alice.orphan', 'shown', 'sensitive')`)
	mustExec(t, super, `CREATE ROLE landlord NOLOGIN; GRANT landlord TO alice;
		GRANT landlord TO nurses;
ALTER TABLE alice.orphan OWNER TO landlord; REVOKE ALL ON alice.orphan FROM landlord;
    REVOKE tailor_admin FROM landlord`)
	refused(t, alice, "42501", `CALL tailor.activate('alice.orphan')`)
}

func closesPartitions(t *testing.T, s *testCluster) {
	alice, name := s.as(t, "alice"), s.reader(t)
	mustExec(t, alice, fmt.Sprintf(
		`CREATE TABLE alice.parted (id integer, shown text) PARTITION BY RANGE (id);
CREATE TABLE alice.part PARTITION OF alice.parted FOR VALUES
    FROM (0) TO (100) PARTITION BY RANGE (id);
CREATE TABLE alice.leaf PARTITION OF alice.part FOR VALUES FROM (0) TO (50);
INSERT INTO alice.parted SELECT n, 'shown' FROM generate_series(1, 40) n;
GRANT SELECT ON alice.leaf TO PUBLIC; GRANT SELECT ON alice.part TO %s;
CALL tailor.protect('alice.parted', subject => 'id', k => 5);
CALL tailor.classify('alice.parted', 'shown', 'non_sensitive');
CALL tailor.activate('alice.parted')`, name))
	direct := s.as(t, name)
	for _, table := range []string{"parted", "part", "leaf"} {
		refused(t, direct, "42501", `SELECT FROM alice.`+table)
	}

	mustExec(t, s.superuser(t),
		`CREATE ROLE porters NOLOGIN; CREATE ROLE porter NOLOGIN; GRANT porters TO porter; `+
			`GRANT porters TO `+name)
	mustExec(t, alice, `GRANT SELECT ON alice.leaf TO porters`)
	refused(t, alice, "42501", `CALL tailor.activate('alice.parted')`)
	refused(t, alice, "42501", `CALL tailor.grant_reader('porter')`)
	mustExec(t, alice, `REVOKE ALL ON alice.leaf FROM porters`)

	// A view that was made after the activation reads with its owner's rights.
	mustExec(t, s.superuser(t), `CREATE ROLE usher NOLOGIN; GRANT porters TO usher`)
	mustExec(t, alice, `CREATE VIEW alice.window AS SELECT * FROM alice.part; `+
		`CREATE VIEW alice.second_window AS SELECT * FROM alice.window; `+
		`GRANT SELECT ON alice.second_window TO usher`)
	refused(t, alice, "42501", `CALL tailor.grant_reader('usher')`)
	mustExec(t, alice, `REVOKE ALL ON alice.second_window FROM usher; `+
		`CALL tailor.grant_reader('usher')`)
}

func keepsReleasesApart(t *testing.T, s *testCluster) {
	alice := s.as(t, "alice")
	mustExec(t, alice, `CREATE TABLE alice.town (id integer, shown text) PARTITION BY RANGE (id);
CREATE TABLE alice.street PARTITION OF alice.town FOR VALUES FROM (0) TO (100);
CREATE TABLE alice.village (id integer, shown text);
INSERT INTO alice.town SELECT n, 'shown' FROM generate_series(1, 40) n;
    INSERT INTO alice.village SELECT n, 'shown' FROM generate_series(100, 140) n;
CALL tailor.protect('alice.town', subject => 'id', k => 5);
    CALL tailor.classify('alice.town', 'shown', 'non_sensitive');
CALL tailor.protect('alice.street', subject => 'id', k => 5);
    CALL tailor.classify('alice.street', 'shown', 'non_sensitive');
CALL tailor.protect('alice.village', subject => 'id', k => 5);
    CALL tailor.classify('alice.village', 'shown', 'non_sensitive');
CALL tailor.activate('alice.town'); CALL tailor.activate('alice.village')`)
	refused(t, alice, "0A000", `CALL tailor.activate('alice.street')`)
	mustExec(t, alice, `ALTER TABLE alice.town ATTACH PARTITION alice.village FOR VALUES `+
		`FROM (100) TO (200)`)
	refused(t, alice, "0A000", `CALL tailor.refresh('alice.town')`)
	refused(t, alice, "0A000", `CALL tailor.activate('alice.village')`)
	mustExec(t, alice, `ALTER TABLE alice.town DETACH PARTITION alice.village; `+
		`CALL tailor.activate('alice.village'); CALL tailor.refresh('alice.town')`)
}

func refusesOwners(t *testing.T, s *testCluster) {
	alice, super := s.as(t, "alice"), s.superuser(t)
	protect(t, alice, "alice.owned")
	mustExec(t, super, `CREATE ROLE team NOLOGIN; GRANT team TO alice; CREATE ROLE heir NOLOGIN; `+
		`GRANT alice TO heir`)
	for _, name := range []string{
		"alice", "team", "heir", "tailor_owner", "tailor_admin",
		"tailor_reader",
	} {
		refused(t, alice, "42501", `CALL tailor.grant_reader($1)`, name)
	}

	// Someone made the owner a reader by other means: his table stays his.
	mustExec(t, super, `GRANT tailor_reader TO team`)
	refused(t, alice, "42501", `CALL tailor.activate('alice.owned')`)
	mustExec(t, alice, `SELECT FROM alice.owned`)
	mustExec(t, super, `REVOKE tailor_reader FROM team`)
	mustExec(t, alice, `CALL tailor.activate('alice.owned')`)
}

func refusesBypass(t *testing.T, s *testCluster) {
	super := s.superuser(t)
	for i, options := range []string{"SUPERUSER", "BYPASSRLS", "REPLICATION", "CREATEROLE"} {
		name := fmt.Sprintf("mighty_%d", i)
		mustExec(t, super,
			fmt.Sprintf(`CREATE ROLE %[1]s NOLOGIN %[2]s; CREATE ROLE %[1]s_member NOLOGIN NOINHERIT; `+
				`GRANT %[1]s TO %[1]s_member`, name, options))
		refused(t, super, "42501", `CALL tailor.grant_reader($1)`, name)
		refused(t, super, "42501", `CALL tailor.grant_reader($1)`, name+"_member")
	}
	for _, group := range []string{"tailor_owner", "tailor_admin", "pg_read_server_files"} {
		mustExec(t, super, fmt.Sprintf(`CREATE ROLE in_%[1]s NOLOGIN NOINHERIT; GRANT %[1]s TO in_%[1]s`,
			group))
		refused(t, super, "42501", `CALL tailor.grant_reader($1)`, "in_"+group)
	}
}

func refusesHijack(t *testing.T, s *testCluster) {
	mallory := s.as(t, "mallory")
	protect(t, mallory, "mallory.patients")
	refused(t, mallory, "42710", `CALL tailor.activate('mallory.patients')`)
	if one[int](t, s.superuser(t),
		`SELECT count(*) FROM pg_attribute WHERE attrelid = 'research.patients'::regclass `+
			`AND attname = 'secret'`) != 0 {
		t.Error("research.patients has the shape of another table")
	}
	mustExec(t, mallory,
		`ALTER TABLE mallory.patients RENAME TO other_patients; `+
			`CALL tailor.activate('mallory.other_patients')`)
}

func refusesShape(t *testing.T, s *testCluster) {
	direct := s.as(t, s.reader(t))
	for _, sql := range []string{
		`SELECT * FROM research.patients`,
		`SELECT count(*) FROM research.patients`,
		`SELECT age FROM research.patients WHERE age > 5`,
		`SELECT FROM research.patients p JOIN numbers n ON n.n = p.age`,
	} {
		refused(t, direct, "42501", sql)
	}
	// Tools list the columns.
	if n := one[int](t, direct,
		`SELECT count(*) FROM information_schema.columns WHERE table_schema = 'research' `+
			`AND table_name = 'patients'`); n < 5 {
		t.Errorf("%d columns of research.patients are listed", n)
	}
}

package tests

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestNothingIsDecidedByOldSnapshots: who waits for another transaction decides by what that one
// has committed.
func TestNothingIsDecidedByOldSnapshots(t *testing.T) {
	const name = "old_snapshots"
	direct, _ := lately(t, name)
	mustExec(t, direct, `CREATE TABLE t2 AS SELECT i AS id, 20 + i % 40 AS age, i AS cost
			FROM generate_series(1, 100) i; ALTER TABLE t2 ADD PRIMARY KEY (id);
		CREATE ROLE snapshot_reader LOGIN; GRANT SELECT ON t2 TO snapshot_reader;`+drafted("t2"))
	for _, call := range []string{
		"tailor.activate('t2')", "tailor.refresh('t2')", "tailor.forget_chains('t2')",
		"tailor.unprotect('t2')", "tailor.grant_reader('snapshot_reader')",
		"tailor.chain_scope('t2', 'project')", "tailor.erase('t2', '3')", "tailor.rehearse('t2')",
	} {
		for _, level := range []string{"REPEATABLE READ", "SERIALIZABLE"} {
			old := connect(t, shared.cluster.SuperuserDSN(name))
			mustExec(t, old, "BEGIN ISOLATION LEVEL "+level+"; SELECT 1")
			var refused *pgconn.PgError
			if _, err := old.Exec(t.Context(), "CALL "+call); !errors.As(err, &refused) ||
				refused.Code != "25001" {
				t.Errorf("%s in %s: %v", call, level, err)
			}
			_ = old.Close(t.Context())
		}
	}
	// Commands choose for themselves.
	mustExec(t, direct, `ALTER DATABASE old_snapshots SET default_transaction_isolation =
		'repeatable read'`)
	exported, stderr, code := tailor(t, "policy", "export", "--dsn", shared.cluster.SuperuserDSN(name),
		"-")
	if code != 0 {
		t.Fatal(exported, stderr)
	}
	file := policyFile(t, `version: 1
tables:
  public.t2:
    subject: id
    k: 5
    columns: {id: {class: direct_identifier}, cost: {class: sensitive}}
`)
	for _, verb := range []string{"plan", "apply"} {
		if stdout, stderr, code := tailor(t, "policy", verb, "--dsn", shared.cluster.SuperuserDSN(name),
			file); code != 0 {
			t.Errorf("%s: %s%s", verb, stdout, stderr)
		}
	}
}

// TestWhoeverWasErasedStaysSo, whatever becomes of the policies, keys and tables by which a table
// was seen to be about the person.
func TestWhoeverWasErasedStaysSo(t *testing.T) {
	const name = "erased_stay"
	direct, reader := lately(t, name)
	base := 0
	// family makes people and their visits, 3 of whom has a secret.
	family := func(t *testing.T, p, v, more string) (key string) {
		t.Helper()
		base += 100_000
		mustExec(t, direct, strings.NewReplacer("$p", p, "$v", v, "@", fmt.Sprint(base)).Replace(
			`CREATE TABLE $p AS
				SELECT @ + i AS id, 20 + i % 40 AS age, @ + i AS cost, @ + 999 - i AS mrn
				FROM generate_series(1, 200) i;
			ALTER TABLE $p ADD PRIMARY KEY (id), ADD UNIQUE (mrn);
			CREATE TABLE $v AS SELECT i AS visit, @ + 1 + i % 200 AS id,
				CASE 1 + i % 200 WHEN 3 THEN 'secret' ELSE 'drug ' || i % 4 END AS drug
				FROM generate_series(1, 400) i;
			ALTER TABLE $v ADD PRIMARY KEY (visit), ADD FOREIGN KEY (id) REFERENCES $p;`+activated(p)+`;
			CALL tailor.protect('$v', subject => 'id', k => 5);
			CALL tailor.classify('$v', 'drug', 'sensitive');`+more))
		return fmt.Sprint(base + 3)
	}
	assertGone := func(t *testing.T, v string) {
		t.Helper()
		answeredSoon(t, reader, "SELECT count(*) FROM "+v)
		waitFor(t, func() bool {
			var all, secrets int
			err := reader.QueryRow(t.Context(), "SELECT count(*), count(*) FILTER (WHERE drug = 'secret') "+
				"FROM "+v).Scan(&all, &secrets)
			return err == nil && all > 100 && secrets == 0
		})
	}
	t.Run("a draft of the parent names another subject", func(t *testing.T) {
		key := family(t, "p1", "v1", "")
		mustExec(t, direct, "CALL tailor.erase('p1', '"+key+"'); CALL tailor.activate('v1')")
		assertGone(t, "v1")
		mustExec(t, direct, `CALL tailor.protect('p1', subject => 'mrn', k => 5);
			CALL tailor.refresh('v1'); CALL tailor.forget_chains('v1')`)
		assertGone(t, "v1")
	})
	t.Run("the key is dropped", func(t *testing.T) {
		key := family(t, "p2", "v2", "")
		mustExec(t, direct, "CALL tailor.erase('p2', '"+key+`'); CALL tailor.activate('v2')`)
		assertGone(t, "v2")
		mustExec(t, direct, `ALTER TABLE v2 DROP CONSTRAINT v2_id_fkey; CALL tailor.forget_chains('v2');
			CALL tailor.activate('v2')`)
		assertGone(t, "v2")
	})
	t.Run("another subject column", func(t *testing.T) {
		key := family(t, "p3", "v3", "")
		mustExec(t, direct, "CALL tailor.erase('p3', '"+key+`');
			CALL tailor.protect('p3', subject => 'mrn', k => 5)`)
		var refused *pgconn.PgError
		if _, err := direct.Exec(t.Context(), `CALL tailor.classify('p3', 'mrn', 'direct_identifier');
			CALL tailor.classify('p3', 'id', 'direct_identifier');
			CALL tailor.activate('p3')`); !errors.As(err, &refused) ||
			!strings.Contains(refused.Message, "by another subject column") {
			t.Error(err)
		}
	})
	t.Run("another one when the policy was taken away", func(t *testing.T) {
		key := family(t, "p7", "v7", "")
		mustExec(t, direct, "CALL tailor.erase('p7', '"+key+`', 'at_once');
			CALL tailor.unprotect('p7'); CALL tailor.protect('p7', subject => 'mrn', k => 5);
			CALL tailor.classify('p7', 'cost', 'sensitive'); CALL tailor.forget_chains('p7')`)
		var refused *pgconn.PgError
		if _, err := direct.Exec(t.Context(), "CALL tailor.activate('p7')"); !errors.As(err, &refused) ||
			!strings.Contains(refused.Message, "by another subject column") {
			t.Error(err)
		}
	})
	t.Run("alone, as was asked for", func(t *testing.T) {
		key := family(t, "p8", "v8", "CALL tailor.activate('v8'); "+
			"ALTER TABLE v8 DROP CONSTRAINT v8_id_fkey;")
		answeredSoon(t, reader, "SELECT count(*) FROM v8")
		mustExec(t, direct, "CALL tailor.erase('p8', '"+key+`', 'at_once');
			ALTER TABLE v8 ADD FOREIGN KEY (id) REFERENCES p8; CALL tailor.refresh('v8')`)
		assertGone(t, "v8")
		if n := one[int](t, reader, "SELECT count(*) FROM v8"); n < 390 {
			t.Errorf("%d rows are left", n)
		}
	})
	t.Run("the child is made anew meanwhile", func(t *testing.T) {
		key := family(t, "p4", "v4", "CALL tailor.activate('v4');")
		answeredSoon(t, reader, "SELECT count(*) FROM v4")
		mustExec(t, direct, `CREATE TABLE kept AS SELECT * FROM v4; DROP TABLE v4;
			ALTER TABLE kept RENAME TO v4;
			ALTER TABLE v4 ADD PRIMARY KEY (visit), ADD FOREIGN KEY (id) REFERENCES p4;
			CALL tailor.erase('p4', '`+key+`'); CALL tailor.refresh('v4')`)
		assertGone(t, "v4")
	})
	t.Run("while a table without quasi-identifiers lends nothing", func(t *testing.T) {
		key := family(t, "p6", "v6", "CALL tailor.classify('p6', 'age', 'direct_identifier'); "+
			"CALL tailor.forget_chains('p6'); CALL tailor.activate('p6');")
		dsn := shared.cluster.SuperuserDSN(name)
		a, b := connect(t, dsn), connect(t, dsn)
		mustExec(t, a, "BEGIN; CALL tailor.activate('v6')")
		done := make(chan error, 1)
		go func() {
			_, err := b.Exec(t.Context(), "CALL tailor.erase('p6', '"+key+"')")
			done <- err
		}()
		waitFor(t, func() bool {
			return len(done) > 0 || one[bool](t, direct, fmt.Sprintf(
				"SELECT cardinality(pg_blocking_pids(%d)) > 0", b.PgConn().PID()))
		})
		mustExec(t, a, "COMMIT")
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		// All are one block, which goes where it is shown already.
		const chains = " FROM tailor.chain c WHERE c.relation = 'v6'::regclass"
		waitFor(t, func() bool { return one[bool](t, direct, "SELECT count(*) > 0"+chains) })
		if n := one[int](t, direct, "SELECT count(*) FROM "+one[string](t, direct,
			"SELECT tailor.rows_of(c)"+chains)+" WHERE drug = 'secret'"); n > 0 {
			t.Errorf("%d visits are shown of somebody who was erased", n)
		}
	})
}

// TestCopiesAreOfTheColumnsThatWereMeant: names may change places between two activations.
func TestCopiesAreOfTheColumnsThatWereMeant(t *testing.T) {
	direct, reader := lately(t, "renamed_columns")
	mustExec(t, direct, `CREATE TABLE s2 AS SELECT i AS id, 20 + i % 40 AS age, i AS cost,
			'd' || i % 3 AS d, 'secret note ' || i AS note FROM generate_series(1, 200) i;
		ALTER TABLE s2 ADD PRIMARY KEY (id);`+
		drafted("s2")+`CALL tailor.classify('s2', 'd', 'sensitive'); CALL tailor.activate('s2')`)
	answeredSoon(t, reader, "SELECT d FROM s2")
	mustExec(t, direct, "ALTER TABLE s2 RENAME d TO kept; ALTER TABLE s2 RENAME note TO d")
	var refused *pgconn.PgError
	if _, err := direct.Exec(t.Context(), "CALL tailor.refresh('s2')"); !errors.As(err, &refused) ||
		refused.Code != "KA004" {
		t.Errorf("a hidden column is copied: %v", err)
	}
	mustExec(t, direct, "ALTER TABLE s2 RENAME d TO note; ALTER TABLE s2 RENAME kept TO d")
	answeredSoon(t, reader, "SELECT d FROM s2")
	if n := one[int](t, reader, "SELECT count(*) FROM s2 WHERE d LIKE 'secret%'"); n > 0 {
		t.Errorf("%d hidden values are shown", n)
	}
	// Privileges on a new partition are taken when it is next copied.
	mustExec(t, direct, `CREATE TABLE parted (id int, age int, cost int) PARTITION BY LIST (cost);
		CREATE TABLE parted_0 PARTITION OF parted FOR VALUES IN (0);
		INSERT INTO parted SELECT i + 5000, 20 + i % 40, 0 FROM generate_series(1, 100) i;`+
		drafted("parted")+`CALL tailor.activate('parted');
		CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
		GRANT SELECT ON parted_1 TO researcher; CALL tailor.refresh('parted')`)
	if one[bool](t, direct, "SELECT has_table_privilege('researcher', 'parted_1', 'SELECT')") {
		t.Error("a reader has a privilege on a partition")
	}
}

// TestTablesThatReferToEachOtherAreLockedInOneOrder: a refresh of the one, an erasure of both and a
// refresh of the other wait for each other, and none fails.
func TestTablesThatReferToEachOtherAreLockedInOneOrder(t *testing.T) {
	const name = "one_order"
	direct, _ := lately(t, name)
	mustExec(t, direct, `CREATE TABLE dp AS SELECT i AS id, 20 + i % 40 AS age, i AS cost
			FROM generate_series(1, 200) i;
		ALTER TABLE dp ADD PRIMARY KEY (id);
		CREATE TABLE dv AS SELECT i AS visit, 1 + i % 200 AS id, 'drug ' || i % 4 AS drug
			FROM generate_series(1, 400) i;
		ALTER TABLE dv ADD PRIMARY KEY (visit), ADD FOREIGN KEY (id) REFERENCES dp;`+activated("dp")+`;
		CALL tailor.protect('dv', subject => 'id', k => 5);
		CALL tailor.classify('dv', 'drug', 'sensitive'); CALL tailor.activate('dv')`)
	dsn := shared.cluster.SuperuserDSN(name)
	first := connect(t, dsn)
	mustExec(t, first, "BEGIN; CALL tailor.refresh('dp')")
	failed := make(chan error, 2)
	for _, call := range []string{"tailor.erase('dp', '7')", "tailor.refresh('dv')"} {
		other := connect(t, dsn)
		go func() {
			_, err := other.Exec(t.Context(), "CALL "+call)
			failed <- err
		}()
		waitFor(t, func() bool {
			return one[bool](t, direct, fmt.Sprintf("SELECT cardinality(pg_blocking_pids(%d)) > 0",
				other.PgConn().PID()))
		})
	}
	mustExec(t, first, "COMMIT")
	for range 2 {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
}

// TestWhatSomebodyElseHasNowIsNoOtherKey: newcomers say what people said who are shown by other
// rows since.
func TestWhatSomebodyElseHasNowIsNoOtherKey(t *testing.T) {
	direct, reader := lately(t, "beds")
	mustExec(t, direct, `CREATE TABLE be AS SELECT i AS stay, i AS id, 'bed ' || i AS cost, 40 AS age
			FROM generate_series(1, 200) i; ALTER TABLE be ADD PRIMARY KEY (stay), ADD UNIQUE (id);
		CALL tailor.protect('be', subject => 'id', k => 5); CALL tailor.cohort('be', 10);
		CALL tailor.classify('be', 'age', 'quasi_identifier', hierarchy => 'age');
		CALL tailor.classify('be', 'cost', 'sensitive'); CALL tailor.activate('be')`)
	shows := func(n int) {
		t.Helper()
		waitFor(t, func() bool {
			var shown int
			err := reader.QueryRow(t.Context(), "SELECT count(*) FROM be").Scan(&shown)
			return err == nil && shown == n
		})
	}
	shows(200)
	mustExec(t, direct, `DELETE FROM be WHERE stay <= 20;
		INSERT INTO be SELECT 1000 + i, i, 'bed ' || 1000 + i, 41 FROM generate_series(1, 20) i;
		CALL tailor.refresh('be')`)
	waitFor(t, func() bool {
		return one[bool](t, direct, "SELECT bool_and(NOT behind) FROM tailor.epochs")
	})
	mustExec(t, direct, `INSERT INTO be SELECT 3000 + i, 3000 + i, 'bed ' || i, 40
		FROM generate_series(1, 20) i; CALL tailor.refresh('be')`)
	shows(220)
}

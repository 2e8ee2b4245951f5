package tests

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// lateHierarchies are those of tables that the tests of this file make.
const lateHierarchies = `
	CALL tailor.define_hierarchy('zip', 'prefix', '{"keep": [4, 3, 2, 1]}');
	CALL tailor.define_hierarchy('age', 'interval',
		'{"widths": [5, 10, 20], "lower": 0, "upper": 119}')`

// lately makes a database for tables that are protected by age, and their cost shown.
func lately(t *testing.T, name string) (direct, reader *pgx.Conn) {
	t.Helper()
	direct = makeDatabase(t, name, "")
	if err := shared.install(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, lateHierarchies)
	return direct, connect(t, serveDatabase(t, name).dsn("researcher"))
}

// drafted is the draft of a table.
func drafted(table string) string {
	return strings.ReplaceAll(`CALL tailor.protect('$', subject => 'id', k => 5);
		CALL tailor.classify('$', 'age', 'quasi_identifier', hierarchy => 'age');
		CALL tailor.classify('$', 'cost', 'sensitive');`, "$", table)
}

func activated(table string) string {
	return drafted(table) + "CALL tailor.activate('" + table + "')"
}

// TestWhatIsMissingMeetsModels: that somebody has no value of a column is a value. Where something
// is shown of a block that was held back, it is told of all of them.
func TestWhatIsMissingMeetsModels(t *testing.T) {
	direct, reader := lately(t, "missing_models")
	saysSoon := func(question string) { // once another policy is taken in
		t.Helper()
		waitFor(t, func() bool {
			var yes bool
			return reader.QueryRow(t.Context(), question).Scan(&yes) == nil && yes
		})
	}
	t.Run("shares", func(t *testing.T) {
		mustExec(t, direct, `CREATE TABLE f1 (id int PRIMARY KEY, zip text, age int, cost int, d text);
			INSERT INTO f1 SELECT i, '99999', 80, i,
				CASE WHEN i > 24 THEN (ARRAY['x', 'y', 'z'])[1 + i % 3] END FROM generate_series(1, 30) i;
			INSERT INTO f1 SELECT 1000 + i, (10000 + i % 5)::text, 20 + i % 40, 1000 + i,
				(ARRAY['x', 'y', 'z', 'u', 'v'])[1 + i / 5 % 5] FROM generate_series(1, 300) i;`+
			drafted("f1")+`CALL tailor.classify('f1', 'zip', 'quasi_identifier', hierarchy => 'zip');
			CALL tailor.activate('f1')`)
		answeredSoon(t, reader, "SELECT cost FROM f1")
		mustExec(t, direct, `CALL tailor.classify('f1', 'd', 'sensitive');
			CALL tailor.require('f1', 'alpha', 'd', 0.4); CALL tailor.activate('f1')`)
		answeredSoon(t, reader, "SELECT d FROM f1")
		if n := one[int](t, reader, "SELECT count(d) FROM f1 WHERE cost <= 30"); n != 0 {
			t.Errorf("%d values are shown of a block of which 80 %% have none", n)
		}
		if n := one[int](t, reader, "SELECT count(d) FROM f1"); n < 100 {
			t.Errorf("%d values are shown in all: the test proves little", n)
		}
		mustExec(t, direct, "UPDATE tailor.chain SET first_version = NULL") // restored from an older dump
		if n := one[int](t, direct, "SELECT count(DISTINCT v.version) FROM tailor.chain c, "+
			"tailor.versions_since(c.chain) v"); n < 2 {
			t.Errorf("%d versions may have been shown by where the first is not known", n)
		}
	})
	const few = `CREATE TABLE $ (id int PRIMARY KEY, age int, cost int, d text);
		INSERT INTO $ SELECT @ + i, 20 + 5 * (i / 6), i,
			CASE WHEN i > 5 THEN (ARRAY['x', 'y', 'z'])[1 + i % 3] END FROM generate_series(0, 59) i;`
	t.Run("classes", func(t *testing.T) {
		mustExec(t, direct, strings.NewReplacer("$", "f2", "@", "20000").Replace(few)+activated("f2"))
		answeredSoon(t, reader, "SELECT cost FROM f2")
		mustExec(t, direct, `CALL tailor.protect('f2', subject => 'id', k => 10);
			CALL tailor.activate('f2')`)
		saysSoon("SELECT count(DISTINCT tailor.label(age)) <= 6 FROM f2")
		mustExec(t, direct, `CALL tailor.classify('f2', 'd', 'sensitive');
			CALL tailor.require('f2', 'l_diversity', 'd', 2); CALL tailor.activate('f2')`)
		answeredSoon(t, reader, "SELECT d FROM f2")
		if n := one[int](t, reader, "SELECT count(d) FROM f2 WHERE cost < 12"); n != 0 {
			t.Errorf("%d values are shown beside six people who are known to have none", n)
		}
		if n := one[int](t, reader, "SELECT count(d) FROM f2"); n < 40 {
			t.Errorf("%d values are shown in all: the test proves little", n)
		}
	})
	t.Run("shown before without a model", func(t *testing.T) {
		mustExec(t, direct, strings.NewReplacer("$", "f3", "@", "30000").Replace(few)+activated("f3"))
		answeredSoon(t, reader, "SELECT cost FROM f3")
		mustExec(t, direct, `CALL tailor.classify('f3', 'd', 'sensitive'); CALL tailor.activate('f3')`)
		answeredSoon(t, reader, "SELECT d FROM f3")
		mustExec(t, direct, `CALL tailor.require('f3', 'l_diversity', 'd', 2);
			CALL tailor.activate('f3')`)
		saysSoon(`SELECT count(*) = 0 FROM (SELECT FROM f3 GROUP BY tailor.label(age)
			HAVING count(DISTINCT coalesce(d, '-')) < 2) q`)
	})
}

// TestVersionsAreToldByNumbers: what a chain was shown by is not told by when the transactions of
// activations began.
func TestVersionsAreToldByNumbers(t *testing.T) {
	direct, reader := lately(t, "versions_numbers")
	early := connect(t, shared.cluster.SuperuserDSN("versions_numbers"))
	mustExec(t, early, "BEGIN; SELECT now()")
	mustExec(t, direct, `CREATE TABLE f4 (id int PRIMARY KEY, age int, cost int, d text, e text);
		INSERT INTO f4 SELECT i, 20 + 5 * (i / 6), i, 'v' || i % 3, 'v' || i % 3
			FROM generate_series(0, 59) i;`+drafted("f4")+`
		CALL tailor.classify('f4', 'd', 'sensitive'); CALL tailor.activate('f4')`)
	answeredSoon(t, reader, "SELECT d FROM f4")
	mustExec(t, direct, `UPDATE f4 SET d = 'CHANGED', e = 'CHANGED' WHERE id = 3`)
	var refused *pgconn.PgError
	if _, err := early.Exec(t.Context(), `CALL tailor.classify('f4', 'd', 'direct_identifier');
		CALL tailor.classify('f4', 'e', 'sensitive'); CALL tailor.activate('f4'); COMMIT`); !errors.As(
		err, &refused) || refused.Code != "KA004" {
		t.Errorf("%v: a column that says the same as one that is gone is shown", err)
	}
}

// TestActivationsWaitForWhatTheyDependOn: an erasure, a role that becomes a reader and a table
// that shows the same fact, each while a table is being activated.
func TestActivationsWaitForWhatTheyDependOn(t *testing.T) {
	const name = "activations_wait"
	direct, reader := lately(t, name)
	dsn := shared.cluster.SuperuserDSN(name)
	// beside runs a statement while another transaction has done something and not ended.
	beside := func(first, second string) error {
		t.Helper()
		a, b := connect(t, dsn), connect(t, dsn)
		mustExec(t, a, "BEGIN; "+first)
		done := make(chan error, 1)
		go func() {
			_, err := b.Exec(t.Context(), second)
			done <- err
		}()
		waitFor(t, func() bool {
			return len(done) > 0 || one[bool](t, direct, fmt.Sprintf(
				"SELECT cardinality(pg_blocking_pids(%d)) > 0", b.PgConn().PID()))
		})
		_, err := a.Exec(t.Context(), "COMMIT")
		return errors.Join(err, <-done)
	}
	t.Run("erasure", func(t *testing.T) {
		mustExec(t, direct, `CREATE TABLE p7 AS SELECT i AS id, 20 + i % 40 AS age, i AS cost
				FROM generate_series(1, 200) i;
			ALTER TABLE p7 ADD PRIMARY KEY (id);
			CREATE TABLE v7 AS SELECT i AS visit, 1 + i % 200 AS id,
				CASE 1 + i % 200 WHEN 3 THEN 'secret' ELSE 'drug ' || i % 4 END AS drug
				FROM generate_series(1, 400) i;
			ALTER TABLE v7 ADD PRIMARY KEY (visit), ADD FOREIGN KEY (id) REFERENCES p7;`+activated("p7")+`;
			CALL tailor.protect('v7', subject => 'id', k => 5);
			CALL tailor.classify('v7', 'drug', 'sensitive')`)
		if err := beside("CALL tailor.activate('v7')", "CALL tailor.erase('p7', '3')"); err != nil {
			t.Fatal(err)
		}
		answeredSoon(t, reader, "SELECT count(*) FROM v7")
		if n := one[int](t, reader, "SELECT count(*) FROM v7 WHERE drug = 'secret'"); n != 0 {
			t.Errorf("%d visits are shown of somebody who was erased", n)
		}
	})
	t.Run("reader", func(t *testing.T) {
		mustExec(t, direct, `CREATE ROLE wait_reader LOGIN; CREATE TABLE t10 AS SELECT * FROM p7;
			GRANT SELECT ON t10 TO wait_reader;`+drafted("t10")+
			`CALL tailor.shared_fact('t10', 'cost', 'accepted')`)
		err := beside("CALL tailor.activate('t10')", "CALL tailor.grant_reader('wait_reader')")
		if one[bool](t, direct, `SELECT has_table_privilege('wait_reader', 't10', 'SELECT')
				AND pg_has_role('wait_reader', 'tailor_reader', 'MEMBER')`) {
			t.Errorf("a reader has a privilege on a protected table (%v)", err)
		}
	})
	t.Run("facts", func(t *testing.T) {
		for _, table := range []string{"a9", "b9"} {
			mustExec(t, direct, fmt.Sprintf(`CREATE TABLE %[1]s (id int PRIMARY KEY, age int, cost int);
				INSERT INTO %[1]s SELECT 9000 + i, 20 + i %% %[2]d, 1900000 + 7 * i
					FROM generate_series(0, 299) i;`, table, 40+len(table))+drafted(table))
		}
		err := beside("CALL tailor.activate('a9')", "CALL tailor.activate('b9')")
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || !strings.Contains(refused.Message, "show the same fact") {
			t.Errorf("%v: two tables that show the same fact are activated", err)
		}
	})
}

package tests

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestAnOlderSnapshotIsToldToRetry reads a release that is newer than the snapshot of an
// open transaction: it shows none of its rows, which is no answer.
func TestAnOlderSnapshotIsToldToRetry(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	old := connect(t, p.dsn(user))
	tx, err := old.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT count(*) FROM numbers"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, connect(t, p.dsn("dba")),
		`CREATE TABLE young AS SELECT id, age FROM patients; CALL tailor.protect('young', 'id', 5);
		CALL tailor.classify('young', 'age', 'quasi_identifier', hierarchy => 'age');
		ALTER TABLE young ADD PRIMARY KEY (id); CALL tailor.activate('young');
		CREATE TABLE young_codes AS SELECT id AS who, 'c' || id % 7 AS code FROM young;
		ALTER TABLE young_codes ADD FOREIGN KEY (who) REFERENCES young;
		CALL tailor.protect('young_codes', 'who', 5);
		CALL tailor.classify('young_codes', 'who', 'direct_identifier', action => 'pseudonym');
		CALL tailor.set_valued('young_codes', 'code'); CALL tailor.joint('young_codes', ARRAY['age']);
		CALL tailor.activate('young_codes')`)
	later := connect(t, p.dsn(user))
	answeredSoon(t, later, "SELECT age FROM young")
	answeredSoon(t, later, "SELECT y.age, code FROM young y JOIN young_codes c ON c.who = y.id")
	for _, sql := range []string{ // which are answered under a new snapshot
		"SELECT age FROM young", "SELECT count(*) FROM young WHERE age = 1000",
		"SELECT count(y.age) FROM numbers n LEFT JOIN young y ON y.age = n.n",
		"SELECT count(*) FROM numbers n LEFT JOIN young y ON y.age = n.n AND y.age = 1000",
		"SELECT count(*) FROM young y FULL JOIN numbers n ON y.age = n.n",
		"SELECT count(*) FROM numbers n LEFT JOIN young y ON tailor.label(y.age) = 'none'",
		"SELECT count(*) FROM numbers n LEFT JOIN young y ON tailor.exact(y.age) AND y.age = n.n",
		"SELECT count(*) FROM numbers n LEFT JOIN (SELECT tailor.bounds(age) AS b FROM young) y ON " +
			"b[1] = -n.n",
		"SELECT code FROM young_codes",
		"SELECT count(*) FROM numbers n WHERE NOT EXISTS (SELECT FROM young_codes c WHERE c.code = " +
			"n.n::text)",
		"SELECT count(*) FROM young y LEFT JOIN young_codes c ON c.who = y.id AND c.code = 'none'",
		"SELECT count(*) FROM numbers n LEFT JOIN (young y JOIN young_codes c ON c.who = y.id) ON " +
			"y.age = -n.n",
		"SELECT * FROM tailor.case_count('young_codes', ARRAY['c1'])",
		"SELECT count(*) FROM numbers n LEFT JOIN tailor.case_count('young_codes', ARRAY['c1']) c ON " +
			"c.lower < n.n",
	} {
		mustExec(t, old, "SAVEPOINT s")
		_, err = tx.Exec(t.Context(), sql)
		if code := codeIn(err); code != "40001" {
			t.Errorf("a release newer than the snapshot: %s: %v, want 40001", sql, err)
		}
		mustExec(t, old, "ROLLBACK TO s")
		rowsOf(t, later, sql)
	}
}

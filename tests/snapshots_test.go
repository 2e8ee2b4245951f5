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
	exec1(t, connect(t, p.dsn("dba")), `CREATE TABLE young AS SELECT id, age FROM patients; CALL tailor.protect('young', 'id', 5);
		CALL tailor.classify('young', 'age', 'quasi_identifier', hierarchy => 'age'); CALL tailor.activate('young')`)
	answeredSoon(t, connect(t, p.dsn(user)), "SELECT age FROM young")
	for _, sql := range []string{
		"SELECT age FROM young", "SELECT count(*) FROM young WHERE age = 1000",
		"SELECT count(y.age) FROM numbers n LEFT JOIN young y ON y.age = n.n", "SELECT count(*) FROM numbers n LEFT JOIN young y ON y.age = n.n AND y.age = 1000",
		"SELECT count(*) FROM young y FULL JOIN numbers n ON y.age = n.n",
	} {
		exec1(t, old, "SAVEPOINT s")
		_, err = tx.Exec(t.Context(), sql)
		if code := codeIn(err); code != "40001" {
			t.Errorf("a release newer than the snapshot: %s: %v, want 40001", sql, err)
		}
		exec1(t, old, "ROLLBACK TO s")
	}
}

package tests

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestAPartitionedTableIsProtectedAsOne, whose partitions come and go.
func TestAPartitionedTableIsProtectedAsOne(t *testing.T) {
	s, owner := ownStand(t, "partitioned")
	mustExec(t, owner, `
CREATE TABLE taken (id int, day date, age int, value int, PRIMARY KEY (id, day))
	PARTITION BY RANGE (day);
CREATE TABLE taken_2024 PARTITION OF taken FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
CREATE TABLE taken_2025 PARTITION OF taken FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
INSERT INTO taken SELECT n, date '2024-01-01' + n * 7 % 700, n % 90, n % 13
	FROM generate_series(1, 3000) n;
CALL tailor.protect('taken', 'id', 5);
CALL tailor.classify('taken', 'age', 'quasi_identifier', hierarchy => 'age');
CALL tailor.classify('taken', 'day', 'non_sensitive');
CALL tailor.classify('taken', 'value', 'non_sensitive');
CALL tailor.activate('taken')`, pgx.QueryExecModeSimpleProtocol)
	p := s.serve(t)
	reader := connect(t, p.dsn(s.reader(t)))
	answeredSoon(t, reader, "SELECT count(*) FROM taken")
	asInTheTable := func(sql string) {
		t.Helper()
		want, got := rowsOf(t, owner, sql), rowsOf(t, reader, sql)
		if len(want) == 0 || len(want) != len(got) {
			t.Fatalf("%s: %v, in the table %v", sql, got, want)
		}
		for i := range want {
			if want[i] != got[i] {
				t.Errorf("%s: %s, in the table %s", sql, got[i], want[i])
			}
		}
	}
	byYear := "SELECT extract(year FROM day), count(*), sum(value) FROM taken GROUP BY 1 ORDER BY 1"
	asInTheTable(byYear)
	if bytes := one[int](t, owner, `SELECT table_bytes FROM tailor.storage
		WHERE relation = 'taken'::regclass`); bytes == 0 {
		t.Error("the table is said to have no bytes")
	}
	for _, part := range []string{"taken_2024", "taken_2025"} {
		_, err := reader.Exec(t.Context(), "SELECT count(*) FROM "+part)
		assertState(t, err, "0A000", "taken")
	}

	mustExec(t, owner, `
CREATE TABLE taken_2026 PARTITION OF taken FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
INSERT INTO taken SELECT n, date '2026-01-01' + n % 300, n % 90, n % 13
	FROM generate_series(3001, 4000) n;
ALTER TABLE taken DETACH PARTITION taken_2024; DROP TABLE taken_2024`,
		pgx.QueryExecModeSimpleProtocol)
	mustExec(t, owner, `CALL tailor.refresh('taken')`)
	answeredSoon(t, reader, "SELECT 1 / count(*) FROM taken WHERE day >= '2026-01-01'")
	asInTheTable("SELECT count(*), sum(value) FROM taken WHERE day >= '2026-01-01'")
	// Of a block that has people of both years nobody goes before k do.
	left := one[float64](t, reader,
		`SELECT count(*)::float8 / 1390 FROM taken WHERE day < '2025-01-01'`)
	if left > 0.2 {
		t.Errorf("%.0f %% of a partition that was dropped are still shown", 100*left)
	}
	_, err := reader.Exec(t.Context(), "SELECT count(*) FROM taken_2026")
	assertState(t, err, "0A000", "taken")
}

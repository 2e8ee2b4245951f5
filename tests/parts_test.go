package tests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// manyPeople is a table of which parts differ: where people live goes with their age, and so does
// what they suffer from. A token tells which row of a release is whose.
const manyPeople = `
CREATE TABLE many AS SELECT n AS id, n * 7 AS token, n * 7919 % 60 + n % 3 * 15 AS age,
	CASE WHEN n % 11 > 0 THEN (10000 + n % 3 * 20000 + n::bigint * 104729 % 9999)::text END AS zip,
	date '1950-01-01' + (n::bigint * 611953 % 20000)::int AS born,
	(ARRAY['m', 'f', 'x'])[1 + n * n % 3] AS sex,
	'd' || (n * 31 % 60 + n % 3 * 15) / 20 AS diagnosis
FROM generate_series(1, 9000) n;
ALTER TABLE many ADD PRIMARY KEY (id);
CALL tailor.define_hierarchy('day', 'date', '{"levels": ["month", "year", "decade"]}');
CALL tailor.define_hierarchy('sex', 'table', '{"paths": [["m"], ["f"], ["x"]]}');
CALL tailor.protect('many', subject => 'id', k => 5);
CALL tailor.classify('many', 'token', 'non_sensitive');
CALL tailor.classify('many', 'age', 'quasi_identifier', hierarchy => 'age');
CALL tailor.classify('many', 'zip', 'quasi_identifier', hierarchy => 'zip');
CALL tailor.classify('many', 'born', 'quasi_identifier', hierarchy => 'day');
CALL tailor.classify('many', 'sex', 'quasi_identifier', hierarchy => 'sex');
CALL tailor.classify('many', 'diagnosis', 'sensitive')`

// TestTablesOfManyRowsArePartitionedInParts has a release made part by part, with halves put
// together that cannot be shown by themselves: each block is what the policy asks for, each row
// is shown by labels of its own values, and margins count everybody once. What comes later is
// taken in as ever.
func TestTablesOfManyRowsArePartitionedInParts(t *testing.T) {
	for _, c := range []struct {
		name, model, unsafe string
		parts               []int // at least, and at most
		arrived             int   // parts of 4000 people who come later, at least
	}{
		{
			// A quarter have what stands for unknown: one combination is more than a part may be.
			"diverse", `UPDATE many SET age = 30, zip = '10000', born = '1970-01-01', sex = 'm'
					WHERE id % 4 = 0;
				CALL tailor.require('many', 'l_diversity', 'diagnosis', 3);
				CALL tailor.classify('many', 'token', 'sensitive');
				CALL tailor.require('many', 'l_diversity', 'token', 3)`,
			"count(DISTINCT diagnosis) < 3 OR count(DISTINCT token) < 3",
			[]int{9, 20},
			4,
		},
		{
			"close", "CALL tailor.require('many', 't_closeness', 'diagnosis', 0.12)",
			"false",
			[]int{1, 4},
			1,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, direct := ownStand(t, "parts_"+c.name)
			super := s.superuser(t)
			p := s.serve(t, "--part-rows", "1000")
			admin, conn := connect(t, p.dsn("dba")), connect(t, p.dsn(s.reader(t)))
			mustExec(t, admin, manyPeople+"; "+c.model+"; CALL tailor.activate('many')",
				pgx.QueryExecModeSimpleProtocol)
			assertShown := func(people, k int) {
				t.Helper()
				assertLabelsCover(t, conn, direct, people)
				for _, row := range rowsOf(t, conn, `SELECT column_name, sum(rows), min(subjects)
						FROM research.tailor_margins WHERE table_name = 'many' GROUP BY 1`) {
					f := strings.Split(row, "|")
					if int(figure(f[1])) != people || int(figure(f[2])) < k {
						t.Errorf("margins of %s count %s of %d people, %s in a cell", f[0], f[1], people, f[2])
					}
				}
				if n := one[int](t, super, fmt.Sprintf(`SELECT count(*) FROM (SELECT FROM %s
						GROUP BY "tailor block" HAVING count(*) < %d OR %s) b`, one[string](t, super, `SELECT
						'tailor_store.chain_' || chain || CASE WHEN edition > 0 THEN '_g' || edition ELSE '' END
							|| '_row' FROM tailor.chain WHERE relation = 'many'::regclass`), k, c.unsafe)); n > 0 {
					t.Errorf("%d blocks do not meet the policy", n)
				}
			}
			assertShown(9000, 5)
			n := one[int](t, conn,
				"SELECT count(DISTINCT part) FROM research.tailor_margins WHERE table_name = 'many'")
			if n < c.parts[0] || n > c.parts[1] {
				t.Errorf("%d parts, want %v", n, c.parts)
			}
			mustExec(t, direct, `INSERT INTO many SELECT 9000 + id, token + 100000, age, zip, born, sex,
				diagnosis FROM many WHERE id <= 600; CALL tailor.refresh('many')`,
				pgx.QueryExecModeSimpleProtocol)
			waitFor(t, func() bool { return one[int](t, conn, "SELECT count(*) FROM many") == 9600 })
			assertShown(9600, 5)
			mustExec(t, direct, `INSERT INTO many SELECT 20000 + id, token + 200000, age, zip, born, sex,
				diagnosis FROM many WHERE id <= 4000; CALL tailor.refresh('many')`,
				pgx.QueryExecModeSimpleProtocol)
			waitFor(t, func() bool { return one[int](t, conn, "SELECT count(*) FROM many") == 13600 })
			assertShown(13600, 5)
			if n := one[int](t, conn, `SELECT count(DISTINCT part) FROM research.tailor_margins
					WHERE table_name = 'many' AND cohort = (SELECT max(cohort)
						FROM research.tailor_margins)`); n < c.arrived {
				t.Errorf("those who came are in %d parts", n)
			}
			mustExec(t, direct, `CALL tailor.protect('many', subject => 'id', k => 12);
				CALL tailor.activate('many')`, pgx.QueryExecModeSimpleProtocol)
			waitFor(t, func() bool {
				return one[int](t, super, `SELECT min(min_block) FROM tailor.chain
					WHERE relation = 'many'::regclass`) >= 12
			})
			assertShown(13600, 12)
		})
	}
}

// assertLabelsCover holds each person's labels against the table.
func assertLabelsCover(t *testing.T, reader, direct *pgx.Conn, people int) {
	t.Helper()
	truth := make(map[string][]string)
	for _, row := range rowsOf(t, direct, "SELECT token, age, zip, born, sex FROM many") {
		f := strings.Split(row, "|")
		truth[f[0]] = f
	}
	rows := rowsOf(t, reader, `SELECT token, (tailor.bounds(age))[1], (tailor.bounds(age))[2],
		tailor.label(zip), (tailor.bounds(born))[1], (tailor.bounds(born))[2], tailor.label(sex)
		FROM many`)
	if len(rows) != people {
		t.Errorf("%d of %d people are shown", len(rows), people)
	}
	for _, row := range rows {
		f, is := strings.Split(row, "|"), truth[strings.Split(row, "|")[0]]
		switch {
		case is == nil:
			t.Fatalf("nobody has the token of %s", row)
		case figure(is[1]) < figure(f[1]) || figure(is[1]) > figure(f[2]),
			f[3] != "*" && (is[2] == "") != (f[3] == ""),
			!strings.HasPrefix(is[2], strings.TrimRight(f[3], "*")),
			is[3] < f[4] || is[3] > f[5], f[6] != is[4] && f[6] != "*":
			t.Fatalf("%s is shown of %v", row, is)
		}
	}
}

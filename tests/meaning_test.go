package tests

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// TestMeaningIsThatOfTheValues compares queries that must count the same rows,
// whatever the labels are.
func TestMeaningIsThatOfTheValues(t *testing.T) {
	p := shared.serve(t)
	conn := connect(t, p.dsn(shared.reader(t)))
	mustExec(t, conn, "SELECT age, zip, sex FROM patients")
	distinct := "SELECT count(DISTINCT age) FROM patients"
	cases := []struct{ claim, sql, same string }{
		{
			"DISTINCT in a subquery", "SELECT count(*) FROM (SELECT DISTINCT age FROM patients) x",
			distinct,
		},
		{
			"GROUP BY in a subquery", "SELECT count(*) FROM (SELECT age FROM patients GROUP BY age) x",
			distinct,
		},
		{
			"UNION in a subquery",
			"SELECT count(*) FROM (SELECT age FROM patients UNION SELECT age FROM patients) x", distinct,
		},
		{
			"INTERSECT in WITH",
			"WITH x AS (SELECT age FROM patients INTERSECT SELECT age FROM patients) SELECT count(*) FROM x",
			distinct,
		},
		{
			"a join with distinct values",
			"SELECT count(*) FROM patients p JOIN (SELECT DISTINCT age FROM patients) d ON d.age = p.age",
			"SELECT count(*) FROM patients",
		},
	}
	for _, c := range cases {
		t.Run(c.claim, func(t *testing.T) {
			if got, want := one[int](t, conn, c.sql), one[int](t, conn, c.same); got != want {
				t.Errorf("%d, want %d", got, want)
			}
		})
	}
}

// TestMeaningOfShownRows counts the rows that the client is shown.
func TestMeaningOfShownRows(t *testing.T) {
	p := shared.serve(t)
	conn := connect(t, p.dsn(shared.reader(t)))
	mustExec(t, conn, "SELECT age, zip, sex FROM patients")
	cases := []struct{ claim, sql, count string }{
		{
			"a subquery of distinct values", "SELECT x.age FROM (SELECT DISTINCT age FROM patients) x",
			"SELECT count(DISTINCT age) FROM patients",
		},
		{
			"a subquery of groups", "SELECT x.age FROM (SELECT age, count(*) FROM patients GROUP BY age) x",
			"SELECT count(DISTINCT age) FROM patients",
		},
		{
			"a join with distinct values", "SELECT p.age, d.age FROM patients p JOIN (SELECT DISTINCT age " +
				"FROM patients) d ON d.age = p.age",
			"SELECT count(*) FROM patients",
		},
		{
			"a left join",
			"SELECT zip, city FROM zip_city LEFT JOIN patients USING (zip) WHERE zip IS NOT NULL",
			"SELECT count(*) FROM zip_city LEFT JOIN patients ON patients.zip = zip_city.zip WHERE " +
				"zip_city.zip IS NOT NULL",
		},
		{
			"a full join", "SELECT zip FROM patients FULL JOIN zip_city USING (zip)",
			"SELECT count(*) FROM patients FULL JOIN zip_city ON patients.zip = zip_city.zip",
		},
		{
			"grouping by a row", "SELECT age, sex, count(*) FROM patients GROUP BY (age, sex)",
			"SELECT count(*) FROM (SELECT tailor.label(age), tailor.label(sex) FROM patients GROUP BY " +
				"1, 2) x",
		},
		{
			"a function's column", "SELECT id, age FROM patients, generate_series(1, 2) AS id",
			"SELECT 2 * count(*) FROM patients",
		},
		{
			"a comment between tokens", "SELECT patients./*c*/*, age AS /*c*/ from FROM patients",
			"SELECT count(*) FROM patients",
		},
		{
			"an alias inside like the one outside",
			"SELECT q.age FROM patients p, LATERAL (SELECT age FROM numbers p LIMIT 1) q",
			"SELECT count(*) FROM patients",
		},
	}
	for _, c := range cases {
		t.Run(c.claim, func(t *testing.T) {
			rows, err := conn.Query(t.Context(), c.sql, pgx.QueryExecModeSimpleProtocol)
			if err != nil {
				t.Fatal(err)
			}
			missing, n := 0, 0
			for rows.Next() {
				n++
				if rows.RawValues()[0] == nil {
					missing++
				}
			}
			if err := rows.Err(); err != nil {
				t.Fatal(err)
			}
			want := one[int](t, conn, c.count)
			if n != want {
				t.Errorf("%d rows, want %d", n, want)
			}
			if missing > 0 {
				t.Errorf("%d rows without the first column", missing)
			}
		})
	}
}

func TestMeaningThatCannotBeKeptIsRefused(t *testing.T) {
	p := shared.serve(t)
	conn := connect(t, p.dsn(shared.reader(t)))
	for claim, sql := range map[string]string{
		"SET before a query": "SET tailor.representation = 'value'; SELECT age FROM " +
			"patients",
		"ROLLBACK before a query": "ROLLBACK; SELECT age FROM patients",
		"set_config before a query": "SELECT set_config('search_path', 'other', false); SELECT " +
			"age FROM patients",
		"a star over two equal names":  "SELECT x.* FROM (SELECT age, age FROM patients) x",
		"a whole row beside a catalog": "SELECT p FROM patients p, pg_class c",
		"a name that is shadowed further": "SELECT (SELECT public.patients.age FROM zip_city patients " +
			"LIMIT 1) FROM patients",
	} {
		t.Run(claim, func(t *testing.T) {
			_, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
			var refusal *pgconn.PgError
			if !errors.As(err, &refusal) || refusal.Code != "0A000" || refusal.Hint == "" {
				t.Errorf("%v", err)
			}
		})
	}
}

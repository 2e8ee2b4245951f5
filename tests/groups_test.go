package tests

import (
	"fmt"
	"maps"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestGroupsAreThoseOfTheLabelsThatRowsShow counts the rows that the client is
// shown and compares the counts with those of the grouped query. In the demo
// nodes of age and of birth_date share values, and some races are NULL.
func TestGroupsAreThoseOfTheLabelsThatRowsShow(t *testing.T) {
	p := shared.serve(t)
	conn := connect(t, p.dsn(shared.reader(t)))
	exec1(t, conn, "SELECT birth_date, age, sex, race, zip FROM patients")
	shown := func(sql string) map[string]int64 {
		rows, err := conn.Query(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			t.Fatal(err)
		}
		out := make(map[string]int64)
		if _, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (struct{}, error) {
			values, err := row.Values()
			if err != nil {
				return struct{}{}, err
			}
			last := len(values) - 1
			out[fmt.Sprintf("%q", values[:last])] += values[last].(int64)
			return struct{}{}, nil
		}); err != nil {
			t.Fatal(err)
		}
		return out
	}
	if values, labels := one[int](t, conn, "SELECT count(DISTINCT age) FROM patients"), shown("SELECT age, 1::bigint FROM patients"); values >= len(labels) {
		t.Errorf("no two ages share a value: %d values, %d labels", values, len(labels))
	}
	cases := []struct{ claim, from, list, by string }{
		{"of a number", "patients", "age", "age"},
		{"of a date and a number", "patients", "birth_date, age", "1, 2"},
		{"of texts with NULL", "patients", "race, sex", "race, sex"},
		{"of everything, by other names", "patients AS p (born, years)", "p.born AS b, years AS y, sex, p.race, zip", "b, y, sex, p.race, 5"},
		{"of a row", "patients", "age, race", "(age, race)"},
		{"of a join that adds NULL", "zip_city c LEFT JOIN patients p ON p.zip = c.zip AND c.city < 'M'", "p.age, p.race, c.city", "p.age, p.race, c.city"},
		{"of a subquery", "(SELECT age, race FROM patients WHERE sex = 'female') x", "age, race", "age, race"},
	}
	for _, c := range cases {
		t.Run(c.claim, func(t *testing.T) {
			want := shown(fmt.Sprintf("SELECT %s, 1::bigint FROM %s", c.list, c.from))
			got := shown(fmt.Sprintf("SELECT %s, count(*) FROM %s GROUP BY %s ORDER BY 1", c.list, c.from, c.by))
			if !maps.Equal(got, want) {
				t.Errorf("%d groups of rows, %d of the query", len(want), len(got))
			}
		})
	}
}

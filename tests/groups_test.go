package tests

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestGroupsAreThoseOfTheLabelsThatRowsShow counts the rows that the client is
// shown and compares the counts with those of the grouped query. In the demo
// some races are NULL.
func TestGroupsAreThoseOfTheLabelsThatRowsShow(t *testing.T) {
	p := shared.serve(t)
	conn := connect(t, p.dsn(shared.reader(t)))
	mustExec(t, conn, "SELECT birth_date, age, sex, race, zip FROM patients")
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
	cases := []struct{ claim, from, list, by string }{
		{"of a number", "patients", "age", "age"},
		{"of a date and a number", "patients", "birth_date, age", "1, 2"},
		{"of texts with NULL", "patients", "race, sex", "race, sex"},
		{
			"of everything, by other names", "patients AS p (born, years)",
			"p.born AS b, years AS y, sex, p.race, zip", "b, y, sex, p.race, 5",
		},
		{"of a row", "patients", "age, race", "(age, race)"},
		{
			"of a join that adds NULL", "zip_city c LEFT JOIN patients p ON p.zip = c.zip AND c.city < 'M'",
			"p.age, p.race, c.city", "p.age, p.race, c.city",
		},
		{
			"of an arm of UNION ALL", "patients",
			"age, 1::bigint FROM patients WHERE false UNION ALL SELECT age", "age",
		},
	}
	for _, c := range cases {
		t.Run(c.claim, func(t *testing.T) {
			want := shown(fmt.Sprintf("SELECT %s, 1::bigint FROM %s", c.list, c.from))
			got := shown(fmt.Sprintf("SELECT %s, count(*) FROM %s GROUP BY %s", c.list, c.from, c.by))
			if !maps.Equal(got, want) {
				t.Errorf("%d groups of rows, %d of the query", len(want), len(got))
			}
		})
	}
}

// TestGroupsByNumberAreThoseByValue compares queries that mention a column by itself
// only, which are grouped by the number of its label, with ones that are the same but
// for a condition of HAVING that every group meets, which are not: row by row, in
// their order.
func TestGroupsByNumberAreThoseByValue(t *testing.T) {
	direct := makeDatabase(t, "kinds_grouped", "")
	if err := shared.install(t.Context(), "kinds_grouped"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, kinds)
	everyKind := connect(t, serveDatabase(t, "kinds_grouped").dsn("researcher"))
	type asked struct {
		conn                          *pgx.Conn
		shown, list, from, by, ending string
	}
	var cases []asked
	for _, column := range strings.Split(`long letters many whole "exact" wide real day p`, " ") {
		cases = append(
			cases,
			asked{everyKind, column, column + ", count(*), sum(pay)", "kinds", column, "ORDER BY " + column},
			asked{
				everyKind, "k." + column, column + " AS it, sum(pay)", "kinds k", "it",
				"ORDER BY k." + column + " DESC NULLS LAST",
			},
			asked{
				everyKind, "k." + column, "n, k." + column + ", sum(pay)",
				"generate_series(2390, 2410) n LEFT JOIN kinds k ON pay = n", "n, 2",
				"ORDER BY n, 2 NULLS FIRST",
			},
			asked{everyKind, column, "count(*), x." + column, "(SELECT " + column + ", pay FROM kinds " +
				"WHERE pay > 700) x", "2", "ORDER BY 2"},
		)
	}
	cases = append(
		cases,
		asked{
			everyKind, `whole, letters, "exact", p, many`, `whole, letters, "exact", p, many, count(*)`,
			"kinds", `1, 2, ("exact", p), many`, `ORDER BY whole, letters, "exact", p, many`,
		},
		asked{
			everyKind, "whole, long", "whole, long, count(*)", "kinds", "whole, long",
			"UNION SELECT whole, long, 1 FROM kinds GROUP BY 1, 2 ORDER BY whole, long, count",
		},
		asked{
			everyKind, "whole, day", "DISTINCT ON (kinds.whole) whole, day, sum(pay)", "kinds",
			"whole, day", "ORDER BY kinds.whole, sum(pay)",
		},
	)
	for _, c := range cases {
		sql := fmt.Sprintf("SELECT %s FROM %s GROUP BY %s ", c.list, c.from, c.by)
		t.Run(sql, func(t *testing.T) {
			byNumber, byValue := sql+c.ending, sql+"HAVING count(ROW("+c.shown+")) > 0 "+c.ending
			got, want := rowsOf(t, c.conn, byNumber), rowsOf(t, c.conn, byValue)
			if len(want) < 2 || !slices.Equal(got, want) {
				t.Errorf("%s\n%d groups, by value %d; the first other than it is to be: %s", c.ending, len(got),
					len(want), firstOther(got, want))
			}
		})
	}
}

// TestGroupsByNumberAreThoseByLabel compares queries that are grouped by numbers with
// ones that ask for labels themselves.
func TestGroupsByNumberAreThoseByLabel(t *testing.T) {
	conn := connect(t, shared.serve(t).dsn(shared.reader(t)))
	for _, c := range []struct{ numbers, labels string }{
		{
			"SELECT age, count(*), sum(cost) FROM patients GROUP BY age ORDER BY age",
			"SELECT tailor.label(age), count(*), sum(cost) FROM patients GROUP BY 1",
		},
		{
			"SELECT age, birth_date, race, zip, sex, count(*), sum(cost) FROM patients GROUP BY 1, 2, " +
				"race, zip, sex ORDER BY age, birth_date DESC",
			"SELECT tailor.label(age), tailor.label(birth_date), tailor.label(race), tailor.label(zip), " +
				"tailor.label(sex), count(*), sum(cost) FROM patients GROUP BY 1, 2, 3, 4, 5",
		},
		{
			"SELECT c.city, p.race, p.zip, count(*) FROM zip_city c LEFT JOIN patients p ON p.zip = c.zip " +
				"AND c.city < 'M' GROUP BY 1, 2, 3",
			"SELECT c.city, tailor.label(p.race), tailor.label(p.zip), count(*) FROM zip_city c LEFT JOIN " +
				"patients p ON p.zip = c.zip AND c.city < 'M' GROUP BY 1, 2, 3",
		},
		{
			"SELECT DISTINCT age, p.sex FROM patients p ORDER BY p.sex, age",
			"SELECT tailor.label(age), tailor.label(sex) FROM patients GROUP BY 1, 2",
		},
		{
			"SELECT * FROM (SELECT age, n FROM (SELECT tailor.label(zip) AS age, count(*) AS n FROM " +
				"patients GROUP BY 1) q) x",
			"SELECT zip, count(*) FROM patients GROUP BY zip",
		},
	} {
		got, want := rowsOf(t, conn, c.numbers), rowsOf(t, conn, c.labels)
		slices.Sort(got)
		slices.Sort(want)
		if len(want) < 2 || !slices.Equal(got, want) {
			t.Errorf("%s\n%d groups, by label %d; %s", c.numbers, len(got), len(want), firstOther(got, want))
		}
	}
	// Where rows have been merged by value, or a column is computed with, values are shown.
	for _, sql := range []string{
		"SELECT age, n FROM (SELECT age, count(*) AS n FROM patients GROUP BY age) q",
		"SELECT age FROM patients UNION SELECT 3",
		"SELECT age, avg(age) FROM patients GROUP BY age",
		"SELECT age, count(*) FROM patients GROUP BY age HAVING age > 30",
		"SELECT age, count(*) FROM patients GROUP BY ROLLUP (age)",
	} {
		rows, err := conn.Query(t.Context(), sql)
		if err != nil {
			t.Fatal(err)
		}
		if rows.FieldDescriptions()[0].DataTypeOID != 23 {
			t.Errorf("%s: age is no number", sql)
		}
		rows.Close()
	}
}

// TestGroupsByAParentsColumnShowLabels groups joins along the key at a terminal: by the
// labels that the rows of the join show, in the order of values.
func TestGroupsByAParentsColumnShowLabels(t *testing.T) {
	p := shared.serve(t)
	conn := connect(t, p.dsn(shared.reader(t)))
	for _, join := range []string{
		"FROM patients p JOIN visits v ON v.patient_id = p.id",
		"FROM patients p JOIN diagnoses d ON d.patient_id = p.id",
	} {
		for _, column := range []string{"age", "sex", "zip"} {
			rows := make(map[string]int)
			for _, label := range rowsOf(t, conn, "SELECT p."+column+" "+join) {
				rows[label]++
			}
			for _, sql := range []string{
				"SELECT p.%[1]s, count(*) %[2]s GROUP BY p.%[1]s ORDER BY p.%[1]s",
				"SELECT %[1]s, count(*) %[2]s GROUP BY 1 ORDER BY 1 DESC",
				"SELECT p.%[1]s AS x, count(*) %[2]s GROUP BY x ORDER BY count(*), x",
			} {
				groups := rowsOf(t, conn, fmt.Sprintf(sql, column, join))
				if len(groups) != len(rows) {
					t.Errorf(sql+": %d groups, the rows have %d labels", column, join, len(groups), len(rows))
				}
				for _, group := range groups {
					label, n, _ := strings.Cut(group, "|")
					if int(figure(n)) != rows[label] {
						t.Errorf(sql+": %s rows of %q, there are %d", column, join, n, label, rows[label])
					}
				}
			}
		}
		// What computes with the column, or merges rows otherwise, is by values.
		for _, sql := range []string{
			"SELECT DISTINCT p.age %s", "SELECT p.age, p.age + 1, count(*) %s GROUP BY p.age",
			"SELECT q.age FROM (SELECT p.age, count(*) %s GROUP BY p.age) q",
			"SELECT p.sex, count(*) %s GROUP BY ROLLUP (p.sex)",
			"SELECT p.age, count(*) %s GROUP BY p.age HAVING p.age > 40",
		} {
			for _, row := range rowsOf(t, conn, fmt.Sprintf(sql, join)) {
				if value, _, _ := strings.Cut(row, "|"); strings.ContainsAny(value, "-*") {
					t.Errorf(sql+": a label %s", join, value)
					break
				}
			}
		}
	}
	ages := rowsOf(t, conn, "SELECT p.age, count(*) FROM patients p JOIN visits v ON v.patient_id = "+
		"p.id GROUP BY p.age ORDER BY p.age")
	coarse := 0
	for _, row := range ages {
		if strings.ContainsAny(row, "-*") {
			coarse++
		}
	}
	if coarse == 0 || coarse == len(ages) {
		t.Errorf("%d of %d labels are ranges", coarse, len(ages))
	}
}

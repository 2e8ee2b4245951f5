package fidelity_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/hiatus-tailor/tailor/internal/fidelity"
)

// answer reads rows written as words; NULL is NULL. A column is written NAME:TYPE.
func answer(columns string, rows ...string) *fidelity.Answer {
	types := map[string]uint32{
		"text": pgtype.TextOID, "int": pgtype.Int4OID, "count": pgtype.Int8OID,
		"numeric": pgtype.NumericOID, "date": pgtype.DateOID,
	}
	a := &fidelity.Answer{}
	for _, c := range strings.Fields(columns) {
		name, kind, _ := strings.Cut(c, ":")
		a.Columns = append(a.Columns, fidelity.Column{Name: name, Type: types[kind]})
	}
	for _, row := range rows {
		var cells [][]byte
		for _, v := range strings.Fields(row) {
			if v == "NULL" {
				cells = append(cells, nil)
				continue
			}
			cells = append(cells, []byte(v))
		}
		a.Rows = append(a.Rows, cells)
	}
	return a
}

func statement(t *testing.T, sql string) *fidelity.Statement {
	t.Helper()
	s, err := fidelity.ReadStatement(sql, isAggregate)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func isAggregate(name string) bool {
	return slices.Contains([]string{"count", "sum", "avg", "min", "max"}, name)
}

func TestRowsAreMatchedByTheirKeysInAnyOrder(t *testing.T) {
	s := statement(
		t,
		"SELECT sex, age, count(*) AS people, avg(cost) AS cost FROM t GROUP BY sex, age",
	)
	columns := "sex:text age:int people:count cost:numeric"
	c, err := fidelity.Compare(
		answer(columns, "f 30 100 10.0", "m 30 200 20", "NULL 30 10 5", "m 40 60 7", "m 41 4 7"),
		answer(columns, "m 30 220 20.000", "NULL 30 20 5", "f 30 100 11", "f 31 9 3", "f 32 90 3"), s, 50)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.Keys, []string{"sex", "age"}) ||
		!slices.Equal(c.Measures, []string{"people", "cost"}) ||
		c.People != "people" {
		t.Errorf("keys %q, measures %q, people %q", c.Keys, c.Measures, c.People)
	}
	want := fidelity.Groups{True: 5, Matched: 3, Missing: 2, Extra: 2, MissingSmall: 1, ExtraSmall: 1}
	if c.Groups != want {
		t.Errorf("groups %+v, want %+v", c.Groups, want)
	}
	// Errors of 0, 0.1 (cost), 0.1 (people), 0; the small group has 1 and 0.
	if l := c.Large; l.Cells != 4 || !near(*l.Median, 0.05) || !near(*l.P90, 0.1) ||
		!near(*l.Max, 0.1) ||
		!near(*l.Mean, 0.05) {
		t.Errorf("large cells %+v", l)
	}
	if s := c.Small; s.Cells != 2 || !near(*s.Max, 1) || !near(*s.Median, 0.5) {
		t.Errorf("small cells %+v", s)
	}
	if w := c.Small.Worst; len(w) != 1 || !slices.Equal(w[0].Group, []string{"NULL", "30"}) ||
		w[0].True != 10 ||
		w[0].Release != 20 ||
		w[0].Measure != "people" {
		t.Errorf("worst small cells %+v", w)
	}
}

func TestWhatIsNoNumberIsCountedApart(t *testing.T) {
	s := statement(
		t,
		"SELECT sex, min(born), avg(cost), count(*) FILTER (WHERE age > 90) FROM t GROUP BY sex",
	)
	columns := "sex:text min:date avg:numeric count:count"
	c, err := fidelity.Compare(
		answer(columns, "f 1990-01-01 NULL 0", "m 1980-01-01 4 0", "x NULL NULL 8"),
		answer(columns, "f 1990-01-01 3 0", "m 1985-01-01 NaN 2", "x NULL NULL 4"), s, 50)
	if err != nil {
		t.Fatal(err)
	}
	// A filtered count counts no group's people: every cell is large.
	if l := c.Large; c.People != "" || l.Other != 2 || l.Differing != 1 || l.Undefined != 3 ||
		l.Cells != 2 ||
		*l.Max != 0.5 ||
		c.Small.Cells != 0 {
		t.Errorf("people %q, large cells %+v", c.People, l)
	}
}

func TestColumnsAreKeysOrMeasures(t *testing.T) {
	for _, c := range []struct{ claim, sql, keys, measures, people string }{
		{"group by position", "SELECT zip, count(*) FROM t GROUP BY 1", "a", "b", "b"},
		{
			"an expression over aggregates",
			"SELECT age / 10, 100.0 * sum(x) / count(*) FROM t GROUP BY 1",
			"a", "b", "",
		},
		{"a cast of a count", "SELECT count(*)::int, sex FROM t GROUP BY sex", "b", "a", "a"},
		{"people before rows", "SELECT count(*), count(DISTINCT id) FROM t", "", "a b", "b"},
		{"people before rows that follow", "SELECT count(DISTINCT id), count(*) FROM t", "", "a b", "a"},
		{"a window function", "SELECT sex, rank() OVER (ORDER BY sex) FROM t", "a", "b", ""},
		{
			"a subquery in FROM",
			"SELECT s.sex, n FROM (SELECT sex, count(*) AS n FROM t GROUP BY sex) s",
			"a", "b", "b",
		},
		{
			"* of WITH",
			"WITH g (u, v) AS (SELECT sex, count(*) FROM t GROUP BY sex) SELECT * FROM g",
			"a", "b", "b",
		},
		{
			"a share of a total",
			"WITH g AS (SELECT sex, sum(x) AS n FROM t GROUP BY sex) " +
				"SELECT sex, n / (SELECT sum(n) FROM g) FROM g",
			"a", "b", "",
		},
		{
			"UNION",
			"SELECT 'all', count(*) FROM t UNION ALL SELECT sex, count(*) FROM t GROUP BY sex",
			"a", "b", "b",
		},
		{"one arm of UNION", "SELECT sex, 0 FROM t UNION SELECT 'x', count(*) FROM t", "a", "b", ""},
		{"distinct numbers", "SELECT DISTINCT age, zip FROM t", "a b", "", ""},
		{"grouped without an aggregate", "SELECT age, zip FROM t GROUP BY age, zip", "a b", "", ""},
		{"a list: numbers are measures", "SELECT id, x FROM t", "", "a b", ""},
		{
			"a join with USING hides what * is",
			"SELECT * FROM (SELECT sex, count(*) FROM t GROUP BY sex) x JOIN u USING (sex)",
			"", "a b", "",
		},
	} {
		t.Run(c.claim, func(t *testing.T) {
			one := answer("a:int b:int", "1 1")
			got, err := fidelity.Compare(one, one, statement(t, c.sql), 50)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Join(got.Keys, " ") != c.keys || strings.Join(got.Measures, " ") != c.measures ||
				got.People != c.people {
				t.Errorf("keys %q, measures %q, people %q", got.Keys, got.Measures, got.People)
			}
		})
	}
}

func TestRowsThatNothingTellsApartAreNotCompared(t *testing.T) {
	list := statement(t, "SELECT sex, cost FROM t")
	twice := answer("sex:text cost:numeric", "f 1", "f 2")
	once := answer("sex:text cost:numeric", "f 1")
	for claim, answers := range map[string][2]*fidelity.Answer{
		"of the table": {twice, once}, "of the release": {once, twice},
		"other columns": {once, answer("sex:text", "f")},
	} {
		if _, err := fidelity.Compare(answers[0], answers[1], list, 50); !errors.Is(
			err,
			fidelity.ErrNotComparable,
		) {
			t.Errorf("%s: %v", claim, err)
		}
	}
	// Without measures an answer is a set.
	c, err := fidelity.Compare(
		answer("sex:text", "f", "f", "m"),
		answer("sex:text", "f"),
		statement(t, "SELECT sex FROM t"),
		50,
	)
	if err != nil || c.Groups.True != 2 || c.Groups.Matched != 1 || c.Groups.Missing != 1 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestKeysAreTheSameWhereTheirValuesAre(t *testing.T) {
	s := statement(t, "SELECT rate, name, count(*) FROM t GROUP BY rate, name")
	columns := "rate:numeric name:text n:count"
	c, err := fidelity.Compare(
		answer(columns, "2.50 1.0 1", "10 1;2 1"),
		answer(columns, "2.5 1.0 1", "10.00 1;2 1", "10 1 1"),
		s,
		1,
	)
	if err != nil || c.Groups.Matched != 2 || c.Groups.Extra != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	// Cells that run into each other, and NULL beside its name.
	s = statement(t, "SELECT a, b, count(*) FROM t GROUP BY a, b")
	columns = "a:text b:text n:count"
	c, err = fidelity.Compare(
		answer(columns, "x; y 1", "NULL z 1"),
		answer(columns, "x ;y 1", "-; z 1"),
		s,
		1,
	)
	if err != nil || c.Groups.Matched != 0 {
		t.Errorf("%+v, %v", c, err)
	}
}

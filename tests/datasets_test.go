package tests

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// staysOf is a data set of the ward's people: how often each was there, and whether again soon.
const staysOf = `CALL tailor.define_dataset('public.stays_of', $$
	SELECT p.id, p.age, p.zip, count(s.day) AS stays, coalesce(bool_or(s.soon), false) AS again
	FROM public.people p LEFT JOIN (
		SELECT person, day, day - lag(day) OVER (PARTITION BY person ORDER BY day) <= 30 AS soon FROM public.stays) s ON s.person = p.id
	GROUP BY p.id $$, subject => 'id', k => 5);
CALL tailor.classify('stays_of', 'id', 'direct_identifier');
CALL tailor.classify('stays_of', 'age', 'quasi_identifier', hierarchy => 'age');
CALL tailor.classify('stays_of', 'zip', 'quasi_identifier', hierarchy => 'zip');
CALL tailor.classify('stays_of', 'stays', 'non_sensitive');
CALL tailor.classify('stays_of', 'again', 'sensitive');
CALL tailor.activate('stays_of');`

// datasetWard is the ward with stays of its people, of whom the older have more.
func datasetWard(t *testing.T, name string) (direct *pgx.Conn, p *proxied) {
	t.Helper()
	direct, p = wardOf(t, name, "")
	exec1(t, direct, `CREATE TABLE stays (person int NOT NULL REFERENCES people, day date NOT NULL);
		INSERT INTO stays SELECT p.id, date '2025-01-01' + (p.id * 7919 + n * 104729) % 365 FROM people p, generate_series(1, 8) n
			WHERE n * 12 <= coalesce(p.age, 0) + p.id * 31 % 20;`)
	return direct, p
}

// TestDataSetsAnswerAcrossTables asks what no release of a single table tells: of each
// person something that is computed from rows of another table.
func TestDataSetsAnswerAcrossTables(t *testing.T) {
	direct, p := datasetWard(t, "datasets")
	exec1(t, direct, staysOf)
	conn := connect(t, p.program("researcher"))
	answeredSoon(t, conn, "SELECT FROM stays_of LIMIT 0")
	for _, sql := range []string{
		"SELECT count(*) FROM stays_of",
		"SELECT count(*) FROM stays_of WHERE again",
		"SELECT stays, count(*) FROM stays_of GROUP BY 1",
		"SELECT age / 20, sum(stays)::bigint FROM stays_of WHERE age IS NOT NULL GROUP BY 1",
		"SELECT age / 20, count(*) FROM stays_of WHERE again AND age IS NOT NULL GROUP BY 1",
	} {
		truth := numbersBy(t, direct, sql)
		for key, n := range numbersBy(t, conn, sql) {
			if off := math.Abs(n - truth[key]); off > max(10, 0.1*truth[key]) {
				t.Errorf("%s\n%s: %g, in truth %g", sql, key, n, truth[key])
			}
		}
	}
	for sql, code := range map[string]string{
		"SELECT id FROM stays_of":                                         "42501",
		"SELECT * FROM stays_of s JOIN people p ON p.age = s.age":         "0A000",
		"SELECT * FROM public.stays":                                      "42501",
		"REFRESH MATERIALIZED VIEW stays_of":                              "42501",
		"SELECT count(*) FROM pg_catalog.pg_class c, stays_of s, stays x": "42501",
	} {
		if _, err := conn.Exec(t.Context(), sql); codeIn(err) != code {
			t.Errorf("%s: %v, want %s", sql, err, code)
		}
	}
}

// TestDataSetsAreFilledWhenTheyAreCopied: a copy of a data set has what its tables have
// then, by hand and by schedule, and whoever is erased from these is gone from it.
func TestDataSetsAreFilledWhenTheyAreCopied(t *testing.T) {
	direct, p := datasetWard(t, "datasets_filled")
	exec1(t, direct, staysOf)
	conn := connect(t, p.program("researcher"))
	answeredSoon(t, conn, "SELECT FROM stays_of LIMIT 0")
	count := func() int64 { return answered(t, conn, "SELECT count(*) FROM stays_of")[0][0].(int64) }
	if n := count(); n != 3000 {
		t.Fatalf("%d people", n)
	}
	arrive := func(from int) {
		exec1(t, direct, fmt.Sprintf(`INSERT INTO people SELECT id + %d, age, zip, born, weight, member, diagnosis FROM people WHERE id <= 600`, from))
	}
	arrive(10_000)
	exec1(t, direct, `CALL tailor.refresh('stays_of')`)
	waitFor(t, func() bool { return count() == 3600 })
	arrive(20_000)
	scheduled := connect(t, shared.cluster.ServiceDSN("datasets_filled"))
	exec1(t, direct, `CALL tailor.schedule('stays_of', '1 hour'); UPDATE tailor.schedule SET due = now() - interval '1 minute'`)
	exec1(t, scheduled, `CALL tailor.refresh_scheduled('public.stays_of')`)
	waitFor(t, func() bool { return count() == 4200 })

	exec1(t, direct, `CALL tailor.erase('people', '7')`)
	if erased := one[string](t, direct, `SELECT string_agg(DISTINCT relation::text, ' ' ORDER BY relation::text) FROM tailor.erasures`); !strings.Contains(erased, "stays_of") {
		t.Errorf("erased from %q", erased)
	}
	waitFor(t, func() bool { return count() < 4200 })
	exec1(t, direct, `DELETE FROM stays WHERE person = 7; DELETE FROM people WHERE id = 7; CALL tailor.refresh('stays_of')`)
}

// TestDataSetsShowNothingTwice refuses data sets by which their release and that of the
// table could be put together, and takes those of several rows a person.
func TestDataSetsShowNothingTwice(t *testing.T) {
	direct, p := datasetWard(t, "datasets_facts")
	define := func(name, query, more string) error {
		_, err := direct.Exec(t.Context(), fmt.Sprintf(`CALL tailor.define_dataset('public.%s', $$%s$$, subject => 'id', k => 5)`, name, query))
		if err != nil {
			return err
		}
		_, err = direct.Exec(t.Context(), strings.ReplaceAll(more+` CALL tailor.activate('$')`, "$", name))
		return err
	}
	const age = `CALL tailor.classify('$', 'age', 'quasi_identifier', hierarchy => 'age');`
	for _, c := range []struct{ name, query, policy, code, names string }{
		{"no_subject", `SELECT age FROM people`, age, "42703", "id"},
		{"same_fact", `SELECT id, age, 'x' || diagnosis AS label FROM people`, age + `CALL tailor.classify('$', 'label', 'sensitive');`, "0A000", "label"},
		{"some_people", `SELECT id, age FROM people WHERE diagnosis = 'd1'`, age, "0A000", "who is in"},
		{"an_age", `SELECT id, zip, age AS years FROM people`, `CALL tailor.classify('$', 'years', 'non_sensitive');`, "0A000", "years"},
		{"rows", `SELECT p.id, p.age, s.day FROM people p JOIN stays s ON s.person = p.id WHERE p.id % 2 = 0`, age + `CALL tailor.classify('$', 'day', 'quasi_identifier', hierarchy => 'day');`, "", ""},
		{"anybody", `SELECT id, age, id * 7919 % 11 AS lot FROM people WHERE id % 3 > 0`, age + `CALL tailor.classify('$', 'lot', 'non_sensitive');`, "", ""},
	} {
		err := define(c.name, c.query, c.policy)
		if c.code == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, errorText(err))
				continue
			}
			answeredSoon(t, connect(t, p.dsn("researcher")), "SELECT age, count(*) FROM "+c.name+" GROUP BY 1")
			continue
		}
		assertState(t, err, c.code, c.names)
	}
}

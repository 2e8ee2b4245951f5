package tests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// reviewed makes a table of people with ages and costs that tell their rows, under a policy with
// k = 5, which a proxy serves.
func reviewed(t *testing.T, name, columns, rows, more string) (direct, reader *pgx.Conn) {
	t.Helper()
	direct = makeDatabase(t, name, fmt.Sprintf(
		`CREATE TABLE people (id int PRIMARY KEY, age int, cost int, %s); INSERT INTO people %s`, columns,
		rows))
	if err := shared.install(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, `CALL tailor.define_hierarchy('age', 'interval', '{"widths": [5, 10, 20],
			"lower": 0, "upper": 119}');
		CALL tailor.protect('people', subject => 'id', k => 5);
		CALL tailor.classify('people', 'age', 'quasi_identifier', hierarchy => 'age');
		CALL tailor.classify('people', 'cost', 'non_sensitive');`+more+`CALL tailor.activate('people')`)
	reader = connect(t, serveDatabase(t, name).dsn("researcher"))
	answeredSoon(t, reader, "SELECT age, cost FROM people")
	return direct, reader
}

// TestWhatIsNewMeetsItsModelInWhatWasShown: a column comes with a model that blocks fail as they
// have been shown, though they meet it once they have joined. By the labels of before it tells
// nobody's value, be it a column of the table or of a data set, and with blind cuts.
func TestWhatIsNewMeetsItsModelInWhatWasShown(t *testing.T) {
	const column = `CALL tailor.classify('people', 'hiv', 'sensitive');
		CALL tailor.require('people', 'l_diversity', 'hiv', 2); CALL tailor.activate('people')`
	for name, more := range map[string]struct{ policy, asks, of string }{
		"column": {column, "SELECT cost, hiv FROM people", ""},
		"blind":  {column, "SELECT cost, hiv FROM people", "CALL tailor.cuts('people', 'blind');"},
		"dataset": {
			`CALL tailor.define_dataset('people_hiv', 'SELECT id, age, hiv FROM people',
				subject => 'id'); CALL tailor.classify('people_hiv', 'id', 'direct_identifier');
			CALL tailor.classify('people_hiv', 'age', 'quasi_identifier', hierarchy => 'age');
			CALL tailor.classify('people_hiv', 'hiv', 'sensitive');
			CALL tailor.require('people_hiv', 'l_diversity', 'hiv', 2); CALL tailor.activate('people_hiv')`,
			"SELECT cost, hiv FROM people JOIN people_hiv USING (id)", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			// Of people from 20 to 29 all have it; of those from 60 to 79 one in two; else nobody.
			direct, reader := reviewed(t, "reviewed_"+name, "hiv text", `SELECT i, i % 100, 10000 + i * 7,
				CASE WHEN i % 100 BETWEEN 20 AND 29 OR i % 100 BETWEEN 60 AND 79 AND i % 2 = 0 THEN 'pos'
					ELSE 'neg' END FROM generate_series(0, 399) i`, more.of)
			labels := make(map[string]string)
			for _, row := range rowsOf(t, reader, "SELECT cost, tailor.label(age) FROM people") {
				cost, label, _ := strings.Cut(row, "|")
				labels[cost] = label
			}
			mustExec(t, direct, more.policy)
			waitFor(t, func() bool {
				_, err := reader.Exec(t.Context(), more.asks)
				return err == nil
			})
			values, shown := make(map[string]map[string]bool), 0
			for _, row := range rowsOf(t, reader, more.asks) {
				cost, value, _ := strings.Cut(row, "|")
				if values[labels[cost]] == nil {
					values[labels[cost]] = make(map[string]bool)
				}
				values[labels[cost]][value] = true
				if value == "pos" || value == "neg" {
					shown++
				}
			}
			for label, of := range values {
				if len(of) == 1 && (of["pos"] || of["neg"]) {
					t.Errorf("all of %s are shown with %v", label, of)
				}
			}
			if shown < 40 {
				t.Errorf("%d values are shown: the test proves little", shown)
			}
		})
	}
}

// TestChangesAtOnceSetNobodyApartWhoLeaves: it is known that one person has left, whose row waits.
func TestChangesAtOnceSetNobodyApartWhoLeaves(t *testing.T) {
	for name, what := range map[string]struct{ changes, then, asks string }{
		"column": {
			"", `CALL tailor.classify('people', 'extra', 'sensitive'); CALL tailor.activate('people')`,
			"extra",
		},
		"update": {"UPDATE people SET tariff = 2026;", `CALL tailor.refresh('people')`, "tariff"},
	} {
		t.Run(name, func(t *testing.T) {
			direct, reader := reviewed(t, "leaver_"+name, "tariff int, extra text",
				`SELECT i, i % 100, 10000 + i * 7, 2025, 'x' || i % 4 FROM generate_series(0, 199) i`,
				`CALL tailor.changes('people', 'at_once');
				CALL tailor.classify('people', 'tariff', 'non_sensitive');`)
			mustExec(t, direct, `DELETE FROM people WHERE id = 21; CALL tailor.refresh('people')`)
			waitFor(t, func() bool {
				return one[bool](t, direct, `SELECT departures = 1 FROM tailor.epochs`)
			})
			mustExec(t, direct, what.changes+what.then)
			waitFor(t, func() bool {
				var n int
				err := reader.QueryRow(t.Context(), fmt.Sprintf(`SELECT count(*) FROM people
					WHERE coalesce(%s::text, '2025') <> '2025'`, what.asks)).Scan(&n)
				return err == nil && n > 150
			})
			for _, row := range rowsOf(t, reader, fmt.Sprintf(`SELECT tailor.label(age), %s, count(*) FROM
				people GROUP BY 1, 2 HAVING count(*) < 5`, what.asks)) {
				if f := strings.Split(row, "|"); f[1] == "" || f[1] == "2025" {
					t.Errorf("rows that are left of a block: %s", row)
				}
			}
		})
	}
}

// TestOtherKeysOfEverybodyAreNoOtherPeople: all get new numbers, in one copy, or leave and come
// back with others, or are told apart by another column.
func TestOtherKeysOfEverybodyAreNoOtherPeople(t *testing.T) {
	const renumbered = `UPDATE people SET id = id + 1000000;
		INSERT INTO people SELECT i, i % 80, 1000 + i, i FROM generate_series(5000, 5119) i;`
	for name, steps := range map[string][]string{
		"renumbered": {renumbered + `CALL tailor.refresh('people')`},
		"left": {
			`CREATE TABLE kept AS SELECT * FROM people; DELETE FROM people; CALL tailor.refresh('people')`,
			`INSERT INTO people SELECT * FROM kept;` + renumbered + `CALL tailor.refresh('people')`,
		},
		"subject": {`CALL tailor.protect('people', subject => 'number', k => 5);
			CALL tailor.activate('people')`},
	} {
		t.Run(name, func(t *testing.T) {
			direct, reader := reviewed(t, "keys_"+name, "number int UNIQUE NOT NULL",
				`SELECT i, abs(hashint4(i)) % 80, 1000 + i, 70000 + i FROM generate_series(0, 399) i`,
				`CALL tailor.classify('people', 'number', 'direct_identifier');`)
			for i, step := range steps {
				mustExec(t, direct, step)
				if i < len(steps)-1 {
					waitFor(t, func() bool { // who leaves all at once has gone
						return one[bool](t, direct, `SELECT rows = 0 FROM tailor.chain`)
					})
				}
			}
			waitFor(t, func() bool {
				return one[bool](t, direct, `SELECT EXISTS (SELECT FROM tailor.failures
					WHERE reason ~ 'by other keys|the subject of table')`)
			})
			_ = reader
		})
	}
}

// TestErasedFromATableAreNotShownByItsChildren that are protected later, with codes or without.
func TestErasedFromATableAreNotShownByItsChildren(t *testing.T) {
	direct, reader := reviewed(t, "erased_before", "name text",
		`SELECT i, i % 100, 10000 + i, 'p' || i FROM generate_series(0, 199) i`, "")
	mustExec(t, direct, `
		CREATE TABLE visits (id int PRIMARY KEY, person int REFERENCES people, ward text);
		INSERT INTO visits SELECT i, i % 200, 'w' || i % 200 FROM generate_series(0, 399) i;
		CREATE TABLE codes (person int REFERENCES people, code text);
		INSERT INTO codes SELECT i % 200, 'c' || i % 20 FROM generate_series(0, 399) i;
		INSERT INTO codes VALUES (42, 'only');
		CALL tailor.erase('people', '42'); CALL tailor.refresh('people');
		CALL tailor.protect('visits', subject => 'person', k => 5);
		CALL tailor.classify('visits', 'ward', 'sensitive'); CALL tailor.activate('visits');
		CALL tailor.protect('codes', subject => 'person', k => 5);
		CALL tailor.set_valued('codes', 'code', m => 2); CALL tailor.activate('codes')`)
	answeredSoon(t, reader, "SELECT ward FROM visits")
	answeredSoon(t, reader, "SELECT code FROM codes")
	for _, sql := range []string{
		"SELECT count(*) FROM visits WHERE ward = 'w42'",
		"SELECT count(*) FROM codes WHERE code = 'only'",
	} {
		if n := one[int](t, reader, sql); n > 0 {
			t.Errorf("%s: %d", sql, n)
		}
	}
}

// TestEraseAtOnceAsksModelsOfClasses that earlier labels tell: of one in which the others have one
// value nothing stays.
func TestEraseAtOnceAsksModelsOfClasses(t *testing.T) {
	direct, reader := reviewed(t, "erased_class", "hiv text, ward text",
		`SELECT i, i % 100, 10000 + i * 7, CASE WHEN i % 5 = 0 AND i < 100 THEN 'pos' ELSE 'neg' END,
			'w' || i % 100 / 5 % 2 FROM generate_series(0, 199) i`,
		`CALL tailor.classify('people', 'hiv', 'sensitive');
		CALL tailor.require('people', 'l_diversity', 'hiv', 2);
		CALL tailor.classify('people', 'ward', 'non_sensitive');`)
	before := make(map[string]string)
	for _, row := range rowsOf(t, reader, "SELECT cost, tailor.label(age) FROM people") {
		cost, label, _ := strings.Cut(row, "|")
		before[cost] = label
	}
	mustExec(t, direct, `CALL tailor.require('people', 'l_diversity', 'ward', 2);
		CALL tailor.activate('people')`)
	waitFor(t, func() bool {
		return one[bool](t, direct, `SELECT version = 2 FROM tailor.chain`)
	})
	mustExec(t, direct, `CALL tailor.erase('people', '20', 'at_once')`)
	values := make(map[string]map[string]bool)
	for _, row := range rowsOf(t, reader, "SELECT cost, hiv FROM people") {
		cost, value, _ := strings.Cut(row, "|")
		if values[before[cost]] == nil {
			values[before[cost]] = make(map[string]bool)
		}
		values[before[cost]][value] = true
	}
	for label, of := range values {
		if len(of) < 2 {
			t.Errorf("all of %s are %v", label, of)
		}
	}
}

// TestAFactThatARefreshBringsIsLookedFor: a column is empty when it is activated, and is filled
// with what another table shows of the same people.
func TestAFactThatARefreshBringsIsLookedFor(t *testing.T) {
	direct, reader := reviewed(t, "facts_late", "bill int",
		`SELECT i, abs(hashint4(i)) % 100, NULL, NULL FROM generate_series(0, 399) i`,
		`CALL tailor.classify('people', 'bill', 'non_sensitive');`)
	mustExec(t, direct, `
		CREATE TABLE bills (id int PRIMARY KEY, person int NOT NULL REFERENCES people, amount int);
		INSERT INTO bills SELECT i, i, 5000 + i * 3 FROM generate_series(0, 399) i;
		CALL tailor.protect('bills', subject => 'person', k => 5);
		CALL tailor.classify('bills', 'amount', 'non_sensitive'); CALL tailor.activate('bills')`)
	answeredSoon(t, reader, "SELECT amount FROM bills")
	mustExec(t, direct, `UPDATE people SET bill = (SELECT amount FROM bills
		WHERE person = people.id)`)
	refusedWith(t, direct, "0A000", `CALL tailor.refresh('people')`)
	mustExec(t, direct, `CALL tailor.shared_fact('people', 'bill', 'accepted');
		CALL tailor.activate('people')`)
}

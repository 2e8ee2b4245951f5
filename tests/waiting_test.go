package tests

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestOwnersSeeWhoWaits: how many wait, since when, and for what, in tailor.epochs; and an
// erasure counts them anew.
func TestOwnersSeeWhoWaits(t *testing.T) {
	direct := makeDatabase(t, "who_waits", `
		CREATE TABLE people (id int PRIMARY KEY, age int NOT NULL, ward text NOT NULL);
		INSERT INTO people SELECT g, g * 7 % 90, 'w' || g % 4 FROM generate_series(1, 400) g`)
	if err := shared.install(t.Context(), "who_waits"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, `CALL tailor.define_hierarchy('age', 'interval', '{"widths": [10, 20, 40],
		"lower": 0, "upper": 119}');
		CALL tailor.protect('people', subject => 'id', k => 5);
			CALL tailor.classify('people', 'id', 'direct_identifier');
		CALL tailor.classify('people', 'age', 'quasi_identifier', hierarchy => 'age');
			CALL tailor.classify('people', 'ward', 'sensitive');
		CALL tailor.grant_reader('researcher'); CALL tailor.activate('people')`)
	reader := connect(t, serveDatabase(t, "who_waits").dsn("researcher"))
	answeredSoon(t, reader, "SELECT count(*) FROM people")
	refresh := func(change string) {
		t.Helper()
		mustExec(t, direct, change+`; CALL tailor.refresh('people')`)
		awaitTakenIn(t, direct, "people", reader)
	}
	type waits struct {
		arrivals, departures, changes                int
		sinceArrivals, sinceDepartures, sinceChanges *time.Time
		stale                                        float64
		next                                         string
	}
	look := func() (w waits) {
		t.Helper()
		err := direct.QueryRow(t.Context(), `SELECT arrivals, departures, changes, arrivals_since,
			departures_since, changes_since, stale, next FROM tailor.epochs`).
			Scan(&w.arrivals, &w.departures, &w.changes, &w.sinceArrivals, &w.sinceDepartures,
				&w.sinceChanges, &w.stale, &w.next)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	if w := look(); w.arrivals+w.departures+w.changes != 0 || w.sinceArrivals != nil ||
		w.next != "" {
		t.Errorf("somebody waits at first: %+v", w)
	}
	// Two of one block leave, and one of another changes.
	block := func(n int) string {
		return fmt.Sprintf(`(SELECT b FROM (SELECT "tailor block" AS b, count(*) AS n
			FROM tailor_store.chain_1_row GROUP BY 1 ORDER BY 1) q OFFSET %d LIMIT 1)`, n)
	}
	of := func(n, several int) string {
		return fmt.Sprintf(`(SELECT p.id FROM people p JOIN tailor_store.chain_1_row r ON r.
             "tailor person" = tailor.person_digest(p.id::text, (SELECT key
             FROM tailor.subject_key))
			WHERE "tailor block" = %s ORDER BY 1 LIMIT %d)`, block(n), several)
	}
	refresh(fmt.Sprintf(`DELETE FROM people WHERE id IN %s; UPDATE people SET ward = 'other'
		WHERE id IN %s;
		INSERT INTO people SELECT g, 30, 'w1' FROM generate_series(1001, 1007) g`, of(0, 2), of(1,
		1)))
	first := look()
	if first.arrivals != 7 || first.departures != 2 || first.changes != 1 ||
		first.stale != 2.0/400 {
		t.Errorf("%+v, want 7 to come, 2 to go, 1 to change, and 0.5 %% stale", first)
	}
	lacking := one[int](t, direct, fmt.Sprintf(`SELECT (CASE WHEN n >= 10 THEN 3 ELSE n - 2
		END)::int FROM (SELECT count(*) AS n FROM tailor_store.chain_1_row
		WHERE "tailor block" = %s) b`, block(0)))
	for _, want := range []string{
		"a cohort of 100",
		fmt.Sprintf("1 blocks, the nearest lacks %d more", lacking), "changed: 1 blocks",
	} {
		if !strings.Contains(first.next, want) {
			t.Errorf("%q does not say %q", first.next, want)
		}
	}
	refresh(`INSERT INTO people VALUES (1008, 31, 'w2')`)
	again := look()
	if again.arrivals != 8 || !again.sinceArrivals.Equal(*first.sinceArrivals) ||
		!again.sinceDepartures.Equal(*first.sinceDepartures) {
		t.Errorf("%+v after another copy, before %+v", again, first)
	}
	var console int
	if err := direct.QueryRow(t.Context(), `SELECT count(*)
		FROM tailor.all_epochs`).Scan(&console); err != nil || console != 1 {
		t.Errorf("%d releases, %v", console, err)
	}
	// With the block of those who have left, nobody is waited for any more.
	member := one[string](t, direct, strings.TrimSuffix(strings.TrimPrefix(strings.Replace(of(0,
		1), "p.id", "p.id::text", 1), "("), ")"))
	mustExec(t, direct, `CALL tailor.erase('people', $1)`, member)
	if w := look(); w.departures != 0 || w.arrivals != 8 || w.sinceDepartures != nil {
		t.Errorf("%+v after an erasure, want nobody to go", w)
	}
	text, stderr, _ := tailor(t, "report", "--dsn", shared.cluster.SuperuserDSN("who_waits"),
		"--since", "1d")
	if !strings.Contains(text, "| 8 since ") || !strings.Contains(text,
		"How far releases are behind") {
		t.Errorf("the report does not say who waits:\n%s%s", text, stderr)
	}
}

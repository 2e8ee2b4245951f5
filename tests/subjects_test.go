package tests

import (
	"fmt"
	"testing"
)

// TestSubjectsOfAWholeTableAreCountedExactly compares with the table itself,
// before and after a refresh, and asks the count of parts, which is refused.
func TestSubjectsOfAWholeTableAreCountedExactly(t *testing.T) {
	c := newClinic(t, "subjects", 5, 5, crowd)
	reader := connect(t, c.dsn(c.admit(t, "subjects_counter")))
	const joined = "SELECT count(DISTINCT p.id) FROM encounters e JOIN patients p ON " +
		"e.patient_id = p.id"
	count := func() int {
		return one[int](t, c.direct, "SELECT count(DISTINCT patient_id) FROM encounters")
	}
	check := func() {
		t.Helper()
		want := count()
		for _, sql := range []string{
			joined, "SELECT count(DISTINCT patient_id) FROM encounters",
			"SELECT count(DISTINCT patient_id) FROM patients p, encounters WHERE p.id = patient_id",
		} {
			if got := rowsOf(t, reader, sql); len(got) != 1 || got[0] != fmt.Sprint(want) {
				t.Errorf("%s: %q, want %d", sql, got, want)
			}
		}
	}
	check()
	if _, err := reader.Prepare(t.Context(), "kept", joined); err != nil {
		t.Fatal(err)
	}
	mustExec(t, c.direct, "INSERT INTO encounters SELECT 100000 + p.id, p.id, '2019-05-05', 'ward', "+
		"1, 'new' FROM patients p ORDER BY EXISTS (SELECT FROM encounters e WHERE e.patient_id = "+
		"p.id), p.id LIMIT 200")
	mustExec(t, c.direct, "CALL tailor.refresh('public.encounters')")
	waitFor(t, func() bool {
		got := rowsOf(t, reader, joined)
		return got[0] == fmt.Sprint(count())
	})
	check()
	var stale int
	if err := reader.QueryRow(t.Context(), "kept").Scan(&stale); codeIn(err) != "0A000" {
		t.Errorf("a statement with the number of before: %d, %v", stale, err)
	}
	for _, part := range []string{
		joined + " WHERE p.age > 30", joined + " WHERE e.fee = 7", joined + " AND e.kind = 'ward'",
		joined + " GROUP BY e.kind",
		"SELECT count(DISTINCT patient_id) FILTER (WHERE note = 'encounter 1' OR note = 'encounter 2') " +
			"FROM encounters",
		"SELECT count(DISTINCT patient_id) FROM (SELECT * FROM encounters LIMIT 2) e",
		"SELECT count(DISTINCT patient_id) OVER () FROM encounters",
		"SELECT count(DISTINCT e.patient_id) FROM encounters e JOIN zip_city z ON z.zip = e.note",
	} {
		if _, err := conn1(t, reader, part); codeIn(err) != "42501" && codeIn(err) != "42703" {
			t.Errorf("%s: %v", part, err)
		}
	}
}

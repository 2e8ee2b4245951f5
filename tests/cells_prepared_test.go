package tests

import (
	"fmt"
	"testing"
)

// TestAggregatesOnlyArePreparedBySQL compares EXECUTE with the statement that it
// stands for, where no answer shows rows, and asks for the few by parameters.
func TestAggregatesOnlyArePreparedBySQL(t *testing.T) {
	p, _ := serveStaff(t, "prepared_cells", 3, 9000)
	conn := connect(t, p.dsn(shared.reader(t)))
	rowsOf(t, conn, "PREPARE q (text, int) AS SELECT unit, count(*), sum(pay) FROM staff WHERE unit LIKE 'ward%' AND unit <> $1 AND age >= $2 GROUP BY unit HAVING count(*) > $2 ORDER BY unit")
	got := fmt.Sprint(table(t, conn, "EXECUTE q ('ward1', 0)"))
	want := fmt.Sprint(table(t, conn, "SELECT unit, count(*), sum(pay) FROM staff WHERE unit LIKE 'ward%' AND unit <> 'ward1' AND age >= 0 GROUP BY unit HAVING count(*) > 0 ORDER BY unit"))
	if got != want || want == "[]" {
		t.Errorf("got %s, want %s", got, want)
	}
	rowsOf(t, conn, "PREPARE few (text) AS SELECT unit, count(*), sum(pay) FROM staff WHERE unit = $1 GROUP BY unit")
	if got := table(t, conn, "EXECUTE few ('secret')"); len(got) > 0 {
		t.Errorf("the few are shown: %v", got)
	}
	for _, sql := range []string{
		"EXECUTE few (upper('secret'))", "CREATE TEMP TABLE kept AS EXECUTE few ('ward1')", "SELECT count(*) FROM staff; EXECUTE few ('ward1')",
		"PREPARE rows AS SELECT pay FROM staff WHERE unit = $1", "EXPLAIN EXECUTE few ('ward1')",
	} {
		if _, err := conn1(t, conn, sql); codeIn(err) != "0A000" {
			t.Errorf("%s: %v, want 0A000", sql, err)
		}
	}
}

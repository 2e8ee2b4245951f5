package tests

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// arm is what one arm of a set operation has for each value.
type arm map[string]*shown

// shown are the rows that have a value, and their labels.
type shown struct {
	rows   int
	labels []string
}

// armOf asks for the rows of an arm by themselves, each with its value and label.
func armOf(rows []string) arm {
	a := arm{}
	for _, row := range rows {
		value, label, _ := strings.Cut(row, "|")
		if a[value] == nil {
			a[value] = &shown{}
		}
		a[value].rows++
		if !slices.Contains(a[value].labels, label) {
			a[value].labels = append(a[value].labels, label)
		}
	}
	return a
}

// operate computes what a set operation inside of a query has to show: rows by
// value, each with the labels of all the rows that are not taken away.
func operate(op string, left, right arm) (rows []string) {
	for value, l := range left {
		labels, n := slices.Clone(l.labels), 0
		r := right[value]
		switch {
		case op == "INTERSECT" && r != nil, op == "EXCEPT" && r == nil:
			n = 1
		case op == "INTERSECT ALL" && r != nil:
			n = min(l.rows, r.rows)
		case op == "EXCEPT ALL":
			n = l.rows
			if r != nil {
				n -= r.rows
			}
		}
		if r != nil && op[0] == 'I' {
			labels = append(labels, r.labels...)
		}
		slices.Sort(labels)
		labels = slices.Compact(labels)
		for range n {
			rows = append(rows, value+"|"+strings.Join(labels, " | "))
		}
	}
	slices.Sort(rows)
	return rows
}

// TestSetOperationsInsideAQueryCompareValuesAndShowLabels compares them with what
// their arms show by themselves, in blocks of which several share a value.
func TestSetOperationsInsideAQueryCompareValuesAndShowLabels(t *testing.T) {
	p := shared.serve(t)
	conn := connect(t, p.dsn(shared.reader(t)))
	rowsOf(t, conn, "SELECT age, zip, sex FROM patients")
	const first, second = "FROM patients WHERE sex = 'male'", "FROM patients WHERE age > 30 AND age < 60"
	left := armOf(rowsOf(t, conn, "SELECT age + 0, age "+first))
	right := armOf(rowsOf(t, conn, "SELECT age + 0, age "+second))
	if !slices.ContainsFunc(slices.Collect(maps.Values(left)), func(v *shown) bool { return len(v.labels) > 1 }) {
		t.Fatal("no two labels share a value: nothing is tested")
	}
	for _, op := range []string{"INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"} {
		want := operate(op, left, right)
		if len(want) == 0 {
			t.Errorf("%s has no rows", op)
		}
		for claim, query := range map[string]string{
			"a subquery":        "SELECT age + 0, age FROM (SELECT age %s %s SELECT age %s) s",
			"WITH":              "WITH s (years) AS (SELECT age %s %s (SELECT age %s)) SELECT years + 0, years FROM s",
			"a query around it": "SELECT age + 0, age FROM (SELECT o.age FROM (SELECT age, 1 AS one %s %s SELECT age, 1 %s ORDER BY 1) o) s",
		} {
			got := rowsOf(t, conn, fmt.Sprintf(query, first, op, second))
			slices.Sort(got)
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("%s in %s: %d rows, want %d, or others", op, claim, len(got), len(want))
			}
		}
	}
}

// TestMergedRowsKeepTheirLabelsBehindALimit is about DISTINCT and UNION with
// ORDER BY and LIMIT of their own.
func TestMergedRowsKeepTheirLabelsBehindALimit(t *testing.T) {
	p := shared.serve(t)
	conn := connect(t, p.dsn(shared.reader(t)))
	rowsOf(t, conn, "SELECT age, zip, sex FROM patients")
	all := armOf(rowsOf(t, conn, "SELECT age + 0, age FROM patients"))
	for claim, query := range map[string]string{
		"DISTINCT by name":      "SELECT age + 0, age FROM (SELECT DISTINCT age FROM patients ORDER BY age DESC LIMIT 9) s",
		"DISTINCT by column":    "SELECT years + 0, years FROM (SELECT DISTINCT age AS years FROM patients p ORDER BY p.age DESC FETCH FIRST 9 ROWS ONLY) s",
		"DISTINCT by number":    "WITH s AS (SELECT DISTINCT age FROM patients ORDER BY 1 DESC LIMIT 9 OFFSET 1) SELECT age + 0, age FROM s",
		"UNION":                 "SELECT age + 0, age FROM (SELECT age FROM patients UNION SELECT age FROM patients WHERE sex = 'male' ORDER BY age DESC LIMIT 9) s",
		"UNION, ordered around": "SELECT age + 0, age FROM ((SELECT age FROM patients UNION SELECT age FROM patients WHERE sex = 'male') ORDER BY 1 DESC LIMIT 9) s",
	} {
		got := rowsOf(t, conn, query)
		if len(got) != 9 {
			t.Errorf("%s: %d rows, want 9", claim, len(got))
		}
		for _, row := range got {
			value, label, _ := strings.Cut(row, "|")
			known := all[value]
			if known == nil {
				t.Errorf("%s: nobody has %s", claim, value)
				continue
			}
			slices.Sort(known.labels)
			if want := strings.Join(known.labels, " | "); label != want {
				t.Errorf("%s: %s is shown as %q, want %q", claim, value, label, want)
			}
		}
	}
}

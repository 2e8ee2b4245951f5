package tests

import (
	"slices"
	"strings"
	"testing"
)

func TestNothingButTheirMeansDependsOnColumnsThatAreShownByMeans(t *testing.T) {
	// In the other world everybody has what somebody else has of all of them.
	payrollDatabase(t, "means_there", "")
	payrollDatabase(t, "means_elsewhere", `UPDATE payroll p SET pay = o.pay, hours = o.hours, flag = o.flag, bonus = o.bonus FROM payroll o WHERE o.id = (p.id * 7 + 3) % 640;`)
	name := shared.reader(t)
	here, hereSaid := noticing(t, serveDatabase(t, "means_there").dsn(name))
	there, thereSaid := noticing(t, serveDatabase(t, "means_elsewhere").dsn(name))
	same := func(sql string) {
		t.Helper()
		x, y := rowsOf(t, here, sql), rowsOf(t, there, sql)
		if !strings.Contains(sql, "EXPLAIN") {
			slices.Sort(x)
			slices.Sort(y)
		}
		if len(x) == 0 || !slices.Equal(x, y) {
			t.Errorf("%s:\n%v\nand elsewhere\n%v", sql, x, y)
		}
	}
	for _, sql := range append(append([]string{`SELECT age, count(*) FROM payroll GROUP BY age`}, attackOnMeans...),
		`SELECT pay FROM payroll`, `SELECT age, pay, hours, bonus FROM payroll WHERE pay > 5000 OR hours = 40`, `SELECT sex, pay FROM payroll WHERE unit = 'u1'`) {
		if rowsOf(t, here, sql); rowsOf(t, there, sql) == nil {
			t.Fatal("no answer")
		}
		// Who shares a block is seen by the labels of other columns.
		same(`SELECT sex, town, age, unit FROM payroll`)
		same(`EXPLAIN (TAILOR) SELECT sex, town, age FROM payroll`)
		same(`EXPLAIN (TAILOR, FORMAT JSON) ` + sql)
	}
	if !slices.Equal(*hereSaid, *thereSaid) || len(*hereSaid) == 0 {
		t.Errorf("notices\n%v\nand elsewhere\n%v", *hereSaid, *thereSaid)
	}
	if slices.Equal(rowsOf(t, here, `SELECT pay, count(*) FROM payroll GROUP BY 1 ORDER BY 1`), rowsOf(t, there, `SELECT pay, count(*) FROM payroll GROUP BY 1 ORDER BY 1`)) {
		t.Error("the worlds do not differ")
	}
	// Nor does the order in which blocks come.
	for _, sql := range []string{`SET enable_hashjoin = off`, `SET enable_nestloop = off`} {
		rowsOf(t, here, sql)
		rowsOf(t, there, sql)
	}
	order := `SELECT age, count(*) FROM payroll GROUP BY age`
	if x, y := rowsOf(t, here, order), rowsOf(t, there, order); !slices.Equal(x, y) {
		t.Errorf("%v\nand elsewhere\n%v", x, y)
	}
}

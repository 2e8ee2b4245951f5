package tests

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestAveragesOverWholeBlocksNeedNoRefinementAndAreThoseOfPostgreSQL(t *testing.T) {
	direct := payrollDatabase(t, "means_measures", "")
	p := serveDatabase(t, "means_measures")
	name := shared.reader(t)
	reader, notices := noticing(t, p.dsn(name))
	chain := func(what string) int {
		return one[int](t, direct, `SELECT `+what+` FROM tailor.chain WHERE audience = $1`, "principal "+name)
	}

	if a, b := one[float64](t, reader, `SELECT avg(pay)::float8 FROM payroll`), one[float64](t, direct, `SELECT avg(pay)::float8 FROM payroll`); !near(a, b, 640) {
		t.Errorf("the average is %g, PostgreSQL's %g", a, b)
	}
	if blocks := chain("blocks"); blocks != 1 {
		t.Errorf("an average has cut the table into %d blocks", blocks)
	}
	if !slices.ContainsFunc(*notices, func(n string) bool { return strings.Contains(n, "nothing was generalized, pay by means of blocks") }) {
		t.Errorf("notices %q", *notices)
	}
	if a, b := one[float64](t, reader, `SELECT sum(pay)::float8 FROM payroll`), one[float64](t, direct, `SELECT sum(pay)::float8 FROM payroll`); !near(a/640, b/640, 640) {
		t.Errorf("the sum is %g, PostgreSQL's %g", a, b)
	}
	if n := one[int](t, reader, `SELECT count(pay) FROM payroll`); n != 640 {
		t.Errorf("%d values", n)
	}

	bySex := `SELECT sex, avg(pay)::float8, avg(hours)::float8 FROM payroll GROUP BY sex ORDER BY sex`
	account := strings.Join(rowsOf(t, reader, `EXPLAIN (TAILOR) `+bySex), "\n")
	if !strings.Contains(account, "by the means of blocks, out of the combination: pay, hours") || strings.Contains(account, "sex, pay") {
		t.Error(account)
	}
	shown, truth := table(t, reader, bySex), table(t, direct, bySex)
	for i := range truth {
		if shown[i][0] != truth[i][0] || !near(amount(t, shown[i][1]), amount(t, truth[i][1]), 320) {
			t.Errorf("%v, PostgreSQL %v", shown[i], truth[i])
		}
		// Of whole numbers, means are whole; one follows from the other.
		if d := amount(t, shown[i][2]) - amount(t, truth[i][2]); d > 0.8 || d < -0.8 {
			t.Errorf("hours: %v, PostgreSQL %v", shown[i], truth[i])
		}
	}
	if blocks := chain("blocks"); blocks != 2 {
		t.Errorf("%d blocks by sex", blocks)
	}
	exec1(t, reader, `BEGIN`)
	exec1(t, reader, `DECLARE c CURSOR FOR SELECT avg(pay), 'fetched' FROM payroll`)
	rowsOf(t, reader, `FETCH c`, `COMMIT`)
	fetched := 0
	for _, r := range p.records(t) {
		if strings.HasPrefix(fmt.Sprint(r["sql"]), "FETCH") && fmt.Sprint(r["measures"]) == "[public.payroll.pay]" {
			fetched++
		}
	}
	if fetched != 1 {
		t.Errorf("%d records of fetches name the measure", fetched)
	}
	for _, r := range p.records(t) {
		if r["principal"] == name && strings.Contains(fmt.Sprint(r["sql"]), "GROUP BY sex") && r["verdict"] == "released" {
			if fmt.Sprint(r["measures"]) != "[public.payroll.pay public.payroll.hours]" {
				t.Errorf("the record's measures: %v", r["measures"])
			}
			if stages := fmt.Sprint(r["stages"]); !strings.Contains(stages, "qids:[sex]") {
				t.Errorf("stages %s", stages)
			}
		}
	}

	// No statement makes blocks along it.
	for _, sql := range []string{
		`SELECT avg(pay) FROM payroll WHERE unit = 'u1'`, `SELECT pay, hours FROM payroll`, `SELECT DISTINCT pay FROM payroll ORDER BY 1`,
		`SELECT count(*) FROM payroll WHERE pay > 4000`, `SELECT max(x) FROM (SELECT pay * 2 AS x FROM payroll) s`,
		`SELECT a.sex FROM payroll a WHERE a.pay IN (SELECT pay FROM payroll WHERE hours = 7)`,
	} {
		rowsOf(t, reader, sql)
		if blocks := chain("blocks"); blocks != 2 {
			t.Errorf("%s: %d blocks", sql, blocks)
		}
	}
	rowsOf(t, reader, `SET tailor.recoding = 'full_domain'`, `SELECT pay, sex FROM payroll`, `RESET tailor.recoding`)
	if blocks := chain("blocks"); blocks != 2 {
		t.Errorf("%d blocks by full-domain recoding", blocks)
	}
	// Nor does what a workload declares.
	exec1(t, direct, `CALL tailor.project('pays', 'payroll', '[["pay"], ["pay", "sex"], ["bonus", "hours"]]')`)
	rowsOf(t, reader, `SET tailor.project = 'pays'`)
	waitFor(t, func() bool {
		_, err := reader.Exec(t.Context(), `SELECT count(*) FROM payroll`)
		return err == nil && one[bool](t, direct, `SELECT seeds::text LIKE '%pays%' FROM tailor.chain`)
	})
	if blocks := chain("blocks"); blocks != 2 {
		t.Errorf("%d blocks by a project", blocks)
	}
}

func TestABlockThatTheGuardHoldsBackIsShownWithOthers(t *testing.T) {
	direct := payrollDatabase(t, "means_guarded", "")
	reader := connect(t, serveDatabase(t, "means_guarded").dsn(shared.reader(t)))
	for _, sql := range []string{`SELECT avg(pay) FROM payroll`, `SELECT sex, avg(pay) FROM payroll GROUP BY sex`} {
		rowsOf(t, reader, sql)
	}
	cells := `SELECT sex || town, avg(pay)::float8, count(*) FROM payroll GROUP BY sex, town ORDER BY 1`
	shown, truth := table(t, reader, cells), table(t, direct, cells)
	// Cells that are shown alike are shown by the mean of all of them.
	people, sum := make(map[string]int), make(map[string]float64)
	for i, cell := range truth {
		if shown[i][0] != cell[0] || shown[i][2] != "40" {
			t.Fatalf("%v, PostgreSQL %v", shown[i], cell)
		}
		people[shown[i][1]] += 40
		sum[shown[i][1]] += 40 * amount(t, cell[1])
	}
	if len(people) < 7 {
		t.Errorf("16 cells show %d means", len(people))
	}
	for value, n := range people {
		if v := amount(t, value); !near(v, sum[value]/float64(n), n) {
			t.Errorf("%d people are shown as %g, their mean is %g", n, v, sum[value]/float64(n))
		}
	}
	for i, cell := range truth { // somebody far out, and two cells of one value
		if slices.Contains([]string{"Ft6", "Ft7", "Mt7"}, cell[0]) && people[shown[i][1]] == 40 {
			t.Errorf("%s shows the mean of its own", cell[0])
		}
	}
	// Sums over everybody stay as exact as the groups.
	if a, b := one[float64](t, reader, `SELECT avg(pay)::float8 FROM payroll`), one[float64](t, direct, `SELECT avg(pay)::float8 FROM payroll`); a-b > 250 || b-a > 250 {
		t.Errorf("the average is %g, PostgreSQL's %g", a, b)
	}
	// A column of noughts and ones, and one in which somebody has nearly all.
	for _, sql := range []string{`SELECT sex, avg(flag)::float8 FROM payroll GROUP BY sex`, `SELECT town, avg(flag)::float8 FROM payroll GROUP BY town`} {
		for _, row := range table(t, reader, sql) {
			if row[1] != "0" && row[1] != "1" {
				t.Errorf("%s: %v tells more than a middle or a label", sql, row)
			}
		}
	}
	if v := one[float64](t, reader, `SELECT avg(bonus) FROM payroll WHERE town = 't2' AND sex = 'F'`); v != payRange/2 {
		t.Errorf("an outlier shows in a mean of %g", v)
	}
}

func TestEveryShownMeanIsThatOfThoseWhoShareIt(t *testing.T) {
	direct := payrollDatabase(t, "means_checked", "")
	reader := connect(t, serveDatabase(t, "means_checked").dsn(shared.reader(t)))
	for _, sql := range []string{
		`SELECT avg(pay) FROM payroll`, `SELECT sex, avg(pay) FROM payroll GROUP BY sex`,
		`SELECT sex, town, avg(pay) FROM payroll GROUP BY sex, town`, `SELECT age, avg(pay) FROM payroll GROUP BY age`,
	} {
		rowsOf(t, reader, sql)
	}
	// What the means of the parts leave of the whole's is told in full: their sum
	// is as exact as the first mean was.
	if a, b := one[float64](t, reader, `SELECT sum(pay)::float8 FROM payroll`), one[float64](t, direct, `SELECT sum(pay)::float8 FROM payroll`); math.Abs(a-b) > payRange/2+0.1 {
		t.Errorf("the sum is %g, PostgreSQL's %g", a, b)
	}
	means, middles := assertMeans(t, payOf(t, reader, direct, "pay", "sex, town, age, hours, flag, bonus"))
	t.Logf("%d means, %d middles", means, middles)
	if means < 10 {
		t.Errorf("%d means are shown, and %d middles", means, middles)
	}
}

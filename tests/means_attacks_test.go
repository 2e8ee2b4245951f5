package tests

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// attackOnMeans are questions about sums over nested and crossing sets.
var attackOnMeans = []string{
	`SELECT avg(pay), sum(pay), avg(hours), avg(bonus) FROM payroll`,
	`SELECT sex, avg(pay), sum(hours) FROM payroll GROUP BY sex`,
	`SELECT sex, town, avg(pay), sum(pay), avg(hours), count(*) FROM payroll GROUP BY sex, town`,
	`SELECT town, sum(pay) FROM payroll WHERE sex = 'F' GROUP BY GROUPING SETS ((town), ())`,
	`SELECT age, avg(pay) FROM payroll WHERE town <> 't6' GROUP BY age`,
	`SELECT max(x), min(x), stddev(x) FROM (SELECT avg(pay) AS x FROM payroll GROUP BY town, sex, age) s`,
}

func TestSwappingWhatTwoPeopleOfABlockEarnChangesNoAnswer(t *testing.T) {
	// Who shares sex, town and age shares a block of every question above.
	swap := `UPDATE payroll p SET pay = o.pay, hours = o.hours, bonus = o.bonus FROM payroll o
		WHERE (p.id, o.id) IN ((12, 492), (492, 12), (0, 480), (480, 0)) AND p.sex = o.sex AND p.town = o.town AND p.age = o.age`
	first := payrollDatabase(t, "means_world_a", "")
	second := payrollDatabase(t, "means_world_b", swap)
	if a, b := one[string](t, first, `SELECT pay::text FROM payroll WHERE id = 12`), one[string](t, second, `SELECT pay::text FROM payroll WHERE id = 12`); a == b {
		t.Fatal("nothing was swapped")
	}
	name := shared.reader(t)
	a, b := connect(t, serveDatabase(t, "means_world_a").dsn(name)), connect(t, serveDatabase(t, "means_world_b").dsn(name))
	for _, sql := range attackOnMeans {
		x, y := rowsOf(t, a, sql), rowsOf(t, b, sql)
		slices.Sort(x)
		slices.Sort(y)
		if len(x) == 0 || !slices.Equal(x, y) {
			t.Errorf("%s: the answers differ", sql)
		}
	}
}

// team makes tables of one group each: the same colleagues, and one more person
// who earns another amount in each.
func team(t *testing.T, name string, colleagues, amounts []int) (*pgx.Conn, *pgx.Conn) {
	t.Helper()
	var script strings.Builder
	script.WriteString(`GRANT USAGE ON SCHEMA public TO PUBLIC;`)
	for i, pay := range amounts {
		fmt.Fprintf(&script, `CREATE TABLE team_%d (id int PRIMARY KEY, pay numeric(9, 2));`, i)
		for id, of := range append(slices.Clone(colleagues), pay) {
			fmt.Fprintf(&script, `INSERT INTO team_%d VALUES (%d, %d);`, i, id, of)
		}
	}
	direct := makeDatabase(t, name, script.String())
	if err := shared.install(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	exec1(t, direct, `CALL tailor.define_hierarchy('pay', 'interval', '{"widths": [1000, 5000], "lower": 0, "upper": 20000}')`)
	for i := range amounts {
		exec1(t, direct, fmt.Sprintf(`CALL tailor.protect('team_%[1]d', 'id', 5);
CALL tailor.classify('team_%[1]d', 'pay', 'quasi_identifier', hierarchy => 'pay'); CALL tailor.represent('team_%[1]d', 'pay', 'mean');
CALL tailor.activate('team_%[1]d')`, i))
	}
	return direct, connect(t, serveDatabase(t, name).dsn(shared.reader(t)))
}

func TestColleaguesWhoPoolWhatTheyEarnLearnOneOfTwoPartsOfTheRange(t *testing.T) {
	colleagues := []int{700, 19000, 6100, 9100, 12900}
	var amounts []int
	for v := 500; v < payRange; v += 1000 {
		amounts = append(amounts, v)
	}
	_, reader := team(t, "means_colleagues", colleagues, amounts)
	known, n := 0, float64(len(colleagues)+1)
	for _, of := range colleagues {
		known += of
	}
	changes, before := 0, ""
	for i, pay := range amounts {
		shown := one[string](t, reader, fmt.Sprintf(`SELECT avg(pay)::numeric(12, 2)::text FROM team_%d`, i))
		if i > 0 && shown != before {
			changes++
		}
		before = shown
		guess := amount(t, shown)*n - float64(known)
		if off := math.Abs(guess - float64(pay)); off > payRange/2+0.1 {
			t.Errorf("the mean is off by more than it says: %g", off)
		}
	}
	if changes != 1 {
		t.Errorf("%d kinds of answers for %d amounts", changes+1, len(amounts))
	}
}

func TestSomebodyFarOutOfAGroupKeepsItsMeanFromBeingShown(t *testing.T) {
	_, reader := team(t, "means_outlier", []int{2100, 2200, 2300, 2400, 2500, 2600, 2050}, []int{19900, 2222, 2450})
	const middle = payRange / 2
	if v := one[float64](t, reader, `SELECT avg(pay)::float8 FROM team_0`); v != middle {
		t.Errorf("with an outlier, %g is shown", v)
	}
	for _, other := range []string{"team_1", "team_2"} {
		if v := one[float64](t, reader, `SELECT avg(pay)::float8 FROM `+other); v < 2000 || v > 3000 || v == 2500 {
			t.Errorf("without one, %g is shown", v)
		}
	}
}

package tests

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
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
	// Nor does the order in which labels come, which is that of their blocks.
	if x, y := labelsInOrder(t, "means_there"), labelsInOrder(t, "means_elsewhere"); x != y {
		t.Errorf("%v\nand elsewhere\n%v", x, y)
	}
}

// labelsInOrder are those of age, as the only release of a database numbers them.
func labelsInOrder(t *testing.T, database string) string {
	t.Helper()
	direct := connect(t, shared.cluster.SuperuserDSN(database))
	chain := one[int](t, direct, `SELECT chain FROM tailor.chain`)
	return one[string](t, direct, fmt.Sprintf(`SELECT to_jsonb(r) ->> ('tailor names ' || attnum) FROM tailor_store.chain_%d_row r, pg_attribute
		WHERE attrelid = 'payroll'::regclass AND attname = 'age'`, chain))
}

func TestBlocksDoNotLookAheadToColumnsThatAreShownByMeans(t *testing.T) {
	conns := make([]*pgx.Conn, 2)
	name := shared.reader(t)
	for i, world := range []string{"means_ahead", "means_ahead_too"} {
		direct := makeDatabase(t, world, fmt.Sprintf(`GRANT USAGE ON SCHEMA public TO PUBLIC;
CREATE TABLE crew (id int PRIMARY KEY, age int, weight int, pay int);
INSERT INTO crew SELECT n, abs(hashint4(n)) %% 90, abs(hashint4(n + 1000)) %% 90, abs(hashint4(n + %d)) %% 90 / 10 * 10 FROM generate_series(1, 400) n;`, 5000*(i+1)))
		if err := shared.install(t.Context(), world); err != nil {
			t.Fatal(err)
		}
		exec1(t, direct, `CALL tailor.define_hierarchy('ninety', 'interval', '{"widths": [5, 10, 30], "lower": 0, "upper": 89}'); CALL tailor.protect('crew', 'id', 3);
CALL tailor.classify('crew', 'age', 'quasi_identifier', hierarchy => 'ninety'); CALL tailor.classify('crew', 'weight', 'quasi_identifier', hierarchy => 'ninety');
CALL tailor.classify('crew', 'pay', 'quasi_identifier', hierarchy => 'ninety'); CALL tailor.represent('crew', 'pay', 'mean'); CALL tailor.activate('crew')`)
		conns[i] = connect(t, serveDatabase(t, world).dsn(name))
	}
	for _, sql := range []string{`SELECT age FROM crew`, `SELECT age, weight FROM crew`} {
		for _, conn := range conns {
			rowsOf(t, conn, sql, `SELECT pay FROM crew`)
		}
		seen := `SELECT age, weight, count(*) FROM crew GROUP BY 1, 2`
		x, y := rowsOf(t, conns[0], seen), rowsOf(t, conns[1], seen)
		slices.Sort(x)
		slices.Sort(y)
		if len(x) < 10 || !slices.Equal(x, y) {
			t.Errorf("%s: %d blocks by other columns, and %d where others earn what they do", sql, len(x), len(y))
		}
	}
}

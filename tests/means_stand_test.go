package tests

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// payRange is the width of the domain of pay.
const payRange = 20000

// payrollSchema makes 640 people in 16 cells of 40 by sex and town. Everybody of
// the town t7 earns the same, one woman of t6 twenty times what her neighbours
// do, and one bonus is thousands of times the others.
const payrollSchema = `
GRANT USAGE ON SCHEMA public TO PUBLIC;
CREATE TABLE payroll (id int PRIMARY KEY, sex text, town text, age int, hours int, flag int, pay numeric(9, 2), bonus float8, unit text);
INSERT INTO payroll SELECT n, (ARRAY['F', 'M'])[1 + n % 2], 't' || n / 2 % 8, 18 + n * 13 % 60, 1 + n * 31 % 60, n / 16 % 2,
    CASE n / 2 % 8 WHEN 7 THEN 4000 WHEN 6 THEN CASE n WHEN 12 THEN 19900 ELSE 1000 + n * 37 % 500 END ELSE 500 + n / 2 % 8 * 1800 + n * 7919 % 3500 + n % 100 / 100.0 END,
    CASE n WHEN 100 THEN 19000 ELSE n % 4 END, 'u' || n % 3
    FROM generate_series(0, 639) n;
ALTER TABLE payroll ADD token uuid NOT NULL DEFAULT gen_random_uuid();
`

const payrollPolicy = `
CALL tailor.define_hierarchy('pay', 'interval', '{"widths": [1000, 5000], "lower": 0, "upper": 20000}');
CALL tailor.define_hierarchy('week', 'interval', '{"widths": [10, 30], "lower": 0, "upper": 89}');
CALL tailor.define_hierarchy('bit', 'interval', '{"widths": [1], "lower": 0, "upper": 1}');
CALL tailor.define_hierarchy('letters', 'prefix', '{"keep": [1]}');
CALL tailor.protect('public.payroll', subject => 'id', k => 5);
CALL tailor.classify('public.payroll', 'id', 'direct_identifier');
CALL tailor.classify('public.payroll', 'sex', 'quasi_identifier', hierarchy => 'letters');
CALL tailor.classify('public.payroll', 'town', 'quasi_identifier', hierarchy => 'letters');
CALL tailor.classify('public.payroll', 'age', 'quasi_identifier', hierarchy => 'week');
CALL tailor.classify('public.payroll', 'hours', 'quasi_identifier', hierarchy => 'week');
CALL tailor.classify('public.payroll', 'flag', 'quasi_identifier', hierarchy => 'bit');
CALL tailor.classify('public.payroll', 'pay', 'quasi_identifier', hierarchy => 'pay');
CALL tailor.classify('public.payroll', 'bonus', 'quasi_identifier', hierarchy => 'pay');
CALL tailor.classify('public.payroll', 'unit', 'sensitive');
CALL tailor.classify('public.payroll', 'token', 'non_sensitive');
CALL tailor.represent('public.payroll', 'hours', 'mean');
CALL tailor.represent('public.payroll', 'flag', 'mean');
CALL tailor.represent('public.payroll', 'pay', 'mean');
CALL tailor.represent('public.payroll', 'bonus', 'mean');
CALL tailor.activate('public.payroll');
`

// payrollDatabase makes a database with the payroll. change is done to the table
// before it is protected.
func payrollDatabase(t *testing.T, name, change string) *pgx.Conn {
	t.Helper()
	conn := makeDatabase(t, name, payrollSchema+change)
	if err := shared.install(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	exec1(t, conn, payrollPolicy)
	return conn
}

// paid is what somebody was shown of a column, and what is true.
type paid struct {
	label, value string
	cell         string // of the other labels
	true         float64
}

// payOf reads what a reader is shown of a column beside the labels of others,
// and looks the same people up directly.
func payOf(t *testing.T, reader, direct *pgx.Conn, column, others string) []paid {
	t.Helper()
	truth := make(map[string]float64)
	for _, row := range table(t, direct, `SELECT token, `+column+` FROM payroll`) {
		truth[row[0]] = amount(t, row[1])
	}
	values := make(map[string]string)
	exec1(t, reader, `SET tailor.representation = 'value'`)
	for _, row := range table(t, reader, `SELECT token, `+column+` FROM payroll`) {
		values[row[0]] = row[1]
	}
	exec1(t, reader, `RESET tailor.representation`)
	var out []paid
	for _, row := range table(t, reader, fmt.Sprintf(`SELECT token, %s, %s FROM payroll`, column, others)) {
		out = append(out, paid{row[1], values[row[0]], strings.Join(row[2:], "|"), truth[row[0]]})
	}
	if len(out) != len(truth) {
		t.Fatalf("%d of %d people", len(out), len(truth))
	}
	return out
}

// ends reads a label of numbers with fractions, or the whole domain.
func ends(t *testing.T, label string) (low, high float64) {
	t.Helper()
	if label == "*" {
		return 0, payRange
	}
	if _, err := fmt.Sscanf(label, "[%g,%g)", &low, &high); err != nil {
		t.Fatalf("label %q", label)
	}
	return low, high
}

// assertMeans asserts that whoever is shown one value under one label is shown
// the mean of all of them, as exactly as it is promised, or the middle of the
// label. Several groups may have one mean: each has a cell of other labels of
// its own. Few are what others leave, and off by at most half of the label. It
// returns the numbers of both kinds of values.
func assertMeans(t *testing.T, shown []paid) (means, middles int) {
	t.Helper()
	groups := make(map[[2]string][]paid)
	for _, p := range shown {
		key := [2]string{p.label, p.value}
		groups[key] = append(groups[key], p)
	}
	left := 0
	for key, people := range groups {
		low, high := ends(t, key[0])
		value := amount(t, key[1])
		sum, cells := 0.0, make(map[string]bool)
		for _, p := range people {
			cells[p.cell] = true
			if sum += p.true; p.true < low || p.true >= high {
				t.Errorf("the label %q does not cover %g", key[0], p.true)
			}
		}
		n := float64(len(people))
		switch {
		case value == (low+high)/2:
			middles++
		case math.Abs(value-sum/n) <= float64(len(cells))*(high-low)/2/n+0.005:
			means++
		case math.Abs(value-sum/n) <= (high-low)/2 && left < 3:
			left++
		default:
			t.Errorf("%d people are shown %s under %q, their mean is %g", len(people), key[1], key[0], sum/n)
		}
		if n < 5 {
			t.Errorf("%d people are shown one value", len(people))
		}
	}
	return means, middles
}

func amount(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// near says whether an average is as exact as one group of so many people lets
// it be.
func near(a, b float64, people int) bool { return math.Abs(a-b) <= payRange/2/float64(people)+0.005 }

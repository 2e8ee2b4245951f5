package tests

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// kinPolicy adds to wardPolicy a code list of two levels, with NULLs.
const kinPolicy = `
UPDATE people SET weight = 200 WHERE id <= 20;
ALTER TABLE people ADD kin text; UPDATE people SET kin = CASE WHEN id % 60 > 0
    THEN (ARRAY['a1', 'a2', 'a2', 'b1', 'b2', 'b2', 'b2', 'c''1'])[1 + id % 8] END;
CALL tailor.define_hierarchy('kin', 'table',
    '{"paths": [["a1", "a"], ["a2", "a"], ["b1", "b"], ["b2", "b"], ["c''1", "c"], ["c2", "c"]]}');
CALL tailor.classify('people', 'kin', 'quasi_identifier', hierarchy => 'kin');
CALL tailor.seed('people', '[["age", "kin"], ["weight"], ["zip"], ["member"]]');`

// covered are the values that a label of wardPolicy covers, read off the label alone; nil
// is NULL. Of postcodes, whose values are not to be listed, they are those that tell the
// conditions below apart.
func covered(column, label string) (out []any) {
	if label == "" {
		return []any{nil}
	}
	whole := func(low, high int) {
		for v := low; v <= high; v++ {
			out = append(out, v)
		}
	}
	tenths := func(low, high float64, end bool) {
		for v := low; v < high || end && v == high; v = float64(int(v*10+1.5)) / 10 {
			out = append(out, v)
		}
	}
	days := func(first, behind string) {
		at, _ := time.Parse(time.DateOnly, first)
		end, _ := time.Parse(time.DateOnly, behind)
		for ; at.Before(end); at = at.AddDate(0, 0, 1) {
			out = append(out, at.Format(time.DateOnly))
		}
	}
	if label == "*" {
		out = append(out, nil)
	}
	switch column {
	case "age":
		if label == "*" {
			whole(0, 119)
			break
		}
		low, high, ranged := strings.Cut(label, "-")
		if !ranged {
			high = low
		}
		whole(int(figure(low)), int(figure(high)))
	case "weight":
		if label == "*" {
			tenths(0, 200, true)
			break
		}
		if low, high, ranged := strings.Cut(strings.Trim(label, "[)"), ","); ranged {
			tenths(figure(low), min(200, figure(high)), low == "200") // which is the upper bound
		} else {
			out = append(out, figure(label))
		}
	case "born":
		switch {
		case label == "*":
			days("1900-01-01", "2030-01-01")
		case strings.HasSuffix(label, "s"):
			year, _ := strconv.Atoi(label[:4])
			days(fmt.Sprintf("%04d-01-01", year), fmt.Sprintf("%04d-01-01", year+10))
		case len(label) == 4:
			year, _ := strconv.Atoi(label)
			days(label+"-01-01", fmt.Sprintf("%04d-01-01", year+1))
		case len(label) == 7:
			first, _ := time.Parse("2006-01", label)
			days(label+"-01", first.AddDate(0, 1, 0).Format(time.DateOnly))
		default:
			out = append(out, label)
		}
	case "zip":
		prefix := strings.TrimRight(label, "*")
		for _, zip := range []string{"10071", "10142", "10852", "11988", "12130"} {
			if strings.HasPrefix(zip, prefix) {
				out = append(out, zip)
			}
		}
		out = append(out, prefix+"00000"[len(prefix):], prefix+"99999"[len(prefix):])
	case "member":
		for _, v := range []bool{true, false} {
			if label == "*" || label[:1] == strconv.FormatBool(v)[:1] {
				out = append(out, v)
			}
		}
	case "kin":
		for _, v := range []string{"a1", "a2", "b1", "b2", "c'1", "c2"} {
			if label == "*" || label == v || label == v[:1] {
				out = append(out, v)
			}
		}
	}
	return out
}

// TestBoundsOfCountsHoldAndAreTight compares tailor.count_bounds with what it must be by
// the labels that are released, every value that they cover being tried, and with the
// table.
func TestBoundsOfCountsHoldAndAreTight(t *testing.T) {
	direct, p := wardOf(t, "certainty", kinPolicy)
	conn := connect(t, p.program("researcher"))
	columns := []string{"age", "weight", "born", "zip", "member", "kin"}
	var labels []string
	for _, c := range columns {
		labels = append(labels, "tailor.label("+c+")")
	}
	rows := rowsOf(t, conn, "SELECT "+strings.Join(labels, ", ")+", diagnosis FROM people")
	known := make(map[string][]any)
	of := func(row []string, column int) []any {
		key := columns[column] + row[column]
		if known[key] == nil {
			known[key] = covered(columns[column], row[column])
		}
		return known[key]
	}
	type value = map[string]any
	age := func(v value) (int, bool) { n, ok := v["age"].(int); return n, ok }
	years := func(is func(n int) bool) func(value) bool {
		return func(v value) bool { n, ok := age(v); return ok && is(n) }
	}
	kilos := func(is func(w float64) bool) func(value) bool {
		return func(v value) bool { w, ok := v["weight"].(float64); return ok && is(w) }
	}
	text := func(column string, is func(s string) bool) func(value) bool {
		return func(v value) bool { s, ok := v[column].(string); return ok && is(s) }
	}
	for _, c := range []struct {
		sql   string
		on    string // the quasi-identifiers of the condition
		holds func(v value) bool
		tight bool
	}{
		{"age >= 65", "age", years(func(n int) bool { return n >= 65 }), true},
		{"age > 64", "age", years(func(n int) bool { return n > 64 }), true},
		{"65 <= age", "age", years(func(n int) bool { return n >= 65 }), true},
		{"NOT age >= 65", "age", years(func(n int) bool { return n < 65 }), true},
		{"age = 42", "age", years(func(n int) bool { return n == 42 }), true},
		{"age <> 42", "age", years(func(n int) bool { return n != 42 }), true},
		{"age BETWEEN 20 AND 39", "age", years(func(n int) bool { return n >= 20 && n <= 39 }), true},
		{"age NOT BETWEEN 20 AND 39", "age", years(func(n int) bool { return n < 20 || n > 39 }), true},
		{"age BETWEEN 39 AND 20", "age", func(value) bool { return false }, true},
		{"age >= 20 AND age < 40", "age", years(func(n int) bool { return n >= 20 && n < 40 }), true},
		{"age < 40 OR age >= 40", "age", func(v value) bool { _, ok := age(v); return ok }, false},
		{"age IN (1, 2, 50)", "age", years(func(n int) bool {
			return n == 1 || n == 2 || n == 50
		}), true},
		{"age NOT IN (1, 2, 50)", "age", years(func(n int) bool {
			return n != 1 && n != 2 && n != 50
		}), true},
		{"age IS NULL", "age", func(v value) bool { return v["age"] == nil }, true},
		{"age IS NOT NULL", "age", func(v value) bool { return v["age"] != nil }, true},
		{"NOT (age IS NULL OR age < 30)", "age", years(func(n int) bool { return n >= 30 }), true},
		{"weight < 60", "weight", kilos(func(w float64) bool { return w < 60 }), true},
		{"weight >= 60", "weight", kilos(func(w float64) bool { return w >= 60 }), true},
		{"weight <= 59.9", "weight", kilos(func(w float64) bool { return w <= 59.9 }), false},
		{"weight = 60", "weight", kilos(func(w float64) bool { return w == 60 }), true},
		{"weight <> 60", "weight", kilos(func(w float64) bool { return w != 60 }), true},
		{"weight >= 200", "weight", kilos(func(w float64) bool { return w >= 200 }), true},
		{"weight > 200 OR weight <= 0", "weight", kilos(func(w float64) bool {
			return w > 200 || w <= 0
		}), true},
		{"born < '1970-01-01'", "born", text("born", func(d string) bool {
			return d < "1970-01-01"
		}), true},
		{"born BETWEEN '1960-01-01' AND '1969-12-31'", "born", text("born", func(d string) bool {
			return d >= "1960-01-01" && d <= "1969-12-31"
		}), true},
		{"born >= date '1980-06-15' - 14", "born", text("born", func(d string) bool {
			return d >= "1980-06-01"
		}), true},
		{"date_trunc('quarter', born) = '1970-04-01'", "born", text("born", func(d string) bool {
			return d >= "1970-04-01" && d < "1970-07-01"
		}), true},
		{"date_trunc('month', born)::date = date '1970-04-01'", "born", text("born", func(d string) bool {
			return d >= "1970-04-01" && d < "1970-05-01"
		}), true},
		{"NOT extract(year FROM born) = 1970", "born", text("born", func(d string) bool {
			return !strings.HasPrefix(d, "1970")
		}), true},
		{"left(zip, 3) = '100'", "zip", text("zip", func(z string) bool {
			return strings.HasPrefix(z, "100")
		}), true},
		{"zip = '10071'", "zip", func(v value) bool { return v["zip"] == "10071" }, true},
		{"zip <> '10071'", "zip", func(v value) bool {
			return v["zip"] != nil && v["zip"] != "10071"
		}, true},
		{"zip IN ('10142', '12130')", "zip", func(v value) bool {
			return v["zip"] == "10142" || v["zip"] == "12130"
		}, true},
		{"zip LIKE '10%'", "zip", text("zip", func(z string) bool {
			return strings.HasPrefix(z, "10")
		}), true},
		{"zip LIKE '100%'", "zip", text("zip", func(z string) bool {
			return strings.HasPrefix(z, "100")
		}), true},
		{"zip NOT LIKE '11%'", "zip", text("zip", func(z string) bool {
			return !strings.HasPrefix(z, "11")
		}), true},
		{"member", "member", func(v value) bool { return v["member"] == true }, true},
		{"NOT member", "member", func(v value) bool { return v["member"] == false }, true},
		{"member = false", "member", func(v value) bool { return v["member"] == false }, true},
		{"kin = 'a2'", "kin", func(v value) bool { return v["kin"] == "a2" }, true},
		{"kin <> 'a2'", "kin", func(v value) bool { return v["kin"] != nil && v["kin"] != "a2" }, true},
		{"kin IN ('b1', 'c''1')", "kin", func(v value) bool {
			return v["kin"] == "b1" || v["kin"] == "c'1"
		}, true},
		{"kin = 'nobody'", "kin", func(value) bool { return false }, false},
		{"kin IS NULL", "kin", func(v value) bool { return v["kin"] == nil }, true},
		{"age >= 50 AND kin = 'b2' AND diagnosis = 'd3'", "age kin", func(v value) bool {
			n, ok := age(v)
			return ok && n >= 50 && v["kin"] == "b2" && v["diagnosis"] == "d3"
		}, true},
		{"NOT (age >= 50 AND (kin = 'b2' OR diagnosis = 'd3'))", "age kin", func(v value) bool {
			n, ok := age(v)
			old, b2, d3 := ok && n >= 50, v["kin"] == "b2", v["diagnosis"] == "d3"
			// Of what is NULL the opposite is NULL as well, unless the other side decides.
			return ok && !old || v["kin"] != nil && !b2 && !d3 || ok && !old && d3
		}, true},
		{"diagnosis = 'd3'", "", func(v value) bool { return v["diagnosis"] == "d3" }, true},
	} {
		var certain, possible int64
		alike := make(map[string][]string)
		times := make(map[string]int64)
		for _, text := range rows {
			row := strings.Split(text, "|")
			key := row[len(columns)]
			for i, column := range columns {
				if strings.Contains(" "+c.on+" ", " "+column+" ") {
					key += "|" + row[i]
				}
			}
			alike[key] = row
			times[key]++
		}
		for key, row := range alike {
			all, any := true, false
			v := value{"diagnosis": row[len(columns)]}
			var try func(at int)
			try = func(at int) {
				if at == len(columns) {
					holds := c.holds(v)
					all, any = all && holds, any || holds
					return
				}
				if !strings.Contains(" "+c.on+" ", " "+columns[at]+" ") {
					try(at + 1)
					return
				}
				for _, one := range of(row, at) {
					v[columns[at]] = one
					try(at + 1)
				}
			}
			try(0)
			if all {
				certain += times[key]
			}
			if any {
				possible += times[key]
			}
		}
		got := one[[]int64](t, conn, "SELECT tailor.count_bounds("+c.sql+") FROM people")
		each := one[[]int64](t, conn, fmt.Sprintf("SELECT ARRAY[count(*) FILTER (WHERE "+
			"tailor.certain(%[1]s)), count(*) FILTER (WHERE tailor.possible(%[1]s))] FROM people", c.sql))
		truth := one[int64](t, direct, "SELECT count(*) FROM people WHERE "+c.sql)
		switch {
		case fmt.Sprint(got) != fmt.Sprint(each):
			t.Errorf("%s: %v by count_bounds, %v by rows", c.sql, got, each)
		case c.tight && (got[0] != certain || got[1] != possible):
			t.Errorf("%s: %v, want %d and %d", c.sql, got, certain, possible)
		case got[0] > certain || got[1] < possible:
			t.Errorf("%s: %v is too narrow for %d and %d", c.sql, got, certain, possible)
		case truth < got[0] || truth > got[1]:
			t.Errorf("%s: %v, but %d people in the table", c.sql, got, truth)
		}
		t.Logf("%s: %v, in the table %d", c.sql, got, truth)
	}
}

// TestBoundsOfCountsHoldForRandomConditions makes conditions at random and compares their
// bounds with the table.
func TestBoundsOfCountsHoldForRandomConditions(t *testing.T) {
	direct, p := wardOf(t, "certainty_random", kinPolicy)
	conn := connect(t, p.program("researcher"))
	random := rand.New(rand.NewPCG(23, 4))
	operators := []string{"=", "<>", "<", "<=", ">", ">="}
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	var condition func(depth int) string
	condition = func(depth int) string {
		if depth > 0 && random.IntN(3) > 0 {
			text := "(" + condition(depth-1) + " " + pick("AND", "OR") + " " + condition(depth-1) + ")"
			if random.IntN(3) == 0 {
				text = "NOT " + text
			}
			return text
		}
		switch random.IntN(8) {
		case 0:
			return fmt.Sprintf("age %s %d", pick(operators...), random.IntN(100))
		case 1:
			return fmt.Sprintf("age %s %d AND %d", pick("BETWEEN", "NOT BETWEEN"), random.IntN(60),
				random.IntN(120))
		case 2:
			return fmt.Sprintf("weight %s %d", pick(operators...), 40+10*random.IntN(9))
		case 3:
			return fmt.Sprintf("born %s '%d-%02d-01'", pick(operators...), 1930+random.IntN(85),
				1+random.IntN(12))
		case 4:
			return fmt.Sprintf("zip %s ('10071', '10%03d')", pick("IN", "NOT IN"), 71*(1+random.IntN(13)))
		case 5:
			return fmt.Sprintf("kin %s '%s'", pick("=", "<>"),
				pick("a1", "a2", "b1", "b2", "c''1", "c2", "x"))
		case 6:
			return pick("member", "age", "kin", "zip") + pick(" IS NULL", " IS NOT NULL")
		}
		return pick("member", "NOT member", "diagnosis = 'd2'", "diagnosis > 'd4'", "zip LIKE '10%'",
			"zip NOT LIKE '108%'")
	}
	informative := 0
	for range 400 {
		sql := condition(3)
		var got []int64 // by the simple protocol: a session keeps so many long statements not
		if err := conn.QueryRow(t.Context(), "SELECT tailor.count_bounds("+sql+") FROM people",
			pgx.QueryExecModeSimpleProtocol).Scan(&got); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		truth := one[int64](t, direct, "SELECT count(*) FROM people WHERE "+sql)
		if truth < got[0] || truth > got[1] {
			t.Errorf("%s: %v, but %d people in the table", sql, got, truth)
		}
		if got[0] > 0 && got[1] < 3000 {
			informative++
		}
	}
	if informative < 50 {
		t.Errorf("only %d of 400 conditions have bounds that say something", informative)
	}
}

// TestBoundsOfCountsInStatements asks for them as programs do, and for what they cannot
// tell.
func TestBoundsOfCountsInStatements(t *testing.T) {
	_, p := wardOf(t, "certainty_statements", kinPolicy)
	for _, dsn := range []string{p.program("researcher"), p.dsn("researcher")} {
		conn := connect(t, dsn)
		for _, sql := range []string{
			"SELECT diagnosis, tailor.count_bounds(age >= 65) FROM people GROUP BY diagnosis ORDER BY 1",
			"SELECT member, tailor.count_bounds(age >= 65) FROM people GROUP BY member",
			"SELECT avg(age) FROM people AS p WHERE tailor.certain(p.age > 30 AND p.kin = 'a2')",
			"SELECT (bounds)[1], (bounds)[2] FROM (SELECT tailor.count_bounds(public.people.age < 10) AS " +
				"bounds FROM public.people) q",
			"SELECT (SELECT tailor.certain(p.age > 3)) FROM people p",
			"SELECT x.* FROM (SELECT tailor.possible(age > 30) AS may, count(*) FROM people GROUP BY 1) x",
			"WITH old AS (SELECT tailor.certain(age > 64) AS sure FROM people) SELECT count(*) FROM old " +
				"WHERE sure",
			"SELECT tailor.count_bounds(age > 30) FROM people HAVING count(*) > 5 ORDER BY " +
				"tailor.count_bounds(age > 30)",
		} {
			if _, err := simply(t, conn, sql); err != nil {
				t.Errorf("%s: %v", sql, err)
			}
		}
		if got := strings.Join(rowsOf(t, conn,
			"SELECT tailor.count_bounds(age >= 0 OR age IS NULL) FROM people"), " "); !strings.HasSuffix(got,
			",3000}") && !strings.HasSuffix(got, " 3000]") {
			t.Errorf("of all people: %s", got)
		}
		var bounds, same []int64
		if err := conn.QueryRow(t.Context(),
			"SELECT tailor.count_bounds(age BETWEEN $1 AND $2 AND zip = $3) FROM people", 20, 59, "10071").
			Scan(&bounds); err != nil {
			t.Errorf("with parameters: %v", err)
		}
		same = one[[]int64](t, conn,
			"SELECT tailor.count_bounds(age BETWEEN 20 AND 59 AND zip = '10071') FROM people")
		if fmt.Sprint(bounds) != fmt.Sprint(same) {
			t.Errorf("with parameters %v, with literals %v", bounds, same)
		}
		for _, sql := range []string{
			"SELECT tailor.count_bounds(age + 1 > 40) FROM people",
			"SELECT tailor.count_bounds(age > weight) FROM people",
			"SELECT tailor.count_bounds(age > (SELECT 1)) FROM people",
			"SELECT tailor.count_bounds(right(zip, 2) = '10') FROM people",
			"SELECT tailor.count_bounds(zip LIKE '1_0%') FROM people",
			"SELECT tailor.count_bounds(kin < 'b') FROM people",
			"SELECT tailor.count_bounds(kin = 'a2'::char(1)) FROM people",
			"SELECT tailor.count_bounds(DISTINCT age > 3) FROM people",
			"SELECT tailor.count_bounds(age > 3, age > 4) FROM people",
			"SELECT tailor.count_bounds(age > 3) OVER () FROM people",
			"SELECT tailor.count_bounds(x > 3) FROM (SELECT age AS x FROM people) q",
			"SELECT tailor.count_bounds(age > random() * 50) FROM people",
			"SELECT tailor.count_bounds(x > 3) FROM people, LATERAL unnest(ARRAY[age]) AS x",
			"SELECT tailor.count_bounds(x > 3) FROM people, LATERAL (VALUES (age)) AS v (x)",
			"WITH q AS (SELECT age AS x FROM people) SELECT tailor.possible(x > 3) FROM q",
			"SELECT tailor.count_bounds((age > 3) = (weight > 60)) FROM people",
			"SELECT tailor.count_bounds((age > 3) IS NOT TRUE) FROM people",
		} {
			if _, err := conn.Exec(t.Context(), sql,
				pgx.QueryExecModeSimpleProtocol); codeIn(err) != "0A000" {
				t.Errorf("%s: %v", sql, err)
			}
		}
		for _, sql := range []string{
			"SELECT tailor.count_bounds(id = 7) FROM people",
			"SELECT tailor.certain(id IS NULL) FROM people",
		} {
			if _, err := conn.Exec(t.Context(), sql,
				pgx.QueryExecModeSimpleProtocol); codeIn(err) != "42501" {
				t.Errorf("%s: %v", sql, err)
			}
		}
		// A parameter of a code list would need the list.
		if _, err := conn.Exec(t.Context(), "SELECT tailor.count_bounds(kin = $1) FROM people",
			"a2"); codeIn(err) != "0A000" {
			t.Errorf("a parameter beside a code list: %v", err)
		}
	}
}

package tests

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// drawnConditions are conditions on age and sex.
func drawnConditions(n int) []string {
	out := []string{"true", "age IS NULL", "sex = 'female'", "age < 0", "age >= 0"}
	r := rand.New(rand.NewPCG(25, 3))
	for len(out) < n {
		least, width := r.IntN(80), 1+r.IntN(50)
		one := []string{
			fmt.Sprintf("age BETWEEN %d AND %d", least, least+width),
			fmt.Sprintf("age >= %d", least),
			fmt.Sprintf("NOT (age < %d)", least),
			fmt.Sprintf("age IN (%d, %d, %d)", least, least+1, least+7),
			fmt.Sprintf("(age > %d OR age = %d)", least+width, least),
			fmt.Sprintf("age <> %d", least),
		}[r.IntN(6)]
		sex := []string{"", " AND sex = 'male'", " AND sex <> 'male'", " OR sex IN ('female')"}[r.IntN(4)]
		out = append(out, one+sex)
	}
	return out
}

func boundsCasesUnderConditions(t *testing.T, s *testCluster) {
	owner := s.as(t, "dba")
	c := enroll(t, owner, "under", 4000)
	c.jointly(t, owner)
	mustExec(t, owner, `CREATE TEMP TABLE held AS SELECT u.age, u.sex, array_agg(d.code) AS codes
		FROM under u LEFT JOIN under_codes d ON d.person = u.id GROUP BY u.id`)
	mustExec(t, owner, fmt.Sprintf("CALL tailor.activate('%s')",
		enroll(t, owner, "apart", 400).codes))
	p := s.serve(t)
	conn := connect(t, p.dsn(s.reader(t)))
	const sets = `(VALUES ('{}'::text[]), ('{C00}'), ('{C01}'), ('{C05}'), ('{C11}'),
		('{C20}'), ('{C23}'), ('{C00,C01}'), ('{C00,C03}'), ('{C02,C09}'), ('{C00,C01,C02}'), ('{C99}'))`
	tight, asked := 0, 0
	var off []float64
	conditions := 40
	if soaks() {
		conditions = 200
	}
	for _, condition := range drawnConditions(conditions) {
		truth := answered(t, owner, fmt.Sprintf(`SELECT (SELECT count(*) FROM held u
			WHERE (%s) AND s.codes <@ u.codes) FROM %s s (codes)`, condition, sets))
		shown := answered(t, conn, fmt.Sprintf(`SELECT s.codes, c.expected, c.lower, c.upper
			FROM %s s (codes), tailor.case_count('under_codes', s.codes, %s) c`, sets, condition))
		if len(truth) != len(shown) {
			t.Fatalf("%s: %d counts of %d", condition, len(shown), len(truth))
		}
		for i, row := range shown {
			n, expected := truth[i][0].(int64), row[1].(float64)
			lower, upper := row[2].(int64), row[3].(int64)
			if n < lower || n > upper || expected < float64(lower) || expected > float64(upper) {
				t.Errorf("%v, %s: %.1f in [%d, %d], in truth %d", row[0], condition, expected, lower, upper, n)
			}
			asked++
			if upper-lower < int64(len(truth))+n/4 {
				tight++
			}
			if n >= 100 {
				off = append(off, 100*math.Abs(expected-float64(n))/float64(n))
			}
		}
	}
	slices.Sort(off)
	median, ninth := off[len(off)/2], off[len(off)*9/10]
	t.Logf("%d counts, %d with narrow bounds; of 100 people and more: "+
		"off by %.1f %%, 90th percentile %.1f %%", asked, tight, median, ninth)
	if median > 5 || ninth > 20 || tight < asked/10 {
		t.Error("counts are too far off")
	}
	// Each way to write it, and what is in no publication.
	const plain = `SELECT upper FROM tailor.case_count('under_codes', ARRAY['C00'],
		age > 40 AND sex = 'male')`
	for _, sql := range []string{
		`SELECT upper FROM tailor.case_count('under_codes', ARRAY['C00'],
			condition => age > 40 AND under.sex = 'male')`,
		`SELECT upper FROM tailor.case_count(condition => (age > 40) AND sex = 'male',
			codes => ARRAY['C00'], relation => 'under_codes')`,
		`SELECT (tailor.case_count('under_codes', ARRAY['C00'],
			((age) > 40 AND sex = 'male'))).upper`,
	} {
		want := answered(t, conn, plain)
		if got := answered(t, conn, sql); got[0][0] != want[0][0] {
			t.Errorf("%s: %v, want %v", sql, got, want)
		}
	}
	const asksParameters = "SELECT lower FROM tailor.case_count('under_codes', $1, age >= $2)"
	if n := one[int](t, conn, asksParameters, []string{"C00"}, 0); n == 0 {
		t.Error("with parameters nobody is counted for certain")
	}
	_, err := conn.Exec(t.Context(),
		"SELECT * FROM tailor.case_count('apart_codes', '{}', age > 40)")
	refusal, _ := asRefusal(err)
	if refusal == nil || refusal.Code != "0A000" ||
		!strings.Contains(refusal.Hint, "CALL tailor.joint('public.apart_codes'") {
		t.Errorf("a condition on people of whom codes are by themselves: %v", errorText(err))
	}
	for _, bad := range []struct{ condition, code string }{
		{"zip = '10000'", "42501"},
		{"cost > 10", "42501"},
		{"age + 1 > 40", "0A000"},
		{"id = 1", "0A000"},
		{"ARRAY[ARRAY[0, 1, 1, 1]]", "42804"},
		{"EXISTS (SELECT FROM under_codes)", "0A000"},
		{"sex = s.sex", "0A000"},
		{"tailor_label_family = 1", "42703"},
	} {
		refused(t, conn, bad.code, fmt.Sprintf(`SELECT c.upper FROM (SELECT 'male' AS sex) s,
			LATERAL tailor.case_count('under_codes', ARRAY['C00'], %s) c`, bad.condition))
	}
}

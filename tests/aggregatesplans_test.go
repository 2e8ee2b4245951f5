package tests

import "testing"

// TestNoOtherNameGetsRoundTheAverages asks for what averages would answer wrongly, by names
// that statements give to columns.
func TestNoOtherNameGetsRoundTheAverages(t *testing.T) {
	_, conn, _ := serveStaff(t, "aggregates_names")
	mustExec(t, conn, `CREATE TEMP TABLE amounts (pay numeric, unit text)`)
	for _, sql := range []string{
		`SELECT count(*) FROM staff s (age, sex, unit, grade, wage) WHERE wage > 9000`,
		`SELECT max(wage) FROM staff s (age, sex, unit, grade, wage)`,
		`SELECT age FROM staff s (unit, sex, age, grade, pay, bonus) WHERE bonus > 3`,
		`SELECT u, avg(wage) FROM staff s (age, sex, u, grade, wage) GROUP BY u`,
		`SELECT count(*) FROM staff JOIN amounts USING (pay)`,
		`SELECT count(*) FROM staff NATURAL JOIN amounts`,
		`WITH s AS (SELECT pay AS p FROM staff) SELECT max(p) FROM s`,
		`SELECT count(*) FROM amounts a, LATERAL (SELECT FROM staff s WHERE s.pay > a.pay) q`,
		`SELECT count(*) FILTER (WHERE pay > 9000) FROM staff`,
		`SELECT sum(pay) FILTER (WHERE unit = 'lab0') FROM staff`,
		`SELECT sum(pay) OVER (PARTITION BY unit) FROM staff`,
		`SELECT sum(pay) OVER (ORDER BY pay) FROM staff`,
		`SELECT count(DISTINCT pay) FROM staff`,
		`SELECT sum(pay ORDER BY unit) FROM staff`,
		`SELECT (SELECT max(s.pay)) FROM staff s`,
		`SELECT count(*) FROM staff WHERE (age, pay) > (30, 9000)`,
		`SELECT count(*) FROM staff WHERE (SELECT pay) > 9000`,
		`SELECT sum(x) FROM (SELECT pay + 1 AS x FROM staff) q`,
		`SELECT unit, sum(pay) FROM staff GROUP BY GROUPING SETS ((unit), ())`,
		`SELECT pay FROM staff UNION ALL SELECT 1`,
		`TABLE staff`,
		`COPY (SELECT unit, pay FROM staff) TO STDOUT`,
		`DECLARE c CURSOR FOR SELECT pay FROM staff`,
		`PREPARE p AS SELECT pay FROM staff`,
		`SELECT count(*) FROM staff s GROUP BY s.pay`,
		`SELECT sum(pay) FROM staff ORDER BY max(pay)`,
		`SELECT sum(pay) FROM staff HAVING min(pay) > 3`,
		`SELECT count(*) FROM staff a WHERE EXISTS (SELECT FROM amounts b WHERE b.unit = a.unit ` +
			`AND b.pay > a.pay)`,
		`SELECT (s).pay FROM staff s`,
		`SELECT s.* FROM staff s`,
		`VALUES ((SELECT max(pay) FROM staff))`,
		`SELECT age, lag(pay) OVER (ORDER BY age) FROM staff`,
		`SELECT first_value(unit) OVER (PARTITION BY hired) FROM staff`,
		`SELECT string_agg(unit, ',' ORDER BY hired) FROM staff`,
	} {
		refusedWith(t, conn, "0A000", sql)
	}
}

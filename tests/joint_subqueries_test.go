package tests

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// askedOnce are questions that ask people (P) and codes (C) for the rows of one subject after
// the other, each with another that joins both.
var askedOnce = []struct{ each, joined string }{
	{
		`SELECT n::text, count(*) FROM (
			SELECT (SELECT count(*) FROM C c WHERE c.person = p.id) AS n FROM P p) x GROUP BY 1`,
		`SELECT n::text, count(*) FROM (SELECT count(c.code) AS n
			FROM P p LEFT JOIN C c ON c.person = p.id GROUP BY p.id) x GROUP BY 1`,
	},
	{
		`SELECT c1, count(*) FROM P p, LATERAL (
			SELECT code AS c1 FROM C WHERE person = p.id ORDER BY code LIMIT 1) x GROUP BY 1`,
		`SELECT c1, count(*) FROM (SELECT person, min(code) AS c1 FROM C GROUP BY 1) x GROUP BY 1`,
	},
	{
		`SELECT sex, sum(cardinality(ARRAY(SELECT code FROM C WHERE person = id)))::bigint
			FROM P GROUP BY 1`,
		`SELECT p.sex, count(*) FROM P p JOIN C c ON p.id = c.person GROUP BY 1`,
	},
	{
		`SELECT (SELECT p.sex FROM P p WHERE p.id = c.person), count(*) FROM C c GROUP BY 1`,
		`SELECT p.sex, count(*) FROM P p JOIN C c ON p.id = c.person GROUP BY 1`,
	},
	{
		`SELECT coalesce((SELECT max(d.code) FROM C c JOIN C d ON d.person = c.person
			WHERE c.person = p.id AND c.code = 'C00'), ''), count(*) FROM P p GROUP BY 1`,
		`SELECT coalesce(m, ''), count(*) FROM P p LEFT JOIN (
			SELECT person, max(code) AS m FROM C
			WHERE person IN (SELECT person FROM C WHERE code = 'C00') GROUP BY 1
			) x ON x.person = p.id GROUP BY 1`,
	},
	{
		`SELECT CASE WHEN EXISTS (SELECT FROM C d WHERE d.person = c.person AND d.code > c.code)
			THEN 'more' ELSE 'last' END, count(*) FROM C c GROUP BY 1`,
		`SELECT CASE WHEN code < max THEN 'more' ELSE 'last' END, count(*)
			FROM C c JOIN (SELECT person, max(code) FROM C GROUP BY 1) x USING (person) GROUP BY 1`,
	},
}

// findsOneSubject: a subquery that is asked for each subject reads that subject's rows, and
// not all of them again and again, and says what a join says, whatever the type of keys.
func findsOneSubject(t *testing.T, s *testCluster) {
	owner := s.as(t, "dba")
	tables := regexp.MustCompile(`\b[PC]\b`)
	byIndex := regexp.MustCompile(`Index (Only )?Scan.* on "?(epoch|people)_`)
	cohorts := make(map[string]cohort)
	for keys, name := range map[string]string{"bigint": "one", "text": "zwei"} {
		c := enroll(t, owner, name, 2000)
		mustExec(t, owner, fmt.Sprintf(`ALTER TABLE %[2]s DROP CONSTRAINT %[2]s_person_fkey,
				ALTER person TYPE %[3]s;
			ALTER TABLE %[1]s ALTER id TYPE %[3]s;
			ALTER TABLE %[2]s ADD FOREIGN KEY (person) REFERENCES %[1]s;
			CALL tailor.activate('%[1]s')`, c.people, c.codes, keys))
		c.jointly(t, owner)
		cohorts[keys] = c
	}
	conn := connect(t, s.serve(t).program(s.reader(t)))
	for keys, c := range cohorts {
		for _, q := range askedOnce {
			over := func(sql string) string {
				return tables.ReplaceAllStringFunc(sql, func(table string) string {
					return map[string]string{"P": c.people, "C": c.codes}[table]
				})
			}
			each, joined := numbersBy(t, conn, over(q.each)), numbersBy(t, conn, over(q.joined))
			if len(each) < 2 || !reflect.DeepEqual(each, joined) {
				t.Errorf("%s: %s\nsays %v,\n%s\n%v", keys, q.each, each, q.joined, joined)
			}
			plan := strings.Join(rowsOf(t, conn, "EXPLAIN "+over(q.each)), "\n")
			if !byIndex.MatchString(plan) {
				t.Errorf("%s: %s reads\n%s", keys, q.each, plan)
			}
		}
	}
}

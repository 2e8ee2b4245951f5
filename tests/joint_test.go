package tests

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestJointPublications asks codes together with their subjects' demographics, on a stand
// of its own.
func TestJointPublications(t *testing.T) {
	s, err := newStand(filepath.Join(stands, "joint"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s *testCluster)
	}{
		{"linked questions are answered", answersLinkedQuestions},
		{"labels are of groups, and numbers are of this publication", groupsPeople},
		{"subqueries find one subject's rows", findsOneSubject},
		{"cases under a condition are within their bounds", boundsCasesUnderConditions},
		{"a publication stays as it is", staysPublished},
		{"what cannot be published jointly is refused", refusesJoint},
		{"columns that tell codes are found", findsToldCodes},
		{"an erased person is withdrawn", erasesJoint},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, s) })
	}
}

// cohort is a table of people, and one of their codes, which depend on age and sex.
type cohort struct{ people, codes string }

// enroll makes the tables of n people, whose keys follow from the first letter of the
// name; every ninth has no codes. The seed is fixed.
func enroll(t *testing.T, owner *pgx.Conn, name string, n int) cohort {
	t.Helper()
	c := cohort{name, name + "_codes"}
	mustExec(t, owner, fmt.Sprintf(
		`CREATE TABLE %[1]s (id bigint PRIMARY KEY, age int NOT NULL, sex text NOT NULL,
			zip text NOT NULL, cost numeric NOT NULL);
CREATE TABLE %[2]s (person bigint NOT NULL REFERENCES %[1]s ON DELETE CASCADE, code text NOT NULL)`,
		c.people, c.codes))
	// Tables are of different people: the same would be one family.
	r := rand.New(rand.NewPCG(25, uint64(name[0])))
	first := 1_000_000 * int(name[0])
	var rows, codes [][]any
	for i := range n {
		id, age, sex := first+3*i, r.IntN(90), []string{"female", "male"}[r.IntN(2)]
		rows = append(rows, []any{id, age, sex, fmt.Sprintf("%05d", 10000+r.IntN(40)*500), r.IntN(9000)})
		if i%9 == 0 {
			continue
		}
		for code := range 24 {
			chance := 0.4 / float64(1+code/3)
			if code%3 == 0 {
				chance *= float64(age) / 45
			}
			if code%4 == 1 && sex == "male" {
				chance *= 1.8
			}
			if r.Float64() < chance {
				codes = append(codes, []any{id, fmt.Sprintf("C%02d", code)})
			}
		}
	}
	for table, data := range map[string][][]any{c.people: rows, c.codes: codes} {
		if table == c.people {
			continue
		}
		if _, err := owner.CopyFrom(t.Context(), pgx.Identifier{c.people}, []string{
			"id", "age", "sex",
			"zip", "cost",
		}, pgx.CopyFromRows(rows)); err != nil {
			t.Fatal(err)
		}
		if _, err := owner.CopyFrom(t.Context(), pgx.Identifier{table}, []string{"person", "code"},
			pgx.CopyFromRows(data)); err != nil {
			t.Fatal(err)
		}
	}
	mustExec(t, owner, fmt.Sprintf(`CALL tailor.protect('%[1]s', subject => 'id', k => 5);
CALL tailor.classify('%[1]s', 'age', 'quasi_identifier', hierarchy => 'age');
CALL tailor.classify('%[1]s', 'sex', 'quasi_identifier', hierarchy => 'sex');
CALL tailor.classify('%[1]s', 'zip', 'quasi_identifier', hierarchy => 'zip');
CALL tailor.classify('%[1]s', 'cost', 'non_sensitive');
CALL tailor.activate('%[1]s');
CALL tailor.protect('%[2]s', subject => 'person', k => 5);
CALL tailor.classify('%[2]s', 'person', 'direct_identifier', action => 'pseudonym');
CALL tailor.set_valued('%[2]s', column_name => 'code')`, c.people, c.codes))
	return c
}

// jointly publishes the codes together with sex and age, in groups of 60.
func (c cohort) jointly(t *testing.T, owner *pgx.Conn) {
	t.Helper()
	mustExec(t, owner, fmt.Sprintf(
		`CALL tailor.joint('%[1]s', ARRAY['sex', 'age'], 60); CALL tailor.activate('%[1]s')`, c.codes))
}

// linkedQuestions are asked of people (P) and codes (C) together. Each gives groups with a
// number; slack is how far a number may be off, as a share, beside 3 for small ones.
var linkedQuestions = []struct {
	sql   string
	slack float64
}{
	{`SELECT count(*) FROM P`, 0},
	{`SELECT p.sex, count(*) FROM P p JOIN C c ON c.person = p.id GROUP BY 1`, 0.03},
	{`SELECT p.sex, count(DISTINCT c.person) FROM P p JOIN C c ON c.person = p.id ` +
		`WHERE c.code = 'C00' GROUP BY 1`, 0.03},
	{`SELECT p.age / 20, count(DISTINCT p.id) FROM P p, C c WHERE c.person = p.id ` +
		`AND c.code IN ('C00', 'C03') GROUP BY 1`, 0.12},
	{`SELECT sex, age / 30, count(*) FROM P p WHERE EXISTS (SELECT FROM C c WHERE c.person = p.id ` +
		`AND c.code = 'C01') GROUP BY 1, 2`, 0.1},
	{`SELECT sex, count(*) FROM P p WHERE NOT EXISTS (SELECT FROM C c WHERE c.person = p.id ` +
		`AND c.code = 'C00') GROUP BY 1`, 0.03},
	{
		`SELECT sex, count(*) FROM P WHERE id IN (SELECT person FROM C WHERE code = 'C05') GROUP BY 1`,
		0.05,
	},
	{
		`SELECT c.code, count(*) FROM P p RIGHT JOIN C c ON p.id = c.person WHERE p.age >= 60 GROUP BY 1`,
		0.12,
	},
	{`SELECT p.sex, count(c.code) FROM P p LEFT JOIN C c ON c.person = p.id GROUP BY 1`, 0.03},
	{
		`SELECT code, count(*) FILTER (WHERE p.sex = 'male') FROM P p JOIN C ON person = id GROUP BY 1`,
		0.05,
	},
	{
		`WITH ill AS (SELECT DISTINCT person FROM C WHERE code = 'C03') ` +
			`SELECT (i.person IS NULL)::text, count(*) FROM P LEFT JOIN ill i ON i.person = id GROUP BY 1`,
		0.03,
	},
	{`SELECT x.sex, sum(n)::bigint FROM (SELECT p.id, p.sex, (SELECT count(*) FROM C c ` +
		`WHERE c.person = p.id) AS n FROM P p) x GROUP BY 1`, 0.03},
	{`SELECT sex, count(*) FROM P JOIN (SELECT person FROM C GROUP BY person ` +
		`HAVING count(*) >= 2) m ON m.person = id GROUP BY 1`, 0.15},
	{`SELECT count(*) FROM P a JOIN C b ON a.id = b.person JOIN C c ON c.person = a.id ` +
		`AND c.code > b.code WHERE b.code = 'C00' AND c.code = 'C01'`, 0.25},
	{`SELECT sex, count(*) FROM research.P p JOIN research.C c ON c.person = p.id GROUP BY 1`, 0.03},
}

func answersLinkedQuestions(t *testing.T, s *testCluster) {
	owner := s.as(t, "dba")
	c := enroll(t, owner, "linked", 4000)
	c.jointly(t, owner)
	p := s.serve(t)
	reader := s.reader(t)
	conn, program := connect(t, p.dsn(reader)), connect(t, p.program(reader))
	for i, q := range linkedQuestions {
		if i%3 > 0 && !soaks() && !strings.Contains(q.sql, "EXISTS") {
			continue
		}
		over := func(people, codes string) string {
			return strings.NewReplacer("research.P ", "research."+people+" ", "research.C ",
				"research."+codes+" ", " P", " "+people, " C ", " "+codes+" ").Replace(q.sql)
		}
		truth := numbersBy(t, owner, strings.ReplaceAll(over(c.people, c.codes), "research.", ""))
		for name, shown := range map[string]map[string]float64{
			"terminal": numbersBy(t, conn, over(c.people, c.codes)),
			"program":  numbersBy(t, program, over(c.people, c.codes)),
		} {
			for key, want := range truth {
				if got := shown[key]; got < want-max(3, q.slack*want) || got > want+max(3, q.slack*want) {
					t.Errorf("%s, %s\n%s: %g, in the tables %g", name, q.sql, key, got, want)
				}
			}
		}
	}
	var relations []string
	err := owner.QueryRow(t.Context(),
		`SELECT relations FROM tailor.audit WHERE sql LIKE '%EXISTS%' AND principal = $1 `+
			`ORDER BY time DESC LIMIT 1`, reader).Scan(&relations)
	slices.Sort(relations)
	if want := []string{"public.linked", "public.linked_codes"}; err != nil ||
		!slices.Equal(relations, want) {
		t.Errorf("the record names %v, %v; want %v", relations, err, want)
	}
	for sql, code := range map[string]string{
		"SELECT p.cost FROM linked p JOIN linked_codes c ON c.person = p.id": "42501",
		"SELECT p.zip FROM linked p JOIN linked_codes c ON c.person = p.id":  "42501",
		"SELECT zip FROM linked, linked_codes":                               "42501",
		"SELECT p.ctid FROM linked p JOIN linked_codes c ON c.person = p.id": "42501",
		"SELECT * FROM linked p JOIN linked_codes c ON c.person = p.id JOIN patients x ON x.age " +
			"= p.age": "0A000",
		"SELECT tailor.label(age), count(*) FROM patients, linked_codes GROUP BY 1": "0A000",
		"SELECT * FROM tailor_release.chain_2_parent":                               "42501",
		"SELECT count(*) FROM linked p JOIN linked_codes c ON c.person = p.id AND " +
			"p.cost > 10": "42501",
		"SELECT to_jsonb(p) ? 'cost' FROM linked p JOIN linked_codes c ON c.person = p.id WHERE " +
			"(p).cost IS NOT NULL": "0A000",
		"SELECT count(*) FROM linked p WHERE EXISTS (SELECT FROM linked_codes c WHERE c.person = p.id) " +
			"AND p.cost > 1": "42501",
		"EXPLAIN (TAILOR) SELECT cost FROM linked p JOIN linked_codes c ON " +
			"c.person = p.id": "42501",
		"SELECT p.id FROM linked p":                          "42501",
		"SELECT count(*) FROM linked p WHERE p.id IN (1, 2)": "42501",
		"SELECT * FROM linked p WHERE EXISTS (SELECT FROM linked_codes c, patients x WHERE c.person = " +
			"p.id AND x.age = 1)": "0A000",
	} {
		if _, err := conn.Exec(t.Context(), sql); codeIn(err) != code {
			t.Errorf("%s\n%v, want %s", sql, err, code)
		}
	}
}

// numbersBy reads the last column of an answer by the others.
func numbersBy(t *testing.T, conn *pgx.Conn, sql string) map[string]float64 {
	t.Helper()
	out := make(map[string]float64)
	for _, values := range answered(t, conn, sql) {
		n, ok := values[len(values)-1].(int64)
		if !ok {
			t.Fatalf("%s\nnot a count: %T", sql, values[len(values)-1])
		}
		out[fmt.Sprint(values[:len(values)-1])] = float64(n)
	}
	return out
}

// answered asks again while something is being changed, and returns the rows.
func answered(t *testing.T, conn *pgx.Conn, sql string) [][]any {
	t.Helper()
	for {
		// the rows have the error
		rows, _ := conn.Query(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
		out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]any, error) {
			return row.Values()
		})
		if codeIn(err) == "40001" {
			continue
		}
		if err != nil {
			t.Fatalf("%s\n%v", sql, err)
		}
		return out
	}
}

func groupsPeople(t *testing.T, s *testCluster) {
	owner := s.as(t, "dba")
	c := enroll(t, owner, "grouped", 2000)
	c.jointly(t, owner)
	p := s.serve(t)
	conn := connect(t, p.dsn(s.reader(t)))
	everybody := fmt.Sprintf("SELECT id, age, sex FROM %s WHERE id IN (SELECT id FROM %[1]s) AND "+
		"true OR EXISTS (SELECT FROM %s WHERE false)", c.people, c.codes)
	rows, err := conn.Query(t.Context(), everybody, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	keys := make(map[int64]bool)
	keyRows, err := owner.Query(t.Context(), "SELECT id FROM "+c.people)
	if err != nil {
		t.Fatal(err)
	}
	var id int64
	if _, err := pgx.ForEachRow(keyRows, []any{&id}, func() error {
		keys[id] = true
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	classes := make(map[string]int)
	seen := make(map[int64]bool)
	same := 0
	var age, sex string
	if _, err := pgx.ForEachRow(rows, []any{&id, &age, &sex}, func() error {
		classes[age+" "+sex]++
		if seen[id] {
			t.Errorf("number %d stands twice", id)
		}
		if keys[id] || id >= 0 {
			same++
		}
		seen[id] = true
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 2000 || same > 0 {
		t.Errorf("%d people are shown, %d by numbers that may be keys", len(seen), same)
	}
	for class, n := range classes {
		if n < 60 {
			t.Errorf("%d people show %s", n, class)
		}
	}
	// Each person is among those of a class that covers it, and classes are as large as
	// what they cover.
	truth := make(map[string]int)
	peopleRows, err := owner.Query(t.Context(), "SELECT age::text, sex FROM "+c.people)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pgx.ForEachRow(peopleRows, []any{&age, &sex}, func() error {
		found := false
		for class := range classes {
			label, of, _ := strings.Cut(class, " ")
			if covers(label, age) && covers(of, sex) {
				truth[class]++
				found = true
			}
		}
		if !found {
			t.Errorf("no class covers %s %s", age, sex)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for class, n := range classes {
		if truth[class] < n {
			t.Errorf("%d people show %s, which covers %d", n, class, truth[class])
		}
	}
}

func staysPublished(t *testing.T, s *testCluster) {
	owner := s.as(t, "dba")
	c := enroll(t, owner, "stays", 1500)
	c.jointly(t, owner)
	p := s.serve(t)
	conn := connect(t, p.dsn(s.reader(t)))
	query := fmt.Sprintf(
		"SELECT p.id::text || p.sex, c.code FROM %s p LEFT JOIN %s c ON c.person = p.id", c.people,
		c.codes)
	before := pairsOf(t, conn, query)
	// A copy changes nothing of who is shown, whatever they have in the table now.
	for _, change := range []string{
		"SELECT",
		fmt.Sprintf("INSERT INTO %s SELECT max(id), 'C23' FROM %s", c.codes, c.people),
		fmt.Sprintf("UPDATE %s SET age = age + 1 WHERE id IN (SELECT min(id) FROM %[1]s)", c.people),
		fmt.Sprintf("DELETE FROM %s WHERE id IN (SELECT max(id) FROM %[1]s)", c.people),
	} {
		mustExec(t, owner, fmt.Sprintf("%s; CALL tailor.refresh('%s')", change, c.codes))
		awaitTakenIn(t, s.superuser(t), c.codes, conn)
		if now := pairsOf(t, conn, query); !slices.Equal(now, before) {
			t.Errorf("after %s another answer is given", change)
		}
	}
	if waiting := one[[]int64](t, owner, `SELECT ARRAY[arrivals, departures, changes]
		FROM tailor.epochs WHERE relation =
		$1::text::regclass`, c.codes); !slices.Equal(waiting, []int64{0, 1, 1}) {
		t.Errorf("%v wait to come, to go and to change, want 0, 1 and 1", waiting)
	}
	_, err := owner.Exec(t.Context(), fmt.Sprintf(
		"CALL tailor.joint('%[1]s', ARRAY['age']); CALL tailor.activate('%[1]s')", c.codes))
	if codeIn(err) != "55000" {
		t.Errorf("other columns: %v, want 55000", err)
	}
	mustExec(t, owner, fmt.Sprintf("CALL tailor.joint('%[1]s', ARRAY['sex', 'age'], 60); CALL "+
		"tailor.forget_chains('%[1]s')", c.codes))
	if now := pairsOf(t, conn, query); len(now) == 0 || slices.Equal(now, before) {
		t.Error("forget_chains publishes nothing new")
	}
}

// pairsOf are the rows of two columns, in order.
func pairsOf(t *testing.T, conn *pgx.Conn, sql string) []string {
	t.Helper()
	var out []string
	for _, values := range answered(t, conn, sql) {
		out = append(out, fmt.Sprint(values...))
	}
	slices.Sort(out)
	return out
}

func refusesJoint(t *testing.T, s *testCluster) {
	owner := s.as(t, "dba")
	c := enroll(t, owner, "refused", 300)
	for call, code := range map[string]string{
		`CALL tailor.joint('refused', ARRAY['age'])`:              "55000",
		`CALL tailor.joint('refused_codes', '{}')`:                "22023",
		`CALL tailor.joint('refused_codes', ARRAY['age', 'age'])`: "22023",
		`CALL tailor.joint('refused_codes', ARRAY['age', NULL])`:  "22023",
		`CALL tailor.joint('refused_codes', ARRAY['age'], 1)`:     "22023",
		`CALL tailor.joint('refused_codes', ARRAY['cost'])`:       "42703",
		`CALL tailor.joint('refused_codes', ARRAY['nothing'])`:    "42703",
		`CALL tailor.joint('refused_codes', ARRAY['age'], 4)`:     "22023",
		`CALL tailor.classify('refused_codes', 'person', 'direct_identifier'); ` +
			`CALL tailor.joint('refused_codes', ARRAY['age'])`: "0A000",
		`CALL tailor.set_valued('refused_codes', 'code', sensitive => ARRAY['C03'], diversity => 3); ` +
			`CALL tailor.joint('refused_codes', ARRAY['age'])`: "0A000",
		`CALL tailor.rows('refused', false); CALL tailor.activate('refused'); ` +
			`CALL tailor.joint('refused_codes', ARRAY['age'])`: "0A000",
		`ALTER TABLE refused_codes DROP CONSTRAINT refused_codes_person_fkey; ` +
			`CALL tailor.joint('refused_codes', ARRAY['age'])`: "0A000",
	} {
		tx, err := owner.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = tx.Exec(t.Context(), call)
		if err == nil {
			_, err = tx.Exec(t.Context(), fmt.Sprintf("CALL tailor.activate('%s')", c.codes))
		}
		if codeIn(err) != code {
			t.Errorf("%s: %v, want %s", call, err, code)
		}
		_ = tx.Rollback(t.Context())
	}
}

func findsToldCodes(t *testing.T, s *testCluster) {
	owner := s.as(t, "dba")
	c := enroll(t, owner, "told", 1500)
	mustExec(t, owner, fmt.Sprintf(`ALTER TABLE %[1]s ADD COLUMN main text;
UPDATE %[1]s SET main = CASE WHEN id %% 9 = 0 THEN 'none' ELSE 'illness ' || id %% 7 END;
INSERT INTO %[2]s SELECT id, 'M' || id %% 7 FROM %[1]s WHERE id %% 9 <> 0;
CALL tailor.classify('%[1]s', 'main', 'sensitive');
CALL tailor.activate('%[1]s')`, c.people, c.codes))
	activate := fmt.Sprintf(
		`CALL tailor.joint('%[1]s', ARRAY['sex', 'age'], 60); CALL tailor.activate('%[1]s')`, c.codes)
	_, err := owner.Exec(t.Context(), activate)
	if codeIn(err) != "0A000" || !strings.Contains(err.Error(), "main") {
		t.Fatalf("a column that tells codes: %v, want 0A000", err)
	}
	mustExec(t, owner, fmt.Sprintf(`CALL tailor.shared_fact('%s', 'code', 'accepted'); %s`, c.codes,
		activate))
}

func erasesJoint(t *testing.T, s *testCluster) {
	owner := s.as(t, "dba")
	c := enroll(t, owner, "erased", 1500)
	c.jointly(t, owner)
	p := s.serve(t)
	conn := connect(t, p.dsn(s.reader(t)))
	query := fmt.Sprintf("SELECT count(DISTINCT p.id) FROM %s p LEFT JOIN %s c ON c.person = p.id",
		c.people, c.codes)
	if n := numbersBy(t, conn, query); n["[]"] != 1500 {
		t.Fatalf("%g people are shown, want 1500", n["[]"])
	}
	mustExec(t, owner, fmt.Sprintf("CALL tailor.erase('%s', '%d')", c.people, 1_000_000*int('e')+3))
	left := 0.0
	waitFor(t, func() bool { left = numbersBy(t, conn, query)["[]"]; return left < 1500 })
	if left < 1500-9 || left > 1500-5 {
		t.Errorf("%g people are shown after an erasure, want all but a cluster", left)
	}
	mustExec(t, owner, fmt.Sprintf("CALL tailor.refresh('%s')", c.codes))
	awaitTakenIn(t, s.superuser(t), c.codes, conn)
	if n := numbersBy(t, conn, query); n["[]"] != left {
		t.Errorf("%g people are shown after another copy, want %g", n["[]"], left)
	}
	mustExec(t, owner, fmt.Sprintf("CALL tailor.forget_chains('%s')", c.codes))
	waitFor(t, func() bool { return numbersBy(t, conn, query)["[]"] == 1499 })
}

package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// staffSchema makes the staff, who answer with aggregates only: units of very different
// sizes, pay that some have none of, a fee that few have, one person who earns what fifty
// others do, and three in a unit of their own.
const staffSchema = `
GRANT USAGE ON SCHEMA public TO PUBLIC;
CREATE TABLE staff (id int PRIMARY KEY, name text, age int, sex text, unit text, grade int,
    pay numeric(10, 2), bonus float8, hired date, nights boolean, fee int);
INSERT INTO staff SELECT g, 'Canaria ' || g, 20 + g * 7 % 45, (ARRAY['female', 'male'])[1 + g % 2],
    (ARRAY['ward', 'ward', 'ward', 'ward', 'lab', 'lab', 'icu', 'office'])[1 + g * 13 % 8] ||
    CASE WHEN g % 37 = 0 THEN g % 5 ELSE 0 END,
    g % 11 - 4, CASE WHEN g % 6 <> 0 OR g * 13 % 8 = 7 AND g % 5 > 0
    THEN 1000 + g * 31 % 997 + g % 100 / 100.0 END, g * 1.5, date '2010-01-01' + g * 11, CASE
    WHEN g % 9 > 0 THEN g % 4 = 0 END,
    CASE WHEN g % 20 = 0 THEN 10000 + g END
    FROM generate_series(1, 400) g;
UPDATE staff SET pay = 90000 WHERE id = 77;
INSERT INTO staff SELECT 1000 + g, 'Canaria', 40 + g, 'male', 'secret', 77, 9000 + g, CASE
    WHEN g = 1 THEN float8 'NaN' ELSE g END, date '1999-01-01' + g, true
    FROM generate_series(1, 3) g;
`

const staffPolicy = `
CALL tailor.define_hierarchy('age', 'interval',
    '{"widths": [5, 10, 20], "lower": 0, "upper": 119}');
CALL tailor.define_hierarchy('sex', 'table', '{"paths": [["female"], ["male"]]}');
CALL tailor.protect('public.staff', subject => 'id', k => 5);
CALL tailor.rows('public.staff', false);
CALL tailor.classify('public.staff', 'name', 'direct_identifier');
CALL tailor.classify('public.staff', 'id', 'direct_identifier');
CALL tailor.classify('public.staff', 'age', 'quasi_identifier', hierarchy => 'age');
CALL tailor.classify('public.staff', 'sex', 'quasi_identifier', hierarchy => 'sex');
CALL tailor.classify('public.staff', 'unit', 'sensitive');
CALL tailor.classify('public.staff', 'grade', 'sensitive');
CALL tailor.classify('public.staff', 'pay', 'sensitive');
CALL tailor.classify('public.staff', 'bonus', 'non_sensitive');
CALL tailor.classify('public.staff', 'hired', 'non_sensitive');
CALL tailor.classify('public.staff', 'nights', 'non_sensitive');
CALL tailor.classify('public.staff', 'fee', 'non_sensitive');
CALL tailor.activate('public.staff');
`

// serveStaff makes a database with the staff and serves it to a reader.
func serveStaff(t *testing.T, name string) (*testProxy, *pgx.Conn, *pgx.Conn) {
	t.Helper()
	direct := makeDatabase(t, name, staffSchema)
	if err := shared.install(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, staffPolicy)
	p := serveDatabase(t, name)
	conn := connect(t, p.dsn(shared.reader(t)))
	untilAnswered(t, conn, "SELECT count(*) FROM staff")
	return p, conn, direct
}

// untilAnswered waits until a statement is answered.
func untilAnswered(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	var err error
	defer func() {
		if err != nil {
			t.Logf("%s: %v", sql, err)
		}
	}()
	waitFor(t, func() bool { _, err = conn.Exec(t.Context(), sql); return err == nil })
}

// noticing is a connection, and the notices of its last statement.
func noticing(t *testing.T, dsn string) (*pgx.Conn, *[]string) {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	notices := &[]string{}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		*notices = append(*notices, n.Message)
	}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn, notices
}

// table reads all rows of a query as text, NULL as "∅".
func table(t *testing.T, conn *pgx.Conn, sql string) [][]string {
	t.Helper()
	results, err := conn.PgConn().Exec(t.Context(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	var out [][]string
	for _, row := range results[len(results)-1].Rows {
		var cells []string
		for _, cell := range row {
			if cell == nil {
				cells = append(cells, "∅")
			} else {
				cells = append(cells, string(cell))
			}
		}
		out = append(out, cells)
	}
	return out
}

func number(t *testing.T, text string) (n int) {
	t.Helper()
	if _, err := fmt.Sscan(text, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func refusedWith(t *testing.T, conn *pgx.Conn, code, sql string, args ...any) {
	t.Helper()
	_, err := conn.Exec(t.Context(), sql, args...)
	if refused, ok := asRefusal(err); !ok || refused.Code != code {
		t.Errorf("%s: %v, want %s", sql, err, code)
	}
}

// TestAggregatesOnlyAnswerWhatTheTableDoes compares what is asked of whole blocks with the
// table: it is exact.
func TestAggregatesOnlyAnswerWhatTheTableDoes(t *testing.T) {
	_, conn, direct := serveStaff(t, "aggregates_answers")
	mustExec(t, conn, "SET tailor.notices = off")
	for _, sql := range []string{
		"SELECT count(*), count(pay), sum(pay), round(avg(pay), 4), count(fee), sum(fee), sum(grade), " +
			"round(avg(grade), 6) FROM staff",
		"SELECT sex, count(*), sum(grade) FROM staff GROUP BY sex ORDER BY sex",
		"SELECT nights, count(*) FROM staff GROUP BY nights ORDER BY nights",
		"SELECT count(*) FROM staff WHERE unit = 'ward0'",
		"SELECT count(DISTINCT id) FROM staff",
		"SELECT sex, sum(sum(grade)) OVER (ORDER BY sex) FROM staff GROUP BY sex ORDER BY sex",
		"SELECT count(*) FROM (SELECT age, avg(grade) FROM staff GROUP BY age HAVING count(*) > 10000) q",
	} {
		if got, want := table(t, conn, sql), table(t, direct, sql); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s\ngot  %v\nwant %v", sql, got, want)
		}
	}
	var got, want float64
	for _, sql := range []string{
		"SELECT sum(bonus) FROM staff WHERE %s",
		"SELECT avg(bonus) FROM staff WHERE %s",
	} {
		if err := conn.QueryRow(t.Context(), fmt.Sprintf(sql, "true")).Scan(&got); err != nil {
			t.Fatal(err)
		}
		want = one[float64](t, direct, fmt.Sprintf(sql, "bonus < 'infinity'"))
		if got < want*(1-1e-9) || got > want*(1+1e-9) {
			t.Errorf("%s: %v, want %v", sql, got, want)
		}
	}
	// Who is one of three in a unit counts, and the unit is not named.
	if got := table(t, conn, "SELECT count(*) FROM staff WHERE unit = 'secret'"); got[0][0] != "0" {
		t.Errorf("a unit of three is named: %v", got)
	}
	if got := one[int](t, conn, "SELECT count(DISTINCT unit) FROM staff"); got < 4 {
		t.Errorf("%d units are named", got)
	}
	for _, sql := range []string{
		"SELECT pay FROM staff",
		"SELECT unit, avg(pay) FROM staff GROUP BY unit", "SELECT count(*) FROM staff WHERE pay > 9000",
		"SELECT max(pay) FROM staff",
	} {
		refusedWith(t, conn, "0A000", sql)
	}
}

// payloadOf lists the payload of a relation by number, name and whether it is averaged.
func payloadOf(
	t *testing.T, direct *pgx.Conn, relation string,
) (rows string, averaged, others map[string]string) {
	t.Helper()
	rows = one[string](t, direct,
		`SELECT tailor.rows_of(c) FROM tailor.chain c WHERE relation = $1::regclass`, relation)
	averaged, others = make(map[string]string), make(map[string]string)
	for _, line := range rowsOf(t, direct, fmt.Sprintf(
		`SELECT c ->> 'number', c ->> 'name', tailor.is_averaged(c) FROM tailor.protection p
		JOIN tailor.policy_version v ON (v.relation, v.version) = (p.relation, p.active),
			jsonb_array_elements(policy -> 'columns') c
		WHERE p.relation = '%s'::regclass AND c ->> 'class' LIKE '%%sensitive'`, relation)) {
		part := strings.Split(line, "|")
		if part[2] == "t" {
			averaged[part[0]] = part[1]
		} else {
			others[part[0]] = part[1]
		}
	}
	return rows, averaged, others
}

// assertAveraged checks what is stored, and so what any SQL can read: each number is one
// that stands for k subjects, none of whom owns more than half of the sum of amounts; the
// sums are those of the table; and other payload is that of the block, value by value, if k
// subjects have it. It returns how many cells have several blocks, and how many are withheld.
func assertAveraged(t *testing.T, direct *pgx.Conn, relation string, k int) (joined, withheld int) {
	t.Helper()
	rows, averaged, others := payloadOf(t, direct, relation)
	for column, name := range averaged {
		for _, line := range rowsOf(t, direct, fmt.Sprintf(`
			WITH v AS (SELECT "tailor cell %[2]s" AS cell, "tailor block" AS block, "tailor person"
				AS person, "tailor shown %[2]s"::numeric AS shown,
					CASE WHEN %[3]s::text NOT IN ('NaN', 'Infinity', '-Infinity') THEN %[3]s::numeric END AS x
					FROM %[1]s),
			part AS (SELECT cell, sum(abs(x)) AS part FROM v GROUP BY cell, person),
			cell AS (SELECT cell, count(part) AS n, coalesce(max(part), 0)
			AS largest, coalesce(sum(part), 0) AS amounts FROM part GROUP BY cell)
			SELECT cell, n, largest <= 0.5 * amounts, count(shown), count(x),
				abs(coalesce(sum(shown), 0) - coalesce(sum(x), 0)) < 1e-6 * amounts + 1e-9,
				coalesce(max(shown) - min(shown), 0) <= 1, count(DISTINCT block)
			FROM cell JOIN v USING (cell) GROUP BY cell, n, largest, amounts`, rows, column, name)) {
			part := strings.Split(line, "|")
			shows := part[3] != "0"
			switch {
			case part[0] == "":
				t.Errorf("%s: rows without a cell", name)
			case shows && (number(t, part[1]) < k || part[2] != "t"):
				t.Errorf("%s: a cell of %s subjects is shown, share kept: %s", name, part[1], part[2])
			case shows && (part[3] != part[4] || part[5] != "t" || part[6] != "t"):
				t.Errorf("%s: %s averages of %s values, same sum %s, alike %s", name, part[3], part[4], part[5],
					part[6])
			case !shows && part[4] != "0":
				withheld++
			}
			if part[7] != "1" {
				joined++
			}
		}
		if n := one[int](t, direct, fmt.Sprintf(
			`SELECT count(*) FROM (SELECT FROM %s GROUP BY "tailor block" `+
				`HAVING count(DISTINCT "tailor cell %s") <> 1) q`, rows, column)); n > 0 {
			t.Errorf("%s: %d blocks have several cells", name, n)
		}
	}
	for column, name := range others {
		n := one[int](t, direct, fmt.Sprintf(`
			WITH few AS (SELECT %[3]s::text AS value FROM %[1]s GROUP BY 1
				HAVING count(DISTINCT "tailor person") < %[4]d),
			own AS (SELECT "tailor block" AS block, CASE WHEN %[3]s::text NOT IN (SELECT value FROM few
			WHERE value IS NOT NULL) THEN %[3]s::text END AS value, count(*) AS n FROM %[1]s GROUP BY 1, 2),
			shown AS (SELECT "tailor block" AS block, "tailor shown %[2]s"::text AS value, count(*) AS n
			FROM %[1]s GROUP BY 1, 2)
			SELECT count(*) FROM ((TABLE own EXCEPT TABLE shown) UNION ALL (TABLE shown
				EXCEPT TABLE own)) q`, rows, column, name, k))
		if n > 0 {
			t.Errorf("%s: %d values of blocks differ", name, n)
		}
	}
	return joined, withheld
}

// TestNumbersStandInAveragesOfKSubjects looks at all that there is to read.
func TestNumbersStandInAveragesOfKSubjects(t *testing.T) {
	_, conn, direct := serveStaff(t, "aggregates_checked")
	joined, withheld := assertAveraged(t, direct, "staff", 5)
	if joined == 0 || withheld > 0 {
		t.Errorf("%d cells of several blocks, %d withheld: the staff test too little", joined, withheld)
	}
	view := one[string](t, direct, `SELECT 'tailor_release.chain_' || chain FROM tailor.chain`)
	if n := one[int](t, direct, fmt.Sprintf(
		`SELECT count(*) FROM %s r JOIN staff s USING (pay) WHERE s.pay > 5000`, view)); n > 0 {
		t.Errorf("the release has %d values of people who earn most", n)
	}

	rows, averaged, _ := payloadOf(t, direct, "staff")
	var shown, exchange []string
	for number, name := range averaged {
		shown = append(shown, fmt.Sprintf(`"tailor shown %s"`, number))
		exchange = append(exchange, fmt.Sprintf("%[1]s = o.%[1]s", name))
	}
	slices.Sort(shown)

	// The copies that follow: newcomers have cells of their own, and who is shown keeps his.
	cells := fmt.Sprintf(`SELECT "tailor person", %s FROM %s ORDER BY 1`,
		strings.ReplaceAll(strings.Join(shown, ", "), "shown", "cell"), rows)
	kept := table(t, direct, cells)
	follows := func(what, change string) {
		t.Helper()
		const copies = `SELECT generation FROM tailor.chain`
		before := one[int](t, direct, copies)
		mustExec(t, direct, change)
		mustExec(t, direct, `CALL tailor.refresh('staff')`)
		waitFor(t, func() bool { return one[int](t, direct, copies) > before })
		joined, withheld := assertAveraged(t, direct, "staff", 5)
		t.Logf("%s: %d cells of several blocks, %d withheld", what, joined, withheld)
	}
	const sum = `SELECT sum(pay)::text FROM staff`
	follows("newcomers",
		`INSERT INTO staff SELECT 5000 + g, 'Canaria', 20 + g % 45, (ARRAY['female', 'male'])[1 + g % `+
			`2], 'ward0', 3, 1500 + g, g, date '2020-01-01' + g, false, NULL FROM generate_series(1, 200) g`)
	now := make(map[string]string)
	for _, row := range table(t, direct, cells) {
		now[row[0]] = fmt.Sprint(row)
	}
	for _, row := range kept {
		if now[row[0]] != fmt.Sprint(row) {
			t.Fatalf("a cell has changed: %v, %v", row, now[row[0]])
		}
	}

	// Whole blocks change, and others leave: the sums follow.
	follows("people who change and leave",
		`UPDATE staff SET pay = pay + 10.01, grade = grade - 1 WHERE age BETWEEN 30 AND 39; `+
			`DELETE FROM staff WHERE age BETWEEN 22 AND 25`)
	// One person's amount changes at once, where the policy says so.
	mustExec(t, direct, `CALL tailor.changes('staff', 'at_once'); CALL tailor.activate('staff')`)
	untilAnswered(t, conn, `SELECT sum(pay) FROM staff`)
	was := one[string](t, conn, sum)
	follows("one person who changes at once", `UPDATE staff SET pay = pay - 1.5 WHERE id = 4`)
	waitFor(t, func() bool {
		return one[bool](t, direct, `SELECT $1::numeric = $2::numeric - 1.5`,
			one[string](t, conn, sum), was)
	})

	// An erasure takes the person out of the averages as well.
	was = one[string](t, conn, sum)
	mustExec(t, direct, `CALL tailor.erase('staff', '77')`)
	assertAveraged(t, direct, "staff", 5)
	if now := one[string](t, conn, sum); one[bool](t, direct,
		`SELECT $1::numeric > $2::numeric - 90000`, now, was) {
		t.Errorf("who is erased is in the sum: %s, %s before", now, was)
	}

	// To exchange the payload of people of one block changes no average.
	rows, _, _ = payloadOf(t, direct, "staff")
	all := fmt.Sprintf(`SELECT "tailor person", %s FROM %s ORDER BY 1`,
		strings.Join(shown, ", "), rows)
	before := table(t, direct, all)
	pays := fmt.Sprintf(`SELECT pay FROM %s ORDER BY "tailor person"`, rows)
	paid := table(t, direct, pays)
	mustExec(t, direct, fmt.Sprintf(`UPDATE %[1]s r SET %[2]s FROM
			(SELECT "tailor block" AS block, "tailor person"
			AS person, row_number() OVER (PARTITION BY "tailor block" ORDER BY random()) AS place
			FROM %[1]s) i
			JOIN (SELECT *, row_number() OVER (PARTITION BY "tailor block" ORDER BY "tailor person")
				AS place FROM %[1]s) o ON (o."tailor block", o.place) = (i.block, i.place)
		WHERE i.person = r."tailor person"`, rows, strings.Join(exchange, ", ")))
	if fmt.Sprint(table(t, direct, pays)) == fmt.Sprint(paid) {
		t.Fatal("nothing was exchanged")
	}
	averages := fmt.Sprintf(
		`SELECT tailor.show_averages('%s', policy) FROM tailor.policy_version `+
			`WHERE relation = 'staff'::regclass ORDER BY version DESC LIMIT 1`, rows)
	mustExec(t, direct, averages)
	same := 0
	after := table(t, direct, all)
	for i := range after {
		if fmt.Sprint(after[i]) == fmt.Sprint(before[i]) {
			same++
		}
	}
	if same < len(after) {
		t.Errorf("%d of %d rows show the same after an exchange within blocks", same, len(after))
	}
	assertAveraged(t, direct, "staff", 5)
}

// TestSeveralRowsOfASubjectAreAveragedOverSubjects joins a child that answers with
// aggregates only with its parent, which does too.
func TestSeveralRowsOfASubjectAreAveragedOverSubjects(t *testing.T) {
	_, conn, direct := serveStaff(t, "aggregates_child")
	mustExec(t, direct,
		`CREATE TABLE shifts (shift int PRIMARY KEY, staff_id int REFERENCES staff, hours int,
			paid numeric(8, 2));
		INSERT INTO shifts SELECT g, 1 + g % 390, g % 12, CASE WHEN g % 390 = 6 THEN 90000
			ELSE g % 100 END FROM generate_series(1, 3000) g;
		INSERT INTO shifts SELECT 5000 + g, 7, 1, 3 FROM generate_series(1, 40) g;
		CALL tailor.protect('public.shifts', subject => 'staff_id', k => 5);
		CALL tailor.classify('public.shifts', 'hours', 'non_sensitive');
		CALL tailor.classify('public.shifts', 'paid', 'non_sensitive');
		CALL tailor.rows('public.shifts', false);
		CALL tailor.activate('public.shifts')`)
	untilAnswered(t, conn, "SELECT sum(hours) FROM shifts")
	assertAveraged(t, direct, "shifts", 5)
	for _, sql := range []string{
		"SELECT count(*), sum(hours) FROM shifts",
		"SELECT count(*), sum(h.hours) FROM staff s JOIN shifts h ON h.staff_id = s.id",
	} {
		if got, want := table(t, conn, sql), table(t, direct, sql); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", sql, got, want)
		}
	}
	refusedWith(t, conn, "0A000", "SELECT hours FROM shifts")
	refusedWith(t, conn, "42501", "SELECT sum(s.pay) FROM staff s JOIN shifts h ON h.staff_id = s.id")
}

// TestPoliciesWithoutRowsGoRoundThroughFiles turns the setting on and off by SQL and by file.
func TestPoliciesWithoutRowsGoRoundThroughFiles(t *testing.T) {
	_, conn, direct := serveStaff(t, "aggregates_policy")
	dsn := shared.cluster.SuperuserDSN("aggregates_policy")
	file := filepath.Join(t.TempDir(), "policy.yaml")
	run := func(args ...string) string {
		t.Helper()
		output, err := exec.CommandContext(t.Context(), binary, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("tailor %v: %v\n%s", args, err, output)
		}
		return string(output)
	}
	run("policy", "export", "--dsn", dsn, file)
	text, err := os.ReadFile(file)
	if err != nil || strings.Count(string(text), "rows: false") != 1 {
		t.Fatalf("exported: %v\n%s", err, text)
	}
	run("policy", "lint", file)
	refusedWith(t, conn, "0A000", `SELECT pay FROM staff`)
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), "    rows: false\n", "", 1)),
		0o600); err != nil {
		t.Fatal(err)
	}
	if plan := run("policy", "plan", "--dsn", dsn, file); !strings.Contains(plan, "- rows: false") {
		t.Errorf("the plan does not tell:\n%s", plan)
	}
	run("policy", "apply", "--dsn", dsn, file)
	untilAnswered(t, conn, `SELECT pay FROM staff`)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	run("policy", "apply", "--dsn", dsn, file)
	waitFor(t, func() bool { // releases are closed at once, and the proxy hears of it in a moment
		_, err := conn.Exec(t.Context(), `SELECT pay FROM staff`)
		refused, ok := asRefusal(err)
		return ok && refused.Code == "0A000"
	})
	untilAnswered(t, conn, `SELECT avg(pay) FROM staff`)
	assertAveraged(t, direct, "staff", 5)

	// A stricter policy joins blocks, and makes cells of them anew.
	mustExec(t, direct, `CALL tailor.protect('staff', 'id', 9); CALL tailor.activate('staff')`)
	untilAnswered(t, conn, `SELECT avg(pay) FROM staff`)
	assertAveraged(t, direct, "staff", 9)
	if got, want := one[string](t, conn, `SELECT sum(pay)::text FROM staff`),
		one[string](t, direct, `SELECT sum(pay)::text FROM staff`); got != want {
		t.Errorf("sum %s, want %s", got, want)
	}
}

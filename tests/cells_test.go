package tests

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// cellsOf is k of the staff, who answer with aggregates only.
const cellsOf = 5

// staffSchema makes the staff: units of very different sizes, pay that some
// have none of, and three people (%[1]d of them) of whom nothing may show.
const staffSchema = `
GRANT USAGE ON SCHEMA public TO PUBLIC;
CREATE TABLE staff (id int PRIMARY KEY, name text, age int, sex text, unit text, grade int, pay numeric(10, 2), bonus float8, hired date, nights boolean);
INSERT INTO staff SELECT g, 'Canaria ' || g, 20 + g * 7 %% 45, (ARRAY['female', 'male'])[1 + g %% 2],
    (ARRAY['ward', 'ward', 'ward', 'ward', 'lab', 'lab', 'icu', 'office'])[1 + g * 13 %% 8] || CASE WHEN g %% 37 = 0 THEN g %% 5 ELSE 0 END,
    g %% 11, CASE WHEN g %% 6 <> 0 OR g * 13 %% 8 = 7 AND g %% 5 > 0 THEN 1000 + g * 31 %% 997 END, g * 1.5, date '2010-01-01' + g * 11, CASE WHEN g %% 9 > 0 THEN g %% 4 = 0 END
    FROM generate_series(1, 400) g;
INSERT INTO staff SELECT 1000 + g, 'Canaria', 40 + g, 'male', 'secret', 77, %[2]d + g, g, date '1999-01-01' + g, true FROM generate_series(1, %[1]d) g;
INSERT INTO staff SELECT 1000 + g, 'Canaria', 40 + g, 'male', 'ward0', 7, 1234, g, date '2011-01-01' + g, true FROM generate_series(%[1]d + 1, 4) g;
ALTER TABLE staff ADD token uuid NOT NULL DEFAULT gen_random_uuid();
`

const staffPolicy = `
CALL tailor.define_hierarchy('age', 'interval', '{"widths": [5, 10, 20], "lower": 0, "upper": 119}');
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
CALL tailor.classify('public.staff', 'token', 'non_sensitive');
CALL tailor.activate('public.staff');
`

// serveStaff makes a database with the staff and serves it.
func serveStaff(t *testing.T, name string, secret, pay int) (*proxied, *pgx.Conn) {
	t.Helper()
	conn := makeDatabase(t, name, fmt.Sprintf(staffSchema, secret, pay))
	if err := shared.install(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	exec1(t, conn, staffPolicy)
	return serveDatabase(t, name), conn
}

// noticing is a connection, and the notices of its last statement.
func noticing(t *testing.T, dsn string) (*pgx.Conn, *[]string) {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	notices := &[]string{}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { *notices = append(*notices, n.Message) }
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

// exposed copies what the release of a reader shows into a plain table, from
// Tailor's own store: labels under the columns' names.
func exposed(t *testing.T, direct *pgx.Conn, user string) {
	t.Helper()
	chain := one[int](t, direct, `SELECT chain FROM tailor.chain WHERE relation = 'staff'::regclass`)
	number := func(column string) int {
		return one[int](t, direct, `SELECT attnum FROM pg_attribute WHERE attrelid = 'staff'::regclass AND attname = $1`, column)
	}
	exec1(t, direct, fmt.Sprintf(`CREATE TABLE shown AS SELECT *, tailor_label_%d AS age_label, tailor_label_%d AS sex_label FROM (%s) release`,
		number("age"), number("sex"), unguarded(t, direct, fmt.Sprintf("tailor_release.chain_%d", chain))))
}

// aggregateQuery is a query as it is asked, and what the rows that each of its
// cells is computed from are counted by.
type aggregateQuery struct {
	groups     []string
	aggregates []string // as they are asked
	plain      []string // over the plain table: the same
	hidden     []string // whether too few rows are seen, or too few are not
	where      string
	payload    bool // whether the condition names more than quasi-identifiers
}

// someQuery writes a query of the kinds that are understood.
func someQuery(r *rand.Rand) aggregateQuery {
	conditions := []string{
		"unit = 'ward0'", "unit IN ('lab0', 'icu1', 'secret')", "pay > 1500", "pay IS NULL", "NOT nights", "nights IS NOT TRUE", "grade BETWEEN 2 AND 5",
		"age >= 40", "sex = 'male'", "hired < date '2015-06-01'", "unit LIKE 'o%'", "unit = 'secret'", "grade = ANY ('{1,77}')", "bonus <= 12.5", "unit IS DISTINCT FROM 'ward0'",
		"(unit = 'secret' OR grade = 3)", "NOT pay BETWEEN 1200 AND 1900.5", "pay NOT BETWEEN 1200 AND (1900.5)", "NOT unit IN (('lab0'), 'icu1')",
		"unit NOT IN ('lab0', 'secret')", "unit NOT LIKE 'w%'", "unit NOT ILIKE 'W%'", "unit ILIKE 'L%'", "NOT ((unit) IS NOT DISTINCT FROM ('lab0'))", "1500 >= staff.pay", "unit <> 'secret'",
		"(pay) IS DISTINCT FROM 1031", "grade != 77", "grade <> ALL (ARRAY[1, 77])", "bonus > -1", "token > '80000000-0000-0000-0000-000000000000'",
	}
	some := func() string {
		c := conditions[r.IntN(len(conditions))]
		if r.IntN(3) == 0 {
			c += []string{" AND ", " OR "}[r.IntN(2)] + conditions[r.IntN(len(conditions))]
		}
		return c
	}
	var q aggregateQuery
	for _, g := range []string{"unit", "grade", "nights", "age", "sex", "token"} {
		if r.IntN(4) == 0 {
			q.groups = append(q.groups, g)
		}
	}
	if r.IntN(3) > 0 {
		condition := some()
		q.where, q.payload = " WHERE "+condition, strings.Trim(condition, "ageORANDsxml '=>40") != ""
	}
	for range 1 + r.IntN(4) {
		filter := ""
		if r.IntN(2) == 0 {
			filter = " FILTER (WHERE " + some() + ")"
		}
		switch column := []string{"pay", "grade", "age", "bonus"}[r.IntN(4)]; r.IntN(5) {
		case 0:
			q.add("count(*)"+filter, "count(*)"+filter, "*", filter)
		case 1:
			q.add("count(DISTINCT unit)"+filter, "count(DISTINCT unit)"+filter, "unit", filter)
		case 2:
			q.add("count(DISTINCT id)"+filter, "count(*)"+filter, "*", filter)
		case 3:
			q.add("sum("+column+")"+filter, "sum("+column+")"+filter, column, filter)
		default:
			f := "round((" + []string{"avg", "stddev", "var_pop"}[r.IntN(3)] + "(" + column + ")" + filter + ")::numeric, 6)"
			q.add(f, f, column, filter)
		}
	}
	return q
}

// add adds an aggregate of what counts as of.
func (q *aggregateQuery) add(asked, plain, of, filter string) {
	q.aggregates, q.plain = append(q.aggregates, asked), append(q.plain, plain)
	q.hidden = append(q.hidden, fmt.Sprintf(`count(%[1]s)%[2]s < %[3]d
		OR count(*) - count(%[1]s)%[2]s BETWEEN 1 AND %[3]d - 1
		OR count(%[1]s) - count(%[1]s)%[2]s BETWEEN 1 AND %[3]d - 1
		OR count(*)%[2]s - count(%[1]s)%[2]s BETWEEN 1 AND %[3]d - 1`, of, filter, cellsOf))
}

// TestEveryCellIsComputedFromKSubjects asks some hundred queries and looks, in a
// plain copy of what the release holds, how many people each group and each
// cell is computed from, and how many are left out: those of k and more are
// shown as they are, no others.
func TestEveryCellIsComputedFromKSubjects(t *testing.T) {
	p, direct := serveStaff(t, "cells", 3, 9000)
	user := shared.reader(t)
	conn, notices := noticing(t, p.dsn(user))
	table(t, conn, `SELECT age, sex, count(*) FROM staff GROUP BY age, sex`)
	exposed(t, direct, user)

	r := rand.New(rand.NewPCG(6, 6))
	cells, hidden, leftOut, told, nothing := 0, 0, 0, 0, 0
	for n := range 400 {
		q := someQuery(r)
		asked := "SELECT " + strings.Join(slices.Concat(q.groups, q.aggregates), ", ") + " FROM staff" + q.where
		labelled := make([]string, len(q.groups))
		grouping := slices.Clone(q.groups)
		for i, g := range q.groups {
			labelled[i] = g
			if g == "age" || g == "sex" {
				labelled[i] = g + "_label"
				grouping = append(grouping, labelled[i])
			}
		}
		plain := "SELECT count(*), " + strings.Join(slices.Concat(labelled, q.plain, q.hidden), ", ") + " FROM shown staff" + q.where
		if len(q.groups) > 0 {
			asked += " GROUP BY " + strings.Join(q.groups, ", ")
			plain += " GROUP BY " + strings.Join(grouping, ", ")
			if n%3 == 0 {
				asked += " ORDER BY 1"
			}
		}
		var want [][]string
		small, smallPeople := 0, 0
		for _, row := range table(t, direct, plain) {
			people := number(t, row[0])
			if people < cellsOf {
				small, smallPeople, leftOut = small+1, smallPeople+people, leftOut+1
				continue
			}
			shown := slices.Clone(row[1 : 1+len(q.groups)+len(q.plain)])
			for i := range q.plain {
				cells++
				if row[1+len(q.groups)+len(q.plain)+i] == "t" {
					shown[len(q.groups)+i] = "∅"
					hidden++
				}
			}
			want = append(want, shown)
		}
		missing := 0
		if q.payload {
			missing = number(t, table(t, direct, "SELECT count(*) FROM shown staff WHERE ("+strings.TrimPrefix(q.where, " WHERE ")+") IS NOT TRUE")[0][0])
		}
		withheld := missing > 0 && missing < cellsOf
		if withheld {
			want, nothing = nil, nothing+1
		}
		*notices = nil
		got := table(t, conn, asked)
		if fmt.Sprint(ordered(got)) != fmt.Sprint(ordered(want)) {
			t.Errorf("%s\ngot  %.1000v\nwant %.1000v", asked, ordered(got), ordered(want))
		}
		said := fmt.Sprintf("groups of fewer than %d subjects are left out: none, or some with fewer than %[1]d subjects in all", cellsOf)
		if withheld {
			said = fmt.Sprintf("nothing is shown: the condition leaves out fewer than %d subjects", cellsOf)
		} else if smallPeople >= cellsOf {
			said = fmt.Sprintf("%d groups of fewer than %d subjects are left out", small, cellsOf)
			told++
		}
		if !slices.Contains(*notices, said) || len(*notices) != 2 {
			t.Errorf("%s\nnotices %q, want %q", asked, *notices, said)
		}
	}
	t.Logf("%d cells of groups that are shown, %d of them hidden; %d groups left out, %d times counted; %d conditions that leave out too few", cells, hidden, leftOut, told, nothing)
	if cells < 1000 || hidden < 100 || leftOut < 1000 || told < 50 || nothing < 5 {
		t.Error("the queries test too little")
	}
}

func number(t *testing.T, text string) (n int) {
	t.Helper()
	if _, err := fmt.Sscan(text, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// ordered are rows in an order of their own.
func ordered(rows [][]string) []string {
	out := make([]string, len(rows))
	for i, row := range rows {
		out[i] = strings.Join(row, "|")
	}
	slices.Sort(out)
	return out
}

// fewStatements ask about the people of whom nothing may show, each in a way of
// its own.
var fewStatements = []string{
	"SELECT count(*) FROM staff WHERE unit = 'secret'",
	"SELECT sum(pay), avg(pay), stddev(pay) FROM staff WHERE unit = 'secret'",
	"SELECT unit, count(*), sum(pay) FROM staff WHERE unit LIKE 'secr%' GROUP BY unit",
	"SELECT unit, count(*) FROM staff WHERE grade = 77 GROUP BY unit HAVING count(*) = 3",
	"SELECT count(*) FILTER (WHERE unit = 'secret'), sum(pay) FILTER (WHERE grade = 77), avg(bonus) FILTER (WHERE hired < '2000-01-01') FROM staff WHERE age >= 0",
	"SELECT coalesce(count(*) FILTER (WHERE unit = 'secret'), -1) FROM staff WHERE pay < 9000",
	"SELECT 1 / coalesce(nullif(count(*) FILTER (WHERE unit = 'secret'), 4), 1) FROM staff WHERE pay < 9000",
	"SELECT 100 / count(*) FROM staff WHERE unit = 'secret' HAVING 1 / (3 - count(*)) = 1",
	"SELECT unit FROM staff GROUP BY unit ORDER BY sum(pay) FILTER (WHERE grade = 77), unit",
	"SELECT unit FROM staff GROUP BY unit HAVING sum(pay) FILTER (WHERE unit = 'secret') > 27000 OR count(*) FILTER (WHERE unit = 'secret') = 3",
	"SELECT unit FROM staff GROUP BY unit ORDER BY unit DESC LIMIT 1 OFFSET 0",
	"SELECT token, count(*) FROM staff WHERE grade = 77 GROUP BY token",
	"SELECT count(DISTINCT token) FROM staff WHERE unit = 'secret'",
	"SELECT count(DISTINCT id) FROM staff WHERE unit = 'secret'",
	"COPY (SELECT count(*), sum(pay) FROM staff WHERE unit = 'secret') TO STDOUT",
	"SELECT max(pay) FROM staff",
	"SELECT pay FROM staff WHERE unit = 'secret'",
	"SELECT count(*) FROM staff WHERE 1 / (pay - 9001) > 0",
	"SELECT count(*) FROM staff WHERE unit = 'secret' AND CASE WHEN pay > 9000 THEN 1 / 0 END = 1",
	"SELECT count(*) FROM staff WHERE unit = 'secret' AND pay::int2 > 0",
	"SELECT count(*) FROM staff WHERE unit LIKE 'secret\\'",
	"SELECT percentile_disc(1) WITHIN GROUP (ORDER BY pay) FROM staff",
	"SELECT sum(CASE WHEN unit = 'secret' THEN pay END) FROM staff",
	"SELECT count(*) FROM staff s WHERE EXISTS (SELECT FROM staff z WHERE z.unit = 'secret' AND s.pay < z.pay)",
	"SELECT count(*) FROM tailor_release.chain_1",
	"DO $$ BEGIN PERFORM count(*) FROM public.staff; END $$",
	"DECLARE c CURSOR FOR SELECT count(*) FROM staff",
	"PREPARE q AS SELECT count(*) FROM staff",
}

// TestFewerThanKSubjectsLeaveNoTrace asks two databases that differ in people of
// whom there are fewer than k: in one, three, in the other, four of other pay.
func TestFewerThanKSubjectsLeaveNoTrace(t *testing.T) {
	user := shared.reader(t)
	var transcripts [2][]string
	for i, name := range []string{"few_three", "few_four"} {
		p, _ := serveStaff(t, name, 3+i, 9000+500*i)
		w := &world{p, nil}
		for _, s := range fewStatements {
			text, _ := w.transcript(t, user, []string{s})
			transcripts[i] = append(transcripts[i], text)
		}
		if text, _ := w.transcript(t, user, []string{"SELECT unit, count(*) FROM staff WHERE unit = 'ward0' GROUP BY unit"}); !strings.Contains(text, `"ward0"`) {
			t.Errorf("others do not show: %s", text)
		}
	}
	for i, s := range fewStatements {
		if transcripts[0][i] != transcripts[1][i] {
			t.Errorf("%s tells the two apart:\n%s\n%s", s, transcripts[0][i], transcripts[1][i])
		}
	}
}

// TestFunctionsAndOperatorsOfOnesOwnSeeNoRows tries the ways by which SQL of the
// reader's own could run inside a recorded statement.
func TestFunctionsAndOperatorsOfOnesOwnSeeNoRows(t *testing.T) {
	p, direct := serveStaff(t, "own_operators", 3, 9000)
	user := shared.reader(t)
	exec1(t, direct, fmt.Sprintf(`CREATE TABLE open (n int); INSERT INTO open VALUES (1); GRANT SELECT ON open TO PUBLIC;
		CREATE TABLE people (id int PRIMARY KEY, ward text); INSERT INTO people SELECT g, 'w' || g %% 3 FROM generate_series(1, 30) g;
		CALL tailor.protect('public.people', subject => 'id', k => 5);
		CALL tailor.classify('public.people', 'ward', 'sensitive');
		CALL tailor.activate('public.people');
		CREATE SCHEMA workshop; GRANT USAGE ON SCHEMA workshop TO PUBLIC; ALTER ROLE %[1]s IN DATABASE own_operators SET search_path = public, workshop`, user))
	conn, notices := noticing(t, p.dsn(user))
	if n := table(t, conn, `SELECT count(*) FROM staff WHERE pay > 1500`); len(n) != 1 {
		t.Fatalf("before: %v", n)
	}
	chain := func(relation string) int {
		waitFor(t, func() bool { _, err := conn.Exec(t.Context(), "SELECT count(*) FROM "+relation); return err == nil })
		return one[int](t, direct, `SELECT chain FROM tailor.chain WHERE relation = $1::regclass`, relation)
	}
	// A function by a name without a schema, which the planner lets pass over
	// tables that show rows, reads no release.
	exec1(t, direct, fmt.Sprintf(`
		CREATE FUNCTION public.peek() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT count(*) FROM tailor_release.chain_%[1]d); END';
		CREATE FUNCTION public.peek_sql() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM tailor_release.chain_%[1]d'`, chain("people")))
	for _, call := range []string{"peek()", "peek_sql()"} {
		refusedWith(t, conn, "42501", "SELECT ward, "+call+" FROM people")
	}
	if got := table(t, conn, `SELECT count(*) FROM people`); got[0][0] != "30" {
		t.Errorf("the statement itself counts %v", got)
	}

	// Whoever could make an operator is not answered, whether there is one or not.
	exec1(t, direct, fmt.Sprintf(`GRANT CREATE ON SCHEMA workshop TO %s`, user))
	refusedWith(t, conn, "42501", `SELECT count(*) FROM staff WHERE pay > 1500`)
	exec1(t, conn, `CREATE FUNCTION workshop.tells(a numeric, b integer) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE NOTICE ''saw %'', a; RETURN a > b; END'`)
	exec1(t, conn, `CREATE OPERATOR workshop.> (LEFTARG = numeric, RIGHTARG = integer, FUNCTION = workshop.tells)`)
	exec1(t, direct, fmt.Sprintf(`REVOKE CREATE ON SCHEMA workshop FROM %s`, user))
	*notices = nil
	refusedWith(t, conn, "42501", `SELECT count(*) FROM staff WHERE pay > 1500`)
	exec1(t, conn, `DROP OPERATOR workshop.> (numeric, integer)`)
	table(t, conn, `SELECT count(*) FROM staff WHERE pay > 1500`)
	exec1(t, direct, fmt.Sprintf(`GRANT CREATE ON DATABASE own_operators TO %s`, user))
	refusedWith(t, conn, "42501", `SELECT count(*) FROM staff WHERE pay > 1500`)
	for _, n := range *notices {
		if strings.Contains(n, "saw") {
			t.Fatalf("an operator of one's own was called: %q", n)
		}
	}
}

func refusedWith(t *testing.T, conn *pgx.Conn, code, sql string, args ...any) {
	t.Helper()
	_, err := conn.Exec(t.Context(), sql, args...)
	if refused, ok := asRefusal(err); !ok || refused.Code != code {
		t.Errorf("%s: %v, want %s", sql, err, code)
	}
}

// TestParametersOverCellsAreOfPostgreSQLsOwnTypes prepares by message.
func TestParametersOverCellsAreOfPostgreSQLsOwnTypes(t *testing.T) {
	p, _ := serveStaff(t, "cell_parameters", 3, 9000)
	user := shared.reader(t)
	conn := connect(t, p.dsn(user))
	var n int
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM staff WHERE grade = $1 AND unit = ANY ($2) AND age BETWEEN $3 AND 60`,
		3, []string{"ward0", "lab0"}, 25).Scan(&n); err != nil || n < cellsOf {
		t.Fatalf("%d, %v", n, err)
	}
	exec1(t, conn, `CREATE DOMAIN pg_temp.own AS integer`)
	var oid uint32
	if err := conn.QueryRow(t.Context(), `SELECT 'pg_temp.own'::regtype::oid::int8`).Scan(&oid); err != nil {
		t.Fatal(err)
	}
	_, err := conn.PgConn().Prepare(t.Context(), "q", `SELECT count(*) FROM staff WHERE grade = $1`, []uint32{oid})
	if refused, ok := asRefusal(err); !ok || refused.Code != "0A000" {
		t.Errorf("a type of the session's own: %v", err)
	}
	if _, err := conn.PgConn().Prepare(t.Context(), "r", `SELECT count(*) FROM staff WHERE grade = $1`, []uint32{23}); err != nil {
		t.Error(err)
	}
}

// TestPoliciesWithoutRowsNeedOneRowASubject asserts that the setting is refused
// where its cells could not be counted, comes into force by SQL and by file, and
// is exported.
func TestPoliciesWithoutRowsNeedOneRowASubject(t *testing.T) {
	p, direct := serveStaff(t, "cell_policy", 3, 9000)
	exec1(t, direct, `CREATE TABLE shifts (staff_id int, hours int); INSERT INTO shifts SELECT g % 20, g FROM generate_series(1, 100) g;
		CALL tailor.protect('public.shifts', subject => 'staff_id', k => 5);
		CALL tailor.classify('public.shifts', 'hours', 'sensitive');
		CALL tailor.rows('public.shifts', false)`)
	refusedWith(t, direct, "0A000", `CALL tailor.activate('public.shifts')`)
	exec1(t, direct, `CALL tailor.rows('public.shifts', true); CALL tailor.activate('public.shifts')`)

	dsn := shared.cluster.SuperuserDSN("cell_policy")
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
	user := shared.reader(t)
	conn := connect(t, p.dsn(user))
	refusedWith(t, conn, "0A000", `SELECT unit FROM staff`)
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), "    rows: false\n", "", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if plan := run("policy", "plan", "--dsn", dsn, file); !strings.Contains(plan, "- rows: false") {
		t.Errorf("the plan does not tell:\n%s", plan)
	}
	run("policy", "apply", "--dsn", dsn, file)
	waitFor(t, func() bool { _, err := conn.Exec(t.Context(), `SELECT unit FROM staff`); return err == nil })
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	run("policy", "apply", "--dsn", dsn, file)
	waitFor(t, func() bool { // releases are closed at once, and the proxy hears of it in a moment
		_, err := conn.Exec(t.Context(), `SELECT unit FROM staff`)
		refused, ok := asRefusal(err)
		return ok && refused.Code == "0A000"
	})

	// A subject that comes to have two rows ends the refresh, not the guarantee.
	exec1(t, direct, `ALTER TABLE staff DROP CONSTRAINT staff_pkey; INSERT INTO staff SELECT * FROM staff WHERE id = 1`)
	refusedWith(t, direct, "0A000", `CALL tailor.refresh('public.staff')`)
}

// TestEstimatesTellNothingOfFewerThanKSubjects asks for plans past the proxy, which
// executes nothing and needs no admission.
func TestEstimatesTellNothingOfFewerThanKSubjects(t *testing.T) {
	p, direct := serveStaff(t, "estimates", 3, 9000)
	user := shared.reader(t)
	exec1(t, connect(t, p.dsn(user)), `SELECT age, count(*) FROM staff GROUP BY age`)
	exec1(t, direct, `ANALYZE`)
	view := one[string](t, direct, `SELECT 'tailor_release.chain_' || chain FROM tailor.chain`)
	past := connect(t, strings.Replace(p.dsn(user), p.address, shared.cluster.Address(), 1))
	for _, conditions := range [][2]string{
		{"unit = 'secret'", "unit = 'nobody'"}, {"pay > 8999", "pay > 99999"}, {"grade = 77", "grade = 78"}, {"unit > 'q'", "unit > 'z'"}, {"age = 41", "age = 99"},
	} {
		var told [2]string
		for i, condition := range conditions {
			plan := strings.Join(rowsOf(t, past, fmt.Sprintf("EXPLAIN SELECT * FROM %s WHERE %s", view, condition)), "\n")
			told[i] = strings.ReplaceAll(plan, strings.Fields(condition)[2], "?")
		}
		if told[0] != told[1] {
			t.Errorf("estimates tell %s from %s:\n%s\n%s", conditions[0], conditions[1], told[0], told[1])
		}
	}
}

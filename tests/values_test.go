package tests

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// wardSchema is a table of people whose columns are of many types, with NULLs.
const wardSchema = `
CREATE TABLE people (id int PRIMARY KEY, age int, zip char(5), born date, weight numeric(5,1),
    member boolean, diagnosis text);
SELECT setseed(0.3);
INSERT INTO people SELECT g, CASE WHEN g % 40 > 0 THEN 90 * pow(random(), 2) END,
    10000 + (1 + floor(30 * pow(random(), 2))) * 71,
	date '1930-01-01' + (30000 * sqrt(random()))::int, 40 + 80 * random(), CASE WHEN g % 50 > 0
	THEN g % 3 = 0 END, 'd' || g % 7
	FROM generate_series(1, 3000) g;`

const wardPolicy = `
CALL tailor.define_hierarchy('age', 'interval',
    '{"widths": [5, 10, 20], "lower": 0, "upper": 119}');
CALL tailor.define_hierarchy('zip', 'prefix', '{"keep": [4, 3, 2]}');
CALL tailor.define_hierarchy('day', 'date',
    '{"levels": ["month", "year", "decade"], "lower": "1900-01-01", "upper": "2029-12-31"}');
CALL tailor.define_hierarchy('kg', 'interval', '{"widths": [10, 20], "lower": 0, "upper": 200}');
CALL tailor.define_hierarchy('yes', 'table', '{"paths": [["true"], ["false"]]}');
CALL tailor.protect('people', subject => 'id', k => 5);
CALL tailor.classify('people', 'id', 'direct_identifier');
CALL tailor.classify('people', 'age', 'quasi_identifier', hierarchy => 'age');
CALL tailor.classify('people', 'zip', 'quasi_identifier', hierarchy => 'zip');
CALL tailor.classify('people', 'born', 'quasi_identifier', hierarchy => 'day');
CALL tailor.classify('people', 'weight', 'quasi_identifier', hierarchy => 'kg');
CALL tailor.classify('people', 'member', 'quasi_identifier', hierarchy => 'yes');
CALL tailor.classify('people', 'diagnosis', 'sensitive');
CALL tailor.grant_reader('researcher');
%s
CALL tailor.activate('people');`

// wardOf protects the table in a database of its own and serves it.
func wardOf(t *testing.T, name, more string) (direct *pgx.Conn, p *testProxy) {
	t.Helper()
	direct = makeDatabase(t, name, wardSchema)
	if err := shared.install(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, fmt.Sprintf(wardPolicy, more))
	return direct, serveDatabase(t, name)
}

// program is how a program connects that says nothing of labels and values.
func (p *testProxy) program(user string) string {
	return strings.ReplaceAll(p.dsn(user), "application_name=psql", "application_name=program")
}

func TestValuesAreOfTheirLabelsAndMeetTheMargins(t *testing.T) {
	direct, p := wardOf(t, "values_ward", "")
	conn := connect(t, p.program("researcher"))
	rows := rowsOf(t, conn,
		`SELECT age, tailor.label(age), tailor.exact(age), (tailor.bounds(age))[1],
			(tailor.bounds(age))[2],
		born, tailor.label(born), (tailor.bounds(born))[1], (tailor.bounds(born))[2], zip,
		tailor.label(zip), tailor.exact(zip),
		weight, tailor.label(weight), member, tailor.label(member) FROM people`)
	if len(rows) != 3000 {
		t.Fatalf("%d rows", len(rows))
	}
	exact := 0
	for _, row := range rows {
		f := strings.Split(row, "|")
		age, low, high := figure(f[0]), figure(f[3]), figure(f[4])
		switch {
		case f[0] == "" && f[1] != "" && f[1] != "*":
			t.Errorf("age is NULL, its label %q", f[1])
		case f[0] != "" && (age < low || age > high):
			t.Errorf("age %s is not in %s-%s, label %s", f[0], f[3], f[4], f[1])
		case f[2] == "t" && f[1] != f[0]:
			t.Errorf("age %q is exact, its label %q", f[0], f[1])
		case f[2] == "t":
			exact++
		}
		if f[5] < f[7] || f[5] > f[8] {
			t.Errorf("born %s is not in %s to %s, label %s", f[5], f[7], f[8], f[6])
		}
		if prefix := strings.TrimRight(f[10], "*"); !strings.HasPrefix(f[9], prefix) ||
			f[11] == "t" && f[9] != f[10] {
			t.Errorf("zip %q, label %q, exact %s", f[9], f[10], f[11])
		}
		if f[14] != "" && f[15] != "*" && f[14][:1] != f[15][:1] {
			t.Errorf("member %q, label %q", f[14], f[15])
		}
	}
	if exact == 0 || exact == 3000 {
		t.Errorf("%d ages are exact", exact)
	}
	// Types are those of the table, and counts nearly so.
	fields, err := conn.Query(t.Context(), "SELECT age, zip, born, weight, member FROM people LIMIT 0")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []uint32{23, 25, 1082, 1700, 16} {
		if got := fields.FieldDescriptions()[i].DataTypeOID; got != want {
			t.Errorf("column %d has type %d, want %d", i+1, got, want)
		}
	}
	fields.Close()
	for _, sql := range []string{
		"SELECT age / 5, count(*) FROM people GROUP BY 1",
		"SELECT extract(year FROM born)::int / 5, count(*) FROM people GROUP BY 1",
		"SELECT extract(month FROM born), count(*) FROM people GROUP BY 1",
		"SELECT zip, count(*) FROM people GROUP BY 1",
		"SELECT member, count(*) FROM people GROUP BY 1",
		"SELECT (weight / 10)::int, count(*) FROM people WHERE weight < 110 GROUP BY 1",
	} {
		truth := make(map[string]float64)
		for _, row := range rowsOf(t, direct, sql) {
			key, n, _ := strings.Cut(row, "|")
			truth[strings.TrimSpace(key)] = figure(n)
		}
		for _, row := range rowsOf(t, conn, sql) {
			key, n, _ := strings.Cut(row, "|")
			if want := truth[strings.TrimSpace(key)]; want >= 50 && math.Abs(figure(n)-want) > 0.15*want {
				t.Errorf("%s: %s has %s, in truth %.0f", sql, key, n, want)
			}
		}
	}
	// Margins: whole, of at least k, true.
	for _, column := range []string{"age", "zip", "born", "weight", "member"} {
		cells := rowsOf(t, conn, fmt.Sprintf("SELECT coalesce(label, 'NULL'), subjects FROM "+
			"research.tailor_margins WHERE table_name = 'people' AND column_name = '%s'", column))
		sum := 0.0
		for _, cell := range cells {
			label, n, _ := strings.Cut(cell, "|")
			sum += figure(n)
			if figure(n) < 5 {
				t.Errorf("margin of %s: cell %s has %s", column, label, n)
			}
		}
		if sum != 3000 {
			t.Errorf("the margin of %s counts %.0f people", column, sum)
		}
	}
	zips := one[string](t, direct, `SELECT zip FROM people GROUP BY 1 ORDER BY count(*) DESC LIMIT 1`)
	if got, want := one[int64](t, conn, fmt.Sprintf(
		`SELECT subjects FROM research.tailor_margins WHERE label = '%s'`, zips)),
		one[int64](t, direct, fmt.Sprintf(`SELECT count(*) FROM people WHERE zip = '%s'`,
			zips)); got != want {
		t.Errorf("the margin has %d people of zip %s, there are %d", got, zips, want)
	}
	// Whoever knows nobody may subtract the rows that are certain from a margin: what is left,
	// few people perhaps, may be any of k or more under wider labels.
	left := rowsOf(t, conn,
		`SELECT m.label, m.subjects - e.n, e.others FROM research.tailor_margins m CROSS JOIN LATERAL (
		SELECT count(*) FILTER (WHERE tailor.exact(age) AND age::text = m.label) AS n,
		       count(*) FILTER (WHERE NOT tailor.exact(age)
		       AND (tailor.bounds(age))[1] <= m.label::int
		       AND m.label::int <= (tailor.bounds(age))[2]) AS others FROM people) e
		WHERE m.column_name = 'age' AND m.label ~ '^[0-9]+$'`)
	few := 0
	for _, row := range left {
		f := strings.Split(row, "|")
		if rest := figure(f[1]); rest > 0 && rest < 5 {
			few++
			if figure(f[2]) < 5 {
				t.Errorf("%s of age %s are under wider labels, which only %s people have", f[1], f[0], f[2])
			}
		}
	}
	t.Logf("of %d ages with a cell of their own, %d have fewer than 5 people left when the certain "+
		"ones are subtracted", len(left), few)
	if got := rowsOf(t, conn,
		`SELECT column_name, class, value_is, exact BETWEEN 0.01 AND 1, loss BETWEEN 0 AND 0.99 `+
			`FROM research.tailor_columns ORDER BY 1`); strings.Join(got, " ") !=
		"age|quasi_identifier|raked|t|t born|quasi_identifier|raked|f|t diagnosis|sensitive||t|t "+
			"member|quasi_identifier|raked|t|t weight|quasi_identifier|raked|f|t "+
			"zip|quasi_identifier|raked|t|t" {
		t.Errorf("research.tailor_columns: %q", got)
	}
}

func figure(s string) float64 {
	n, _ := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return n
}

func TestWhatAColumnShowsFollowsThePolicy(t *testing.T) {
	direct, p := wardOf(t, "values_policy",
		`CALL tailor.represent('people', 'born', 'middle'); `+
			`CALL tailor.represent('people', 'zip', margins => false);`)
	conn := connect(t, p.program("researcher"))
	for _, row := range rowsOf(t, conn, `SELECT DISTINCT born, tailor.label(born) FROM people`) {
		day, label, _ := strings.Cut(row, "|")
		if len(label) == 4 && day != label+"-07-02" && day != label+"-07-01" {
			t.Errorf("the middle of %s is %s", label, day)
		}
	}
	for _, row := range rowsOf(t, conn, `SELECT DISTINCT zip, tailor.label(zip) FROM people`) {
		if zip, label, _ := strings.Cut(row, "|"); zip != label {
			t.Errorf("zip %s under the label %s, without a margin", zip, label)
		}
	}
	if n := one[int64](t, conn,
		`SELECT count(*) FROM research.tailor_margins WHERE column_name IN ('zip', 'born')`); n != 0 {
		t.Errorf("%d cells of margins that are not to be published", n)
	}
	for _, wrong := range []struct{ sql, code string }{
		{`CALL tailor.represent('people', 'born', 'mode')`, "22023"},
		{`CALL tailor.represent('people', 'diagnosis', 'raked')`, "22023"},
		{`CALL tailor.represent('people', 'born', 'raked', NULL)`, "22023"},
		{`CALL tailor.represent('people', 'nobody', 'raked')`, "42703"},
	} {
		if _, err := direct.Exec(t.Context(), wrong.sql); codeIn(err) != wrong.code {
			t.Errorf("%s: %v, want %s", wrong.sql, err, wrong.code)
		}
	}
}

// TestValuesStayAndAreExchangedWhereLabelsWiden refreshes a table, and makes its policy
// stricter.
func TestValuesStayAndAreExchangedWhereLabelsWiden(t *testing.T) {
	direct, p := wardOf(t, "values_epochs",
		`ALTER TABLE people ADD token uuid DEFAULT gen_random_uuid(); `+
			`CALL tailor.classify('people', 'token', 'non_sensitive');`)
	conn := connect(t, p.program("researcher"))
	const all = "SELECT token, age, zip, born, weight, member FROM people ORDER BY token"
	before := rowsOf(t, conn, all)
	mustExec(t, direct,
		`INSERT INTO people SELECT 20000 + g, 40, '10071', '1980-01-01', 70, true, 'd1' `+
			`FROM generate_series(1, 7) g`)
	mustExec(t, direct, `CALL tailor.refresh('people')`)
	waitFor(t, func() bool {
		config := conn.Config().Copy()
		said := ""
		config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { said = n.Message + n.Detail }
		asks, err := pgx.ConnectConfig(t.Context(), config)
		if err != nil {
			return false
		}
		defer func() { _ = asks.Close(t.Context()) }()
		_, err = asks.Exec(t.Context(), "SELECT age FROM people LIMIT 1", pgx.QueryExecModeSimpleProtocol)
		return err == nil && strings.Contains(said, "7 newcomers are not shown yet") &&
			strings.Contains(said, `"waiting":7`)
	})
	mustExec(t, direct, `DELETE FROM people WHERE id > 20000`)
	mustExec(t, direct,
		`INSERT INTO people SELECT 10000 + g, g % 90, '10071', date '1950-01-01' + g * 17, 70, true, `+
			`'d1' FROM generate_series(1, 400) g`)
	mustExec(t, direct, `CALL tailor.refresh('people')`)
	waitFor(t, func() bool { return one[int64](t, conn, "SELECT count(*) FROM people") == 3400 })
	after := make(map[string]bool)
	for _, row := range rowsOf(t, conn, all) {
		after[row] = true
	}
	for _, row := range before {
		if !after[row] {
			t.Fatalf("a row shows another value after a refresh: it was %s", row)
		}
	}
	if n := one[int64](t, conn, "SELECT count(DISTINCT cohort) FROM research.tailor_margins"); n != 2 {
		t.Errorf("margins of %d cohorts, want 2", n)
	}
	const wide = "SELECT concat_ws('/', token, tailor.label(age)), age FROM people WHERE NOT " +
		"tailor.exact(age) AND age IS NOT NULL"
	earlier := make(map[string]string)
	for _, row := range rowsOf(t, conn, wide) {
		shown, age, _ := strings.Cut(row, "|")
		earlier[shown] = age
	}
	mustExec(t, direct,
		`CALL tailor.protect('people', subject => 'id', k => 25); CALL tailor.activate('people')`)
	waitFor(t, func() bool {
		rows, err := conn.Query(t.Context(), "SELECT min(subjects) FROM research.tailor_margins",
			pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			return false
		}
		least, err := pgx.CollectOneRow(rows, pgx.RowTo[int64])
		return err == nil && least >= 25
	})
	rows := rowsOf(t, conn, "SELECT age, (tailor.bounds(age))[1], (tailor.bounds(age))[2], zip, "+
		"tailor.label(zip) FROM people")
	for _, row := range rows {
		f := strings.Split(row, "|")
		if f[0] != "" && (figure(f[0]) < figure(f[1]) || figure(f[0]) > figure(f[2])) ||
			!strings.HasPrefix(f[3], strings.TrimRight(f[4], "*")) {
			t.Errorf("a value is not of its label: %s", row)
		}
	}
	if got := one[int64](t, conn,
		"SELECT sum(subjects) FROM research.tailor_margins WHERE column_name = 'age'"); got != 3400 ||
		len(rows) != 3400 {
		t.Errorf("margins of age count %d of %d people", got, len(rows))
	}
	// A value depends on the labels of its row in all columns, and on those of other rows:
	// where the label has stayed, values are exchanged all the same.
	same, stayed := 0, 0
	for _, row := range rowsOf(t, conn, wide) {
		shown, age, _ := strings.Cut(row, "|")
		if was, known := earlier[shown]; known {
			stayed++
			if was == age {
				same++
			}
		}
	}
	if stayed < 50 || 2*same > stayed {
		t.Errorf("of %d rows whose label has stayed, %d show the value that they did", stayed, same)
	}
	// Where nothing but the label has become wider, values tell nothing of the one before:
	// of a block, they are spread as those of all with its label are.
	told := rowsOf(t, conn,
		`SELECT count(*) FROM (SELECT tailor.label(age) AS l, tailor.label(zip)
			AS z, tailor.label(born) AS b, tailor.label(weight) AS w,
		tailor.label(member) AS m, min(age) AS least, max(age) AS most FROM people
		WHERE NOT tailor.exact(age) AND tailor.label(age) = '*' GROUP BY 1, 2, 3, 4, 5
			HAVING count(*) > 24) q WHERE most - least < 15`)
	if told[0] != "0" {
		t.Errorf("in %s blocks whose ages may be anything the values are narrow", told[0])
	}
}

// TestTerminalsShowLabelsAndProgramsGetValues connects as programs do.
func TestTerminalsShowLabelsAndProgramsGetValues(t *testing.T) {
	p := shared.serve(t)
	name := shared.reader(t)
	own := shared.serve(t, "--terminals", "desk,psql")
	base := strings.TrimSuffix(p.dsn(name), "application_name=psql")
	for _, c := range []struct {
		claim, dsn string
		settings   []string
		label      bool
	}{
		{"psql", base + "application_name=psql", nil, true},
		{"pgcli", base + "application_name=pgcli", nil, true},
		{"a program without a name", base, nil, false},
		{"a program with a name", base + "application_name=R", nil, false},
		{
			"a program that asks for labels", base + "options=-c%20tailor.representation%3Dlabel",
			nil, true,
		},
		{
			"psql that asks for values", base + "application_name=psql",
			[]string{"SET tailor.representation = value"},
			false,
		},
		{"a program that takes another name", base, []string{"SET application_name = 'psql'"}, true},
		{
			"after all is reset", base + "application_name=psql",
			[]string{"SET tailor.representation = value", "RESET tailor.representation"},
			true,
		},
		{
			"a terminal of this installation", strings.TrimSuffix(own.dsn(name), "psql") + "desk",
			nil, true,
		},
		{"one that is none there", strings.TrimSuffix(own.dsn(name), "psql") + "pgcli", nil, false},
	} {
		conn := connect(t, c.dsn)
		rowsOf(t, conn, append(c.settings, "SELECT 1")...)
		rows, err := conn.Query(t.Context(), "SELECT age FROM patients LIMIT 1")
		if err != nil {
			t.Fatal(err)
		}
		if got := rows.FieldDescriptions()[0].DataTypeOID; (got == 25) != c.label {
			t.Errorf("%s: age has type %d", c.claim, got)
		}
		rows.Close()
	}
}

// TestValuesTellNothingOfWhoseTheyAre looks, as somebody who knows everybody's age and
// which row is whose, for more of an age in the value than its block's label tells:
// within blocks the two must vary independently.
func TestValuesTellNothingOfWhoseTheyAre(t *testing.T) {
	direct, p := wardOf(t, "values_whose",
		`ALTER TABLE people ADD token uuid DEFAULT gen_random_uuid(); `+
			`CALL tailor.classify('people', 'token', 'non_sensitive');`)
	truth := make(map[string]float64)
	for _, row := range rowsOf(t, direct, "SELECT token, age FROM people WHERE age IS NOT NULL") {
		token, age, _ := strings.Cut(row, "|")
		truth[token] = figure(age)
	}
	type pair struct{ value, truth float64 }
	blocks := make(map[string][]pair)
	for _, row := range rowsOf(t, connect(t, p.program("researcher")),
		`SELECT token, age, concat_ws('/', tailor.label(age), tailor.label(zip), tailor.label(born),
			tailor.label(weight), tailor.label(member))
		FROM people WHERE NOT tailor.exact(age) AND age IS NOT NULL`) {
		f := strings.Split(row, "|")
		if age, known := truth[f[0]]; known {
			blocks[f[2]] = append(blocks[f[2]], pair{figure(f[1]), age})
		}
	}
	together, spread, pairs := 0.0, 0.0, 0
	for _, of := range blocks {
		var value, age float64
		for _, q := range of {
			value, age = value+q.value/float64(len(of)), age+q.truth/float64(len(of))
		}
		covariance, varies, differs := 0.0, 0.0, 0.0
		for _, q := range of {
			covariance += (q.value - value) * (q.truth - age)
			varies, differs = varies+(q.value-value)*(q.value-value), differs+(q.truth-age)*(q.truth-age)
			pairs++
		}
		if len(of) > 1 {
			together, spread = together+covariance, spread+varies*differs/float64(len(of)-1)
		}
	}
	if z := together / math.Sqrt(spread); math.Abs(z) > 4.5 || pairs < 1000 {
		t.Errorf("of %d people in %d blocks, values and ages go together by %.1f standard deviations",
			pairs, len(blocks), z)
	}
}

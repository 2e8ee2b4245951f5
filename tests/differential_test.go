package tests

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// person is a row of the corpus' patients: what identifies, what quasi-identifies,
// and the rest.
type person struct {
	born, age, sex, zip, odd string
	diagnosis                string
	cost                     int
}

// corpusSchema is the hospital that the planner's corpus asks about.
const corpusSchema = `
CREATE TABLE zip_city (zip text, city text);
INSERT INTO zip_city SELECT lpad((g * 100 + g)::text, 5, '1'), 'city ' || g % 7
    FROM generate_series(1, 40) g;
CREATE TABLE cities (city text, population int);
INSERT INTO cities SELECT 'city ' || g, g * 1000 FROM generate_series(0, 5) g;
CREATE TABLE names (name text, n int);
INSERT INTO names SELECT 'name ' || g, g FROM generate_series(1, 9) g;
CREATE SCHEMA other;
CREATE TABLE other.patients (age int);
CREATE VIEW elderly AS SELECT age AS years, zip, diagnosis FROM patients WHERE age > 60;
CREATE VIEW elderly_by_zip AS SELECT zip, count(*) AS people FROM elderly GROUP BY zip;
CREATE VIEW mixed_ages AS SELECT age FROM patients WHERE sex = 'male' INTERSECT SELECT age
    FROM patients WHERE sex = 'female' ORDER BY 1;
CREATE MATERIALIZED VIEW stored_patients AS SELECT age FROM patients;
GRANT USAGE ON SCHEMA other TO PUBLIC;
GRANT SELECT ON zip_city, cities, names, other.patients TO PUBLIC;`

// corpusPolicy protects it.
const corpusPolicy = `
CALL tailor.define_hierarchy('age', 'interval', '{"widths": [10], "lower": 0, "upper": 119}');
CALL tailor.define_hierarchy('zip', 'prefix', '{"keep": [3]}');
CALL tailor.define_hierarchy('odd', 'prefix', '{"keep": [1]}');
CALL tailor.define_hierarchy('day', 'date',
    '{"levels": ["year", "decade"], "lower": "1900-01-01", "upper": "2029-12-31"}');
CALL tailor.define_hierarchy('sex', 'table', '{"paths": [["female"], ["male"]]}');
CALL tailor.protect('public.patients', subject => 'id', k => %d);
CALL tailor.classify('public.patients', 'name', 'direct_identifier');
CALL tailor.classify('public.patients', 'ssn', 'direct_identifier');
CALL tailor.classify('public.patients', 'id', 'direct_identifier');
CALL tailor.classify('public.patients', 'birth_date', 'quasi_identifier', hierarchy => 'day');
CALL tailor.classify('public.patients', 'age', 'quasi_identifier', hierarchy => 'age');
CALL tailor.classify('public.patients', 'sex', 'quasi_identifier', hierarchy => 'sex');
CALL tailor.classify('public.patients', 'zip', 'quasi_identifier', hierarchy => 'zip');
CALL tailor.classify('public.patients', 'diagnosis', 'sensitive');
CALL tailor.classify('public.patients', 'cost', 'non_sensitive');
CALL tailor.classify('public.patients', 'Odd Name', 'quasi_identifier', hierarchy => 'odd');
CALL tailor.protect('public.diagnoses', subject => 'patient_id', k => %[1]d);
CALL tailor.classify('public.diagnoses', 'code', 'sensitive');
CALL tailor.shared_fact('public.diagnoses', 'code', 'accepted');
CALL tailor.protect('public.lab', subject => 'patient_id', k => %[1]d);
CALL tailor.classify('public.lab', 'result', 'sensitive');
CALL tailor.shared_fact('public.lab', 'result', 'accepted');
CALL tailor.grant_reader('researcher');
CALL tailor.activate('public.patients');
CALL tailor.activate('public.diagnoses');
CALL tailor.activate('public.lab');`

// makeDatabase makes a database of the shared cluster and runs a script in it.
func makeDatabase(t *testing.T, name, script string) *pgx.Conn {
	t.Helper()
	mustExec(t, shared.superuser(t), "CREATE DATABASE "+name)
	conn := connect(t, shared.cluster.SuperuserDSN(name))
	mustExec(t, conn, script)
	return conn
}

// asMiddles is a policy under which rows show the middle of their label: nothing is left to
// chance.
func asMiddles(policy string) string {
	const activation = "CALL tailor.activate("
	return strings.Replace(policy, activation,
		"UPDATE tailor.classification SET shown_as = 'middle' WHERE class = 'quasi_identifier';\n"+
			activation, 1)
}

// protectCorpus makes a database with the corpus' hospital, protected.
func protectCorpus(t *testing.T, name string, k int, people []person) *testProxy {
	t.Helper()
	conn := makeDatabase(t, name, `
CREATE TABLE patients (id int PRIMARY KEY, name text, ssn text, birth_date date, age int,
    sex text, zip text,
	diagnosis text, cost numeric(10, 2), "Odd Name" text);
CREATE TABLE diagnoses (patient_id int, code text);
CREATE TABLE lab (patient_id int, result text);`)
	for i, q := range people {
		mustExec(t, conn, `INSERT INTO patients VALUES ($1, 'Canaria', '987', $2, $3, $4, $5, $6, $7, `+
			`$8)`,
			i, q.born, q.age, q.sex, q.zip, q.diagnosis, q.cost, q.odd)
	}
	mustExec(t, conn, corpusSchema+`
INSERT INTO diagnoses SELECT id, diagnosis FROM patients;
INSERT INTO lab SELECT id, diagnosis FROM patients;`)
	if err := shared.install(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	mustExec(t, conn, `SET TimeZone = 'UTC'`)
	mustExec(t, conn, asMiddles(fmt.Sprintf(corpusPolicy, k)))
	p := shared.serve(t, "--service-dsn", shared.cluster.ServiceDSN(name))
	p.database = name
	return p
}

// plainCorpus makes a database in which the released columns are all there is.
func plainCorpus(t *testing.T, name string, people []person) string {
	t.Helper()
	conn := makeDatabase(t, name, `
CREATE TABLE patients (birth_date date, age int, sex text, zip text, diagnosis text,
    cost numeric(10, 2), "Odd Name" text);
CREATE TABLE diagnoses (code text);
CREATE TABLE lab (result text);`)
	for _, q := range people {
		mustExec(t, conn, `INSERT INTO patients VALUES ($1, $2, $3, $4, $5, $6, $7)`, q.born, q.age,
			q.sex, q.zip, q.diagnosis, q.cost, q.odd)
	}
	mustExec(t, conn, corpusSchema+`
INSERT INTO diagnoses SELECT diagnosis FROM patients;
INSERT INTO lab SELECT diagnosis FROM patients;
CREATE SCHEMA research; GRANT USAGE ON SCHEMA research TO PUBLIC;
CREATE VIEW research.patients AS TABLE patients; GRANT SELECT ON research.patients TO PUBLIC;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO PUBLIC;`)
	return fmt.Sprintf("postgres://researcher:researcher@%s/%s?sslmode=disable",
		shared.cluster.Address(), name)
}

// followUps ask for what a statement has left behind.
var followUps = map[string][]string{
	"cursor": {"FETCH ALL FROM c"}, "cursor-union": {"FETCH ALL FROM c"},
	"cursor-odbc":    {`FETCH ALL FROM "SQL_CUR0x1"`},
	"prepare":        {"EXECUTE q (30, 'male')", "DEALLOCATE q"},
	"prepare-quoted": {`EXECUTE "as"`, `DEALLOCATE "as"`, `EXECUTE "as"`},
	"prepare-inferred": {
		"EXECUTE q ('x', 40, '11')", "EXECUTE q (NULL, 20.0 + 3, '%' || 1)",
		"CREATE TEMP TABLE kept (w, a, z, n) AS EXECUTE q ('y', 90, '111')",
		"TABLE kept", "EXECUTE q (1)",
	},
	"prepare-union": {"EXECUTE q (ARRAY[30, 31], 'flu')", "EXECUTE q ('{}', $$gout$$)"},
	"create-as":     {"SELECT * FROM t"}, "into": {"SELECT * FROM t"},
	"into-temp-union":           {"SELECT * FROM mine"},
	"create-temp-columns":       {"SELECT a, b FROM mine"},
	"create-temp-if-not-exists": {"SELECT * FROM mine"},
	"create-temp-same-name":     {"SELECT * FROM patients"},
	"create-temp-group":         {"SELECT * FROM mine"},
	"create-temp-natural":       {"SELECT * FROM mine"},
}

// openCorpus is a session as the planner's tests assume it.
func openCorpus(t *testing.T, dsn string, settings ...string) *pgx.Conn {
	t.Helper()
	conn := connect(t, dsn)
	rowsOf(t, conn, append([]string{
		"SET TimeZone = 'UTC'", "CREATE TEMP TABLE lab (age int, result text)",
		"INSERT INTO lab VALUES (35, 'high'), (61, 'low')",
	}, settings...)...)
	return conn
}

// answerOf runs a text of the corpus and says all that came of it: the names of
// columns, their types where they matter, and the rows in an order of their own.
// Where the text names its database, it is the one at hand.
func answerOf(t *testing.T, conn *pgx.Conn, name, sql string, types bool) string {
	t.Helper()
	sql = strings.ReplaceAll(sql, "hospital", conn.Config().Database)
	var out strings.Builder
	run := func(sql string) {
		var results []*pgconn.Result
		var err error
		if strings.HasPrefix(sql, "COPY") {
			var copied bytes.Buffer
			_, err = conn.PgConn().CopyTo(t.Context(), &copied, sql)
			lines := strings.Split(copied.String(), "\n")
			slices.Sort(lines)
			out.WriteString(strings.Join(lines, "\n"))
		} else {
			results, err = conn.PgConn().Exec(t.Context(), sql).ReadAll()
		}
		for _, r := range results {
			for _, f := range r.FieldDescriptions {
				fmt.Fprintf(&out, "%s ", f.Name)
				if types {
					fmt.Fprintf(&out, "%d ", f.DataTypeOID)
				}
			}
			rows := make([]string, len(r.Rows))
			for i, row := range r.Rows {
				rows[i] = strings.ReplaceAll(fmt.Sprintf("%q", row), "[]", "NULL")
			}
			slices.Sort(rows)
			fmt.Fprintf(&out, "%s\n%s\n", r.CommandTag, strings.Join(rows, "\n"))
		}
		var refused *pgconn.PgError
		if errors.As(err, &refused) {
			fmt.Fprintf(&out, "error %s at %d\n", refused.Code, refused.Position)
		} else if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	run("BEGIN")
	run(sql)
	for _, next := range followUps[name] {
		run(next)
	}
	run("ROLLBACK")
	rowsOf(t, conn, "DEALLOCATE ALL") // which transactions do not take back
	return out.String()
}

// corpus reads the statements that the planner understands.
func corpus(t *testing.T) (names []string, texts map[string]string) {
	t.Helper()
	files, err := filepath.Glob("../planner/testdata/release/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	texts = make(map[string]string)
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(f), ".sql")
		if strings.Contains(string(text), "tailor.") || strings.HasPrefix(name, joinPrefix) {
			continue // Tailor's own functions, and joins along keys, which the plain tables have not
		}
		if strings.Contains(string(text), "staff") || strings.Contains(string(text), "drugs") ||
			strings.HasPrefix(name, "explain") {
			// answers with aggregates only: see aggregatesonly_test.go; and plans of another relation
			continue
		}
		names, texts[name] = append(names, name), string(text)
	}
	return names, texts
}

var subjectCount = regexp.MustCompile(`count\(\s*DISTINCT \(*(p\.id|id|d\.patient_id)\)*\s*\)`)

// compareCorpus runs the corpus through the proxy and on two plain databases
// that hold the same rows in opposite order. What the two of them answer
// differently is not determined by SQL, such as LIMIT over ties.
func compareCorpus(t *testing.T, proxied, plain, reversed *pgx.Conn, types bool) {
	t.Helper()
	names, texts := corpus(t)
	compared, open, failing := 0, []string{}, []string{}
	for _, name := range names {
		// The plain tables have no key: a row is a subject.
		text := subjectCount.ReplaceAllString(texts[name], "count(*)")
		want := answerOf(t, plain, name, text, types)
		if answerOf(t, reversed, name, text, types) != want {
			open = append(open, name)
			continue
		}
		compared++
		if strings.Contains(want, "error ") {
			failing = append(failing, name)
		}
		if got := answerOf(t, proxied, name, texts[name], types); got != want {
			t.Errorf("%s: %s\ngot\n%.600s\nwant\n%.600s", name, texts[name], got, want)
		}
	}
	t.Logf("%d statements compared; that fail in PostgreSQL too: %s; not determined by SQL: %s",
		compared, strings.Join(failing, ", "), strings.Join(open, ", "))
	if compared < 9*len(names)/10 {
		t.Errorf("only %d of %d statements are determined by SQL", compared, len(names))
	}
}

func reversed(people []person) []person {
	out := slices.Clone(people)
	slices.Reverse(out)
	return out
}

// TestWhereNothingIsGeneralizedAnswersArePostgreSQLsOwn uses a hospital in which
// two people share each tuple of quasi-identifiers, so that k = 2 asks for
// nothing to be generalized.
func TestWhereNothingIsGeneralizedAnswersArePostgreSQLsOwn(t *testing.T) {
	var people []person
	for i := range 240 {
		tuple := i / 2
		people = append(people, person{
			born: fmt.Sprintf("%d-%02d-%02d", 1930+tuple%80, 1+tuple%12, 1+tuple%28),
			age:  fmt.Sprint(tuple * 7 % 97),
			sex:  []string{"male", "female"}[tuple/3%2], zip: fmt.Sprintf("%05d", 11101+tuple%30*101),
			odd: string(rune('a' + tuple%5)), diagnosis: []string{"flu", "measles", "gout", "burn"}[i*5%7%4],
			cost: 10 + i*i%211,
		})
	}
	p := protectCorpus(t, "twins", 2, people)
	plain := openCorpus(t, plainCorpus(t, "twins_plain", people))
	other := openCorpus(t, plainCorpus(t, "twins_reversed", reversed(people)))
	labels := openCorpus(t, p.dsn("researcher"))
	rowsOf(t, labels, `SELECT * FROM patients`)
	t.Run("as labels", func(t *testing.T) { compareCorpus(t, labels, plain, other, false) })
	t.Run("as values with their types", func(t *testing.T) {
		compareCorpus(t, openCorpus(t, p.dsn("researcher"), "SET tailor.representation = 'value'"), plain,
			other, true)
	})
}

// TestAnswersAreThoseOfAGeneralizedCopy uses a hospital of groups of five people
// that differ in every quasi-identifier, and from everybody outside in the
// first generalization of each. With k = 5 there is one way to generalize.
func TestAnswersAreThoseOfAGeneralizedCopy(t *testing.T) {
	var people, generalized []person
	for group := range 12 {
		for member := range 5 {
			q := person{
				born: fmt.Sprintf("%d-03-0%d", 1905+10*group, 1+member), age: fmt.Sprint(10*group + 2*member),
				sex: []string{"male", "female"}[member%2],
				zip: fmt.Sprintf("1%02d%02d", group, member), odd: fmt.Sprintf("%c%d", 'a'+group, member),
				diagnosis: []string{"flu", "measles", "gout"}[(group+member)%3],
				cost:      10 + (group*7+member*11)%50,
			}
			people = append(people, q)
			q.born, q.age, q.sex, q.zip, q.odd = fmt.Sprintf("%d-07-02", 1905+10*group),
				fmt.Sprint(10*group+4), "*", q.zip[:3]+"**", q.odd[:1]+"*"
			generalized = append(generalized, q)
		}
	}
	p := protectCorpus(t, "groups", 5, people)
	plain := openCorpus(t, plainCorpus(t, "groups_plain", generalized))
	other := openCorpus(t, plainCorpus(t, "groups_reversed", reversed(generalized)))
	conn := openCorpus(t, p.dsn("researcher"), "SET tailor.representation = 'value'")
	// Asked for together, sexes could be told apart at the price of the groups.
	rowsOf(t, conn, `SELECT age, zip FROM patients`, `SELECT * FROM patients`)
	compareCorpus(t, conn, plain, other, true)
}

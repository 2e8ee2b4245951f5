package tests

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// familyQuestions are asked over a table and data sets of its people. Those over what is
// shown as it is are answered exactly, others within a tenth.
var familyQuestions = []struct {
	sql   string
	exact bool
}{
	{
		"SELECT diagnosis, count(*), sum(stays)::bigint FROM people p JOIN stays_of s ON s.id = p.id " +
			"GROUP BY 1",
		true,
	},
	{
		"SELECT diagnosis, count(*) FROM people JOIN stays_of USING (id) WHERE again GROUP BY 1",
		true,
	},
	{
		"SELECT diagnosis, count(*) FROM people NATURAL JOIN (SELECT id, again FROM stays_of) s WHERE " +
			"again GROUP BY 1",
		true,
	},
	{
		"SELECT diagnosis, count(*) FROM people p WHERE EXISTS (SELECT FROM stays_of s WHERE s.id = " +
			"p.id AND s.stays > 2) GROUP BY 1",
		true,
	},
	{
		"SELECT diagnosis, count(*) FROM people p WHERE NOT EXISTS (SELECT FROM stays_of s WHERE s.id " +
			"= p.id AND again) GROUP BY 1",
		true,
	},
	{
		"SELECT diagnosis, count(*) FROM people WHERE id IN (SELECT id FROM stays_of WHERE stays = 1) " +
			"GROUP BY 1",
		true,
	},
	{
		"SELECT diagnosis, count(*) FROM people WHERE id NOT IN (SELECT id FROM stays_of WHERE stays = " +
			"1) GROUP BY 1",
		true,
	},
	{
		"SELECT diagnosis, count(DISTINCT p.id) FROM people p, stays_of s WHERE p.id = s.id AND stays " +
			"> 1 GROUP BY 1",
		true,
	},
	{
		"SELECT diagnosis, sum((SELECT s.stays FROM stays_of s WHERE s.id = p.id))::bigint FROM people " +
			"p GROUP BY 1",
		true,
	},
	{
		"SELECT diagnosis, count(*) FROM people p LEFT JOIN stays_of s ON s.id = p.id AND s.again " +
			"WHERE s.id IS NULL GROUP BY 1",
		true,
	},
	{
		"SELECT diagnosis, count(*) FROM people p JOIN stays_of s USING (id) LEFT JOIN tall_of t USING " +
			"(id) WHERE stays > 0 AND coalesce(t.tall, false) GROUP BY 1",
		true,
	},
	{"SELECT tall, sum(stays)::bigint FROM stays_of JOIN tall_of USING (id) GROUP BY 1", true},
	{
		"WITH ill AS (SELECT id FROM people WHERE diagnosis = 'd1') SELECT stays, count(*) FROM " +
			"stays_of WHERE id IN (TABLE ill) GROUP BY 1",
		true,
	},
	{
		"SELECT a.stays, count(*) FROM stays_of a JOIN people b ON a.id = b.id AND b.diagnosis = 'd2' " +
			"GROUP BY 1",
		true,
	},
	{
		"SELECT p.age / 20, count(*) FROM people p JOIN stays_of s USING (id) WHERE again AND p.age IS " +
			"NOT NULL GROUP BY 1",
		false,
	},
	{
		"SELECT s.age / 20, count(*) FROM people p JOIN stays_of s USING (id) WHERE again AND s.age IS " +
			"NOT NULL AND diagnosis < 'd4' GROUP BY 1",
		false,
	},
}

// familyRefusals ask for rows of several releases, or for keys.
var familyRefusals = map[string]string{
	"SELECT count(*) FROM people p JOIN stays_of s USING (id) JOIN stays c ON " +
		"c.person = p.id": "0A000",
	"SELECT count(*) FROM stays_of s JOIN stays c ON c.person = s.id": "0A000",
	"SELECT s.again, count(*) FROM stays c JOIN people p ON p.id = c.person, stays_of s WHERE " +
		"s.id = p.id": "0A000",
	"SELECT diagnosis FROM people p JOIN stays c ON c.person = p.id AND p.id IN (SELECT id FROM " +
		"stays_of)": "42501",
	"SELECT count(*) FROM stays_of s WHERE EXISTS (SELECT FROM stays c WHERE c.person = s.id AND " +
		"c.day > now())": "42501",
	"SELECT count(*) FROM stays_of WHERE id = 7":             "42501",
	"SELECT id FROM people":                                  "42501",
	"SELECT p.ctid FROM people p JOIN stays_of s USING (id)": "42501",
}

const tallOf = `CALL tailor.define_dataset('public.tall_of',
	'SELECT id, id % 7 > 3 AS tall FROM people', subject => 'id');
CALL tailor.classify('tall_of', 'tall', 'non_sensitive');
CALL tailor.activate('tall_of');`

const staysPolicy = `CALL tailor.protect('stays', subject => 'person', k => 5);
CALL tailor.classify('stays', 'person', 'direct_identifier');
CALL tailor.classify('stays', 'day', 'quasi_identifier', hierarchy => 'day');
CALL tailor.activate('stays');`

// TestTablesAreJoinedWithTheirDataSets: what is read off one release is one table.
func TestTablesAreJoinedWithTheirDataSets(t *testing.T) {
	direct, p := datasetWard(t, "families", "")
	mustExec(t, direct, staysOf+tallOf+staysPolicy)
	conn, program := connect(t, p.dsn("researcher")), connect(t, p.program("researcher"))
	for _, name := range []string{"stays_of", "tall_of", "people", "stays"} {
		answeredSoon(t, conn, "SELECT count(*) FROM "+name)
	}
	for _, q := range familyQuestions {
		truth := numbersBy(t, direct, q.sql)
		for name, shown := range map[string]map[string]float64{
			"terminal": numbersBy(t, conn, q.sql),
			"program":  numbersBy(t, program, q.sql),
		} {
			if len(truth) != len(shown) {
				t.Errorf("%s, %s: %d rows, in truth %d", name, q.sql, len(shown), len(truth))
			}
			for key, n := range shown {
				slack := max(10, 0.1*truth[key])
				if q.exact {
					slack = 0
				}
				if math.Abs(n-truth[key]) > slack {
					t.Errorf("%s, %s\n%s: %g, in truth %g", name, q.sql, key, n, truth[key])
				}
			}
		}
	}
	for sql, code := range familyRefusals {
		if _, err := conn.Exec(t.Context(), sql); codeIn(err) != code {
			t.Errorf("%s: %v, want %s", sql, err, code)
		}
	}
	// The key is a number that says nothing, and the record names what was read.
	keys := rowsOf(
		t,
		conn,
		"SELECT p.id FROM people p JOIN stays_of s USING (id) WHERE diagnosis = 'd1' ORDER BY 1",
	)
	if len(keys) != 429 ||
		strings.Join(
			keys,
			" ",
		) == strings.Join(
			rowsOf(t, direct, "SELECT id FROM people WHERE diagnosis = 'd1' ORDER BY 1"),
			" ",
		) {
		t.Errorf("%d keys, or those of the table", len(keys))
	}
	if i := slices.IndexFunc(keys, func(key string) bool {
		return !strings.HasPrefix(key, "-")
	}); i >= 0 {
		t.Errorf("%s may be somebody's key", keys[i])
	}
	if relations := one[string](
		t,
		direct,
		`SELECT array_to_string(relations, ' ') FROM tailor.audit WHERE sql LIKE '%tall%LEFT JOIN%' `+
			`OR sql LIKE '%LEFT JOIN tall_of%' ORDER BY time DESC LIMIT 1`,
	); !strings.Contains(relations, "people") ||
		!strings.Contains(relations, "stays_of") ||
		!strings.Contains(relations, "tall_of") {
		t.Errorf("the record names %q", relations)
	}
}

// derivedQuestions ask of each person something of the rows in another table. They are
// refused until a data set tells it, which the hint has.
var derivedQuestions = []string{
	"SELECT diagnosis, count(*) FROM people p WHERE EXISTS (SELECT FROM stays s WHERE s.person = " +
		"p.id) GROUP BY 1",
	"SELECT diagnosis, count(*) FROM people p WHERE NOT EXISTS (SELECT 1 FROM stays WHERE person = " +
		"p.id) GROUP BY 1",
	"SELECT diagnosis, count(*) FROM people WHERE id IN (SELECT person FROM stays) GROUP BY 1",
	"SELECT diagnosis, count(*) FROM people p WHERE id NOT IN (SELECT DISTINCT s.person FROM " +
		"public.stays AS s) GROUP BY 1",
	"SELECT (SELECT count(*) FROM stays s WHERE p.id = s.person) AS n, count(*) FROM people p " +
		"GROUP BY 1",
	"SELECT diagnosis, sum((SELECT max(day) - min(day) FROM stays WHERE person = id))::bigint FROM " +
		"people GROUP BY 1",
	"SELECT diagnosis, count(*) FROM people p WHERE EXISTS (SELECT FROM stays s WHERE day < " +
		"'2025-03-01' AND p.id = s.person) GROUP BY 1",
	"SELECT diagnosis, count(*) FROM people p WHERE EXISTS (SELECT * FROM stays s WHERE s.person = " +
		"p.id AND '2025-03-01' > s.day) GROUP BY 1",
	`SELECT diagnosis, count(*) FROM people p WHERE EXISTS (
		SELECT FROM (SELECT day - lag(day) OVER (ORDER BY day) AS gap FROM stays s
			WHERE s.person = p.id) g WHERE gap <= 30) GROUP BY 1`,
	"SELECT count(*) FILTER (WHERE EXISTS (SELECT FROM stays s, stays t WHERE s.person = p.id AND " +
		"t.person = p.id AND t.day = s.day + 30)) FROM people p",
	"SELECT diagnosis, count(*) FROM people p WHERE (SELECT count(DISTINCT extract(month FROM " +
		"s.day)) FROM stays s WHERE s.person = p.id) > 1 GROUP BY 1",
	"SELECT cardinality(ARRAY(SELECT s.day FROM stays s WHERE s.person = p.id)), count(*) FROM " +
		"people p GROUP BY 1",
	// Of rows in which an outer join has found nobody.
	"SELECT q.diagnosis, count(*) FROM people p LEFT JOIN people q ON q.id = p.id AND q.diagnosis = " +
		"'d1' WHERE q.id NOT IN (SELECT person FROM stays) GROUP BY 1",
	"SELECT q.id IN (SELECT person FROM stays), count(*) FROM people p LEFT JOIN people q ON q.id = " +
		"p.id AND q.diagnosis = 'd1' GROUP BY 1",
	"SELECT EXISTS (SELECT FROM stays s WHERE s.person = q.id), count(*) FROM people p LEFT JOIN " +
		"people q ON q.id = p.id AND q.diagnosis = 'd1' GROUP BY 1",
	"SELECT (SELECT count(*) FROM stays s WHERE s.person = q.id), count(*) FROM people p LEFT JOIN " +
		"people q ON q.id = p.id AND q.diagnosis = 'd1' GROUP BY 1",
	"SELECT cardinality(ARRAY(SELECT s.day FROM stays s WHERE s.person = q.id)), count(*) FROM " +
		"people p LEFT JOIN people q ON q.id = p.id AND q.diagnosis = 'd1' GROUP BY 1",
}

// hintedDataSet is what the hint of a refusal has for the owner of the tables to run.
func hintedDataSet(err error) string {
	var refusal *pgconn.PgError
	if !errors.As(err, &refusal) {
		return ""
	}
	const end = "CALL tailor.activate("
	from, to := strings.Index(refusal.Hint, "CALL "), strings.LastIndex(refusal.Hint, end)
	if from < 0 || to < from {
		return ""
	}
	return refusal.Hint[from : to+strings.Index(refusal.Hint[to:], ";")+1]
}

// TestSubqueriesAreAnsweredByDataSetsThatSayTheSame runs what the hint says, and then the
// question again.
func TestSubqueriesAreAnsweredByDataSetsThatSayTheSame(t *testing.T) {
	direct, p := datasetWard(t, "families_derived", "")
	mustExec(
		t,
		direct,
		`ALTER TABLE stays ALTER day TYPE date;`+strings.Replace(
			staysPolicy,
			"CALL tailor.activate",
			`CALL tailor.classify('stays', 'day', 'sensitive');
		CALL tailor.activate`,
			1,
		),
	)
	conn := connect(t, p.program("researcher"))
	answeredSoon(t, conn, "SELECT count(*) FROM people")
	answeredSoon(t, conn, "SELECT count(*) FROM stays")
	declared := 0
	for _, sql := range derivedQuestions {
		for before := declared; ; {
			if declared > before+1 {
				t.Fatalf("%s: is not answered by the data set that its hint has", sql)
			}
			_, err := conn.Exec(t.Context(), sql)
			if err == nil || codeIn(err) == "40001" || codeIn(err) == "57P03" {
				break
			}
			script := hintedDataSet(err)
			if codeIn(err) != "42501" || script == "" {
				t.Fatalf("%s\n%v: no data set is named", sql, errorText(err))
			}
			script = strings.Replace(
				script,
				"CALL tailor.activate",
				acceptedAll(script)+"CALL tailor.activate",
				1,
			)
			mustExec(t, direct, script)
			declared++
			answeredAfter(t, conn, sql, err)
		}
		truth := numbersBy(t, direct, sql)
		for key, n := range numbersBy(t, conn, sql) {
			if n != truth[key] {
				t.Errorf("%s\n%s: %g, in truth %g", sql, key, n, truth[key])
			}
			delete(truth, key)
		}
		if len(truth) > 0 {
			t.Errorf("%s\n%v are missing", sql, truth)
		}
	}
	if declared != 8 {
		t.Errorf(
			"%d data sets for %d questions, want 8: some say the same",
			declared,
			len(derivedQuestions),
		)
	}
	// What depends on more than one person, on the moment, or on what is not there, has none.
	for _, sql := range []string{
		"SELECT count(*) FROM people p WHERE EXISTS (SELECT FROM stays s WHERE s.person = p.id AND " +
			"s.day > now())",
		"SELECT count(*) FROM people p WHERE EXISTS (SELECT FROM stays s WHERE s.person < p.id)",
		"SELECT count(*) FROM people p, people q WHERE EXISTS (SELECT FROM stays s WHERE s.person = " +
			"p.id AND s.person = q.id)",
		"SELECT count(*) FROM stays s WHERE EXISTS (SELECT FROM stays t WHERE t.person = s.person)",
		"SELECT count(*) FROM people p WHERE EXISTS (SELECT FROM stays s WHERE s.person = p.id AND " +
			"s.ctid IS NOT NULL)",
		"SELECT count(*) FROM people p WHERE EXISTS (SELECT count(*) FROM stays s WHERE s.person = p.id)",
		"SELECT count(*) FROM people p WHERE EXISTS (SELECT FROM stays s WHERE s.person = p.id OFFSET 1)",
	} {
		_, err := conn.Exec(t.Context(), sql)
		if code := codeIn(err); code != "42501" && code != "0A000" {
			t.Errorf("%s: %v, want a refusal", sql, err)
		}
	}
}

// acceptedAll has a data set be shown whatever other tables show.
func acceptedAll(script string) string {
	name, _, _ := strings.Cut(
		script[strings.Index(script, "define_dataset(")+len("define_dataset("):],
		",",
	)
	at := strings.LastIndex(script, "'sensitive'")
	fields := strings.Split(script[:at], "'")
	return fmt.Sprintf(
		"CALL tailor.shared_fact(%s, '%s', 'accepted'); ",
		name,
		fields[len(fields)-2],
	)
}

// answeredAfter asks again until the proxy knows of what has been declared.
func answeredAfter(t *testing.T, conn *pgx.Conn, sql string, before error) {
	t.Helper()
	waitFor(t, func() bool {
		_, err := conn.Exec(t.Context(), sql)
		return err == nil || hintedDataSet(err) != "" && hintedDataSet(err) != hintedDataSet(before)
	})
}

// TestFamiliesDoNotTellTheirPeopleApart has two people of one block in each other's place, with
// all that is said of them in the table, its data sets, and the stays that these are made of.
// Whoever has the answers of both worlds sees no difference.
func TestFamiliesDoNotTellTheirPeopleApart(t *testing.T) {
	questions := slices.Clone(derivedQuestions[:8])
	for _, q := range familyQuestions {
		questions = append(questions, q.sql)
	}
	questions = append(
		questions,
		"SELECT tailor.label(p.age), tailor.label(p.zip), diagnosis, token, stays, again, tall FROM "+
			"people p JOIN stays_of s USING (id) LEFT JOIN tall_of USING (id)",
		"SELECT s.age, s.zip, token, stays FROM people p JOIN stays_of s USING (id) WHERE EXISTS "+
			"(SELECT FROM stays t WHERE t.person = p.id)",
		"SELECT a.token, b.token FROM people a JOIN stays_of s USING (id) JOIN people b USING (id)",
	)
	ask := func(name, ofPeople, ofStays string) (answers [][]string, direct *pgx.Conn) {
		t.Helper()
		direct, p := datasetWard(t, name, `ALTER TABLE people ADD token text, ADD tall boolean;
			UPDATE people SET token = md5(id::text || 'x'), tall = id % 7 > 3;`+ofPeople+`
			CALL tailor.classify('people', 'token', 'non_sensitive');
			UPDATE tailor.classification SET shown_as = 'middle' WHERE class = 'quasi_identifier';`)
		mustExec(
			t,
			direct,
			ofStays+staysOf+strings.Replace(
				tallOf,
				"id % 7 > 3 AS tall",
				"tall",
				1,
			)+strings.Replace(
				staysPolicy,
				"CALL tailor.activate",
				"UPDATE tailor.classification SET shown_as = 'middle' WHERE class = 'quasi_identifier'; CALL "+
					"tailor.activate",
				1,
			)+`
			CALL tailor.define_dataset('public.told', $$ SELECT id,
				EXISTS (SELECT FROM stays s WHERE s.person = p.id) AS any,
				(SELECT count(*) FROM stays s WHERE s.person = p.id) AS n,
				(SELECT max(day) - min(day) FROM stays s WHERE s.person = p.id) AS span,
				EXISTS (SELECT FROM stays s WHERE s.person = p.id AND s.day < '2025-03-01') AS early
				FROM people p $$, subject => 'id');
			CALL tailor.classify('told', 'any', 'sensitive'); CALL tailor.classify('told', 'n', 'sensitive');
			CALL tailor.classify('told', 'span', 'sensitive');
				CALL tailor.classify('told', 'early', 'sensitive');
			CALL tailor.shared_fact('told', 'early', 'accepted');
				CALL tailor.shared_fact('told', 'span', 'accepted');
			CALL tailor.activate('told')`,
		)
		conn := connect(t, p.dsn("researcher"))
		for _, table := range []string{"people", "stays_of", "tall_of", "told"} {
			answeredSoon(t, conn, "SELECT count(*) FROM "+table)
		}
		for _, sql := range questions {
			rows := rowsOf(t, conn, sql)
			slices.Sort(rows)
			answers = append(answers, rows)
		}
		return answers, direct
	}
	first, direct := ask("families_world", "", "")
	// Two of one block of whom everything is different, and no stay is the other's.
	chain := one[int](
		t,
		direct,
		`SELECT chain FROM tailor.chain WHERE relation = 'people'::regclass`,
	)
	var a, b int
	err := direct.QueryRow(t.Context(), fmt.Sprintf(`
		WITH placed AS (SELECT p.*, r."tailor block" AS block FROM tailor_store.chain_%d_row r
			JOIN people p USING (token))
		SELECT a.id, b.id FROM placed a JOIN placed b ON a.block = b.block
			AND a.diagnosis <> b.diagnosis AND a.tall <> b.tall
			AND (a.age, a.zip) IS DISTINCT FROM (b.age, b.zip)
		WHERE (SELECT count(*) FROM stays WHERE person = a.id) <> (SELECT count(*) FROM stays
			WHERE person = b.id)
		ORDER BY a.id LIMIT 1`, chain)).Scan(&a, &b)
	if err != nil {
		t.Fatal(err)
	}
	second, _ := ask("families_other", fmt.Sprintf(`
		UPDATE people p SET (diagnosis, token, tall) = (q.diagnosis, q.token, q.tall) FROM people q
			WHERE p.id IN (%[1]d, %[2]d) AND q.id IN (%[1]d, %[2]d) AND p.id <> q.id;`, a, b), fmt.Sprintf(`
		UPDATE stays SET person = %[1]d + %[2]d - person WHERE person IN (%[1]d, %[2]d);`, a, b))
	for i, sql := range questions {
		if !slices.Equal(first[i], second[i]) {
			t.Errorf(
				"%s\ntells %d and %d apart: %d rows, and %d",
				sql,
				a,
				b,
				len(first[i]),
				len(second[i]),
			)
		}
	}
}

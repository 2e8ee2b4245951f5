package planner_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/ecg"
	"github.com/hiatus-tailor/tailor/planner"
)

// Whatever stands anywhere in a statement is refused, recorded, or not handed on: a marker is
// put in place of every token of every legal statement, and with many words behind every one;
// what is no SQL any more is left out.

// markers are expressions with a word that is looked for in the text that is handed on.
var markers = []struct{ word, text string }{
	{"marked_f", "pg_temp.marked_f(1)"},
	{"cursor_to_xml", "cursor_to_xml('x', 1, true, true, '')"},
	{"marked_type", "1::pg_temp.marked_type"},
	{"marked_schema", "1 OPERATOR(marked_schema.=) 1"},
	{"row_to_json", "(SELECT row_to_json(m) FROM public.patients m)"},
	{"Odd Name", `(SELECT m."Odd Name" FROM public.patients m)`},
	{"pg_cancel_backend", "(1).pg_cancel_backend"}, // which is pg_cancel_backend(1)
}

// seeds have constructs that no statement of the corpus has.
var seeds = []string{
	"WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SEARCH DEPTH FIRST BY n SET o " +
		"CYCLE n SET c TO text 'x' DEFAULT text 'y' USING q SELECT count(*) FROM patients, r",
	"SELECT count(*) FROM patients; SELECT 1 WHERE true",
	"SELECT 1 WHERE true; SELECT count(*) FROM patients",
	"SELECT count(*) FROM patients; DECLARE d CURSOR FOR SELECT 1",
	"SELECT count(*) FROM patients; COPY (SELECT 1) TO STDOUT",
	"SELECT count(*) FROM patients; CREATE TEMP TABLE t AS SELECT 1",
	"SELECT count(*) FROM patients; EXPLAIN SELECT 1",
	"SELECT count(*) FROM patients, ROWS FROM (json_to_record('{}') AS (a int), " +
		"generate_series(1, 2)) WITH ORDINALITY AS x (a, b, c)",
	"PREPARE s (int) AS SELECT count(*) FROM patients WHERE age = $1",
	"SELECT count(*) FROM patients WHERE (age, sex) IN (SELECT 1, 'x' LIMIT 1 OFFSET 0)",
	"SELECT sum(age) OVER w FROM patients WINDOW w AS (PARTITION BY sex ORDER BY age " +
		"GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES)",
	"(WITH a AS (SELECT 1) SELECT age FROM patients ORDER BY 1 LIMIT 1) UNION ALL " +
		"(VALUES (1) ORDER BY 1 LIMIT 1) ORDER BY 1 FETCH FIRST 1 ROWS WITH TIES",
}

// besides are texts that stand behind a token.
var besides = []string{
	", %s", " OR (%s) IS NULL", " FILTER (WHERE %s)", " OVER (PARTITION BY %s)",
	" OVER (ORDER BY 1 ROWS %s PRECEDING)", " WITHIN GROUP (ORDER BY %s)", " WHERE %s", " HAVING %s",
	" ORDER BY %s", " LIMIT %s", " OFFSET %s", " GROUP BY %s", " GROUP BY ROLLUP (%s)", " ON %s",
	" WINDOW w AS (ORDER BY %s)", " DISTINCT ON (%s)", " TABLESAMPLE system (%s)", "[%s]",
	", LATERAL (SELECT %s) AS l", " CROSS JOIN ROWS FROM (abs(%s)) AS l", " UNION ALL SELECT %s",
	"; SELECT %s", " BETWEEN 1 AND %s", " IN (%s)", " = ANY (SELECT %s)", "COLLATE \"C\" = %s",
	" AT TIME ZONE %s", " LIKE 'x' ESCAPE %s", " IS DISTINCT FROM %s",
}

// letsThrough says whether a text is planned with a word in it that nothing is said of.
func letsThrough(text, word string) bool {
	plan, err := planner.Make(text, session, hospitalSnapshot())
	if err != nil || len(plan.Relations) == 0 || !strings.Contains(plan.Rewrite(release).SQL, word) {
		return false
	}
	return !slices.ContainsFunc(plan.Uses, func(u ecg.Use) bool { return u.Attribute == word })
}

func TestWhateverStandsAnywhereIsRefusedOrRecorded(t *testing.T) {
	statements := slices.Clone(seeds)
	files, _ := filepath.Glob("testdata/release/*.sql")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		statements = append(statements, string(text))
	}
	seen, open, tried := make(map[string]bool), make(map[string]bool), 0
	try := func(text, word string) {
		if tried++; os.Getenv("TAILOR_SOAK") == "" && tried%19 != 0 {
			return // some in each place: the whole takes minutes where races are looked for
		}
		if _, err := pg.Parse(text); err != nil {
			return
		}
		several := strings.Contains(text, "; ")
		if kind := fmt.Sprint(word, several); letsThrough(text, word) && !open[kind] {
			open[kind] = true // one of each is enough
			t.Errorf("%s goes unnoticed: %s", word, text)
		}
	}
	for _, statement := range statements {
		scanned, err := pg.Scan(statement)
		if err != nil {
			t.Fatal(err)
		}
		var around [2]pg.Token
		for _, token := range scanned.Tokens {
			around = [2]pg.Token{around[1], token.Token}
			kind := fmt.Sprint(around)
			comment := token.Token == pg.Token_SQL_COMMENT || token.Token == pg.Token_C_COMMENT
			if seen[kind] || comment {
				continue // elsewhere the same tokens have stood before
			}
			seen[kind] = true
			before, behind := statement[:token.Start], statement[token.End:]
			for _, m := range markers {
				try(before+" ("+m.text+") "+behind, m.word)
				for _, b := range besides {
					try(statement[:token.End]+fmt.Sprintf(b, "("+m.text+")")+behind, m.word)
				}
			}
		}
	}
	if tried < 2000 {
		t.Errorf("there are only %d texts", tried)
	}
}

// Names of columns behind an alias, and functions that are written like columns.
func TestNothingIsNamedByAnotherWay(t *testing.T) {
	for _, c := range []struct{ word, text string }{
		{"p.d", "SELECT p.d FROM patients p(a, b, c, d) JOIN drugs d ON d.patient_id = p.a"},
		{"p.f", "SELECT p.f FROM stays s JOIN patients p(a, b, c, d, e, f) USING (id)"},
		{"ts_stat", "SELECT q.ts_stat FROM patients, unnest(ARRAY['SELECT 1']) AS q"},
		{"pg_temp", "WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT n FROM r) CYCLE n SET c TO " +
			"pg_temp.d 'x' DEFAULT pg_temp.d 'y' USING q SELECT count(*) FROM patients, r"},
	} {
		if letsThrough(c.text, c.word) {
			t.Errorf("%s goes unnoticed: %s", c.word, c.text)
		}
	}
}

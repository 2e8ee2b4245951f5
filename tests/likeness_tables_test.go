package tests

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// TestColumnsThatTellASensitiveOneAreNamed has a ward that follows from the diagnosis, a code that
// determines it, and two columns that say nothing of it.
func TestColumnsThatTellASensitiveOneAreNamed(t *testing.T) {
	direct := makeDatabase(t, "likeness_told", likenessSchema+`
ALTER TABLE cases ADD ward text, ADD code int, ADD bed int, ADD token text;
UPDATE cases SET ward = CASE WHEN diagnosis IN ('flu', 'cold') THEN 'one'
    ELSE 'two' END, code = hashtext(diagnosis) + id % 3, bed = id % 7, token = 't' || id;`)
	if err := shared.install(t.Context(), "likeness_told"); err != nil {
		t.Fatal(err)
	}
	shown := ""
	for _, column := range []string{"ward", "code", "bed", "token"} {
		shown += fmt.Sprintf("CALL tailor.classify('public.cases', '%s', 'non_sensitive');", column)
	}
	mustExec(t, direct, fmt.Sprintf(likenessPolicy, "by_models", shown+"ANALYZE cases;"))
	dsn := shared.cluster.SuperuserDSN("likeness_told")
	_, planned, _ := tool(t, "policy", "plan", "--dsn", dsn, policyFile(t, exportOf(t, dsn)))
	for _, line := range []string{
		"ward is shown as it is and follows from diagnosis, which is sensitive",
		"code is shown as it is and tells diagnosis, which is sensitive",
	} {
		if !strings.Contains(planned, "? "+line) {
			t.Errorf("no %q in %s", line, planned)
		}
	}
	for _, line := range []string{"bed is shown as it is and", "token is shown as it is and"} {
		if strings.Contains(planned, line) {
			t.Errorf("%q in %s", line, planned)
		}
	}
	mustExec(t, direct,
		`CALL tailor.classify('public.cases', 'ward', 'sensitive');
			CALL tailor.require('public.cases', 'l_diversity', 'ward', 2);
		CALL tailor.classify('public.cases', 'code', 'direct_identifier');
			CALL tailor.activate('public.cases')`)
	if _, planned, _ := tool(t, "policy", "plan", "--dsn", dsn,
		policyFile(t, exportOf(t, dsn))); strings.Contains(planned, "is shown as it is and") {
		t.Error(planned)
	}
}

func exportOf(t *testing.T, dsn string) string {
	t.Helper()
	code, exported, stderr := tool(t, "policy", "export", "--dsn", dsn, "-")
	if code != 0 {
		t.Fatal(stderr)
	}
	return exported
}

// TestLikenessOfADataSet keeps a model of a data set in the blocks of its table, which join where
// they have been shown before.
func TestLikenessOfADataSet(t *testing.T) {
	direct, p := datasetWard(t, "likeness_dataset", "")
	conn := connect(t, p.dsn("researcher"))
	answeredSoon(t, conn, "SELECT count(*) FROM people")
	d := demand{model: "t_closeness", column: "stays", parameter: 0.2, distance: "ordered"}
	require := strings.Replace(d.call(), "public.cases", "stays_of", 1)
	mustExec(t, direct, strings.Replace(staysOf, "CALL tailor.activate",
		require+"\nCALL tailor.activate", 1))
	answeredSoon(t, conn, "SELECT count(*) FROM stays_of")
	look := func(when string) {
		t.Helper()
		blocks, all := make(map[string]distribution), make(distribution)
		for _, row := range rowsOf(t, conn,
			"SELECT stays, tailor.label(age), tailor.label(zip) FROM stays_of") {
			stays, labels, _ := strings.Cut(row, "|")
			if blocks[labels] == nil {
				blocks[labels] = make(distribution)
			}
			blocks[labels][stays]++
		}
		for _, stays := range rowsOf(t, direct, "SELECT stays FROM stays_of") {
			all[stays]++
		}
		for labels, block := range blocks {
			delete(block, "") // of those who, as they were shown, fail it
			if len(block) > 0 && !d.holds(block, all) {
				t.Errorf("%s: %s has %v of %v", when, labels, block, all)
			}
		}
		if len(blocks) < 10 || len(all) < 3 {
			t.Errorf("%s: %d blocks of %d values", when, len(blocks), len(all))
		}
	}
	look("blocks that were there")
	mustExec(t, direct, `CALL tailor.forget_chains('people')`)
	answeredSoon(t, conn, "SELECT count(*) FROM stays_of")
	look("made anew")
}

// TestModelsOfAChildOfSeveralRows counts each subject once for each of its values, in blocks and
// in all; the table of the subjects has no model.
func TestModelsOfAChildOfSeveralRows(t *testing.T) {
	direct := makeDatabase(t, "likeness_child", likenessSchema+`
CREATE TABLE visits (visit int PRIMARY KEY, person int REFERENCES cases, month int, kind text);
INSERT INTO visits SELECT g, 1 + g * 7 % 1500, g * 13 % 12, CASE WHEN g % 4 = 0 THEN 'urgent'
    ELSE (ARRAY['a', 'b', 'b', NULL])[1 + abs(hashint4(g)) % 4] END
    FROM generate_series(1, 4000) g;`)
	if err := shared.install(t.Context(), "likeness_child"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, fmt.Sprintf(likenessPolicy, "by_models", ""))
	d := demand{model: "t_closeness", column: "kind", parameter: 0.2}
	mustExec(t, direct,
		`CALL tailor.define_hierarchy('month', 'interval', '{"widths": [3, 6], "lower": 0, "upper": 11}');
CALL tailor.protect('public.visits', subject => 'person', k => 5);
CALL tailor.classify('public.visits', 'person', 'direct_identifier');
CALL tailor.classify('public.visits', 'visit', 'direct_identifier');
CALL tailor.classify('public.visits', 'month', 'quasi_identifier', hierarchy => 'month');
CALL tailor.classify('public.visits', 'kind', 'sensitive'); CALL tailor.cohort('public.visits', 20);
`+strings.Replace(d.call(), "public.cases", "public.visits", 1)+
			`CALL tailor.activate('public.visits')`)
	conn := connect(t, serveDatabase(t, "likeness_child").dsn(shared.reader(t)))
	untilAnswered(t, conn, `SELECT count(*) FROM visits`)
	chain := `(SELECT c FROM tailor.chain c WHERE c.relation = 'visits'::regclass)`
	shown := one[string](t, direct, `SELECT tailor.rows_of(c) FROM `+chain+` s (c)`)
	counts := func(from, by, person string) map[string]distribution {
		t.Helper()
		out := make(map[string]distribution)
		for _, row := range table(t, direct, fmt.Sprintf(
			`SELECT %s, coalesce(kind, '∅'), count(DISTINCT %s) FROM %s GROUP BY 1, 2`, by, person, from)) {
			if out[row[0]] == nil {
				out[row[0]] = make(distribution)
			}
			n, err := strconv.Atoi(row[2])
			if err != nil {
				t.Fatal(row)
			}
			out[row[0]][row[1]] = n
		}
		return out
	}
	all := counts("visits", "1", "person")["1"]
	look := func(when string) {
		t.Helper()
		blocks := counts(shown, `"tailor block"`, `"tailor person"`)
		for number, block := range blocks {
			delete(block, "") // of those who, as they were shown, fail it
			if len(block) > 0 && !d.holds(block, all) {
				t.Errorf("%s: block %s has %v of %v", when, number, block, all)
			}
		}
		if t.Logf("%s: %d blocks", when, len(blocks)); len(blocks) < 20 {
			t.Errorf("%s: %d blocks", when, len(blocks))
		}
	}
	look("first")
	generation := one[int](t, direct,
		`SELECT generation FROM tailor.chain WHERE relation = 'visits'::regclass`)
	mustExec(t, direct,
		`UPDATE visits SET kind = 'urgent' WHERE month < 5 AND person % 3 > 0;
			DELETE FROM visits WHERE person < 300;
		INSERT INTO visits SELECT 10000 + g, 1 + g * 11 % 200, g % 12, CASE WHEN g % 3 = 0
			THEN 'urgent' ELSE 'b' END FROM generate_series(1, 400) g;
		CALL tailor.refresh('visits')`)
	waitFor(t, func() bool {
		return one[int](t, direct,
			`SELECT generation FROM tailor.chain WHERE relation = 'visits'::regclass`) > generation
	})
	shown = one[string](t, direct, `SELECT tailor.rows_of(c) FROM `+chain+` s (c)`)
	look("refreshed")
	mustExec(t, direct, `CALL tailor.erase('visits', '700', departures => 'at_once')`)
	look("erased")
}

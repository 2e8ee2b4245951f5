package tests

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// modelsSchema makes people of whom most say one thing, so that blocks of k people often do
// not meet a model.
const modelsSchema = `
GRANT USAGE ON SCHEMA public TO PUBLIC;
CREATE TABLE cases (id int PRIMARY KEY, age int, sex text, diagnosis text, note text);
INSERT INTO cases SELECT g, 20 + g * 7 % 50, (ARRAY['f', 'm'])[1 + g % 2],
    CASE WHEN g * 37 % 100 < 45 THEN 'flu' WHEN g * 53 % 10 < 3 THEN NULL
    ELSE 'd' || g * 17 % 7 END, 'n' || g % 3 FROM generate_series(1, 900) g;
`

func modelsPolicy(model string, parameter float64, cuts string) string {
	return fmt.Sprintf(`
CALL tailor.define_hierarchy('age', 'interval',
    '{"widths": [5, 10, 20], "lower": 0, "upper": 119}');
CALL tailor.define_hierarchy('sex', 'table', '{"paths": [["f"], ["m"]]}');
CALL tailor.protect('public.cases', subject => 'id', k => 5);
CALL tailor.classify('public.cases', 'id', 'direct_identifier');
CALL tailor.classify('public.cases', 'age', 'quasi_identifier', hierarchy => 'age');
CALL tailor.classify('public.cases', 'sex', 'quasi_identifier', hierarchy => 'sex');
CALL tailor.classify('public.cases', 'diagnosis', 'sensitive');
CALL tailor.classify('public.cases', 'note', 'non_sensitive');
CALL tailor.cuts('public.cases', '%s');
CALL tailor.require('public.cases', '%s', 'diagnosis', %g);
CALL tailor.activate('public.cases');`, cuts, model, parameter)
}

// meets is each model by its definition.
func meets(model string, parameter float64, counts map[string]int) bool {
	total, most, entropy := 0.0, 0.0, 0.0
	for _, n := range counts {
		total += float64(n)
		most = max(most, float64(n))
	}
	for _, n := range counts {
		q := float64(n) / total
		entropy -= q * math.Log(q)
	}
	switch model {
	case "alpha":
		return most/total <= parameter+1e-9
	case "entropy_l_diversity":
		return math.Exp(entropy) >= parameter-1e-9
	}
	return float64(len(counts)) >= parameter
}

// assertModel looks at all blocks of the release. It returns how many there are, and how
// many have their values withheld.
func assertModel(
	t *testing.T, direct *pgx.Conn, model string, parameter float64, blind bool,
) (blocks, withheld int) {
	t.Helper()
	of := make(map[string]map[string]int)
	for _, row := range table(t, direct, fmt.Sprintf(`SELECT "tailor block", diagnosis FROM %s`,
		one[string](t, direct, `SELECT tailor.rows_of(c) FROM tailor.chain c`))) {
		if of[row[0]] == nil {
			of[row[0]] = make(map[string]int)
		}
		of[row[0]][row[1]]++
	}
	for block, counts := range of {
		if blind && len(counts) == 1 && counts["∅"] > 0 {
			withheld++
			continue
		}
		if blind {
			delete(counts, "∅")
		}
		if !meets(model, parameter, counts) {
			t.Errorf("%s of %g: block %s has %v", model, parameter, block, counts)
		}
	}
	return len(of), withheld
}

// TestBlocksMeetTheModelsOfThePolicy makes releases, lets people leave and change, and erases
// one at once.
func TestBlocksMeetTheModelsOfThePolicy(t *testing.T) {
	for _, c := range []struct {
		model     string
		parameter float64
		cuts      string
	}{
		{"alpha", 0.5, "by_models"},
		{"alpha", 0.4, "blind"},
		{"entropy_l_diversity", 2.8, "by_models"},
		{"entropy_l_diversity", 3, "blind"},
		{"l_diversity", 4, "by_models"},
	} {
		t.Run(c.model+" "+c.cuts, func(t *testing.T) {
			name := strings.ToLower("models_" + c.model + "_" + c.cuts)
			direct := makeDatabase(t, name, modelsSchema)
			if err := shared.install(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			mustExec(t, direct, modelsPolicy(c.model, c.parameter, c.cuts))
			conn := connect(t, serveDatabase(t, name).dsn(shared.reader(t)))
			untilAnswered(t, conn, `SELECT count(*) FROM cases`)
			blind := c.cuts == "blind"
			blocks, withheld := assertModel(t, direct, c.model, c.parameter, blind)
			t.Logf("%d blocks, %d withheld", blocks, withheld)
			if blocks < 10 || blind != (withheld > 0) {
				t.Errorf("%d blocks, %d withheld: the cases test too little", blocks, withheld)
			}
			for _, change := range []string{
				`UPDATE cases SET diagnosis = 'flu' WHERE age BETWEEN 20 AND 34; ` +
					`DELETE FROM cases WHERE age > 60 AND id % 2 = 0`,
				`UPDATE cases SET diagnosis = 'd' || id % 9 WHERE age < 40; ` +
					`INSERT INTO cases SELECT 2000 + g, 20 + g % 50, 'f', CASE WHEN g % 2 = 0 THEN 'flu' ` +
					`ELSE 'd' || g % 5 END, 'n' FROM generate_series(1, 150) g`,
			} {
				before := one[int](t, direct, `SELECT generation FROM tailor.chain`)
				mustExec(t, direct, change)
				mustExec(t, direct, `CALL tailor.refresh('cases')`)
				waitFor(t, func() bool {
					return one[int](t, direct, `SELECT generation FROM tailor.chain`) > before
				})
				assertModel(t, direct, c.model, c.parameter, blind)
			}
			mustExec(t, direct, `CALL tailor.erase('cases', '3', 'at_once')`)
			assertModel(t, direct, c.model, c.parameter, blind)
		})
	}
}

func TestModelsThatWouldBeSwitchedOffAreRefused(t *testing.T) {
	direct := makeDatabase(t, "models_refused", modelsSchema)
	if err := shared.install(t.Context(), "models_refused"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, modelsPolicy("alpha", 0.6, "by_models"))
	for _, c := range []struct {
		model     string
		parameter string
	}{{"alpha", "1"}, {"alpha", "0"}, {"alpha", "NaN"}, {"entropy_l_diversity", "1"}, {
		"l_diversity",
		"1",
	}, {"l_diversity", "2.5"}, {"l_diversity", "NULL"}, {"m_invariance", "2"}} {
		sql := fmt.Sprintf(`CALL tailor.require('public.cases', '%s', 'diagnosis', '%s')`, c.model,
			c.parameter)
		refusedWith(t, direct, "22023", strings.Replace(sql, "'NULL'", "NULL", 1))
	}
	mustExec(t, direct,
		`ALTER TABLE cases ADD sheet json, ADD dose numeric; `+
			`CALL tailor.classify('public.cases', 'sheet', 'sensitive'); `+
			`CALL tailor.classify('public.cases', 'dose', 'sensitive')`)
	refusedWith(t, direct, "0A000", `CALL tailor.require('public.cases', 'l_diversity', 'sheet', 2)`)
	mustExec(t, direct, `CALL tailor.require('public.cases', 'l_diversity', 'dose', 2)`)
	// Equal numbers are one value, in blocks too.
	mustExec(t, direct,
		`CREATE TABLE doses AS SELECT 1 AS "tailor block", g `+
			`AS "tailor person", (ARRAY[1, 1.0, 1.00])[1 + g % 3] AS dose FROM generate_series(1, 9) g`)
	if failing := one[int](t, direct,
		`SELECT cardinality(tailor.failing_blocks('public.doses', `+
			`'{"require": [{"model": "l_diversity", "column": "dose", "parameter": 2}]}', `+
			`0, 'true'))`); failing != 1 {
		t.Errorf("%d blocks fail that have one number, written in three ways", failing)
	}
	mustExec(t, direct,
		`DROP TABLE doses; ALTER TABLE cases DROP sheet, DROP dose; `+
			`CALL tailor.protect('public.cases', 'id', 5)`)
	mustExec(t, direct, `DELETE FROM tailor.requirement WHERE column_name = 'dose'`)
	mustExec(t, direct, `CALL tailor.activate('public.cases')`)
	// They go round through files.
	dsn := shared.cluster.SuperuserDSN("models_refused")
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if _, output, code := tailor(t, "policy", "export", "--dsn", dsn, file); code != 0 {
		t.Fatal(output)
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text),
		"{model: alpha, column: diagnosis, parameter: 0.6}") {
		t.Fatalf("%v\n%s", err, text)
	}
	if plan, _, code := tailor(t, "policy", "plan", "--dsn", dsn, file); code != 0 ||
		!strings.Contains(plan, "1 as they are") {
		t.Errorf("%d\n%s", code, plan)
	}
	for parameter, fault := range map[string]string{
		"1": "above 0 and below 1",
		"0": "above 0 and below 1", "x": "a number",
	} {
		if err := os.WriteFile(file, []byte(strings.Replace(string(text), "parameter: 0.6",
			"parameter: "+parameter, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, output, code := tailor(t, "policy", "lint", file); code == 0 ||
			!strings.Contains(output, fault) {
			t.Errorf("%s: %d %s", parameter, code, output)
		}
	}
}

// TestMissingValuesCountAlikeInAllChecksOfBlindCuts makes releases of values at random, of
// which many are missing: what cuts withhold is what the check of the release asks for.
func TestMissingValuesCountAlikeInAllChecksOfBlindCuts(t *testing.T) {
	for _, c := range []struct {
		model     string
		parameter float64
	}{{"alpha", 0.5}, {"entropy_l_diversity", 2}, {"l_diversity", 3}} {
		t.Run(c.model, func(t *testing.T) {
			name := "models_missing_" + c.model
			direct := makeDatabase(t, name, `GRANT USAGE ON SCHEMA public TO PUBLIC;
				CREATE TABLE cases (id int PRIMARY KEY, age int, sex text, diagnosis text, note text);
				INSERT INTO cases SELECT g, 20 + hashint4(g) & 63, (ARRAY['f', 'm'])[1 + (hashint4(g) >> 8)
					& 1],
					(ARRAY['flu', 'flu', NULL, NULL, NULL, 'd1', 'd2', 'd3'])[1 + ((hashint4(g) >> 12) & 7)],
					'n' FROM generate_series(1, 900) g`)
			if err := shared.install(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			mustExec(t, direct, modelsPolicy(c.model, c.parameter, "blind"))
			conn := connect(t, serveDatabase(t, name).dsn(shared.reader(t)))
			untilAnswered(t, conn, `SELECT count(*) FROM cases`)
			blocks, withheld := assertModel(t, direct, c.model, c.parameter, true)
			if blocks < 10 || withheld == 0 || withheld == blocks {
				t.Errorf("%d blocks, %d withheld: the cases test too little", blocks, withheld)
			}
		})
	}
}

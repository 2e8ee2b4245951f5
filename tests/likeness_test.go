package tests

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// demand is a model of a column as a policy requires it.
type demand struct {
	model, column string
	parameter, c  float64
	distance      string
}

func (d demand) call() string {
	more := ""
	if d.c > 0 {
		more += fmt.Sprintf(", c => %g", d.c)
	}
	if d.distance != "" {
		more += fmt.Sprintf(", distance => '%s'", d.distance)
	}
	return fmt.Sprintf("CALL tailor.require('public.cases', '%s', '%s', %g%s);", d.model, d.column,
		d.parameter, more)
}

// distribution is how often each value is told; ∅ is NULL.
type distribution map[string]int

func (d distribution) share(value string) float64 {
	total := 0
	for _, n := range d {
		total += n
	}
	return float64(d[value]) / float64(max(total, 1))
}

// holds is each model by its definition: of the values of a block, and of all.
func (d demand) holds(block, all distribution) bool {
	const slack = 1e-8
	var counts []int
	total, excess, gain, enhanced, factor := 0, 0.0, 0.0, true, 0.0
	for value, n := range block {
		counts = append(counts, n)
		total += n
		q, p := block.share(value), all.share(value)
		excess += max(0, q-p)
		gain = max(gain, (q-p)/p)
		enhanced = enhanced && (q-p)/p <= min(d.parameter, -math.Log(p))+slack
		factor = max(factor, math.Abs(math.Log(q/p)))
	}
	slices.Sort(counts)
	slices.Reverse(counts)
	for value := range all {
		if block[value] == 0 {
			factor = math.Inf(1)
		}
	}
	switch d.model {
	case "recursive_l_diversity":
		tail := 0
		for _, n := range counts[min(int(d.parameter)-1, len(counts)):] {
			tail += n
		}
		return float64(counts[0]) < d.c*float64(tail)
	case "t_closeness":
		if d.distance == "ordered" {
			return ordered(block, all) <= d.parameter+slack
		}
		return excess <= d.parameter+slack
	case "beta_likeness":
		return gain <= d.parameter+slack
	case "enhanced_beta_likeness":
		return enhanced
	case "delta_disclosure":
		return factor < d.parameter+slack
	}
	return meets(d.model, d.parameter, block)
}

// ordered is the distance with values at even steps of a scale. What all lack, and NULL, is as
// far from everything as the scale is long.
func ordered(block, all distribution) float64 {
	var places []float64
	on, whole, apart := 0.0, 0.0, 0.0
	for value := range all {
		if number, err := strconv.ParseFloat(value, 64); err == nil {
			places = append(places, number)
			whole += all.share(value)
			on += block.share(value)
		} else {
			apart += math.Abs(block.share(value)-all.share(value)) / 2
		}
	}
	for value := range block {
		if _, known := all[value]; !known {
			apart += block.share(value) / 2
		}
	}
	apart += math.Abs(on-whole) / 2
	slices.Sort(places)
	if len(places) < 2 || on == 0 {
		return apart
	}
	carried := 0.0
	for _, place := range places {
		value := strconv.FormatFloat(place, 'g', -1, 64)
		carried += block.share(value) - all.share(value)*on/whole
		apart += math.Abs(carried) / float64(len(places)-1)
	}
	return apart
}

// told are the distributions of a column in what a relation shows, by label.
func told(t *testing.T, conn *pgx.Conn, from, column, by string) map[string]distribution {
	t.Helper()
	out := make(map[string]distribution)
	for _, row := range rowsOf(t, conn, fmt.Sprintf(
		"SELECT %[1]s, coalesce(CASE WHEN %[2]s::text ~ '\\.' THEN rtrim(rtrim(%[2]s::text, '0'), '.') "+
			"ELSE %[2]s::text END, '∅'), count(*) FROM %[3]s GROUP BY 1, 2", by, column, from)) {
		f := strings.Split(row, "|")
		n, err := strconv.Atoi(f[2])
		if err != nil {
			t.Fatal(row)
		}
		if out[f[0]] == nil {
			out[f[0]] = make(distribution)
		}
		out[f[0]][f[1]] += n
	}
	return out
}

// likenessSchema has diagnoses that go with age, so that cuts meet models seldom, and doses that
// are written with different numbers of zeros.
const likenessSchema = `
GRANT USAGE ON SCHEMA public TO PUBLIC;
CREATE TABLE cases (id int PRIMARY KEY, age int, sex text, diagnosis text, dose numeric);
CREATE FUNCTION said(g int, age int) RETURNS text LANGUAGE sql AS $$
	SELECT (ARRAY['flu', 'flu', 'cold', NULL, 'ache', 'gout', CASE WHEN age < 40 THEN 'flu'
		ELSE 'gout' END])[1 + abs(hashint4(g)) % 7] $$;
CREATE FUNCTION given(g int) RETURNS numeric LANGUAGE sql AS $$
	SELECT CASE WHEN g % 11 > 0 THEN round((1 + abs(hashint4(g * 3)) % 9)::numeric / 2, 1 + g % 3)
		END $$;
INSERT INTO cases SELECT g, 20 + g * 7 % 50, (ARRAY['f', 'm'])[1 + g % 2],
    said(g, 20 + g * 7 % 50), given(g) FROM generate_series(1, 1500) g;
`

const likenessPolicy = `
CALL tailor.define_hierarchy('age', 'interval',
    '{"widths": [5, 10, 20], "lower": 0, "upper": 119}');
CALL tailor.define_hierarchy('sex', 'table', '{"paths": [["f"], ["m"]]}');
CALL tailor.protect('public.cases', subject => 'id', k => 5);
CALL tailor.classify('public.cases', 'id', 'direct_identifier');
CALL tailor.classify('public.cases', 'age', 'quasi_identifier', hierarchy => 'age');
CALL tailor.classify('public.cases', 'sex', 'quasi_identifier', hierarchy => 'sex');
CALL tailor.classify('public.cases', 'diagnosis', 'sensitive');
CALL tailor.classify('public.cases', 'dose', 'sensitive');
CALL tailor.cohort('public.cases', 20);
CALL tailor.cuts('public.cases', '%s');
%s
CALL tailor.activate('public.cases');`

// TestModelsOfLikenessHoldInWhatIsAnswered reads what is answered by labels, which are unions of
// blocks, and holds it against the table as it was when the policy came into force: through
// changes, newcomers with values that were not there, an erasure, and a policy with stricter
// models, which has a reference of its own.
func TestModelsOfLikenessHoldInWhatIsAnswered(t *testing.T) {
	for _, c := range []struct {
		cuts             string
		demands, further []demand
	}{
		{
			"by_models",
			[]demand{
				{model: "t_closeness", column: "diagnosis", parameter: 0.22},
				{model: "l_diversity", column: "diagnosis", parameter: 3},
			},
			[]demand{{model: "t_closeness", column: "diagnosis", parameter: 0.15}},
		},
		{
			"blind",
			[]demand{
				{model: "t_closeness", column: "diagnosis", parameter: 0.25},
				{model: "t_closeness", column: "dose", parameter: 0.15, distance: "ordered"},
			},
			[]demand{{model: "t_closeness", column: "dose", parameter: 0.1, distance: "ordered"}},
		},
		{
			"by_models",
			[]demand{
				{model: "t_closeness", column: "dose", parameter: 0.12, distance: "ordered"},
				{model: "recursive_l_diversity", column: "diagnosis", parameter: 2, c: 2},
			},
			[]demand{{model: "recursive_l_diversity", column: "diagnosis", parameter: 3, c: 2}},
		},
		{
			"blind",
			[]demand{
				{model: "beta_likeness", column: "diagnosis", parameter: 1.5},
				{model: "recursive_l_diversity", column: "dose", parameter: 3, c: 1},
			},
			[]demand{{model: "enhanced_beta_likeness", column: "diagnosis", parameter: 1.2}},
		},
		{
			"by_models",
			[]demand{{model: "enhanced_beta_likeness", column: "diagnosis", parameter: 2}},
			[]demand{{model: "beta_likeness", column: "diagnosis", parameter: 1}},
		},
		{
			"by_models",
			[]demand{{model: "delta_disclosure", column: "diagnosis", parameter: 1.8}},
			[]demand{{model: "delta_disclosure", column: "diagnosis", parameter: 1.2}},
		},
		{
			"blind",
			[]demand{{model: "delta_disclosure", column: "diagnosis", parameter: 1.2}},
			[]demand{{model: "l_diversity", column: "dose", parameter: 4}},
		},
	} {
		name := c.demands[0].model + " " + c.demands[0].distance + " " + c.cuts
		t.Run(name, func(t *testing.T) {
			name := "likeness_" + strings.ReplaceAll(name, " ", "_")
			direct := makeDatabase(t, name, likenessSchema)
			if err := shared.install(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			calls := ""
			for _, d := range c.demands {
				calls += d.call()
			}
			before := make(map[string]distribution)
			refer := func(from string) {
				for _, column := range []string{"diagnosis", "dose"} {
					before[column] = told(t, direct, from, column, "1")["1"]
					if c.cuts == "blind" {
						delete(before[column], "∅")
					}
				}
			}
			refer("cases")
			mustExec(t, direct, fmt.Sprintf(likenessPolicy, c.cuts, calls))
			conn := connect(t, serveDatabase(t, name).dsn(shared.reader(t)))
			untilAnswered(t, conn, `SELECT count(*) FROM cases`)
			check := func(what string, demands []demand) {
				t.Helper()
				blocks, withheld := 0, 0
				for _, d := range demands {
					for label, block := range told(t, conn, "cases", d.column,
						"tailor.label(age) || tailor.label(sex)") {
						blocks++
						if c.cuts == "blind" {
							delete(block, "∅")
						}
						if len(block) == 0 {
							withheld++
							continue
						}
						if !d.holds(block, before[d.column]) {
							t.Errorf("%s: %v: %s has %v of %v", what, d, label, block, before[d.column])
						}
					}
				}
				t.Logf("%s: %d labels, %d withheld", what, blocks, withheld)
				if blocks < 2*len(demands) && !strings.HasPrefix(demands[0].model, "delta") ||
					withheld == blocks {
					t.Errorf("%s: %d labels, %d withheld: the cases test too little", what, blocks, withheld)
				}
			}
			check("first", c.demands)
			follows := func(change string) {
				t.Helper()
				generation := one[int](t, direct, `SELECT generation FROM tailor.chain`)
				mustExec(t, direct, change)
				waitFor(t, func() bool {
					return one[int](t, direct, `SELECT generation FROM tailor.chain`) > generation
				})
			}
			for round := range 3 {
				follows(fmt.Sprintf(
					`UPDATE cases SET diagnosis = said(id * 31 + %[1]d, age) WHERE hashint4(id + %[1]d) & 3 < 2;
					UPDATE cases SET diagnosis = 'new' WHERE hashint4(id + %[1]d) & 63 = 0;
					UPDATE cases SET dose = given(id + %[1]d) WHERE hashint4(id * 7 + %[1]d) & 3 < 2;
						DELETE FROM cases WHERE hashint4(id * 5 + %[1]d) & 7 = 0;
					INSERT INTO cases SELECT g, 20 + hashint4(g) & 31, 'f', said(g, 60), given(g)
						FROM generate_series(%[1]d * 10000, %[1]d * 10000 + 60) g;
					CALL tailor.refresh('cases')`, round+1))
				check(fmt.Sprint("refresh ", round), c.demands)
				mustExec(t, direct, `SELECT set_config('x.id', (SELECT min(id)::text FROM cases), false)`)
				mustExec(t, direct,
					fmt.Sprintf(`CALL tailor.erase('cases', current_setting('x.id'), '%s'); `+
						`DELETE FROM cases WHERE id::text = current_setting('x.id')`,
						[]string{"at_once", "with_block"}[round%2]))
				check("erasure", c.demands)
			}
			// What is shown when it comes into force is the reference of another policy.
			refer(one[string](t, direct, `SELECT tailor.rows_of(c) FROM tailor.chain c`))
			stricter := ""
			for _, d := range c.further {
				stricter += d.call()
			}
			follows(stricter + `CALL tailor.protect('cases', 'id', 8); CALL tailor.activate('cases')`)
			check("stricter", c.further)
		})
	}
}

// TestWhatTheReleaseAssertsIsTheDefinition has tailor.failing_blocks, which the check of a release
// and tailor.erase ask, look at blocks at random, of values of which some are nowhere else.
func TestWhatTheReleaseAssertsIsTheDefinition(t *testing.T) {
	direct := makeDatabase(t, "likeness_asserted", likenessSchema)
	if err := shared.install(t.Context(), "likeness_asserted"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, fmt.Sprintf(likenessPolicy, "by_models",
		demand{model: "t_closeness", column: "dose", parameter: 0.4}.call()+
			demand{model: "t_closeness", column: "diagnosis", parameter: 0.6}.call()))
	untilAnswered(t, connect(t, serveDatabase(t, "likeness_asserted").dsn(shared.reader(t))),
		`SELECT count(*) FROM cases`)
	// Blocks of 1 to 100 people, in which values are repeated and written in several ways.
	mustExec(t, direct,
		`CREATE TABLE some_blocks AS SELECT b AS "tailor block", g AS "tailor person", CASE
			WHEN b % 5 = 0 AND g % 17 = 0 THEN 77.0 ELSE given(g * b) END AS dose,
			CASE WHEN b % 7 = 0 AND g % 13 = 0 THEN 'new' ELSE said(g * b * 7, 50) END AS diagnosis
		FROM generate_series(1, 400) b, generate_series(1, 1 + b / 4) g`)
	all := map[string]distribution{
		"dose":      told(t, direct, "cases", "dose", "1")["1"],
		"diagnosis": told(t, direct, "cases", "diagnosis", "1")["1"],
	}
	for _, cuts := range []string{"by_models", "blind"} {
		for _, d := range []demand{
			{model: "l_diversity", column: "dose", parameter: 6},
			{model: "entropy_l_diversity", column: "dose", parameter: 6.5},
			{model: "alpha", column: "diagnosis", parameter: 0.45},
			{model: "recursive_l_diversity", column: "diagnosis", parameter: 3, c: 1},
			{model: "recursive_l_diversity", column: "dose", parameter: 2, c: 0.25},
			{model: "t_closeness", column: "dose", parameter: 0.2},
			{model: "t_closeness", column: "dose", parameter: 0.1, distance: "ordered"},
			{model: "beta_likeness", column: "dose", parameter: 0.8},
			{model: "enhanced_beta_likeness", column: "diagnosis", parameter: 3},
			{model: "delta_disclosure", column: "diagnosis", parameter: 0.7},
		} {
			document := strings.ReplaceAll(fmt.Sprintf(
				`{"cuts": "%s", "require": [
					{"model": "%s", "column": "%s", "parameter": %g, "c": %g, "distance": "%s"}]}`,
				cuts, d.model, d.column, d.parameter, d.c, d.distance), `"distance": ""`, `"distance": "equal"`)
			failing := make(map[string]bool)
			for _, row := range table(t, direct, fmt.Sprintf(
				`SELECT unnest(tailor.failing_blocks('public.some_blocks', '%s', (SELECT chain `+
					`FROM tailor.chain), '"tailor person" > 0'))`, document)) {
				failing[row[0]] = true
			}
			fail, disagree := 0, 0
			for block, counts := range told(t, direct, "some_blocks", d.column, `"tailor block"`) {
				if cuts == "blind" {
					delete(counts, "∅") // nothing, in what is looked at; the reference is as it was stored
					if len(counts) == 0 {
						continue
					}
				}
				holds := d.holds(counts, all[d.column])
				if !holds {
					fail++
				}
				if holds == failing[block] {
					disagree++
					t.Logf("%s %v: block %s of %v: %v", cuts, d, block, counts, holds)
				}
			}
			if disagree > 0 || fail < 20 ||
				fail > 380 && (cuts != "blind" || d.model != "delta_disclosure") {
				t.Errorf("%s %v: %d fail, %d judged otherwise", cuts, d, fail, disagree)
			}
		}
	}
}

func TestModelsOfLikenessArePartOfPolicies(t *testing.T) {
	direct := makeDatabase(t, "likeness_policy", likenessSchema)
	if err := shared.install(t.Context(), "likeness_policy"); err != nil {
		t.Fatal(err)
	}
	recursive := demand{model: "recursive_l_diversity", column: "diagnosis", parameter: 3, c: 2}
	ordered := demand{model: "t_closeness", column: "dose", parameter: 0.4, distance: "ordered"}
	mustExec(t, direct, fmt.Sprintf(likenessPolicy, "by_models", recursive.call()+ordered.call()))
	for _, c := range []struct{ code, call string }{
		{"22023", `'recursive_l_diversity', 'diagnosis', 3`},
		{"22023", `'recursive_l_diversity', 'diagnosis', 3, c => 0`},
		{"22023", `'recursive_l_diversity', 'diagnosis', 3, c => 'NaN'`},
		{"22023", `'recursive_l_diversity', 'diagnosis', 2.5, c => 2`},
		{"22023", `'l_diversity', 'diagnosis', 3, c => 2`},
		{"22023", `'l_diversity', 'diagnosis', 3, distance => 'ordered'`},
		{"22023", `'t_closeness', 'dose', 0.3, distance => 'long'`},
		{"22023", `'t_closeness', 'dose', 1`},
		{"22023", `'beta_likeness', 'dose', 0`},
		{"22023", `'enhanced_beta_likeness', 'dose', 'Infinity'`},
		{"22023", `'delta_disclosure', 'dose', 'NaN'`},
		{"0A000", `'t_closeness', 'diagnosis', 0.3, distance => 'ordered'`},
	} {
		refusedWith(t, direct, c.code, fmt.Sprintf(`CALL tailor.require('public.cases', %s)`, c.call))
	}
	dsn := shared.cluster.SuperuserDSN("likeness_policy")
	code, exported, stderr := tool(t, "policy", "export", "--dsn", dsn, "-")
	for _, line := range []string{
		"{model: recursive_l_diversity, column: diagnosis, parameter: 3, c: 2}",
		"{model: t_closeness, column: dose, parameter: 0.4, distance: ordered}",
	} {
		if code != 0 || !strings.Contains(exported, line) {
			t.Fatalf("exit %d, %s%s", code, exported, stderr)
		}
	}
	file := policyFile(t, exported)
	code, planned, _ := tool(t, "policy", "plan", "--dsn", dsn, file)
	if code != 0 || !strings.Contains(planned, "1 as they are") {
		t.Errorf("exit %d, %s", code, planned)
	}
	larger := policyFile(t, strings.Replace(exported, "    k: 5\n", "    k: 6\n", 1))
	code, planned, _ = tool(t, "policy", "plan", "--dsn", dsn, larger)
	for _, line := range []string{
		"1 to change", "models, each alone beside k",
		"recursive_l_diversity of 3 with c = 2 on diagnosis loses ",
		"%, asked for\n    recursive_l_diversity of 4 with c = 2 on diagnosis loses ",
		"%, the next stricter one",
		"t_closeness of 0.3 by ordered distance on dose", "t_closeness of 0.3 on diagnosis",
	} {
		if code != 0 || !strings.Contains(planned, line) {
			t.Errorf("exit %d, no %q in %s", code, line, planned)
		}
	}
	t.Log(planned)
	stricter := policyFile(t, strings.ReplaceAll(strings.ReplaceAll(exported, "c: 2", "c: 1.5"),
		", distance: ordered", ""))
	if code, stdout, _ := tool(t, "policy", "plan", "--dsn", dsn, stricter); code != 0 ||
		!strings.Contains(stdout, "+ require: {model: t_closeness, column: dose, parameter: 0.4}") {
		t.Errorf("exit %d, %s", code, stdout)
	}
	if code, _, stderr := tool(t, "policy", "apply", "--dsn", dsn, stricter); code != 0 {
		t.Fatalf("exit %d, %s", code, stderr)
	}
	if _, again, _ := tool(t, "policy", "export", "--dsn", dsn, "-"); !strings.Contains(again,
		"c: 1.5}") || strings.Contains(again, "distance: ordered") {
		t.Error(again)
	}
}

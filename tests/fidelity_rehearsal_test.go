package tests

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// rehearsedWorkload has queries of which all but the last three can be rehearsed.
const rehearsedWorkload = `
SELECT zip, count(*) AS people, avg(age) AS age FROM patients GROUP BY zip;
SELECT age / 10 AS decade, sex, count(*) AS people FROM patients GROUP BY decade, sex;
SELECT extract(year FROM birth_date) AS year, race, count(*) AS people, count(DISTINCT id)
    AS persons FROM patients GROUP BY year, race;
SELECT zip, count(*) AS people FROM public.patients GROUP BY zip;
SELECT p.sex, count(*) AS visits FROM patients p JOIN visits v ON v.patient_id = p.id
    GROUP BY p.sex;
SELECT name, count(*) FROM patients GROUP BY name;`

// TestFidelityTellsErrorsWithOtherK rehearses releases of the hospital's patients, as a role that
// may use the schema research, and so finds the views of that name.
func TestFidelityTellsErrorsWithOtherK(t *testing.T) {
	p := shared.serve(t)
	super := shared.superuser(t)
	owner := fmt.Sprintf("host=%s port=%d user=dba password=dba dbname=hospital", shared.dir,
		shared.cluster.Port)
	// A table whose people are all alike in what has to differ keeps no other from being rehearsed.
	dba := shared.as(t, "dba")
	protect(t, dba, "alike")
	t.Cleanup(func() {
		_, _ = super.Exec(context.Background(), `CALL tailor.unprotect('alike'); DROP TABLE alike`)
	})
	mustExec(t, dba, `CALL tailor.classify('alike', 'shown', 'sensitive');
		CALL tailor.require('alike', 'l_diversity', 'shown', 2);
		CALL tailor.activate('alike')`)
	// Nor does one that cannot be parted at all: nobody is in it any more.
	protect(t, dba, "emptied")
	t.Cleanup(func() {
		_, _ = super.Exec(context.Background(), `CALL tailor.unprotect('emptied'); DROP TABLE emptied`)
	})
	mustExec(t, dba, `CALL tailor.activate('emptied'); DELETE FROM emptied`)
	args := []string{
		"fidelity", "--dsn", owner, "--proxy", p.dsn(p.reader(t)),
		"--workload", workloadFile(t, rehearsedWorkload),
	}
	with := func(more ...string) (int, string, string) { return tool(t, append(args, more...)...) }
	code, _, stderr := with("--k", "50,2,5,1000000", "--format", "json")
	if code != 2 || !strings.Contains(stderr, "from 2 to 10000") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	code, stdout, stderr := with("--k", "50,2,5,10000", "--format", "json")
	if code != 0 {
		t.Fatal(stderr)
	}
	before := rowsOf(t, super, `SELECT chain, generation, blocks FROM tailor.chains ORDER BY 1`)
	var r struct {
		fidelityReport
		AtK []struct {
			K, Queries int
			Reason     string
			Large      fidelityCells
		} `json:"at_k"`
	}
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	if r.Summary.Outcomes["compared"] != 5 || len(r.AtK) != 4 {
		t.Fatalf("outcomes %v, figures of %d k", r.Summary.Outcomes, len(r.AtK))
	}
	var policy float64 // the mean error of the release itself, over the same queries
	cells := 0
	for _, q := range r.Queries[:3] {
		policy += *q.Comparison.Large.Mean * float64(q.Comparison.Large.Cells)
		cells += q.Comparison.Large.Cells
	}
	policy /= float64(cells)
	means := make(map[int]float64)
	for i, k := range []int{2, 5, 50} {
		at := r.AtK[i]
		if at.K != k || at.Queries != 3 || at.Reason != "" || at.Large.Mean == nil {
			t.Fatalf("with k = %d: %+v", k, at)
		}
		means[k] = *at.Large.Mean
	}
	last := r.AtK[3]
	for range 2 { // values are drawn: one rehearsal alone is off by a fifth
		_, text, _ := with("--k", "5", "--format", "json")
		if err := json.Unmarshal([]byte(text), &r); err != nil || r.AtK[0].Large.Mean == nil {
			t.Fatalf("%v: %.2000s", err, text)
		}
		means[5] += *r.AtK[0].Large.Mean
	}
	means[5] /= 3
	t.Logf("mean error %.4f, rehearsed %v", policy, means)
	if means[2] > means[5] || means[5] > means[50] {
		t.Errorf("the error does not grow with k: %v", means)
	}
	if means[5] < policy/1.5 || means[5] > policy*1.5 {
		t.Errorf("with the policy's k the mean error is %.4f, rehearsed %.4f", policy, means[5])
	}
	if last.K != 10000 || last.Queries != 0 || !strings.Contains(last.Reason, "10000") ||
		last.Large.Mean != nil {
		t.Errorf("with more than all people: %+v", last)
	}
	if _, page, _ := with("--k", "2,50", "--format", "html"); strings.Count(page, "<svg") != 2 ||
		!strings.Contains(page, "Relative error by k") {
		t.Errorf("no plot of errors by k:\n%.2000s", page)
	}
	if _, text, _ := with("--k", "2", "--format", "text"); !strings.Contains(text, "\nK  QUERIES") {
		t.Errorf("no table of errors by k:\n%s", text)
	}
	// A superuser has rights that the owner's functions are not to have.
	args[2] = shared.cluster.SuperuserDSN("hospital")
	if _, text, _ := with("--k", "5", "--format", "json"); !strings.Contains(text,
		"no query reads one table that can be rehearsed") {
		t.Errorf("a superuser's session rehearses the tables of others:\n%.2000s", text)
	}
	if after := rowsOf(t, super,
		`SELECT chain, generation, blocks FROM tailor.chains ORDER BY 1`); strings.Join(after,
		" ") != strings.Join(before, " ") {
		t.Errorf("releases were %q, are %q", before, after)
	}
	waitFor(t, func() bool {
		return one[int](t, super,
			`SELECT count(*) FROM pg_class WHERE relnamespace::regnamespace::text LIKE 'pg_temp%' `+
				`AND relname IN ('patients', 'tailor rows', 'tailor values')`) == 0
	})
}

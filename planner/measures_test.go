package planner_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/planner"
)

// payroll is a table of which pay is shown by means and age by middles; guarded
// has the same columns and answers with aggregates only.
func payroll() *catalog.Snapshot {
	hierarchy := &catalog.HierarchySpec{Name: "h", Kind: "interval", Definition: []byte(`{"widths": [10], "lower": 0, "upper": 100}`)}
	r := &catalog.Relation{OID: 1, Schema: "public", Name: "payroll", Subject: "id", K: 5, OneRow: true, Columns: []catalog.Column{
		{Name: "id", Number: 1, Type: "integer", Class: catalog.DirectIdentifier},
		{Name: "pay", Number: 2, Type: "numeric", Category: "N", Class: catalog.QuasiIdentifier, Hierarchy: hierarchy, Mean: true},
		{Name: "age", Number: 3, Type: "integer", Category: "N", Class: catalog.QuasiIdentifier, Hierarchy: hierarchy},
		{Name: "sex", Number: 4, Type: "text", Category: "S", Class: catalog.QuasiIdentifier, Hierarchy: hierarchy},
		{Name: "unit", Number: 5, Type: "text", Category: "S", Class: catalog.Sensitive},
	}}
	guarded := *r
	guarded.OID, guarded.Name, guarded.AggregateOnly = 2, "guarded", true
	return catalog.NewSnapshot(1, []*catalog.Relation{r, &guarded}, map[catalog.Name]*catalog.Other{
		{Schema: "public", Name: "units"}: {Columns: []string{"unit", "town"}},
	})
}

func TestNoBlockIsMadeAlongAColumnThatIsShownByMeans(t *testing.T) {
	snapshot := payroll()
	for _, c := range []struct {
		statement, uses string
		measure         bool
	}{
		{`SELECT avg(pay) FROM payroll`, "", true},
		{`SELECT sum(pay), count(pay), avg(p.pay) FROM public.payroll p`, "", true},
		{`SELECT pg_catalog.avg(public.payroll.pay) FROM public.payroll`, "", true},
		{`SELECT sex, avg(pay) FROM payroll GROUP BY sex`, "sex", true},
		{`SELECT sex, avg(pay) FROM payroll GROUP BY 1 HAVING avg(pay) > 10 ORDER BY avg(pay)`, "sex", true},
		{`SELECT age / 10 AS decade, avg(pay) FROM payroll WHERE sex = 'F' GROUP BY decade`, "age sex", true},
		{`SELECT age, sex, avg(pay) FROM payroll GROUP BY GROUPING SETS ((age), (sex), ())`, "age sex", true},
		{`SELECT x FROM (SELECT avg(pay) AS x FROM payroll) s`, "", true},
		{`SELECT sex, avg(pay), count(pay) FROM guarded GROUP BY sex`, "sex", true},

		{`SELECT avg(age) FROM payroll`, "age", false},
		{`SELECT pay, avg(pay) FROM payroll GROUP BY pay`, "", true},
		{`SELECT avg(pay) FROM payroll WHERE pay > 10`, "", true},
		{`SELECT avg(pay) FROM payroll UNION ALL SELECT pay FROM payroll`, "", true},
		{`SELECT avg(pay * 2) FROM payroll`, "", true},
		{`SELECT avg(DISTINCT pay) FROM payroll`, "", true},
		{`SELECT avg(pay) FILTER (WHERE sex = 'F') FROM payroll`, "sex", true},
		{`SELECT avg(pay) OVER (PARTITION BY sex) FROM payroll`, "sex", true},
		{`SELECT max(pay), stddev(pay) FROM payroll`, "", true},
		{`SELECT avg(pay) FROM payroll WHERE unit = 'x'`, "", true},
		{`SELECT unit, avg(pay) FROM payroll GROUP BY unit`, "", true},
		{`SELECT unit, avg(pay) FROM payroll GROUP BY 1`, "", true},
		{`SELECT upper(unit) AS u, avg(pay) FROM payroll GROUP BY u`, "", true},
		{`SELECT avg(pay) FROM payroll JOIN units USING (unit)`, "", true},
		{`SELECT avg(pay) FROM payroll WHERE EXISTS (SELECT FROM units)`, "", true},
		{`SELECT avg(x) FROM (SELECT pay AS x FROM payroll) s`, "", true},
		{`SELECT (SELECT avg(o.pay) FROM payroll i) FROM payroll o`, "", true},
		{`SELECT avg(pay) FROM guarded WHERE unit = 'x'`, "", true},
		{`SELECT * FROM payroll`, "age sex", true},
	} {
		plan, err := planner.Make(c.statement, planner.Session{SearchPath: []string{"public"}}, snapshot)
		if err != nil {
			t.Errorf("%s: %v", c.statement, err)
			continue
		}
		var uses []string
		for _, u := range plan.Uses {
			if !slices.Contains(uses, u.Attribute) {
				uses = append(uses, u.Attribute)
			}
		}
		slices.Sort(uses)
		if got := strings.Join(uses, " "); got != c.uses {
			t.Errorf("%s: uses %q, want %q", c.statement, got, c.uses)
		}
		want := map[bool][]string{true: {"pay"}}[c.measure]
		if got := plan.MeasuresOf(plan.Relations[0]); !slices.Equal(got, want) {
			t.Errorf("%s: measures %q, want %q", c.statement, got, want)
		}
	}
}

func TestAnAccountNamesMeasures(t *testing.T) {
	plan, err := planner.Make(`EXPLAIN (TAILOR) SELECT avg(pay) FROM payroll`, planner.Session{SearchPath: []string{"public"}}, payroll())
	if err != nil {
		t.Fatal(err)
	}
	if got := plan.MeasuresOf(plan.Relations[0]); !slices.Equal(got, []string{"pay"}) {
		t.Errorf("measures %q", got)
	}
}

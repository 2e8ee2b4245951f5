package planner_test

import (
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/planner"
)

func TestValuesAreNeitherWrappedNorCarried(t *testing.T) {
	values := session
	values.Values = true
	for _, statement := range []string{
		"SELECT age FROM patients",
		"SELECT DISTINCT age FROM patients UNION SELECT age FROM patients",
		"SELECT q.* FROM (SELECT age, age FROM patients) q",
		"WITH q AS (SELECT age FROM patients) SELECT row_to_json(q), age FROM q GROUP BY age",
		"SELECT age, sex FROM patients GROUP BY (age, sex)",
	} {
		plan, err := planner.Make(statement, values, hospitalSnapshot())
		if err != nil {
			t.Errorf("%s: %v", statement, err)
			continue
		}
		if sql := plan.Rewrite(release).SQL; strings.Contains(sql, "tailor_label") ||
			strings.Contains(sql, "tailor_answer") {
			t.Errorf("%s: rewritten into %s", statement, sql)
		}
	}
}

// A query of the codes' name hides the codes, and a statement that might
// read them jointly is checked as one that does.
func TestAQueryOfTheCodesNameLeavesTheCodesInThePlan(t *testing.T) {
	shown := show("WITH drugs AS (SELECT 1 AS n) SELECT max(p.age) FROM patients p, drugs")
	if !strings.HasPrefix(shown, "release public.drugs through it public.patients\n") {
		t.Errorf("the codes are not in the plan:\n%s", shown)
	}
}

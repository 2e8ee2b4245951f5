package planner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/planner"
)

func TestConditionsOfStagesHoldNoLiterals(t *testing.T) {
	for statement, want := range map[string][]string{
		"SELECT zip FROM patients WHERE age >= 30 AND sex = 'female' AND cost > 1": {
			"scan age: age >= ?", "scan sex: sex = ?", "projection zip: zip",
		},
		"SELECT sex FROM patients WHERE age BETWEEN 30 AND 40 AND (zip LIKE '12%' OR age = 7)": {
			"scan age: age BETWEEN ? AND ?; (zip LIKE ? OR age = ?)", "scan zip: (zip LIKE ? OR age = ?)",
			"projection sex: sex",
		},
		"SELECT sex, avg(age) /* x */, count(*) FROM patients GROUP BY sex HAVING avg( age) > $1 ORDER " +
			"BY 2 DESC": {
			"projection sex: sex", "projection age: avg(age)", "group age: avg( age) > $1", "group sex: sex",
		},
		"SELECT * FROM zip_city c JOIN patients p ON p.zip = c.zip LEFT JOIN zip_city d ON d.zip " +
			"= p.zip": {
			"join zip: p.zip = c.zip; d.zip = p.zip",
		},
		"SELECT sex FROM patients WHERE (age > 1 AND zip = '1') AND zip IN (SELECT z.zip FROM zip_city " +
			"z WHERE z.city = sex AND age < 4) AND age = 5": {
			"scan age: (age > ? AND zip = ?); zip IN (SELECT z.zip FROM zip_city z WHERE z.city = sex AND " +
				"age < ?); age = ?",
			"scan zip: (age > ? AND zip = ?); zip IN (SELECT z.zip FROM zip_city z WHERE z.city = sex AND " +
				"age < ?)",
			"scan sex: zip IN (SELECT z.zip FROM zip_city z WHERE z.city = sex AND age < ?)",
			"projection sex: sex",
		},
		"SELECT age FROM patients ORDER BY zip DESC NULLS LAST, age LIMIT 3": {
			"projection age: age", "order zip: zip DESC NULLS LAST", "order age: age",
		},
	} {
		plan, err := planner.Make(statement, session, hospitalSnapshot())
		if err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		var got []string
		for _, u := range plan.Uses {
			if u.Condition != "" {
				got = append(got, fmt.Sprintf("%s %s: %s", u.Place, u.Attribute, u.Condition))
			}
		}
		if !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
			t.Errorf("%s\n%s\nwant\n%s", statement, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

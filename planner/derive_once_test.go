package planner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/planner"
)

var hospital = planner.Session{Database: "hospital", SearchPath: []string{"pg_catalog", "public"}}

// declared is the snapshot of a family with a data set of one subquery.
func declared(of string) *catalog.Snapshot {
	s := familySnapshot()
	patients := s.Protected(catalog.Name{Schema: "public", Name: "patients"})
	encounters := s.Protected(catalog.Name{Schema: "public", Name: "encounters"})
	encounters.Columns = append(encounters.Columns, catalog.Column{
		Name: "precise", Number: 5, Type: "timestamp(3) with time zone", Class: catalog.Sensitive,
	})
	set := s.DataSets(patients)[0]
	set.Query = "SELECT p.id, " + of + " AS declared FROM patients p"
	set.Columns = []catalog.Column{set.Columns[0], number("declared", 2)}
	return catalog.NewSnapshot(1, []*catalog.Relation{patients, encounters, set},
		map[catalog.Name]*catalog.Other{
			{Schema: "public", Name: "wards"}: {
				Columns: []string{"code", "since"},
				Zoned:   []string{"since"},
			},
		})
}

// TestSubqueriesOfNobody: what a subquery is of a row of an outer join that has found no subject.
func TestSubqueriesOfNobody(t *testing.T) {
	const sub = "FROM encounters e WHERE e.patient = p.id"
	for of, value := range map[string]string{ // "" where it is not known
		"EXISTS (SELECT " + sub + ")":                               "ELSE false END",
		"(SELECT count(*) " + sub + ")":                             "ELSE 0 END",
		"(SELECT count(ward) " + sub + ")":                          "ELSE 0 END",
		"(SELECT count(DISTINCT ward) " + sub + ")":                 "ELSE 0 END",
		"(SELECT count(*) " + sub + " GROUP BY ward LIMIT 1)":       ") END",
		"(SELECT max(day) " + sub + ")":                             ") END",
		"(SELECT ward " + sub + " ORDER BY day LIMIT 1)":            ") END",
		"ARRAY(SELECT ward " + sub + ")":                            "ELSE '{}' END",
		"ARRAY(SELECT count(*) " + sub + ")":                        "",
		"(SELECT coalesce(sum(length(ward)), 0) " + sub + ")":       "",
		"(SELECT max(day) IS NULL " + sub + ")":                     "",
		"(SELECT count(*) " + sub + " HAVING count(*) = 0)":         "",
		"(SELECT count(*) " + sub + " GROUP BY GROUPING SETS (()))": "",
		"(SELECT count(*) " + sub + " LIMIT 1)":                     "",
	} {
		for join, found := range map[string]string{
			"history h LEFT JOIN patients p ON p.id = h.id":  value,
			"patients p RIGHT JOIN history h ON p.id = h.id": value,
			"patients p JOIN history h ON p.id = h.id":       " END",
			"patients p LEFT JOIN history h ON p.id = h.id":  " END",
		} {
			plan, err := planner.Make("SELECT "+of+" FROM "+join, hospital, declared(of))
			switch {
			case found == "" && err == nil, found != "" && err != nil:
				t.Errorf("%s of %s: %v", of, join, err)
			case err == nil && !strings.Contains(plan.Rewrite(release).SQL, found):
				t.Errorf("%s of %s:\n%s", of, join, plan.Rewrite(release).SQL)
			}
		}
	}
}

// TestDataSetsAreReadOnceAText: how much work they are does not grow with the subqueries of a
// text, and stays within its limit however many they are.
func TestDataSetsAreReadOnceAText(t *testing.T) {
	allocations := func(sets, subqueries int, ward string) float64 {
		snapshot := manySets(sets)
		text := "SELECT count(*) FROM patients p WHERE true" + strings.Repeat(
			" AND EXISTS (SELECT FROM encounters e WHERE e.patient = p.id AND ward = '"+ward+"')",
			subqueries)
		return testing.AllocsPerRun(1, func() { _, _ = planner.Make(text, hospital, snapshot) })
	}
	one := allocations(1, 1, "w69")
	if many := allocations(1, 50, "w69"); many > 2*one {
		t.Errorf("50 subqueries: %g allocations, %g for one", many, one)
	}
	if many := allocations(50, 1, "in none"); many > 16*one {
		t.Errorf("50 data sets: %g allocations, %g for one", many, one)
	}
}

// manySets is the snapshot of a family with data sets of 70 subqueries each.
func manySets(sets int) *catalog.Snapshot {
	s := familySnapshot()
	patients := s.Protected(catalog.Name{Schema: "public", Name: "patients"})
	relations := []*catalog.Relation{
		patients,
		s.Protected(catalog.Name{Schema: "public", Name: "encounters"}),
	}
	for n := range sets {
		set := *s.DataSets(patients)[0]
		set.OID, set.Name, set.Query = uint32(10+n), fmt.Sprintf("history_%d", n), "SELECT p.id"
		set.Columns = slices.Clone(set.Columns)
		for i := range 70 {
			set.Query += fmt.Sprintf(", (SELECT count(*) FROM encounters e WHERE e.patient = p.id AND "+
				"ward = 'w%d') AS c%[1]d", i)
			set.Columns = append(set.Columns, number(fmt.Sprintf("c%d", i), 20+i))
		}
		set.Query += " FROM patients p"
		relations = append(relations, &set)
	}
	return catalog.NewSnapshot(1, relations, nil)
}

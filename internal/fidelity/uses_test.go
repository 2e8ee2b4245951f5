package fidelity_test

import (
	"slices"
	"testing"

	"github.com/hiatus-tailor/tailor/internal/fidelity"
)

func TestUsesAreThoseOfThePlanAndOfTheText(t *testing.T) {
	quasi := []fidelity.Use{
		{Table: "public.patients", Column: "age"},
		{Table: "public.patients", Column: "sex"},
		{Table: "public.staff", Column: "age"},
		{Table: "public.visits", Column: "day"},
	}
	const joined = `{"tables": [{"table": "public.visits", "stages": [
		{"place": "scan", "qids": ["day"]}, {"place": "group", "qids": ["day", "patients.age"]}]}]}`
	for _, c := range []struct {
		claim, document, sql string
		want                 []fidelity.Use
	}{
		{"a parent's column", joined, "SELECT p.age FROM patients p, visits v", []fidelity.Use{
			{Table: "public.visits", Column: "day", Place: "scan"},
			{Table: "public.patients", Column: "age", Place: "group"},
		}},
		{"no plan", "", "SELECT name, age FROM patients WHERE sex = 'x'", []fidelity.Use{
			{Table: "public.patients", Column: "age"}, {Table: "public.patients", Column: "sex"},
		}},
		{
			"a plan without what the text names", `{"tables": [{"table": "public.visits", "stages": []}]}`,
			"SELECT p.sex FROM visits JOIN patients p ON p.id = patient_id",
			[]fidelity.Use{
				{Table: "public.patients", Column: "sex"},
			},
		},
		{
			"a planned column of two tables' name",
			`{"tables": [{"table": "public.staff", "stages": [{"place": "scan", "qids": ["age"]}]}]}`,
			"SELECT count(*) FROM staff, patients WHERE staff.age > 60",
			[]fidelity.Use{
				{Table: "public.staff", Column: "age", Place: "scan"},
			},
		},
		{"nothing", `{"tables": []}`, "SELECT age FROM other", []fidelity.Use{}},
	} {
		t.Run(c.claim, func(t *testing.T) {
			var e *fidelity.Explanation
			if c.document != "" {
				var err error
				if e, err = fidelity.ReadExplanation([]byte(c.document)); err != nil {
					t.Fatal(err)
				}
			}
			if got := fidelity.UsesOf(e, statement(t, c.sql), quasi); !slices.Equal(got, c.want) {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

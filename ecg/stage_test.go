package ecg_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/ecg"
)

func TestStagesFollowThePlacesOfUse(t *testing.T) {
	stages := ecg.Compose("p", []ecg.Use{
		{Place: ecg.Projection, Table: "p", Attribute: "zip"},
		{Place: ecg.Scan, Table: "p", Attribute: "age"},
		{Place: ecg.Scan, Table: "other", Attribute: "day"},
		{Place: ecg.Projection, Table: "p", Attribute: "age"},
		{Place: ecg.Join, Table: "p", Attribute: "sex"},
	})
	var got []string
	for _, s := range stages {
		got = append(got, fmt.Sprintf("%s %s %v", s.Name, s.Place, s.Attributes))
	}
	want := []string{"S1 scan [age]", "S2 join [age sex]", "S3 projection [age sex zip]"}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if stages := ecg.Compose("p", nil); stages != nil {
		t.Errorf("a query without quasi-identifiers has stages: %v", stages)
	}
}

// twoColumns is a table of 40 people: ages 20 to 29 and both sexes, two people
// in each combination.
func twoColumns(t *testing.T) *anonymize.Table {
	t.Helper()
	var values []string
	for a := range 10 {
		values = append(values, fmt.Sprint(20+a))
	}
	age, err := anonymize.Interval{Widths: []float64{5, 10}, Lower: 0, Upper: 119, Integer: true}.Build(values, false)
	if err != nil {
		t.Fatal(err)
	}
	sex, err := anonymize.NewHierarchy([][]string{{"f"}, {"m"}})
	if err != nil {
		t.Fatal(err)
	}
	leaves := make([][]uint32, 2)
	for i := range 40 {
		leaves[0] = append(leaves[0], uint32(i%10))
		leaves[1] = append(leaves[1], uint32(i/10%2))
	}
	table, err := anonymize.NewTable([]anonymize.Column{{Name: "age", Hierarchy: age}, {Name: "sex", Hierarchy: sex}}, leaves, nil)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestTailorKeepsTheRiskOfEveryStageBelowTheThreshold(t *testing.T) {
	present := anonymize.NewPartition(twoColumns(t))
	stages := ecg.Compose("p", []ecg.Use{
		{Place: ecg.Scan, Table: "p", Attribute: "sex"}, {Place: ecg.Projection, Table: "p", Attribute: "age"},
	})
	shown, a, err := ecg.Tailor(t.Context(), present, stages, 5, []anonymize.Requirement{anonymize.BlockK{K: 5}})
	if err != nil {
		t.Fatal(err)
	}
	if before := a.Stages[0].RiskBefore; before != 1.0/20 {
		t.Errorf("risk of the sex alone: %g, want 1/20", before)
	}
	if before := a.Stages[1].RiskBefore; before != 1.0/2 {
		t.Errorf("risk of both: %g, want 1/2", before)
	}
	if a.Stages[0].Candidates != nil || len(a.Stages[1].Candidates) == 0 {
		t.Error("a stage is de-identified exactly where its risk is above the threshold")
	}
	if shown.MinBlock() < 5 || a.Risk > a.Threshold {
		t.Errorf("smallest block %d, risk %g above %g", shown.MinBlock(), a.Risk, a.Threshold)
	}
	if again, _, err := ecg.Tailor(t.Context(), shown, stages[:1], 5, []anonymize.Requirement{anonymize.BlockK{K: 5}}); err != nil || again != shown {
		t.Errorf("a query that needs no more changes the partition: %v", err)
	}
}

func TestTailorRefusesWhatItCannotProtect(t *testing.T) {
	present := anonymize.NewPartition(twoColumns(t))
	stages := ecg.Compose("p", []ecg.Use{{Place: ecg.Scan, Table: "p", Attribute: "age"}})
	if _, _, err := ecg.Tailor(t.Context(), present, stages, 41, []anonymize.Requirement{anonymize.BlockK{K: 41}}); err == nil {
		t.Error("41 of 40 people were promised")
	}
	unknown := []ecg.Stage{{Attributes: []string{"height"}}}
	if _, _, err := ecg.Tailor(t.Context(), present, unknown, 5, []anonymize.Requirement{anonymize.BlockK{K: 5}}); err == nil {
		t.Error("an unknown attribute was assessed")
	}
}

package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// visitsFile has a key, names, a place twice, a code, and a note.
func visitsFile(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("person;zip;zip3;married;kind;drug;note\n")
	given := []string{"Anna", "Hans", "Fatima", "Piotr"}
	families := []string{"Huber", "Okafor", "Garcia", "Lund", "Nowak"}
	drugs := []string{"A10BA02", "C07AB02", "N02BE01"}
	for n := range 600 {
		zip := 10000 + 137*(n%97)
		fmt.Fprintf(
			&b, "%s %s;%d;%d;%s;%c;%s;came back %d days after the first visit\n", given[n*7%4],
			families[n%5], zip, zip/100, []string{"y", "n"}[n/7%2], 'a'+rune(n/97), drugs[n%3],
			n%50,
		)
	}
	return file(t, "visits.csv", b.String())
}

func TestClassifySaysWhyHowSureAndWhatWouldChangeIt(t *testing.T) {
	csv := visitsFile(t)
	code, stdout, fault := tailor(t, "classify", "--csv", csv, "--format", "json")
	var r classifyReport
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != exitSuccess {
		t.Fatalf("exit %d, %v, %s", code, err, fault)
	}
	want := map[string][2]string{
		"person": {
			"direct_identifier",
			"medium",
		}, "zip": {"quasi_identifier", "medium"}, "zip3": {"quasi_identifier", "medium"},
		"married": {
			"quasi_identifier",
			"low",
		}, "kind": {"quasi_identifier", "medium"}, "drug": {"sensitive", "medium"}, "note": {"", "high"},
	}
	for _, c := range r.Columns {
		if want[c.Name] != [2]string{c.Suggested, c.Confidence} || c.Because == "" ||
			c.WouldChange == "" {
			t.Errorf("%s: %+v", c.Name, c)
		}
	}
	if !r.AllSets || !r.AllPairs || r.CellShare != 1 || len(r.Sets) == 0 ||
		r.Sets[0].Percent != 100 ||
		strings.Join(r.Sets[0].Columns, " ") != "zip kind" {
		t.Errorf("sets %+v", r.Sets)
	}
	told := false
	for _, d := range r.Dependent {
		told = told || d == dependency{"zip", "zip3", 0}
		if d.From == "note" || d.From == "person" {
			t.Errorf("%+v is about a column that is not shown", d)
		}
	}
	if !told {
		t.Errorf("dependencies %+v", r.Dependent)
	}
	if code, stdout, _ = tailor(t, "classify", "--csv", csv); code != exitSuccess {
		t.Fatal(code)
	}
	for _, line := range []string{
		"100.0 % of the rows equal no other in zip, kind\n", "zip tells zip3, with 0.00 % exceptions\n",
		"What would change a suggestion:\n", "  free text, in which names and events hide\n",
		"codes in place of sentences\n",
	} {
		if !strings.Contains(stdout, line) {
			t.Errorf("the text lacks %q:\n%s", line, stdout)
		}
	}
	if strings.Contains(stdout, "Huber") || strings.Contains(stdout, "came back") {
		t.Errorf("the text quotes values:\n%s", stdout)
	}
}

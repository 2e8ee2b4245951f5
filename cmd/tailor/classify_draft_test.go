package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/policyfile"
	"github.com/hiatus-tailor/tailor/internal/refdata"
)

// draftOf has classify write a policy for a CSV file and reads it back.
func draftOf(t *testing.T, args ...string) *policyfile.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "draft.yaml")
	if code, _, fault := tailor(t, append([]string{"classify", "--write", path},
		args...)...); code != exitSuccess {
		t.Fatal(fault)
	}
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	draft, faults := policyfile.Parse(source)
	if len(faults) > 0 {
		t.Fatalf("the draft has faults: %v\n%s", faults, source)
	}
	return draft
}

// numberedRows is a CSV file with a key in front of each line.
func numberedRows(t *testing.T, text string) string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		if lines[i] = fmt.Sprintf("%d;%s", i, lines[i]); i == 0 {
			lines[i] = "id" + strings.TrimPrefix(lines[i], "0")
		}
	}
	return file(t, "numbered.csv", strings.Join(lines, "\n"))
}

// lossOf recodes columns of a sheet locally and tells the loss of each.
func lossOf(t *testing.T, sheet *anonymize.Sheet, columns []anonymize.Column) []float64 {
	t.Helper()
	table, err := sheet.Encode(columns, "")
	if err != nil {
		t.Fatal(err)
	}
	part, err := anonymize.NewPartition(table).Refine(t.Context(), anonymize.Refinement{
		Columns: everyColumn(table), Requirements: []anonymize.Requirement{anonymize.BlockK{K: 5}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var loss []float64
	for c := range columns {
		loss = append(loss, part.Loss([]int{c}))
	}
	return loss
}

func TestFewWholeNumbersAreListed(t *testing.T) {
	text := "id,sex,status,ward,age,grade,race\n" // all of one race
	for n := range 1200 {
		text += fmt.Sprintf("%d,%d,%d,%d,%d,%d,1\n", n, 1+n%2, n*n%7, n%150, n*7%83, n%40/20*90)
	}
	draft := draftOf(t, "--csv", file(t, "people.csv", text), "--subject", "id")
	for column, want := range map[string]string{
		"sex": `[["1"],["2"]]`, "grade": `[["0"],["90"]]`,
		"status": `[["0","0 to 1"],["1","0 to 1"],["2","2"],["4","4"]]`,
	} {
		if got := draft.Hierarchy(column).Definition(); !strings.Contains(got, want) {
			t.Errorf("%s: %s", column, got)
		}
	}
	for _, column := range []string{"ward", "age", "race"} { // too many values for a list, or one
		if h := draft.Hierarchy(column); h.Type != "interval" {
			t.Errorf("%s: %s", column, h.Definition())
		}
	}
}

func TestPostcodesLeadToAreas(t *testing.T) {
	text := "id,postcode,plaats\n"
	for n := range 300 {
		text += fmt.Sprintf("%d,M%d %dAB,%d XY\n", n, 1+n%30, n%10, 1000+n*7)
	}
	draft := draftOf(t, "--csv", file(t, "people.csv", text), "--subject", "id")
	for column, want := range map[string]string{"postcode": "[4,2,1]", "plaats": "[4,3,2,1]"} {
		if got := draft.Hierarchy(column).Definition(); !strings.Contains(got, want) {
			t.Errorf("%s: %s", column, got)
		}
	}
}

func TestDraftsLoseLittleMoreThanHandMadeHierarchies(t *testing.T) {
	for _, name := range []string{"adult", "ss13acs"} {
		t.Run(name, func(t *testing.T) { losesLittleMore(t, name) })
	}
}

// losesLittleMore compares the draft of a table with the hierarchies that ARX tests it with.
func losesLittleMore(t *testing.T, dataSet string) {
	path := func(of string) string { return refdata.Path(t, "arx/"+dataSet+"/"+dataSet+of+".csv") }
	raw, err := os.ReadFile(path(""))
	if err != nil {
		t.Fatal(err)
	}
	draft := draftOf(t, "--csv", numberedRows(t, string(raw)), "--subject", "id")
	sheet, err := anonymize.ReadSheet(strings.NewReader(string(raw)), ';')
	if err != nil {
		t.Fatal(err)
	}
	var drafted, handMade []anonymize.Column
	for i, name := range sheet.Header() {
		h, err := openHierarchy(path("_hierarchy_"+name), ';')
		if err != nil {
			t.Fatal(err)
		}
		handMade = append(handMade, anonymize.Column{Name: name, Hierarchy: h})
		values := slices.Clone(sheet.Cells(i))
		slices.Sort(values)
		values = slices.Compact(values)
		if proposed := draft.Hierarchy(draft.Tables[0].Column(name).Hierarchy); proposed != nil {
			spec := catalog.HierarchySpec{
				Name:       name,
				Kind:       proposed.Type,
				Definition: json.RawMessage(proposed.Definition()),
			}
			h, err = spec.Build(values, false, "integer")
		} else { // sensitive in the draft, and a quasi-identifier in this comparison
			h, err = flatHierarchy(values)
		}
		if err != nil {
			t.Fatal(err)
		}
		drafted = append(drafted, anonymize.Column{Name: name, Hierarchy: h})
	}
	got, want := lossOf(t, sheet, drafted), lossOf(t, sheet, handMade)
	mean := anonymize.Arithmetic.Of
	t.Logf("the draft loses %.4f, hand-made hierarchies %.4f", mean(got), mean(want))
	if mean(got) > 1.2*mean(want) {
		for c, name := range sheet.Header() {
			t.Logf("%s: %.4f, hand-made %.4f", name, got[c], want[c])
		}
		t.Error("that is more than 1.2 times as much")
	}
}

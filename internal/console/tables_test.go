package console

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/internal/audit"
)

func TestBarsHoldEveryClassOnce(t *testing.T) {
	var many []classCount
	for n := range int64(1000) {
		many = append(many, classCount{5 + 3*n, 1 + n%7})
	}
	for claim, sizes := range map[string][]classCount{
		"none":                {},
		"one":                 {{7, 12}},
		"few":                 {{5, 100}, {6, 40}, {9, 1}},
		"many":                many,
		"one far from others": {{5, 100}, {6, 100}, {100_000, 1}},
	} {
		var classes int64
		for _, s := range sizes {
			classes += s.Classes
		}
		got, before := bars(sizes), int64(0)
		if len(got) > mostBars {
			t.Errorf("%s: %d bars", claim, len(got))
		}
		for _, b := range got {
			if b.From <= before || b.To < b.From {
				t.Errorf("%s: %v after %d", claim, b, before)
			}
			before = b.To
			classes -= b.Classes
		}
		if classes != 0 || len(sizes) > 0 && before < sizes[len(sizes)-1].Subjects {
			t.Errorf("%s: %v", claim, got)
		}
	}
	if got := bars([]classCount{{5, 100}, {6, 40}, {9, 1}}); len(got) != 3 || got[0].To != 5 {
		t.Errorf("sizes that can be told apart are not: %v", got)
	}
}

func TestDifferencesOfSettingsShowNoValue(t *testing.T) {
	read := func(text string) *document {
		var d document
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			t.Fatal(err)
		}
		return &d
	}
	before := read(`{"k": 5, "seed": [], "rows": true, "data_set_of": {"query": "canary"},
		"set_valued": {"column": "code", "m": 2, "sensitive": ["canary"]}}`)
	after := read(`{"k": 5, "seed": [["age", "zip"], ["sex"]], "rows": false, "cuts": "blind",
		"cohort": 50, "gate": {"measure": "highest", "max_risk": 0.1},
		"data_set_of": {"query": "canary2"},
		"set_valued": {"column": "code", "m": 3, "sensitive": ["canary3"]}}`)
	want := []string{
		"gate: none → highest risk of at most 0.1",
		"made for: all quasi-identifiers → age with zip; sex",
		"rows are shown: true → false", "cohort: default → 50", "cuts: by_models → blind",
		"m: 2 → 3", "the sensitive codes are others", "the query of the data set is another",
	}
	if got := differences(before, after); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	shown, err := json.Marshal((&policy{document: *after}).shown())
	if err != nil || strings.Contains(string(shown), "canary") {
		t.Errorf("a policy is shown as %s: %v", shown, err)
	}
}

func TestSearchFindsEachWordAnywhereInWhatIsShown(t *testing.T) {
	e := &audit.Entry{Record: audit.Record{
		Principal: "Maria", Verdict: audit.Refused, SQLState: "42501",
		Relations: []string{"public.patients"}, SQL: "SELECT Name FROM patients",
	}}
	for words, want := range map[string]bool{
		"": true, "maria": true, "maria refused": true, "patients name 42501": true,
		"maria released": false, "fingerprint": false,
	} {
		if got := hasWords(e, strings.Fields(words)); got != want {
			t.Errorf("%q: %t", words, got)
		}
	}
}

func TestOnlyWhatPassedOverNoProtectedTableIsFolded(t *testing.T) {
	entry := func(change func(*audit.Entry)) *audit.Entry {
		e := &audit.Entry{Record: audit.Record{
			Verdict: audit.Passed, Fingerprint: "1", SQL: "SELECT FROM pg_catalog.pg_class",
		}}
		change(e)
		return e
	}
	var c chatter
	for claim, change := range map[string]func(*audit.Entry){
		"refused":           func(e *audit.Entry) { e.Verdict = audit.Refused },
		"failed":            func(e *audit.Entry) { e.Verdict = audit.Failed },
		"of a table":        func(e *audit.Entry) { e.Relations = []string{"public.patients"} },
		"a login":           func(e *audit.Entry) { e.Event = audit.Login },
		"without a text":    func(e *audit.Entry) { e.SQL = "" },
		"of another kind":   func(e *audit.Entry) { e.SQL, e.Fingerprint = "SELECT 1", "2" },
		"not fingerprinted": func(e *audit.Entry) { e.Fingerprint = "" },
	} {
		if c.is(entry(change)) {
			t.Errorf("a statement %s is folded away", claim)
		}
	}
	for range 2 { // the second time it is remembered
		if !c.is(entry(func(*audit.Entry) {})) {
			t.Error("what a tool asks is not folded away")
		}
	}
}

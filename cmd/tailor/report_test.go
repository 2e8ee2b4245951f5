package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/internal/policyfile"
)

// policyOf reads a version of a policy as the database keeps it.
func policyOf(t *testing.T, text string) plainPolicy {
	t.Helper()
	var d document
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	return d.plain(&schedule{})
}

const reviewed = `{"subject": "id", "k": 5, "scope": "table", "recoding": "auto",
	"require": [{"model": "alpha", "column": "d", "parameter": 0.5}],
	"columns": [{"name": "id", "class": "direct_identifier", "action": "hide"},
		{"name": "q", "class": "quasi_identifier", "hierarchy": {"name": "h", "kind": "table",
			"definition": {"paths": [["canary", "x"], ["y", "x"]]}}},
		{"name": "d", "class": "sensitive"}, {"name": "e"}]}`

func TestEachChangeOfAPolicyIsNamedAndNoValue(t *testing.T) {
	before := policyOf(t, reviewed)
	if same := policyOf(t, reviewed); policyDifference(&before, &same) != nil {
		t.Errorf("nothing has changed, and %q is said", policyDifference(&before, &same))
	}
	for change, c := range map[string]struct{ old, now, want string }{
		"k":             {`"k": 5`, `"k": 6`, "k: 6, before 5"},
		"scope":         {`"table", "rec`, `"project", "rec`, "scope: The readers of each"},
		"a model":       {`0.5`, `0.4`, "alpha of d: No value of d is that of more than 40.0 %"},
		"no model":      {`{"model": "alpha", "column": "d", "parameter": 0.5}`, ``, "no longer: No"},
		"departures":    {`"k": 5`, `"k": 5, "departures": "at_once"`, "departures: Who leaves"},
		"changes":       {`"k": 5`, `"k": 5, "changes": "at_once"`, "changes: Changed values"},
		"cuts":          {`"k": 5`, `"k": 5, "cuts": "blind"`, "cuts: Classes are made by k alone"},
		"newcomers":     {`"k": 5`, `"k": 5, "cohort": 7`, "are enough (7)"},
		"largest share": {`"k": 5`, `"k": 5, "max_share": 0.25`, "nobody owns more than 25.0 %"},
		"rows":          {`"k": 5`, `"k": 5, "rows": false`, "rows, new: Only aggregates"},
		"seed":          {`"k": 5`, `"k": 5, "seed": [["q"]]`, "made for, new"},
		"a gate": {
			`"k": 5`, `"k": 5, "gate": {"measure": "average", "max_risk": 0.1}`, "average risk",
		},
		"a class":        {`"name": "e"`, `"name": "e", "class": "sensitive"`, "column e: sensitive"},
		"a fact":         {`"sensitive"`, `"sensitive", "shared_fact": "accepted"`, "column d: "},
		"a new column":   {`{"name": "e"}`, `{"name": "e"}, {"name": "f"}`, "column f is new: none"},
		"a column gone":  {`, {"name": "e"}`, ``, "column e is gone"},
		"a list":         {`"y", "x"`, `"z", "x"`, "the hierarchy of column q: changed"},
		"levels":         {`["y", "x"]`, `["y", "x", "w"]`, "groups of a list (2 levels)"},
		"another person": {`"subject": "id"`, `"subject": "e"`, "The person in column e"},
	} {
		now := policyOf(t, strings.Replace(reviewed, c.old, c.now, 1))
		said := strings.Join(policyDifference(&before, &now), "\n")
		if !strings.Contains(said, c.want) {
			t.Errorf("%s: %q is not said in %q", change, c.want, said)
		}
		written, err := json.Marshal(now)
		if err != nil || strings.Contains(said+string(written), "canary") {
			t.Errorf("%s: a value is told, or %v", change, err)
		}
	}
}

func TestCodesAreCountedAndNotTold(t *testing.T) {
	codes := func(sensitive, group string) plainPolicy {
		return policyOf(t, `{"subject": "id", "k": 5, "set_valued": {"column": "code", "m": 2,
			"sensitive": ["`+sensitive+`"], "diversity": 3, "constraints": {"heart": ["`+group+`"]}},
			"columns": [{"name": "code", "class": "sensitive"}]}`)
	}
	before := codes("canary-a", "canary-b")
	for _, now := range []plainPolicy{codes("canary-c", "canary-b"), codes("canary-a", "canary-c")} {
		said := strings.Join(policyDifference(&before, &now), "\n")
		written, err := json.Marshal(now)
		if err != nil || strings.Contains(said+string(written), "canary") ||
			said != "the groups of codes, and which codes are sensitive: changed" {
			t.Errorf("%v: %q is said, and %s", err, said, written)
		}
	}
	written, _ := json.Marshal(before)
	if !strings.Contains(string(written), "1 code: a person is linked to one") {
		t.Errorf("the policy is %s", written)
	}
}

func TestEveryModelIsToldInWords(t *testing.T) {
	for _, model := range []string{
		"l_diversity", "entropy_l_diversity", "recursive_l_diversity", "alpha", "t_closeness",
		"beta_likeness", "enhanced_beta_likeness", "delta_disclosure",
	} {
		q := policyfile.Requirement{Model: model, Column: "income", Parameter: 2, C: 3}
		said := modelInWords(q)
		if said == q.Phrase() || !strings.Contains(said, "income") {
			t.Errorf("%s: %q", model, said)
		}
	}
}

func TestTheGlossaryOfTheReportIsShortAndInOrder(t *testing.T) {
	if len(reportGlossary) > 15 {
		t.Errorf("%d terms", len(reportGlossary))
	}
	if !slices.IsSortedFunc(reportGlossary, func(a, b [2]string) int {
		return strings.Compare(a[0], b[0])
	}) {
		t.Error("the terms are not in order")
	}
}

func TestMarkdownOfAReportKeepsItsForm(t *testing.T) {
	p := &page{Title: "a|b"}
	g := p.chapter("One").table("<th>", "n#")
	g.row("x | y\n| z | <b> `c` &amp; [d](e) *f* _g_ # \x1b", "1")
	text, err := written(p.asMarkdown)
	want := "| x \\| y \\| z \\| &lt;b> 'c' &amp;amp; \\[d](e) \\*f\\* \\_g\\_ \\# \ufffd | 1 |\n"
	if err != nil || !strings.Contains(string(text), "\n"+want) {
		t.Errorf("%v: %s, want %s", err, text, want)
	}
	if !strings.Contains(string(text), "\n| &lt;th> | n |\n|---|---:|\n") {
		t.Errorf("no head of a table in %s", text)
	}
}

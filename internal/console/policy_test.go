package console

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestDifferencesNameWhatAVersionChanged(t *testing.T) {
	read := func(text string) *document {
		var d document
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			t.Fatal(err)
		}
		return &d
	}
	before := read(`{"subject": "id", "k": 5, "scope": "principal",
		"require": [{"model": "l_diversity", "column": "d", "parameter": 2}],
		"columns": [{"name": "a", "type": "integer", "class": "quasi_identifier",
			"hierarchy": {"name": "h", "kind": "prefix", "definition": {"keep": [1]}}},
		{"name": "b", "type": "text", "class": "sensitive"},
		{"name": "e", "type": "text", "class": "sensitive"}]}`)
	after := read(`{"subject": "id", "k": 10, "scope": "principal", "require": [],
		"columns": [{"name": "a", "type": "integer", "class": "quasi_identifier",
			"hierarchy": {"name": "h", "kind": "prefix", "definition": {"keep": [2]}}},
		{"name": "c", "type": "text"},
		{"name": "e", "type": "text", "class": "sensitive", "shared_fact": "accepted"}]}`)
	want := []string{
		"k: 5 → 10", "no longer requires l_diversity of 2 on d",
		"hierarchy h of column a is defined anew",
		"column c is new: none, hidden", "shared fact of column e: refused → accepted",
		"column b is gone",
	}
	if got := differences(before, after); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := differences(after, after); len(got) > 0 {
		t.Errorf("a version differs from itself: %q", got)
	}
}

func TestTreesShowLabelsAndNoSingleValue(t *testing.T) {
	cases := []struct{ kind, definition, want string }{
		{"table", `{"paths": [["1", "x", "X"], ["2", "x", "X"], ["3", "y", "X"], ["4", "z", "Z"],
			["5", null, "X"]]}`, "*(X(x(2 values) 2 values) 1 values)"},
		{
			"interval", `{"widths": [5, 10], "lower": 0, "upper": 19}`,
			"*(0 – 9(0 – 4(each value) 5 – 9(each value)) 10 – 19(10 – 14(each value) 15 – 19(each " +
				"value)))",
		},
		{"prefix", `{"keep": [4, 1]}`, "*(x… (1 character)(xxxx… (4 characters)(each value)))"},
		{"date", `{"levels": ["month", "year"]}`, "*(each year(each month(each value)))"},
		{"interval", `{"widths": [1, 100000], "lower": 0, "upper": 99999}`, "*(0 – 99999(steps of 1))"},
	}
	for _, c := range cases {
		tree, note := (&hierarchy{Kind: c.kind, Definition: json.RawMessage(c.definition)}).tree()
		if got := written(tree); got != c.want || note != "" {
			t.Errorf("%s %s: %s %s, want %s", c.kind, c.definition, got, note, c.want)
		}
	}
}

func written(n *node) string {
	var parts []string
	for _, c := range n.Children {
		parts = append(parts, written(c))
	}
	if n.More != "" {
		parts = append(parts, n.More)
	}
	if parts == nil {
		return n.Label
	}
	return n.Label + "(" + strings.Join(parts, " ") + ")"
}

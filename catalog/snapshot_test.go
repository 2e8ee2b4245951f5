package catalog_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/catalog"
)

func TestATextIsHarmlessOnlyWhereItNamesNothingOfOurs(t *testing.T) {
	s := catalog.NewSnapshot(1, []*catalog.Relation{{Schema: "public", Name: "Patients"}},
		map[catalog.Name]*catalog.Other{
			{Schema: "public", Name: "old_people"}: {Reaches: "Patients"},
			{Schema: "public", Name: "cities"}:     {},
		})
	cases := []struct {
		statement string
		may       bool
	}{
		{"SELECT * FROM cities", false},
		{"SELECT * FROM patients", true},
		{`SELECT * FROM "PATIENTS"`, true},
		{"SELECT 'patients'", true},
		{"SELECT * FROM old_people", true},
		{`SELECT * FROM U&"p\0061tients"`, true},
		{"SELECT * FROM pg_stats", true},
		{"SELECT * FROM chain_1", true},
		{"SELECT * FROM tailor_release.x", true},
	}
	for _, c := range cases {
		if got := s.MayConcern(c.statement); got != c.may {
			t.Errorf("%s: %v, want %v", c.statement, got, c.may)
		}
	}
}

func TestANameIsSearchedForAsItIsQuoted(t *testing.T) {
	s := catalog.NewSnapshot(1, []*catalog.Relation{{Schema: "public", Name: `pat"ients`}}, nil)
	for statement, may := range map[string]bool{
		`SELECT * FROM "pat""ients"`:      true,
		`SELECT query_to_xml('pat"ients'`: true,
		`SELECT * FROM "pat"`:             false,
		`SELECT 'ä'`:                      false,
	} {
		if got := s.MayConcern(statement); got != may {
			t.Errorf("%s: %v, want %v", statement, got, may)
		}
	}
}

func TestATextBeyondASCIIMayHoldANameBeyondASCII(t *testing.T) {
	for _, s := range []*catalog.Snapshot{
		catalog.NewSnapshot(1, []*catalog.Relation{{Schema: "public", Name: "ärzte"}}, nil),
		catalog.NewSnapshot(1, nil, map[catalog.Name]*catalog.Other{{
			Schema: "public",
			Name:   "ärzte",
		}: {Reaches: "people"}}),
	} {
		for statement, may := range map[string]bool{
			"SELECT * FROM \"ärzte\"":                          true,
			"SELECT * FROM \"Ärzte\"":                          true,
			"SELECT * FROM \"a\u0308\"":                        true,
			"SELECT * FROM cities":                             false,
			string([]byte{'"', 0xe4, 'r', 'z', 't', 'e', '"'}): true, // as another encoding has it
		} {
			if got := s.MayConcern(statement); got != may {
				t.Errorf("%q: %v, want %v", statement, got, may)
			}
		}
	}
}

func TestHierarchiesAreBuiltFromTheirDefinitions(t *testing.T) {
	cases := []struct{ claim, kind, definition, value, fault string }{
		{"an interval", "interval", `{"widths": [5], "lower": 0, "upper": 99}`, "34", ""},
		{"a prefix", "prefix", `{"keep": [2]}`, "35233", ""},
		{"a date with bounds of its own", "date", `{"levels": ["year"]}`, "1999-12-31", ""},
		{"a list", "table", `{"paths": [["a", "x"], ["b", "x"]]}`, "b", ""},
		{"an unknown kind", "tree", `{}`, "a", "unknown kind"},
		{"an unknown key", "prefix", `{"keep": [2], "kept": 3}`, "a", "unknown field"},
		{"an interval without bounds", "interval", `{"widths": [5]}`, "34", "missing"},
		{
			"a value outside the bounds", "interval", `{"widths": [5], "lower": 0, "upper": 9}`, "34",
			"outside the bounds",
		},
		{"a value that is not listed", "table", `{"paths": [["a"]]}`, "secret", "not in the list"},
		{
			"a list that does not nest", "table", `{"paths": [["a", "x", "p"], ["b", "x", "q"]]}`, "a",
			"do not nest",
		},
		{"no JSON", "prefix", `nonsense`, "a", "invalid character"},
	}
	for _, c := range cases {
		t.Run(c.claim, func(t *testing.T) {
			spec := &catalog.HierarchySpec{
				Name: "h", Kind: c.kind,
				Definition: json.RawMessage(c.definition),
			}
			h, err := spec.Build([]string{c.value}, false, "integer")
			switch {
			case c.fault == "" && err != nil:
				t.Fatal(err)
			case c.fault == "":
				if _, ok := h.Code(c.value); !ok {
					t.Error("the value has no place")
				}
			case err == nil || !strings.Contains(err.Error(), c.fault):
				t.Errorf("%v, want %q", err, c.fault)
			case strings.Contains(err.Error(), "secret"):
				t.Errorf("the error quotes a value: %v", err)
			}
		})
	}
}

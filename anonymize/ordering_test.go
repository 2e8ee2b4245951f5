package anonymize_test

import (
	"errors"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

func TestOrderingGroupsNeighbours(t *testing.T) {
	h, err := anonymize.Ordering{
		Values: []string{"none", "low", "medium", "high", "severe"},
		Sizes:  []int{2, 2},
		Labels: [][]string{nil, {"up to high", "worse"}},
	}.Build([]string{"low", "severe"}, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		value string
		want  []string
	}{
		{"none", []string{"none", "none - low", "up to high", "*"}},
		{"high", []string{"high", "medium - high", "up to high", "*"}},
		{"severe", []string{"severe", "severe", "worse", "*"}},
	} {
		leaf, ok := h.Code(c.value)
		if !ok || h.Height() != len(c.want) {
			t.Fatalf("%s: known %v, height %d", c.value, ok, h.Height())
		}
		for l, want := range c.want {
			if got := h.Label(anonymize.Node{Level: l, Group: h.Generalize(leaf, l)}); got != want {
				t.Errorf("%s at level %d: %q, want %q", c.value, l, got, want)
			}
		}
	}
}

func TestOrderingRefusesWhatMakesNoHierarchy(t *testing.T) {
	for claim, c := range map[string]struct {
		ordering anonymize.Ordering
		values   []string
	}{
		"no values":     {anonymize.Ordering{}, nil},
		"a value twice": {anonymize.Ordering{Values: []string{"a", "a"}}, nil},
		"groups of one": {anonymize.Ordering{Values: []string{"a", "b"}, Sizes: []int{1}}, nil},
		"too few labels": {anonymize.Ordering{
			Values: []string{"a", "b", "c"}, Sizes: []int{2},
			Labels: [][]string{{"x"}},
		}, nil},
		"labels that do not nest": {anonymize.Ordering{
			Values: []string{"a", "b", "c", "d"},
			Sizes:  []int{2, 2}, Labels: [][]string{{"x", "x"}, {"y", "z"}},
		}, nil},
		"an unlisted value": {anonymize.Ordering{Values: []string{"a", "b"}}, []string{"c"}},
	} {
		_, err := c.ordering.Build(c.values, false)
		var fault *anonymize.HierarchyError
		if !errors.As(err, &fault) {
			t.Errorf("%s: %v", claim, err)
		}
	}
}

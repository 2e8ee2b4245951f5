package main

import (
	"slices"
	"testing"
)

func TestLargestGroupIsOfFilesThatReachEachOther(t *testing.T) {
	for name, c := range map[string]struct {
		needs map[string][]string
		want  []string
	}{
		"a chain is no group": {
			map[string][]string{"a": {"b"}, "b": {"c"}, "c": nil}, []string{"a"},
		},
		"a cycle with a tail": {
			map[string][]string{"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": nil}, []string{"b", "c"},
		},
		"two cycles with one file in common": {
			map[string][]string{"a": {"b"}, "b": {"a", "c"}, "c": {"b"}}, []string{"a", "b", "c"},
		},
		"a bridge joins no two cycles": {
			map[string][]string{"a": {"b"}, "b": {"a", "c"}, "c": {"d"}, "d": {"e"}, "e": {"c"}},
			[]string{"c", "d", "e"},
		},
		"nothing": {nil, nil},
	} {
		if got := largestGroup(c.needs); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestLinesOfCodeHaveMoreThanComments(t *testing.T) {
	text := []byte("// Package p.\npackage p\n\n/* a\n b */ var x = `1\n2` // both\n\n" +
		"func f() {\n\t// nothing\n}\n")
	if all, code := linesOf(text), codeLines(text); all != 10 || code != 5 {
		t.Errorf("%d lines, %d of code; want 10 and 5", all, code)
	}
	if code := codeLinesOfSQL([]byte("-- a\n\nSELECT 1; -- b\n  -- c\nEND")); code != 2 {
		t.Errorf("%d lines of SQL, want 2", code)
	}
}

func TestLongLinesAreCountedByCharacters(t *testing.T) {
	fits, long := make([]byte, 0), make([]byte, 0)
	for range longest {
		fits = append(fits, "é"...)
	}
	long = append(append(long, fits...), 'x', '\n')
	if n := longLines(append(append(fits, '\r', '\n'), long...)); n != 1 {
		t.Errorf("%d long lines, want 1", n)
	}
}

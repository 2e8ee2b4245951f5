package anonymize_test

import (
	"fmt"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// same asserts that two hierarchies have the same nodes.
func same(t *testing.T, a, b *anonymize.Hierarchy) {
	t.Helper()
	if a.Height() != b.Height() || a.Leaves() != b.Leaves() {
		t.Fatalf("%d levels of %d leaves, %d of %d", a.Height(), a.Leaves(), b.Height(), b.Leaves())
	}
	for l := range a.Height() {
		for leaf := range uint32(a.Leaves()) {
			n, m := anonymize.Node{Level: l, Group: a.Generalize(leaf, l)},
				anonymize.Node{Level: l, Group: b.Generalize(leaf, l)}
			v, ok := a.Representative(n)
			w, also := b.Representative(m)
			if n != m || a.Label(n) != b.Label(m) || a.Share(n) != b.Share(m) || v != w || ok != also {
				t.Fatalf("leaf %d at level %d: %q covers %g, %q covers %g", leaf, l, a.Label(n), a.Share(n),
					b.Label(m), b.Share(m))
			}
		}
	}
}

func TestNullIsTheSameHoweverItComesIn(t *testing.T) {
	for _, values := range [][]string{{"31"}, {"31", "34", "38", "62"}} {
		for _, from := range []builder{ages, costs, zips} {
			without, err := from.Build(values, false)
			if err != nil {
				t.Fatal(err)
			}
			with, err := from.Build(values, true)
			if err != nil {
				t.Fatal(err)
			}
			same(t, with, with.WithNull())
			same(t, with, without.WithNull())
		}
	}
	paths := [][]string{
		{"a", "vowel", "letter"},
		{"b", "consonant", "letter"},
		{"e", "vowel", "letter"},
	}
	for height := 1; height <= 3; height++ {
		var cut [][]string
		for _, p := range paths {
			cut = append(cut, p[:height])
		}
		plain, err := anonymize.NewHierarchy(cut)
		if err != nil {
			t.Fatal(err)
		}
		listed, err := anonymize.Listed(cut, nil, true)
		if err != nil {
			t.Fatal(err)
		}
		same(t, listed, plain.WithNull())
		if got := listed.Label(listed.Root()); got != anonymize.Top {
			t.Errorf("a root that covers NULL reads %q", got)
		}
	}
}

func TestNullMakesAnEnumeratedDomainOneValueLarger(t *testing.T) {
	for n := 2; n < 200; n++ {
		var paths [][]string
		for i := range n {
			paths = append(paths, []string{fmt.Sprint(i), fmt.Sprint("g", min(i, n-2)/(n/2+1))})
		}
		h, err := anonymize.NewHierarchy(paths)
		if err != nil {
			t.Fatal(err)
		}
		h = h.WithNull()
		for g := range uint32(h.Groups(1)) {
			node := anonymize.Node{Level: 1, Group: g}
			first, last := h.Range(node)
			want := float64(last-first+1) / float64(n+1)
			if first == last {
				want = 0
			}
			if got := h.Share(node); h.Height() > 2 && got != want {
				t.Fatalf("%d of %d values and NULL are the share %g, want %g", last-first+1, n, got, want)
			}
		}
	}
}

func TestNullLeavesTheSharesOfRangesAlone(t *testing.T) {
	h, err := ages.Build([]string{"31", "38"}, true)
	if err != nil {
		t.Fatal(err)
	}
	low, _ := h.Code("31")
	high, _ := h.Code("38")
	null, _ := h.NullCode()
	if got := h.Share(h.Cover(low, high)); got != 10.0/120 {
		t.Errorf("30-39 covers %g beside NULL, want %g", got, 10.0/120)
	}
	root := h.Cover(low, null)
	if middle, ok := h.Representative(root); root != h.Root() || h.Share(root) != 1 || !ok ||
		middle != "59" {
		t.Errorf("root %v with representative %q covers %g", root, middle, h.Share(root))
	}
	alone, err := ages.Build(nil, true)
	if err != nil || alone.Leaves() != 1 || alone.Height() != 5 || alone.Share(alone.Root()) != 1 {
		t.Errorf("NULL alone: %v, %+v", err, alone)
	}
}

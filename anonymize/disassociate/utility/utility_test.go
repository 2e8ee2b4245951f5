package utility_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate/utility"
)

func dataset(t *testing.T, records ...string) *disassociate.Dataset {
	t.Helper()
	d, _, err := disassociate.ReadDataset(strings.NewReader(strings.Join(records, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestFrequentSetsAreAllSetsWithSupport compares with counting every subset.
func TestFrequentSetsAreAllSetsWithSupport(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var lines []string
	for range 60 {
		line := "a"
		for c := 'b'; c < 'i'; c++ {
			if rng.IntN(3) > 0 {
				line += " " + string(c)
			}
		}
		lines = append(lines, line)
	}
	d := dataset(t, lines...)
	for _, maxSize := range []int{2, 8} {
		const least = 20
		got, complete, err := utility.FrequentSets(t.Context(), utility.HoldersOf(d, 1), least,
			maxSize, 1000)
		if err != nil || !complete {
			t.Fatal(complete, err)
		}
		want := 0
		for subset := 1; subset < 1<<len(d.Codes()); subset++ {
			var items []utility.Item
			for it := range d.Codes() {
				if subset>>it&1 == 1 {
					items = append(items, utility.Item(it))
				}
			}
			n := 0
			for r := range d.Len() {
				if !slices.ContainsFunc(items, func(it utility.Item) bool {
					return !slices.Contains(d.Items(r), it)
				}) {
					n++
				}
			}
			if n < least || len(items) > maxSize {
				continue
			}
			want++
			if !slices.ContainsFunc(got, func(f utility.Frequent) bool {
				return f.Support == n && slices.Equal(f.Items, items)
			}) {
				t.Errorf("%v with support %d is missing", items, n)
			}
		}
		if len(got) != want {
			t.Errorf("%d sets, want %d", len(got), want)
		}
		if !slices.IsSortedFunc(got, func(a, b utility.Frequent) int { return b.Support - a.Support }) {
			t.Error("sets are not sorted by support")
		}
	}
}

func TestFrequentSetsStopAtTheLimitAndWhenCancelled(t *testing.T) {
	d := dataset(t, "a b c d", "a b c d")
	h := utility.HoldersOf(d, 1)
	if got, complete, err := utility.FrequentSets(t.Context(), h, 1, 4, 5); len(got) != 5 ||
		complete || err != nil {
		t.Errorf("%d sets, complete %t, %v", len(got), complete, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := utility.FrequentSets(ctx, h, 1, 4, 100); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestAverageRelativeErrorLeavesOutWhatNobodyHolds(t *testing.T) {
	workload := []utility.Frequent{{Support: 10}, {Support: 4}, {Support: 0}}
	estimates := []float64{9, 5, 7}
	at := 0
	are := utility.AverageRelativeError(workload, func([]utility.Item) float64 {
		at++
		return estimates[at-1]
	})
	if math.Abs(are-(0.1+0.25)/2) > 1e-12 {
		t.Errorf("ARE %g", are)
	}
	if !math.IsNaN(utility.AverageRelativeError(nil, nil)) {
		t.Error("an empty workload has an error")
	}
}

func TestMatchingCountsRecordsOnce(t *testing.T) {
	d := dataset(t, "a b", "a", "c", "a a b")
	constraints := []disassociate.Constraint{
		{Name: "u", Codes: []string{"a", "b"}},
		{Name: "v", Codes: []string{"x"}},
	}
	got := utility.MatchConstraints(constraints, d, func([]string) float64 { return 2.4 })
	if len(got) != 1 || got[0].Original != 3 || math.Abs(got[0].Error()-20) > 1e-9 {
		t.Fatalf("%+v", got)
	}
	if utility.ShareWithin(got, 5) != 0 || utility.ShareWithin(got, 20.01) != 1 ||
		utility.ShareWithin(nil, 5) != 1 {
		t.Error("wrong share of constraints")
	}
}

const smallTaxonomy = `code,title,category,chapter
x1,one,X,1
x2,two,X,1
y1,three,Y,1
z1,four,Z,2
`

func TestPoliciesGroupCodes(t *testing.T) {
	tax, err := utility.ReadTaxonomy(strings.NewReader(smallTaxonomy), "code", "category", "chapter")
	if err != nil {
		t.Fatal(err)
	}
	d := dataset(t, "z1 x1 x2", "y1 other x1", "x1 x2 z1 x1")
	groups := func(list []disassociate.Constraint) string {
		var all []string
		for _, c := range list {
			all = append(all, strings.Join(c.Codes, " "))
		}
		return strings.Join(all, " | ")
	}
	for name, c := range map[string]struct {
		got  []disassociate.Constraint
		want string
	}{
		"level 1 groups by category": {
			utility.LevelPolicy(d, tax, 1),
			"other | x1 x2 | y1 | z1",
		},
		"level 2 groups by chapter": {
			utility.LevelPolicy(d, tax, 2),
			"other | x1 x2 y1 | z1",
		},
		"similar codes follow each other, unknown last": {
			utility.SimilarityPolicy(d, tax, 2),
			"x1 x2 | y1 z1 | other",
		},
		"frequent sets are taken largest first, if free": {
			utility.FrequencyPolicy(d, frequent(t, d)),
			"x1 x2 z1",
		},
	} {
		if groups(c.got) != c.want {
			t.Errorf("%s: %s, want %s", name, groups(c.got), c.want)
		}
	}
	for pair, want := range map[[2]string]float64{
		{"x1", "x2"}: 1.0 / 3, {"x1", "y1"}: 2.0 / 3, {"x1", "z1"}: 1, {"x1", "other"}: 1,
	} {
		if got := tax.Distance(pair[0], pair[1]); math.Abs(got-want) > 1e-12 {
			t.Errorf("distance of %v is %g, want %g", pair, got, want)
		}
	}
}

func frequent(t *testing.T, d *disassociate.Dataset) []utility.Frequent {
	t.Helper()
	sets, _, err := utility.FrequentSets(t.Context(), utility.HoldersOf(d, 1), 2, 4, 100)
	if err != nil {
		t.Fatal(err)
	}
	return sets
}

func TestATaxonomyWithoutAColumnIsRefused(t *testing.T) {
	for _, text := range []string{"", "code,x\n", "code,category\na\n"} {
		if _, err := utility.ReadTaxonomy(strings.NewReader(text), "code", "category"); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
	if _, err := utility.ReadTaxonomy(strings.NewReader("code,category\na,b\n"), "code",
		"category"); err != nil {
		t.Error(err)
	}
}

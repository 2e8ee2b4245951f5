package identify_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/anonymize/identify"
)

// grouped proposes groups for the first of some columns.
func grouped(least, named int, cells ...[]string) *identify.Grouping {
	var names []string
	for c := range cells {
		names = append(names, fmt.Sprint("c", c))
	}
	return identify.Group(identify.NewRows(names, cells, len(cells[0]), 1<<20), "c0", least, named)
}

func TestTextsWithAnOrderAreGroupedAlongIt(t *testing.T) {
	for claim, order := range map[string][]string{
		"schooling": strings.Fields("Preschool 1st-4th 5th-6th 7th-8th 9th HS-grad Some-college " +
			"Bachelors Masters Doctorate"),
		"severity":   strings.Fields("none mild moderate severe critical"),
		"frequency":  {"never", "rarely", "sometimes", "often", "always"},
		"sizes":      strings.Fields("XS S M L XL"),
		"ranges":     {"under 10", "10-19", "20-29", "30-39", "100 or more"},
		"thresholds": {"<=25K", ">25K", "50K", ">=75K"},
		"months":     strings.Fields("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec"),
	} {
		shuffled := slices.Clone(order)
		rand.New(rand.NewPCG(1, 1)).
			Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		g := grouped(1, 1, repeated(50, shuffled...))
		if g == nil || !g.Ordered {
			t.Errorf("%s: no order is found: %+v", claim, g)
			continue
		}
		var values []string
		for _, path := range g.Paths {
			values = append(values, path[0])
		}
		if !slices.Equal(values, order) {
			t.Errorf("%s: the order is %q", claim, values)
		}
		if _, err := anonymize.NewHierarchy(g.Paths); err != nil {
			t.Errorf("%s: %v", claim, err)
		}
		for i, path := range g.Paths[1:] { // groups are runs
			if path[1] != g.Paths[i][1] &&
				slices.ContainsFunc(g.Paths[:i], func(p []string) bool { return p[1] == path[1] }) {
				t.Errorf("%s: the group %q is in two pieces", claim, path[1])
			}
		}
	}
	for claim, values := range map[string][]string{
		"colours": {"red", "green", "blue", "grey"}, "two that mean the same": {
			"low", "medium",
			"moderate", "high",
		},
		"words and others": {"low", "medium", "high", "blue"}, "codes": {"A1", "B2", "C3", "D4"},
	} {
		if g := grouped(1, 1, repeated(50, values...)); g == nil || g.Ordered {
			t.Errorf("%s have an order: %+v", claim, g)
		}
	}
}

func TestPlacesAreGroupedByTheirRegionsAndAllAreListed(t *testing.T) {
	propose := func(name string, values ...string) *identify.Grouping {
		cells := repeated(3, values...)
		return identify.Group(
			identify.NewRows([]string{name}, [][]string{cells}, len(cells), 1000), name, 1, 1,
		)
	}
	find := func(g *identify.Grouping, value string) []string {
		t.Helper()
		if g == nil || g.List == "" {
			t.Fatalf("no list is found: %+v", g)
		}
		if _, err := anonymize.NewHierarchy(g.Paths); err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(g.Paths, func(p []string) bool { return p[0] == value })
		if at < 0 {
			t.Fatalf("%s is not listed", value)
		}
		return g.Paths[at][1:]
	}
	names := propose(
		"x", "United-States", "England", "Hong Kong", "Viet-Nam", "Cote d'Ivoire", "Atlantis",
	)
	for value, groups := range map[string]string{
		"United-States": "Northern America, Americas", "England": "Northern Europe, Europe",
		"Atlantis": "other, other",
		"Viet-Nam": "South-eastern Asia, Asia", "Cote d'Ivoire": "Western Africa, Africa",
		"Germany": "Western Europe, Europe",
	} {
		if got := strings.Join(find(names, value), ", "); got != groups {
			t.Errorf("%s is in %s", value, got)
		}
	}
	if codes := propose("x", "DEU", "FRA", "ITA", "USA", "CHN"); find(codes,
		"BRA")[0] != "South America" {
		t.Error("Brazil's code is elsewhere")
	}
	both := []string{"CA", "DE", "IN", "AL", "GA", "MD"}
	if find(propose("birth_state", both...), "NY")[1] != "Northeast" ||
		find(propose("country", both...), "FR")[1] != "Europe" {
		t.Error("codes of both lists are not told by the name of the column")
	}
	if g := propose("x", both...); g != nil && g.List != "" {
		t.Errorf("codes of both lists are taken for %s", g.List)
	}
	if g := propose("x", "Berlin", "Jordan", "Georgia", "Chad", "Cuba", "Rome", "Oslo"); g != nil &&
		g.List != "" {
		t.Errorf("names of people and cities are taken for %s", g.List)
	}
}

func TestValuesWhoseRowsAreAlikeAreGrouped(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 9))
	kinds := map[string]int{
		"nurse":   0,
		"surgeon": 0,
		"midwife": 0,
		"baker":   1,
		"cook":    1,
		"waiter":  1,
		"pilot":   2,
		"sailor":  2,
	}
	names := slices.Sorted(func(yield func(string) bool) {
		for n := range kinds {
			if !yield(n) {
				return
			}
		}
	})
	var job, place, shift []string
	for range 8000 {
		n := names[random.IntN(len(names))]
		at := kinds[n]
		if random.IntN(5) == 0 {
			at = random.IntN(3)
		}
		job, place, shift = append(job, n), append(
			place, fmt.Sprint("place", at),
		), append(shift, fmt.Sprint(random.IntN(3)))
	}
	g := grouped(100, 5, job, place, shift)
	if g == nil || g.Ordered {
		t.Fatalf("%+v", g)
	}
	for _, path := range g.Paths {
		for _, other := range g.Paths {
			if path[2] == other[2] && kinds[path[0]] != kinds[other[0]] {
				t.Errorf("%s and %s are in %q", path[0], other[0], path[2])
			}
		}
	}
}

func TestGroupsHaveRowsEnoughAndNameNoRareValue(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 3))
	for range 60 {
		var values, other []string
		count := make(map[string]int)
		for v := range 4 + random.IntN(40) {
			n := 1 + random.IntN(1<<random.IntN(9))
			count[fmt.Sprint("v", v, "x")] = n
			for range n {
				values, other = append(values, fmt.Sprint("v", v, "x")), append(
					other, fmt.Sprint(random.IntN(4)),
				)
			}
		}
		g := grouped(60, 5, values, other)
		if g == nil { // too few rows
			continue
		}
		if _, err := anonymize.NewHierarchy(g.Paths); err != nil || len(g.Paths) != len(count) {
			t.Fatalf("%d of %d values, %v", len(g.Paths), len(count), err)
		}
		for level := 1; level < len(g.Paths[0]); level++ {
			rows := make(map[string]int)
			for _, path := range g.Paths {
				rows[path[level]] += count[path[0]]
			}
			for label, n := range rows {
				if n < 60 {
					t.Errorf("%q has %d rows", label, n)
				}
				for v, n := range count {
					if n < 5 && strings.Contains(label, v) {
						t.Errorf("%q names %s, which %d rows have", label, v, n)
					}
				}
			}
		}
	}
}

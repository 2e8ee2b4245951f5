package identify_test

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize/identify"
)

// randomTable has columns of few values, some copied from others with errors.
func randomTable(random *rand.Rand, columns, rows int) (names []string, cells [][]string) {
	for c := range columns {
		names = append(names, fmt.Sprintf("c%d", c))
		column := make([]string, rows)
		values := 1 + random.IntN(1+rows/2)
		for r := range column {
			column[r] = fmt.Sprint(random.IntN(values))
		}
		if c > 0 && random.IntN(3) == 0 {
			from := cells[random.IntN(c)]
			for r := range column {
				if random.IntN(200) > 0 {
					column[r] = from[r][:1]
				}
			}
		}
		cells = append(cells, column)
	}
	return names, cells
}

// alone is the percentage of rows that equal no other in the columns of a mask.
func alone(cells [][]string, mask int) float64 {
	counts := make(map[string]int)
	keys := make([]string, len(cells[0]))
	for r := range keys {
		for c := range cells {
			if mask>>c&1 == 1 {
				keys[r] += cells[c][r] + "|"
			}
		}
		counts[keys[r]]++
	}
	n := 0
	for _, k := range keys {
		if counts[k] == 1 {
			n++
		}
	}
	return 100 * float64(n) / float64(len(keys))
}

func TestSetsAreTheMinimalOnesOfTheDefinition(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 150 {
		names, cells := randomTable(random, 1+random.IntN(6), 1+random.IntN(60))
		want := make(map[string]float64)
		worst := make([]float64, identify.SetColumns+1)
		for mask := 1; mask < 1<<len(names); mask++ {
			size := bits.OnesCount(uint(mask))
			minimal := size <= identify.SetColumns && alone(cells, mask) >= identify.SinglingShare
			reachable := size <= identify.SetColumns // no part of it singles people out
			for part := (mask - 1) & mask; part > 0; part = (part - 1) & mask {
				if alone(cells, part) >= identify.SinglingShare {
					minimal, reachable = false, false
				}
			}
			var set []string
			for c, name := range names {
				if mask>>c&1 == 1 {
					set = append(set, name)
				}
			}
			if minimal {
				want[strings.Join(set, " ")] = alone(cells, mask)
			}
			if reachable {
				worst[size] = max(worst[size], alone(cells, mask))
			}
		}
		got := identify.Combine(identify.NewRows(names, cells, len(cells[0]), 1000))
		if !got.Complete || len(got.Minimal) != len(want) {
			t.Fatalf("%d minimal sets, want %d", len(got.Minimal), len(want))
		}
		for _, s := range got.Minimal {
			if percent, ok := want[strings.Join(s.Columns, " ")]; !ok ||
				math.Abs(percent-s.Percent) > 1e-9 {
				t.Fatalf("%v singles out %v %%, want %v", s.Columns, s.Percent, percent)
			}
		}
		for _, s := range got.Worst {
			if math.Abs(s.Percent-worst[len(s.Columns)]) > 1e-9 {
				t.Fatalf(
					"worst set of %d columns: %v, want %v", len(s.Columns), s.Percent,
					worst[len(s.Columns)],
				)
			}
		}
	}
}

func TestDependenciesHaveTheirShareOfExceptions(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	some := 0
	for range 300 {
		names, cells := randomTable(random, 2+random.IntN(4), 100+random.IntN(300))
		rows := len(cells[0])
		exceptions := func(from []string, to []string) float64 {
			counts, most := make(map[[2]string]int), make(map[string]int)
			for r := range to {
				counts[[2]string{from[r], to[r]}]++
				most[from[r]] = max(most[from[r]], counts[[2]string{from[r], to[r]}])
			}
			kept := 0
			for _, n := range most {
				kept += n
			}
			return 100 * float64(rows-kept) / float64(rows)
		}
		want := make(map[identify.Dependency]bool)
		for a, from := range cells {
			for b, to := range cells {
				wrong, guess := exceptions(from, to), exceptions(make([]string, rows), to)
				if a != b && alone(cells, 1<<a) < 50 && guess > 0 &&
					wrong <= identify.ExceptionShare &&
					10*wrong <= guess {
					want[identify.Dependency{From: names[a], To: names[b], Exceptions: wrong}] = true
				}
			}
		}
		got, complete := identify.Depend(identify.NewRows(names, cells, rows, 1000))
		if !complete || len(got) != len(want) {
			t.Fatalf("%d dependencies, want %d", len(got), len(want))
		}
		for _, d := range got {
			if d.Exceptions > 0 {
				some++
			}
			if !want[d] {
				t.Fatalf("%+v is none", d)
			}
		}
	}
	if some == 0 {
		t.Error("no approximate dependency was tried")
	}
}

func TestTheSearchEndsHoweverManyColumnsThereAre(t *testing.T) {
	const columns, rows = 400, 2000
	random := rand.New(rand.NewPCG(7, 8))
	var names []string
	var cells [][]string
	for c := range columns {
		names = append(names, fmt.Sprint(c))
		column := make([]string, rows)
		for r := range column {
			column[r] = fmt.Sprint(random.IntN(2))
		}
		cells = append(cells, column)
	}
	r := identify.NewRows(names, cells, rows, rows)
	if c := identify.Combine(r); c.Complete {
		t.Error("ten billion sets were all looked at")
	}
	if _, complete := identify.Depend(r); complete {
		t.Error("all pairs were looked at within the bound on work")
	}
}

func TestASampleIsOfThatSizeAndTheSameEveryTime(t *testing.T) {
	cells := [][]string{numbered(5000, "%d")}
	first := identify.NewRows([]string{"a"}, cells, 5000, 1000)
	second := identify.NewRows([]string{"a"}, cells, 5000, 1000)
	if first.Count != 1000 || len(first.Codes[0]) != 1000 || first.Share != 0.2 ||
		!slices.Equal(first.Codes[0], second.Codes[0]) {
		t.Errorf("%d rows, a share of %v", first.Count, first.Share)
	}
	if sets := identify.Combine(first).Minimal; len(sets) != 1 || sets[0].Percent != 100 {
		t.Errorf("%+v", sets)
	}
}

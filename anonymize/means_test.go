package anonymize_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// measured is a table of a whole number from 0 to 119, in steps of 10 and 40,
// and of further columns by which it can be cut. A value below 0 is NULL.
func measured(t testing.TB, values []int, cuts ...[]uint32) *anonymize.Table {
	t.Helper()
	return measuredWithin(t, anonymize.Interval{Widths: []float64{10, 40}, Lower: 0, Upper: 119, Integer: true}, nil, values, cuts...)
}

func measuredWithin(t testing.TB, iv anonymize.Interval, subjects []uint32, values []int, cuts ...[]uint32) *anonymize.Table {
	t.Helper()
	seen := make(map[string]bool)
	withNull := false
	for _, v := range values {
		if withNull = withNull || v < 0; v >= 0 {
			seen[fmt.Sprint(v)] = true
		}
	}
	h, err := iv.Build(slices.Sorted(maps.Keys(seen)), withNull)
	if err != nil {
		t.Fatal(err)
	}
	columns, leaves := []anonymize.Column{{Name: "v", Hierarchy: h}}, [][]uint32{make([]uint32, len(values))}
	for i, v := range values {
		if leaves[0][i], _ = h.Code(fmt.Sprint(v)); v < 0 {
			leaves[0][i], _ = h.NullCode()
		}
	}
	for c, cut := range cuts {
		var paths [][]string
		for v := range slices.Max(cut) + 1 {
			paths = append(paths, []string{fmt.Sprint(v), fmt.Sprint("half ", v/2)})
		}
		h, err := anonymize.NewHierarchy(paths)
		if err != nil {
			t.Fatal(err)
		}
		columns, leaves = append(columns, anonymize.Column{Name: fmt.Sprint("cut ", c), Hierarchy: h}), append(leaves, cut)
	}
	table, err := anonymize.NewTable(columns, leaves, subjects)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// first is the first column of a table, as what means are of.
func first(table *anonymize.Table) anonymize.Measured {
	values := anonymize.Measured{Hierarchy: table.Columns()[0].Hierarchy}
	for _, tuple := range table.TupleOfRow() {
		values.LeafOfRow = append(values.LeafOfRow, table.Leaf(0, tuple))
	}
	return values
}

// meansOf starts with means of the first column.
func meansOf(p *anonymize.Partition, k int) *anonymize.Means {
	return anonymize.NewMeans(p, first(p.Table()), k, true)
}

// ofAll is the mean of a table as a whole.
func ofAll(table *anonymize.Table, k int) (float64, bool) {
	return meansOf(anonymize.NewPartition(table), k).Mean(0)
}

func TestTheGuardHoldsBack(t *testing.T) {
	years := anonymize.Interval{Widths: []float64{10, 40}, Lower: 0, Upper: 119, Integer: true}
	bit := anonymize.Interval{Widths: []float64{1}, Lower: 0, Upper: 1, Integer: true}
	for _, c := range []struct {
		claim    string
		within   anonymize.Interval
		values   []int
		subjects []uint32
		shown    bool
	}{
		{"nothing of values that differ", years, []int{5, 40, 41, 60, 90, 110}, nil, true},
		{"a value far from all others", years, []int{20, 21, 22, 23, 24, 119}, nil, false},
		{"a value far below all others", years, []int{90, 91, 92, 93, 94, 1}, nil, false},
		{"equal values", years, []int{40, 40, 40, 40, 40, 40}, nil, false},
		{"two values", years, []int{5, 5, 5, 90, 90, 90}, nil, false},
		{"a column of noughts and ones", bit, []int{0, 1, 1, 0, 1, 0, 1, 1}, nil, false},
		{"a sum that is narrower for the label", years, []int{0, 1, 2, 3, 4, 45, 61}, nil, false},
		{"a mean at the low end", years, []int{0, 0, 1, 8, 10}, nil, false},
		{"a mean at the high end", years, []int{119, 119, 119, 114, 109}, nil, false},
		{"values closer together than the label says", years, []int{38, 39, 39, 40, 40, 41, 42, 39, 40, 41}, nil, false},
		{"values of which one is NULL", years, []int{5, 40, 41, 60, 90, -1}, nil, false},
		{"values of people with several rows", years, []int{5, 40, 41, 60, 90, 110}, []uint32{0, 1, 2, 3, 4, 0}, false},
	} {
		t.Run(c.claim, func(t *testing.T) {
			if mean, shown := ofAll(measuredWithin(t, c.within, c.subjects, c.values), 5); shown != c.shown {
				t.Errorf("shown: %t, as %g", shown, mean)
			}
		})
	}
	many := []int{5, 40, 41, 60, 90, 110}
	if _, shown := ofAll(measured(t, many), 13); shown {
		t.Error("six values are enough for k = 13")
	}
}

func TestOneNumberThatIsWrittenInTwoWaysIsOneValue(t *testing.T) {
	values := []string{"0", "0.0", "0.00", "80", "80.0"} // as numeric keeps them
	h, err := anonymize.Interval{Widths: []float64{10, 40}, Lower: 0, Upper: 120}.Build(values, false)
	if err != nil {
		t.Fatal(err)
	}
	of := anonymize.Measured{Hierarchy: h}
	for range 4 {
		for _, v := range values {
			leaf, _ := h.Code(v)
			of.LeafOfRow = append(of.LeafOfRow, leaf)
		}
	}
	p := anonymize.NewPartition(measured(t, make([]int, len(of.LeafOfRow))))
	if mean, shown := anonymize.NewMeans(p, of, 5, false).Mean(0); shown {
		t.Errorf("of two values, %g is shown", mean)
	}
}

func TestAMeanIsOffByHalfTheLabelsWidthOverThePeople(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	shown := 0
	for range 2000 {
		values, sum := make([]int, 5+random.IntN(60)), 0
		for i := range values {
			values[i] = random.IntN(120)
			sum += values[i]
		}
		n := float64(len(values))
		mean, ok := ofAll(measured(t, values), 5)
		if !ok {
			continue
		}
		shown++
		if off := math.Abs(mean - float64(sum)/n); off > 60/n+1e-9 {
			t.Fatalf("off by %g of %d values", off, len(values))
		}
		// Who knows the label alone: some values of the others go with each.
		for v := range 120 {
			if float64(v) > mean*n+60 || float64(v)+(n-1)*119 < mean*n-60 {
				t.Fatalf("a mean of %d values rules out %d", len(values), v)
			}
		}
	}
	if shown < 1000 {
		t.Errorf("%d of 2000 random tables show their mean", shown)
	}
}

func TestRoundingLeavesTwoPartsOfTheRangeToWhoKnowsAllOthers(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		values := []int{0, 119} // the label is the whole range whatever the last value is
		for range 3 + random.IntN(10) {
			values = append(values, random.IntN(120))
		}
		var answers []string
		parts := make(map[string]bool)
		for last := range 120 {
			mean, ok := ofAll(measured(t, append(slices.Clone(values), last)), 5)
			answer := fmt.Sprint(mean, ok)
			if len(answers) == 0 || answers[len(answers)-1] != answer {
				answers = append(answers, answer)
			}
			if ok {
				parts[answer] = true
			}
		}
		if len(parts) > 2 {
			t.Fatalf("%d means for one unknown value among %d", len(parts), len(values)+1)
		}
	}
}

func TestEndsAreThoseOfTheNodeAndOfTheDomain(t *testing.T) {
	h, err := anonymize.Interval{Widths: []float64{50}, Lower: 0, Upper: 119, Integer: true}.Build([]string{"7", "99", "110"}, true)
	if err != nil {
		t.Fatal(err)
	}
	leaf, _ := h.Code("99")
	null, _ := h.NullCode()
	for _, c := range []struct {
		claim     string
		node      anonymize.Node
		low, high float64
		ok        bool
	}{
		{"a value lies at both", anonymize.Node{Group: leaf}, 99, 99, true},
		{"a range ends before the next", anonymize.Node{Level: 1, Group: 1}, 50, 100, true},
		{"the last one ends with the domain", anonymize.Node{Level: 1, Group: 2}, 100, 120, true},
		{"the root is the domain", h.Root(), 0, 120, true},
		{"NULL lies nowhere", anonymize.Node{Group: null}, 0, 0, false},
	} {
		if low, high, ok := h.Ends(c.node); low != c.low || high != c.high || ok != c.ok {
			t.Errorf("%s: [%g, %g) %t", c.claim, low, high, ok)
		}
	}
	list, err := anonymize.Prefix{Keep: []int{1}}.Build([]string{"a1", "b2"}, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, ok := list.Ends(list.Root()); ok {
		t.Error("a list of codes has ends")
	}
}

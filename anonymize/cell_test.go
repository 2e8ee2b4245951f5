package anonymize_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/internal/refdata"
)

func TestSuppressedCellsLeaveNoUnsafeCombination(t *testing.T) {
	for seed := range seeds() {
		d := newRandomRows(t, seed, seed%2 == 1)
		table := d.table(t, nil)
		combinations := [][]int{{0}, {0, 1}, upTo(len(d.columns))}
		r, err := anonymize.SuppressCells(table, combinations, 4)
		if err != nil {
			t.Fatal(err)
		}
		for _, columns := range combinations {
			seen := make(map[string]map[uint32]bool)
			for row, tuple := range table.TupleOfRow() {
				shown := ""
				for _, c := range columns {
					if r.Withheld(c, tuple) {
						shown += "* "
					} else {
						shown += fmt.Sprint(table.Leaf(c, tuple), " ")
					}
				}
				if seen[shown] == nil {
					seen[shown] = make(map[uint32]bool)
				}
				seen[shown][table.Subject(uint32(row))] = true
			}
			for shown, subjects := range seen {
				if len(subjects) <= 4 {
					t.Fatalf("seed %d: %q is shown by %d subjects", seed, shown, len(subjects))
				}
			}
			if r.Unsafe(columns, 4) != 0 {
				t.Fatal("Unsafe disagrees")
			}
		}
	}
}

func TestSafeTablesAreNotTouched(t *testing.T) {
	table := steps(t, 1, 1, 1, 2, 2, 2)
	r, err := anonymize.SuppressCells(table, [][]int{{0}}, 2)
	if err != nil {
		t.Fatal(err)
	}
	if mr := r.ModificationRate([]int{0}); mr != 0 {
		t.Errorf("modification rate is %g", mr)
	}
}

func TestSuppressionThatMakesNoSenseFails(t *testing.T) {
	table := steps(t, 1, 2, 3)
	for claim, c := range map[string]struct {
		combinations [][]int
		threshold    int
	}{
		"no columns":         {[][]int{{}}, 1},
		"a missing column":   {[][]int{{1}}, 1},
		"a column twice":     {[][]int{{0, 0}}, 1},
		"a threshold of 0":   {[][]int{{0}}, 0},
		"too small a table":  {[][]int{{0}}, 3},
		"a negative column":  {[][]int{{-1}}, 1},
		"negative threshold": {[][]int{{0}}, -1},
	} {
		if _, err := anonymize.SuppressCells(table, c.combinations, c.threshold); err == nil {
			t.Errorf("%s is accepted", claim)
		}
	}
	var unmet *anonymize.UnmetError
	if _, err := anonymize.SuppressCells(table, [][]int{{0}}, 3); !errors.As(err, &unmet) {
		t.Errorf("untyped: %v", err)
	}
}

// muArgus is the demonstration file of μ-Argus: age, region, income.
func muArgus(t testing.TB) *anonymize.Table {
	t.Helper()
	data, err := os.ReadFile(refdata.Path(t, "muargus/Demodata.asc"))
	if err != nil {
		t.Fatal(err)
	}
	columns := make([]anonymize.Column, 3)
	leaves := make([][]uint32, 3)
	for c, field := range []struct {
		name  string
		start int
		width int
	}{{"age", 6, 2}, {"region", 1, 4}, {"income", 50, 8}} {
		var paths [][]string
		var values []string
		for line := range strings.Lines(string(data)) {
			values = append(values, line[field.start-1:field.start-1+field.width])
			paths = append(paths, []string{values[len(values)-1]})
		}
		h, err := anonymize.NewHierarchy(paths)
		if err != nil {
			t.Fatal(err)
		}
		columns[c] = anonymize.Column{Name: field.name, Hierarchy: h}
		for _, v := range values {
			leaf, _ := h.Code(v)
			leaves[c] = append(leaves[c], leaf)
		}
	}
	table, err := anonymize.NewTable(columns, leaves, nil)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestCellRecodingGivesTheReconstructedModificationRates(t *testing.T) {
	table := muArgus(t)
	var expected struct {
		ModelB struct {
			LessOrEqual struct {
				HT map[int]float64 `json:"HT"`
			} `json:"rule_freq_le_k_unsafe (mu-Argus)"`
			Less struct {
				HT map[int]float64 `json:"HT"`
			} `json:"rule_freq_lt_k_unsafe (k-anonymity)"`
		} `json:"model_B"`
	}
	data, err := os.ReadFile(refdata.Path(t, "muargus/expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &expected); err != nil {
		t.Fatal(err)
	}
	for k := 2; k <= 15; k++ {
		for threshold, want := range map[int]float64{
			k:     expected.ModelB.LessOrEqual.HT[k],
			k - 1: expected.ModelB.Less.HT[k],
		} {
			r, err := anonymize.SuppressCells(table, [][]int{{0}, {0, 1}, {0, 1, 2}}, threshold)
			if err != nil {
				t.Fatal(err)
			}
			got := 100 * r.ModificationRate(upTo(3))
			if math.Abs(got-want) > 0.0001 {
				t.Errorf("k = %d, unsafe up to %d: %.4f %% of cells are modified, want %.4f", k, threshold,
					got, want)
			}
		}
	}
}

// steps is a table with one column of values 0..99 in steps of 10 and 50, one
// row for each of the given values.
func steps(t testing.TB, values ...uint32) *anonymize.Table {
	t.Helper()
	paths := make([][]string, 100)
	for v := range paths {
		paths[v] = []string{fmt.Sprint(v), fmt.Sprint("tens ", v/10), fmt.Sprint("fifties ", v/50)}
	}
	h, err := anonymize.NewHierarchy(paths)
	if err != nil {
		t.Fatal(err)
	}
	table, err := anonymize.NewTable([]anonymize.Column{{Name: "v", Hierarchy: h}},
		[][]uint32{values}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// labelOf is the label of the first row with a value.

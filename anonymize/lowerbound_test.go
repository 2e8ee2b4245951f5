package anonymize_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// narrowestBoxes is the lower bound by its definition: for each row it tries all
// combinations of levels, and counts the subjects of all rows.
func narrowestBoxes(t *anonymize.Table, k int) float64 {
	columns := t.Columns()
	levels := make([]int, len(columns))
	lowest := make([]float64, t.Rows())
	for row := range lowest {
		lowest[row] = math.Inf(1)
	}
	for {
		subjects := make(map[string]map[uint32]bool)
		box := func(row int) (key string, price float64) {
			for c := range columns {
				h := columns[c].Hierarchy
				node := anonymize.Node{
					Level: levels[c],
					Group: h.Generalize(t.Leaf(c, t.TupleOfRow()[row]), levels[c]),
				}
				key += string(rune(node.Group)) + " "
				price += h.Share(node)
			}
			return key, price
		}
		for row := range lowest {
			key, _ := box(row)
			if subjects[key] == nil {
				subjects[key] = make(map[uint32]bool)
			}
			subjects[key][t.Subject(uint32(row))] = true
		}
		for row := range lowest {
			if key, price := box(row); len(subjects[key]) >= k {
				lowest[row] = min(lowest[row], price)
			}
		}
		c := 0
		for ; c < len(columns); c++ {
			if levels[c]++; levels[c] < columns[c].Hierarchy.Height() {
				break
			}
			levels[c] = 0
		}
		if c == len(columns) {
			break
		}
	}
	total := 0.0
	for _, price := range lowest {
		total += price
	}
	return total / float64(len(columns)) / float64(t.Rows())
}

func TestLowerBoundIsTheNarrowestBoxOfEachRow(t *testing.T) {
	for seed := range uint64(6) {
		table := newRandomRows(t, seed, seed%2 == 1).table(t, nil)
		got, err := anonymize.LowerBound(context.Background(), table, 4)
		if want := narrowestBoxes(table, 4); err != nil || math.Abs(got-want) > 1e-9 {
			t.Errorf("seed %d: %g, %v; by the definition %g", seed, got, err, want)
		}
	}
}

func TestLowerBoundsOfAdult(t *testing.T) {
	for _, data := range []struct {
		columns, k int
		bound      float64
	}{{7, 5, 0.0174}, {9, 5, 0.0336}, {7, 10, 0.0260}, {7, 50, 0.0540}} {
		if raceDetector && data.columns+data.k > 12 {
			continue
		}
		table := loadBlockData(t, "arx/adult", "adult", data.columns).table(t)
		bound, err := anonymize.LowerBound(context.Background(), table, data.k)
		if err != nil || math.Abs(bound-data.bound) > 0.00005 {
			t.Errorf("%d columns, k = %d: %.4f, %v; wanted %.4f", data.columns, data.k, bound, err,
				data.bound)
		}
	}
}

func TestLowerBoundsThatMakeNoSenseFail(t *testing.T) {
	d := newRandomRows(t, 3, false)
	table := d.table(t, nil)
	if _, err := anonymize.LowerBound(context.Background(), table, 0); err == nil {
		t.Error("k of zero is accepted")
	}
	var unmet *anonymize.UnmetError
	if _, err := anonymize.LowerBound(context.Background(), table, table.Rows()+1); !errors.As(err,
		&unmet) {
		t.Errorf("too few rows for k: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := anonymize.LowerBound(ctx, table, 2); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled search goes on: %v", err)
	}
	for c := range d.leaves {
		d.leaves[c] = nil
	}
	if bound, err := anonymize.LowerBound(context.Background(), d.table(t, nil), 2); bound != 0 ||
		err != nil {
		t.Errorf("of no rows: %g, %v", bound, err)
	}
}

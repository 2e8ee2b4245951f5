package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/hiatus-tailor/tailor/internal/refdata"
)

func TestRatesAreThoseOfTheReconstruction(t *testing.T) {
	expectations := refdata.Path(t, "muargus/expected.json")
	var expected struct {
		ModelA struct {
			MR struct {
				Fewest map[int]float64 `json:"HT (fewest columns)"`
				All    map[int]float64 `json:"all three columns"`
			} `json:"mr_percent_by_k"`
		} `json:"model_A"`
		ModelB struct {
			Rule struct {
				HT       map[int]float64 `json:"HT"`
				All      map[int]float64 `json:"all_three_in_unsafe_records"`
				MeanHT   float64         `json:"mean_HT"`
				MeanOnce float64         `json:"mean_all_three"`
			} `json:"rule_freq_le_k_unsafe (mu-Argus)"`
		} `json:"model_B"`
	}
	data, err := os.ReadFile(expectations)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &expected); err != nil {
		t.Fatal(err)
	}
	table, err := readDemodata(filepath.Dir(expectations))
	if err != nil {
		t.Fatal(err)
	}
	near := func(got, want, within float64) bool { return math.Abs(100*got-want) <= within }
	var staged, once float64
	for k := 2; k <= 15; k++ {
		r, err := measure(t.Context(), table, k)
		if err != nil {
			t.Fatal(err)
		}
		if !near(r.CellStaged, expected.ModelB.Rule.HT[k], 0.0001) ||
			!near(r.CellAtOnce, expected.ModelB.Rule.All[k], 0.0001) {
			t.Errorf("k = %d, cells: %.4f and %.4f, want %.4f and %.4f %%", k, 100*r.CellStaged,
				100*r.CellAtOnce,
				expected.ModelB.Rule.HT[k], expected.ModelB.Rule.All[k])
		}
		if !near(r.FullStaged, expected.ModelA.MR.Fewest[k], 0.01) ||
			!near(r.FullAtOnce, expected.ModelA.MR.All[k], 0.01) {
			t.Errorf("k = %d, full-domain: %.2f and %.2f, want %.2f and %.2f %%", k, 100*r.FullStaged,
				100*r.FullAtOnce,
				expected.ModelA.MR.Fewest[k], expected.ModelA.MR.All[k])
		}
		staged, once = staged+r.CellStaged/14, once+r.CellAtOnce/14
	}
	if !near(staged, expected.ModelB.Rule.MeanHT, 0.0001) ||
		!near(once, expected.ModelB.Rule.MeanOnce, 0.0001) {
		t.Errorf("means %.4f and %.4f, want %.4f and %.4f %%", 100*staged, 100*once,
			expected.ModelB.Rule.MeanHT, expected.ModelB.Rule.MeanOnce)
	}
}

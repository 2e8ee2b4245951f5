package identify_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/anonymize/identify"
	"github.com/hiatus-tailor/tailor/internal/refdata"
)

// expected is the part of the thesis' figures that is compared.
type expected struct {
	Datasets map[string]struct {
		Rows   int
		Stage1 struct {
			Input    string
			Direct   []string `json:"direct_identifiers"`
			Alpha    float64
			Beta     float64
			Missing  map[string]float64 `json:"missing_percent"`
			Excluded map[string]float64 `json:"excluded_missing_gt_85"`
			Order    []string           `json:"order_by_risk_desc_stable_in_column_order"`
			Figures  map[string]struct {
				Risk      float64 `json:"risk_percent"`
				Unrounded float64 `json:"unrounded_percent"`
				Distinct  int     `json:"distinct_values"`
				Class     string
			} `json:"attributes"`
		} `json:"stage_1"`
		Stage2 struct {
			Original   string
			QIDs, SAs  []string
			Max        float64 `json:"max_nue_nats"`
			Dimensions []struct {
				File    string
				K       int                `json:"k_after"`
				KBefore int                `json:"k_original"`
				Classes int                `json:"equivalence_classes_after"`
				Gain    int                `json:"privacy_gain"`
				T       map[string]float64 `json:"t_after_per_sa"`
				TBefore map[string]float64 `json:"t_original_per_sa"`
				WorstT  float64            `json:"t_after"`
				L       map[string]int     `json:"l_after"`
				LBefore map[string]int     `json:"l_original"`
				Nats    float64            `json:"nue_nats"`
				Percent float64            `json:"nue_percent"`
				Inverse float64            `json:"inverse_nue_percent"`
			}
			Optimal int `json:"optimal_dimension_by_the_documented_rule"`
		} `json:"stage_2"`
	}
}

func readExpected(t *testing.T) expected {
	t.Helper()
	raw, err := os.ReadFile(refdata.Path(t, "thesis/expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var e expected
	if err := json.Unmarshal(raw, &e); err != nil {
		t.Fatal(err)
	}
	return e
}

func sheet(t *testing.T, name string) *anonymize.Sheet {
	t.Helper()
	f, err := os.Open(refdata.Path(t, "thesis/"+name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	s, err := anonymize.ReadSheet(f, ',')
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func cells(t *testing.T, s *anonymize.Sheet, name string) []string {
	t.Helper()
	c, err := s.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return s.Cells(c)
}

var abbreviations = map[identify.Class]string{
	identify.Sensitive: "SA", identify.QuasiIdentifier: "QID", identify.NonSensitive: "NSA",
}

func TestRiskRatesAndClassesAreThoseOfAppendix9(t *testing.T) {
	for name, data := range readExpected(t).Datasets {
		t.Run(name, func(t *testing.T) {
			want := data.Stage1
			s := sheet(t, want.Input)
			thresholds := identify.Thresholds{Alpha: want.Alpha, Beta: want.Beta}
			var kept []*identify.Column
			for i, column := range s.Header() {
				if slices.Contains(want.Direct, column) {
					continue
				}
				c := identify.NewColumn(column, s.Cells(i))
				if got := math.Round(100*c.MissingPercent()) / 100; got != want.Missing[column] {
					t.Errorf("%s: %v %% missing, want %v", column, got, want.Missing[column])
				}
				if _, excluded := want.Excluded[column]; c.Excluded() != excluded {
					t.Errorf("%s: excluded %v, want %v", column, c.Excluded(), excluded)
				}
				if c.Excluded() {
					continue
				}
				kept = append(kept, c)
				figures, ok := want.Figures[column]
				if !ok {
					t.Fatalf("no expectation for %s", column)
				}
				if c.RiskPercent() != figures.Risk || c.Distinct != figures.Distinct {
					t.Errorf("%s: risk rate %v %%, %d values; want %v, %d", column, c.RiskPercent(), c.Distinct,
						figures.Risk, figures.Distinct)
				}
				if got := 100 * c.GDistinct / float64(c.Distinct); math.Abs(
					got-figures.Unrounded) > 1e-9*figures.Unrounded {
					t.Errorf("%s: unrounded risk rate %v, want %v", column, got, figures.Unrounded)
				}
				if got := abbreviations[c.ClassByRisk(thresholds)]; got != figures.Class {
					t.Errorf("%s: class %s, want %s", column, got, figures.Class)
				}
			}
			identify.ByRisk(kept)
			var order []string
			for _, c := range kept {
				order = append(order, c.Name)
			}
			if !slices.Equal(order, want.Order) {
				t.Errorf("order %v, want %v", order, want.Order)
			}
		})
	}
}

func TestDimensionsAreThoseOfTheThesisWithItsCorrections(t *testing.T) {
	for name, data := range readExpected(t).Datasets {
		t.Run(name, func(t *testing.T) {
			want := data.Stage2
			original := sheet(t, want.Original)
			folder := want.Original[:len("df_500_rows/")]
			if data.Rows == 1000 {
				folder = "df_1000_rows/"
			}
			var qids []identify.Recoded
			for i, column := range want.QIDs {
				after := sheet(t, folder+want.Dimensions[i].File)
				qids = append(qids, identify.Recoded{
					Name: column, Before: cells(t, original, column),
					After: cells(t, after, column),
				})
			}
			var sensitive []anonymize.SensitiveAttribute
			for _, column := range want.SAs {
				sensitive = append(sensitive, anonymize.NewSensitiveAttribute(column,
					cells(t, original, column)))
			}
			got, err := identify.Dimensions(qids, sensitive)
			if err != nil {
				t.Fatal(err)
			}
			near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(1, math.Abs(b)) }
			for i, d := range got {
				w := want.Dimensions[i]
				if d.K != w.K || d.KBefore != w.KBefore || d.Classes != w.Classes || d.PrivacyGain != w.Gain {
					t.Errorf("dimension %d: k %d, before %d, %d classes, gain %d; want %d, %d, %d, %d",
						i+1, d.K, d.KBefore, d.Classes, d.PrivacyGain, w.K, w.KBefore, w.Classes, w.Gain)
				}
				if !near(d.Nats, w.Nats) || d.Percent != w.Percent || d.Inverse != w.Inverse ||
					!near(d.WorstT(), w.WorstT) {
					t.Errorf("dimension %d: entropy %v, %v %%, inverse %v %%, t %v; want %v, %v, %v, %v",
						i+1, d.Nats, d.Percent, d.Inverse, d.WorstT(), w.Nats, w.Percent, w.Inverse, w.WorstT)
				}
				for s, column := range want.SAs {
					if d.L[s] != w.L[column] || d.LBefore[s] != w.LBefore[column] || !near(d.T[s], w.T[column]) ||
						!near(d.TBefore[s], w.TBefore[column]) {
						t.Errorf("dimension %d, %s: l %d (%d), t %v (%v); want %d (%d), %v (%v)", i+1, column,
							d.L[s], d.LBefore[s], d.T[s], d.TBefore[s], w.L[column], w.LBefore[column], w.T[column],
							w.TBefore[column])
					}
				}
			}
			if best := identify.Choose(got); best+1 != want.Optimal {
				t.Errorf("dimension %d chosen, want %d", best+1, want.Optimal)
			}
		})
	}
}

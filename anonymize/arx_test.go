package anonymize_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/internal/refdata"
)

// optimum is one entry of the published and measured optima.
type optimum struct {
	Dataset            string
	Variant            string
	K                  int
	SuppressionLimit   float64 `json:"suppression_limit"`
	Metric             string
	Aggregate          string
	Rows               int
	Attributes         []string
	Heights            []int
	LatticeSize        uint64 `json:"lattice_size"`
	OptimalLevels      []int  `json:"optimal_levels"`
	Loss               float64
	LossPerAttribute   []float64 `json:"loss_per_attribute"`
	SuppressedRows     int       `json:"suppressed_rows"`
	EquivalenceClasses int       `json:"equivalence_classes"`
	SmallestClass      int       `json:"smallest_class"`
}

func (o optimum) name() string {
	return fmt.Sprintf("%s-%s-%d/k=%d/%s-%s", o.Dataset, o.Variant, len(o.Attributes), o.K, o.Metric,
		o.Aggregate)
}

// longUnderRaceDetector says of some that a run without the detector has to do
// (make test begins with it); the others are searched with it too, by both
// algorithms.
func (o optimum) longUnderRaceDetector() bool {
	return raceDetector && (len(o.Attributes) == 10 || o.K != 5)
}

func (o optimum) quality(t testing.TB) anonymize.Quality {
	switch o.Metric {
	case "loss":
		if o.Aggregate == "arithmetic_mean" {
			return anonymize.Loss{Aggregate: anonymize.Arithmetic}
		}
		return anonymize.Loss{}
	case "non_uniform_entropy":
		return anonymize.NonUniformEntropy{}
	case "normalized_non_uniform_entropy":
		return anonymize.NonUniformEntropy{Normalized: true}
	}
	t.Fatalf("unknown metric %q", o.Metric)
	return nil
}

func readOptima(t testing.TB) []optimum {
	t.Helper()
	text, err := os.ReadFile(refdata.Path(t, "arx/expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Results []optimum }
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	return file.Results
}

func readSheet(t testing.TB, name string) *anonymize.Sheet {
	t.Helper()
	text, err := os.ReadFile(refdata.Path(t, name))
	if err != nil {
		t.Fatal(err)
	}
	s, err := anonymize.ReadSheet(bytes.NewReader(text), 0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func readHierarchy(t testing.TB, name string) *anonymize.Hierarchy {
	t.Helper()
	text, err := os.ReadFile(refdata.Path(t, name))
	if err != nil {
		t.Fatal(err)
	}
	h, err := anonymize.ReadHierarchy(bytes.NewReader(text), ';')
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// columns reads the hierarchies of an entry.
func (o optimum) columns(t testing.TB) []anonymize.Column {
	t.Helper()
	var columns []anonymize.Column
	for _, name := range o.Attributes {
		file := fmt.Sprintf("arx/%s/%s_hierarchy_%s.csv", o.Dataset, o.Dataset, name)
		if o.Variant == "paper2016-native-country" && name == "native-country" {
			file = fmt.Sprintf("arx/%s/%s_hierarchy_%s.paper2016.csv", o.Dataset, o.Dataset, name)
		}
		columns = append(columns, anonymize.Column{Name: name, Hierarchy: readHierarchy(t, file)})
	}
	return columns
}

// tables remembers what entries share: reading takes longer than searching.
type tables map[string]*anonymize.Table

func (o optimum) problem(t testing.TB, known tables) *anonymize.Problem {
	t.Helper()
	name := fmt.Sprint(o.Dataset, o.Variant, o.Attributes)
	table, ok := known[name]
	if !ok {
		sheet := readSheet(t, fmt.Sprintf("arx/%s/%s.csv", o.Dataset, o.Dataset))
		var err error
		if table, err = sheet.Encode(o.columns(t), ""); err != nil {
			t.Fatal(err)
		}
		known[name] = table
	}
	return &anonymize.Problem{
		Table: table, Privacy: []anonymize.Privacy{anonymize.KAnonymity{K: o.K}},
		Quality: o.quality(t), SuppressionLimit: o.SuppressionLimit,
	}
}

func TestPublishedOptimaAreFound(t *testing.T) {
	known := tables{}
	for _, o := range readOptima(t) {
		for _, algorithm := range []anonymize.Algorithm{anonymize.Flash, anonymize.BestFirst} {
			t.Run(o.name()+"/"+algorithm.String(), func(t *testing.T) {
				if o.longUnderRaceDetector() {
					t.Skip("takes long under the race detector")
				}
				p := o.problem(t, known)
				r, err := anonymize.Search(context.Background(), p, anonymize.Options{Algorithm: algorithm})
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%d nodes checked, %d rolled up", r.Checked, r.RolledUp)
				if !slices.Equal(r.Levels, o.OptimalLevels) {
					t.Errorf("levels %v, want %v", r.Levels, o.OptimalLevels)
				}
				if math.Abs(r.Score-o.Loss) > 1e-6*math.Abs(o.Loss) {
					t.Errorf("score %v, want %v", r.Score, o.Loss)
				}
				tr, err := anonymize.Transform(p, r.Levels)
				if err != nil {
					t.Fatal(err)
				}
				if tr.SuppressedRows != o.SuppressedRows || tr.Classes != o.EquivalenceClasses ||
					tr.SmallestClass != o.SmallestClass {
					t.Errorf("%d rows suppressed, %d classes, smallest %d, want %d, %d, %d", tr.SuppressedRows,
						tr.Classes, tr.SmallestClass, o.SuppressedRows, o.EquivalenceClasses, o.SmallestClass)
				}
				for c, part := range tr.ByColumn {
					if math.Abs(part-o.LossPerAttribute[c]) > 1e-6*math.Abs(o.LossPerAttribute[c])+1e-9 {
						t.Errorf("column %s: %v, want %v", o.Attributes[c], part, o.LossPerAttribute[c])
					}
				}
				if !r.Optimal || r.Lattice != o.LatticeSize {
					t.Errorf("optimal %v of %d nodes, want a proof over %d", r.Optimal, r.Lattice, o.LatticeSize)
				}
			})
		}
	}
}

package anonymize_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/internal/refdata"
)

func readJSON(t testing.TB, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(refdata.Path(t, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

func cellsOf(t testing.TB, s *anonymize.Sheet, name string) []string {
	t.Helper()
	c, err := s.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return s.Cells(c)
}

func newRelease(
	t testing.TB, sheet, original *anonymize.Sheet, qids, sensitive []string,
) *anonymize.Release {
	t.Helper()
	r := &anonymize.Release{}
	for _, name := range qids {
		q := anonymize.ReleasedColumn{Name: name, Cells: cellsOf(t, sheet, name)}
		if original != nil {
			q.Original = cellsOf(t, original, name)
		}
		r.QuasiIdentifiers = append(r.QuasiIdentifiers, q)
	}
	for _, name := range sensitive {
		r.Sensitive = append(r.Sensitive, anonymize.NewSensitiveAttribute(name, cellsOf(t, sheet, name)))
	}
	return r
}

func mustAssess(t testing.TB, r *anonymize.Release) *anonymize.Measures {
	t.Helper()
	m, err := anonymize.Assess(r)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > tolerance*max(1, math.Abs(want)) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// pycanonFigures are what pyCANON printed.
type pycanonFigures struct {
	K            int
	Alpha        float64
	L            int
	EntropyL     int     `json:"entropy_l"`
	RecursiveC   *int    `json:"recursive_c"`
	BasicBeta    float64 `json:"basic_beta"`
	EnhancedBeta float64 `json:"enhanced_beta"`
	T, Delta     float64
}

type pycanonFile struct {
	Rows      int
	Qids, Sas []string
	Pycanon   struct {
		True  pycanonFigures  `json:"gen_true"`
		False *pycanonFigures `json:"gen_false"`
	}
	Risk struct {
		Classes           int
		Largest           int     `json:"largest_class"`
		Highest           float64 `json:"max_risk"`
		AverageOfRecords  float64 `json:"avg_risk_over_records"`
		AverageOfClasses  float64 `json:"avg_risk_over_classes"`
		ShareRecordUnique float64 `json:"share_records_unique"`
	}
	ByDefinition map[string]struct {
		DistinctL    int                `json:"distinct_l"`
		EntropyL     float64            `json:"entropy_l_unfloored"`
		RecursiveC   map[string]float64 `json:"recursive_c_bound_for_l"`
		BasicBeta    float64            `json:"basic_beta"`
		EnhancedBeta *float64           `json:"enhanced_beta_strict"`
		Delta        float64            `json:"delta_over_present_values"`
		DeltaStrict  *float64           `json:"delta_strict"`
		T, Alpha     float64
	} `json:"by_definition"`
}

func readPycanon(t testing.TB) map[string]pycanonFile {
	var file struct{ Files map[string]pycanonFile }
	readJSON(t, "pycanon/expected.json", &file)
	return file.Files
}

func TestFiguresOfPycanonComeOut(t *testing.T) {
	for name, want := range readPycanon(t) {
		t.Run(name, func(t *testing.T) {
			sheet := readSheet(t, "pycanon/"+name)
			m := mustAssess(t, newRelease(t, sheet, nil, want.Qids, want.Sas))
			comparePycanon(t, "gen=true", m.Classes.Smallest, m.Sensitive, want.Pycanon.True)
			if want.Pycanon.False != nil {
				// The other sensitive attributes count as quasi-identifiers.
				var all []anonymize.SensitiveMeasures
				for i, sa := range want.Sas {
					qids := append([]string{}, want.Qids...)
					for j, other := range want.Sas {
						if j != i {
							qids = append(qids, other)
						}
					}
					all = append(all, mustAssess(t, newRelease(t, sheet, nil, qids, []string{sa})).Sensitive...)
				}
				comparePycanon(t, "gen=false", m.Classes.Smallest, all, *want.Pycanon.False)
			}
			if m.Rows != want.Rows || m.Classes.Count != want.Risk.Classes ||
				m.Classes.Largest != want.Risk.Largest {
				t.Errorf("%d rows, %d classes, largest %d", m.Rows, m.Classes.Count, m.Classes.Largest)
			}
			near(t, "highest risk", m.Risk.HighestProsecutor, want.Risk.Highest, 1e-9)
			near(t, "average risk", m.Risk.AverageProsecutor, want.Risk.AverageOfRecords, 1e-9)
			near(t, "average risk of classes", m.Risk.AverageOfClasses, want.Risk.AverageOfClasses, 1e-9)
			near(t, "unique", m.Risk.ShareUnique, want.Risk.ShareRecordUnique, 1e-9)
			for _, s := range m.Sensitive {
				compareDefinition(t, s, want)
			}
		})
	}
}

func comparePycanon(
	t *testing.T, gen string, k int, measures []anonymize.SensitiveMeasures, want pycanonFigures,
) {
	t.Helper()
	l, entropyL, c := math.MaxInt, math.MaxInt, 0
	var alpha, basic, enhanced, closeness, delta float64
	for _, s := range measures {
		l, entropyL = min(l, s.DistinctL), min(entropyL, s.Pycanon.EntropyL)
		c = max(c, s.Pycanon.RecursiveC)
		alpha, basic, enhanced = max(alpha, s.Alpha), max(basic, s.BasicBeta),
			max(enhanced, s.Pycanon.EnhancedBeta)
		closeness, delta = max(closeness, s.T), max(delta, s.Delta)
	}
	if k != want.K || l != want.L || entropyL != want.EntropyL {
		t.Errorf("%s: k %d l %d entropy l %d, want %+v", gen, k, l, entropyL, want)
	}
	if want.RecursiveC != nil && c != *want.RecursiveC {
		t.Errorf("%s: recursive c %d, want %d", gen, c, *want.RecursiveC)
	}
	near(t, gen+" alpha", alpha, want.Alpha, 1e-9)
	near(t, gen+" basic beta", basic, want.BasicBeta, 1e-9)
	near(t, gen+" enhanced beta", enhanced, want.EnhancedBeta, 1e-9)
	near(t, gen+" t", closeness, want.T, 1e-9)
	near(t, gen+" delta", delta, want.Delta, 1e-9)
}

func compareDefinition(t *testing.T, s anonymize.SensitiveMeasures, file pycanonFile) {
	t.Helper()
	want := file.ByDefinition[s.Name]
	if s.DistinctL != want.DistinctL || len(s.RecursiveC) != len(want.RecursiveC) {
		t.Errorf("%s: l %d, %d recursive bounds", s.Name, s.DistinctL, len(s.RecursiveC))
	}
	near(t, "entropy l", s.EntropyL, want.EntropyL, 1e-9)
	for i, c := range s.RecursiveC {
		near(t, "recursive c", c, want.RecursiveC[string(rune('2'+i))], 1e-9)
	}
	near(t, "alpha", s.Alpha, want.Alpha, 1e-9)
	near(t, "t", s.T, want.T, 1e-9)
	near(t, "basic beta", s.BasicBeta, want.BasicBeta, 1e-9)
	near(t, "delta", s.Delta, want.Delta, 1e-9)
	nearOrInfinite(t, "enhanced beta", s.EnhancedBeta, want.EnhancedBeta)
	nearOrInfinite(t, "strict delta", s.StrictDelta, want.DeltaStrict)
}

func nearOrInfinite(t *testing.T, what string, got float64, want *float64) {
	t.Helper()
	if want == nil {
		if !math.IsInf(got, 1) {
			t.Errorf("%s: %v, want none", what, got)
		}
		return
	}
	near(t, what, got, *want, 1e-9)
}

func TestFiguresOfTheThesisComeOut(t *testing.T) {
	var file struct {
		Datasets map[string]struct {
			Stage2 struct {
				Original   string
				Qids, Sas  []string
				Maximum    float64 `json:"max_nue_nats"`
				Dimensions []struct {
					File         string
					K            int                `json:"k_after"`
					KOriginal    int                `json:"k_original"`
					Classes      int                `json:"equivalence_classes_after"`
					T            map[string]float64 `json:"t_after_per_sa"`
					L            map[string]int     `json:"l_after"`
					Nats         float64            `json:"nue_nats"`
					NatsOfColumn map[string]float64 `json:"nue_nats_per_attribute"`
					Percent      float64            `json:"nue_percent"`
				}
			} `json:"stage_2"`
		}
	}
	readJSON(t, "thesis/expected.json", &file)
	for rows, set := range file.Datasets {
		want := set.Stage2
		original := readSheet(t, "thesis/"+want.Original)
		if k := mustAssess(t, newRelease(t, original, nil, want.Qids, nil)).
			Classes.Smallest; k != want.Dimensions[0].KOriginal {
			t.Errorf("%s: original k %d", rows, k)
		}
		for _, d := range want.Dimensions {
			sheet := readSheet(t, "thesis/df_"+rows+"_rows/"+d.File)
			m := mustAssess(t, newRelease(t, sheet, original, want.Qids, want.Sas))
			if m.Classes.Smallest != d.K || m.Classes.Count != d.Classes {
				t.Errorf("%s %s: k %d, %d classes, want %d, %d", rows, d.File, m.Classes.Smallest,
					m.Classes.Count, d.K, d.Classes)
			}
			for _, s := range m.Sensitive {
				near(t, "t of "+s.Name, s.T, d.T[s.Name], 1e-9)
				if s.DistinctL != d.L[s.Name] {
					t.Errorf("%s %s: l of %s is %d, want %d", rows, d.File, s.Name, s.DistinctL, d.L[s.Name])
				}
			}
			for _, c := range m.Change.Columns {
				near(t, "entropy of "+c.Name, c.ConventionalEntropy, d.NatsOfColumn[c.Name], 1e-9)
			}
			near(t, "entropy", m.Change.ConventionalEntropy, d.Nats, 1e-9)
			near(t, "maximum", m.Change.MaximumEntropy, want.Maximum, 1e-9)
			percent := math.Round(1e4*m.Change.ConventionalEntropy/m.Change.MaximumEntropy) / 100
			near(t, "percent", percent, d.Percent, 1e-12)
		}
	}
}

func TestWorkedExampleOfGenericEntropyComesOut(t *testing.T) {
	type entropies struct {
		Conventional, Generic struct{ Nats float64 }
	}
	var file struct {
		Tables  map[string]map[string][]string
		Maximum map[string]struct{ Nats float64 }
		Results map[string]struct {
			Age, Sex entropies
			Whole    entropies `json:"whole_table"`
		}
	}
	readJSON(t, "nue/expected.json", &file)
	age := [][]string{
		{"20", "20-39", "20-79"},
		{"40", "40-59", "20-79"},
		{"55", "40-59", "20-79"},
		{"65", "60-79", "20-79"},
	}
	sex := [][]string{{"Male", "*"}, {"Female", "*"}}
	for name, want := range file.Results {
		r := &anonymize.Release{}
		for column, paths := range map[string][][]string{"age": age, "sex": sex} {
			h, err := anonymize.NewHierarchy(paths)
			if err != nil {
				t.Fatal(err)
			}
			r.QuasiIdentifiers = append(r.QuasiIdentifiers, anonymize.ReleasedColumn{
				Name: column, Cells: file.Tables[name][column], Original: file.Tables["D"][column],
				Hierarchy: h,
			})
		}
		m := mustAssess(t, r)
		for _, c := range m.Change.Columns {
			w := want.Age
			if c.Name == "sex" {
				w = want.Sex
			}
			near(t, name+" conventional "+c.Name, c.ConventionalEntropy, w.Conventional.Nats, 1e-9)
			near(t, name+" generic "+c.Name, c.GenericEntropy, w.Generic.Nats, 1e-9)
			near(t, name+" maximum "+c.Name, c.MaximumEntropy, file.Maximum[c.Name].Nats, 1e-9)
		}
		near(t, name+" conventional", m.Change.ConventionalEntropy, want.Whole.Conventional.Nats, 1e-9)
		near(t, name+" generic", m.Change.GenericEntropy, want.Whole.Generic.Nats, 1e-9)
	}
}

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// figure is one that JSON shows as null where it is none or infinite.
type figure float64

func (n figure) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

func (n figure) String() string {
	if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
		return "none"
	}
	return fmt.Sprintf("%.6g", float64(n))
}

// assessReport is what `tailor assess` prints.
type assessReport struct {
	Rows              int               `json:"rows"`
	Subjects          int               `json:"subjects"`
	QuasiIdentifiers  []string          `json:"quasi_identifiers"`
	K                 int               `json:"k"`
	Classes           int               `json:"equivalence_classes"`
	LargestClass      int               `json:"largest_class"`
	AverageClassSize  figure            `json:"average_class_size"`
	NormalizedAverage figure            `json:"normalized_average_class_size"`
	Discernibility    figure            `json:"discernibility"`
	SuppressedRows    int               `json:"suppressed_rows"`
	Risk              assessRisk        `json:"risk"`
	Sensitive         []assessSensitive `json:"sensitive,omitempty"`
	Change            *assessChange     `json:"change,omitempty"`
}

type assessRisk struct {
	HighestProsecutor figure `json:"highest_prosecutor"`
	AverageProsecutor figure `json:"average_prosecutor"`
	AverageOfClasses  figure `json:"average_of_classes"`
	HighestJournalist figure `json:"highest_journalist"`
	AverageJournalist figure `json:"average_journalist"`
	Marketer          figure `json:"marketer"`
	ShareUnique       figure `json:"share_unique"`
	ShareAtHighest    figure `json:"share_at_highest"`
}

type assessSensitive struct {
	Name         string            `json:"name"`
	Type         string            `json:"type"`
	L            int               `json:"l"`
	EntropyL     figure            `json:"entropy_l"`
	RecursiveC   map[string]figure `json:"recursive_c_for_l"`
	Alpha        figure            `json:"alpha"`
	T            figure            `json:"t"`
	BasicBeta    figure            `json:"basic_beta"`
	EnhancedBeta figure            `json:"enhanced_beta"`
	Delta        figure            `json:"delta"`
	StrictDelta  figure            `json:"strict_delta"`
	Pycanon      struct {
		EntropyL     int    `json:"entropy_l"`
		RecursiveC   *int   `json:"recursive_c"`
		RecursiveL   int    `json:"recursive_l"`
		EnhancedBeta figure `json:"enhanced_beta"`
	} `json:"as_pycanon"`
}

type assessChange struct {
	Entropy          assessEntropy        `json:"nue"`
	ModificationRate figure               `json:"modification_rate"`
	Loss             figure               `json:"loss"`
	GeometricLoss    figure               `json:"loss_geometric"`
	Precision        figure               `json:"precision"`
	Columns          []assessColumnChange `json:"columns"`
}

// assessEntropy gives non-uniform entropy in two units and as a share of the
// maximum.
type assessEntropy struct {
	ConventionalNats    figure `json:"conventional_nats"`
	ConventionalBits    figure `json:"conventional_bits"`
	ConventionalPercent figure `json:"conventional_percent"`
	GenericNats         figure `json:"generic_nats"`
	GenericBits         figure `json:"generic_bits"`
	GenericPercent      figure `json:"generic_percent"`
	MaximumNats         figure `json:"maximum_nats"`
}

type assessColumnChange struct {
	Name             string        `json:"name"`
	Entropy          assessEntropy `json:"nue"`
	ModificationRate figure        `json:"modification_rate"`
	Loss             figure        `json:"loss"`
	Precision        figure        `json:"precision"`
}

func newAssessReport(r *anonymize.Release, m *anonymize.Measures) *assessReport {
	c, risk := m.Classes, m.Risk
	a := &assessReport{
		Rows: m.Rows, Subjects: m.Subjects, K: c.Smallest, Classes: c.Count, LargestClass: c.Largest,
		AverageClassSize: figure(c.Average), NormalizedAverage: figure(c.NormalizedAverage),
		Discernibility: figure(c.Discernibility), SuppressedRows: c.SuppressedRows,
		Risk: assessRisk{
			HighestProsecutor: figure(risk.HighestProsecutor),
			AverageProsecutor: figure(risk.AverageProsecutor),
			AverageOfClasses:  figure(risk.AverageOfClasses),
			HighestJournalist: figure(risk.HighestJournalist),
			AverageJournalist: figure(risk.AverageJournalist), Marketer: figure(risk.Marketer),
			ShareUnique: figure(risk.ShareUnique), ShareAtHighest: figure(risk.ShareAtHighest),
		},
	}
	for _, q := range r.QuasiIdentifiers {
		a.QuasiIdentifiers = append(a.QuasiIdentifiers, q.Name)
	}
	for _, s := range m.Sensitive {
		a.Sensitive = append(a.Sensitive, newAssessSensitive(s))
	}
	if m.Change != nil {
		a.Change = newAssessChange(m.Change)
	}
	return a
}

func newAssessSensitive(s anonymize.SensitiveMeasures) assessSensitive {
	a := assessSensitive{
		Name: s.Name, Type: "text", L: s.DistinctL, EntropyL: figure(s.EntropyL),
		RecursiveC: map[string]figure{},
		Alpha:      figure(s.Alpha), T: figure(s.T), BasicBeta: figure(s.BasicBeta),
		EnhancedBeta: figure(s.EnhancedBeta),
		Delta:        figure(s.Delta), StrictDelta: figure(s.StrictDelta),
	}
	if s.Numeric {
		a.Type = "number"
	}
	for i, c := range s.RecursiveC {
		a.RecursiveC[fmt.Sprint(i+2)] = figure(c)
	}
	a.Pycanon.EntropyL, a.Pycanon.RecursiveL = s.Pycanon.EntropyL, s.Pycanon.L
	a.Pycanon.EnhancedBeta = figure(s.Pycanon.EnhancedBeta)
	if s.Pycanon.RecursiveC > 0 {
		a.Pycanon.RecursiveC = &s.Pycanon.RecursiveC
	}
	return a
}

func newAssessChange(c *anonymize.ChangeMeasures) *assessChange {
	a := &assessChange{
		Entropy:          newAssessEntropy(c.ConventionalEntropy, c.GenericEntropy, c.MaximumEntropy),
		ModificationRate: figure(c.ModificationRate), Loss: figure(c.Loss),
		GeometricLoss: figure(c.GeometricLoss),
		Precision:     figure(c.Precision),
	}
	for _, column := range c.Columns {
		a.Columns = append(a.Columns, assessColumnChange{
			Name: column.Name,
			Entropy: newAssessEntropy(column.ConventionalEntropy, column.GenericEntropy,
				column.MaximumEntropy),
			ModificationRate: figure(column.ModificationRate),
			Loss:             figure(column.Loss), Precision: figure(column.Precision),
		})
	}
	return a
}

func newAssessEntropy(conventional, generic, maximum float64) assessEntropy {
	percent := func(nats float64) figure { return figure(math.Round(1e4*nats/maximum) / 100) }
	return assessEntropy{
		ConventionalNats: figure(conventional), ConventionalBits: figure(conventional / math.Ln2),
		ConventionalPercent: percent(conventional), GenericNats: figure(generic),
		GenericBits: figure(generic / math.Ln2), GenericPercent: percent(generic),
		MaximumNats: figure(maximum),
	}
}

func (a *assessReport) writeJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(a)
}

func (a *assessReport) writeText(w io.Writer) error {
	text := fmt.Sprintf("%d rows, %d subjects, quasi-identifiers %v\nk = %d, %d classes of up to "+
		"%d, %v on average\n",
		a.Rows, a.Subjects, a.QuasiIdentifiers, a.K, a.Classes, a.LargestClass, a.AverageClassSize)
	text += fmt.Sprintf("discernibility %v, %d rows suppressed\n", a.Discernibility, a.SuppressedRows)
	r := a.Risk
	text += fmt.Sprintf("risk: prosecutor %v at most, %v on average; journalist %v, %v; marketer "+
		"%v; %v of subjects unique\n",
		r.HighestProsecutor, r.AverageProsecutor, r.HighestJournalist, r.AverageJournalist, r.Marketer,
		r.ShareUnique)
	for _, s := range a.Sensitive {
		text += fmt.Sprintf("%s (%s): l = %d, entropy l = %v, alpha = %v, t = %v, beta = %v (enhanced "+
			"%v), delta = %v (strict %v)\n",
			s.Name, s.Type, s.L, s.EntropyL, s.Alpha, s.T, s.BasicBeta, s.EnhancedBeta, s.Delta,
			s.StrictDelta)
		for l := 2; l <= s.L; l++ {
			text += fmt.Sprintf("  recursive (c,%d)-diversity for c above %v\n", l,
				s.RecursiveC[fmt.Sprint(l)])
		}
	}
	if c := a.Change; c != nil {
		text += fmt.Sprintf("change: %v of cells, loss %v (geometric %v), precision loss %v\n",
			c.ModificationRate, c.Loss, c.GeometricLoss, c.Precision)
		e := c.Entropy
		text += fmt.Sprintf("non-uniform entropy: conventional %v nats (%v %%), generic %v nats (%v "+
			"%%), at most %v\n",
			e.ConventionalNats, e.ConventionalPercent, e.GenericNats, e.GenericPercent, e.MaximumNats)
	}
	_, err := io.WriteString(w, text)
	return err
}

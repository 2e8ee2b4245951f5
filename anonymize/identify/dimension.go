package identify

import (
	"fmt"
	"math"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// Recoded is a quasi-identifier before and after de-identification, row by row.
type Recoded struct {
	Name          string
	Before, After []string
}

// Dimension is the state of a table once the first quasi-identifiers of a list
// are de-identified ([Menten2024], stage 2).
type Dimension struct {
	DeIdentified []string
	// KBefore and K are the smallest classes over all quasi-identifiers, in the
	// original and now; PrivacyGain is their difference.
	KBefore, K, PrivacyGain int
	Classes                 int
	// L and T are the figures of each sensitive attribute, in the order given.
	LBefore, L []int
	TBefore, T []float64
	// Nats is the conventional non-uniform entropy of what is de-identified, in
	// natural logarithms; Percent its share of what removing all values of all
	// quasi-identifiers would lose, and Inverse what is left of 100, both
	// rounded to two places.
	Nats, Percent, Inverse float64
}

// WorstT is the largest T of all sensitive attributes.
func (d *Dimension) WorstT() float64 { return worst(d.T) }

// WorstTBefore is the same of the original.
func (d *Dimension) WorstTBefore() float64 { return worst(d.TBefore) }

func worst(values []float64) float64 {
	out := 0.0
	for _, v := range values {
		out = max(out, v)
	}
	return out
}

// Dimensions de-identifies the quasi-identifiers one after the other in the
// order given, by falling risk as a rule, and measures each state. Classes are
// always those over all quasi-identifiers, de-identified or not yet. It costs
// one assessment a quasi-identifier and fails as [anonymize.Assess] does.
func Dimensions(qids []Recoded, sensitive []anonymize.SensitiveAttribute) ([]Dimension, error) {
	release := &anonymize.Release{Sensitive: sensitive}
	removed := 0.0
	for _, q := range qids {
		release.QuasiIdentifiers = append(release.QuasiIdentifiers,
			anonymize.ReleasedColumn{Name: q.Name, Cells: q.Before})
		removed += entropy(q.Before, make([]string, len(q.Before)))
	}
	before, err := anonymize.Assess(release)
	if err != nil {
		return nil, err
	}
	out := make([]Dimension, len(qids))
	nats := 0.0
	for i, q := range qids {
		if len(q.After) != len(q.Before) {
			return nil, fmt.Errorf("column %q has another number of rows after de-identification", q.Name)
		}
		release.QuasiIdentifiers[i].Cells = q.After
		now, err := anonymize.Assess(release)
		if err != nil {
			return nil, err
		}
		nats += entropy(q.Before, q.After)
		d := Dimension{
			KBefore: before.Classes.Smallest, K: now.Classes.Smallest,
			PrivacyGain: now.Classes.Smallest - before.Classes.Smallest, Classes: now.Classes.Count,
			Nats: nats,
		}
		for _, done := range qids[:i+1] {
			d.DeIdentified = append(d.DeIdentified, done.Name)
		}
		for s := range sensitive {
			d.LBefore, d.L = append(d.LBefore, before.Sensitive[s].DistinctL),
				append(d.L, now.Sensitive[s].DistinctL)
			d.TBefore, d.T = append(d.TBefore, before.Sensitive[s].T), append(d.T, now.Sensitive[s].T)
		}
		if removed > 0 { // columns of one value have nothing to lose
			d.Percent = math.Round(1e4*nats/removed) / 100
		}
		d.Inverse = math.Round(100*(100-d.Percent)) / 100
		out[i] = d
	}
	return out, nil
}

// entropy is the conventional non-uniform entropy of a column in nats
// ([Gionis2009]): over the rows, -ln of the share that the value has of what it
// is shown as.
func entropy(before, after []string) float64 {
	was, is := make(map[string]int), make(map[string]int)
	for row := range before {
		was[before[row]]++
		is[after[row]]++
	}
	sum := 0.0
	for row := range before {
		sum -= math.Log(float64(was[before[row]]) / float64(is[after[row]]))
	}
	return sum
}

// Choose returns the position of the dimension that the documented rule takes,
// -1 where none reaches k = 2: of those with k >= 2 in their order, each takes
// the place of the one before where both its privacy gain and its inverse
// entropy are at least as high. As the inverse entropy can only fall, this is
// the first with k >= 2, ties aside. The program of [Menten2024] forgets its
// candidates and judges the last dimension alone.
func Choose(dimensions []Dimension) int {
	best := -1
	for i := range dimensions {
		d := &dimensions[i]
		if d.K < 2 {
			continue
		}
		if best < 0 || (d.PrivacyGain >= dimensions[best].PrivacyGain &&
			d.Inverse >= dimensions[best].Inverse) {
			best = i
		}
	}
	return best
}

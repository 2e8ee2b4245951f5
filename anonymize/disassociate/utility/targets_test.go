package utility_test

import (
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate/cba"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate/published"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate/utility"
	"github.com/hiatus-tailor/tailor/internal/refdata"
	"github.com/hiatus-tailor/tailor/internal/setdata"
)

// TestUtilityOfHospitalDischarges holds the published figures: nhds2010-631,
// k = 5, m = 2, sets of codes that 1.25 % of the records hold. Level 1 by
// default, all levels with TAILOR_SOAK=1; docs/experiments.md has more.
func TestUtilityOfHospitalDischarges(t *testing.T) {
	d, err := setdata.Load(refdata.Path(t, "setvalued/nhds2010-631.txt.gz"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(refdata.Path(t, "icd9/icd9cm-hierarchy.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	icd, err := utility.ReadTaxonomy(file, "code", "category", "section", "chapter")
	if err != nil {
		t.Fatal(err)
	}
	least := int(math.Ceil(0.0125 * float64(d.Len())))
	sets, _, err := utility.FrequentSets(t.Context(), utility.HoldersOf(d, least), least, 20, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	levels := 1
	if os.Getenv("TAILOR_SOAK") == "1" {
		levels = icd.Levels()
	}
	for level := 1; level <= levels; level++ {
		constraints := utility.LevelPolicy(d, icd, level)
		general, err := cba.Anonymize(t.Context(), d, 5, 2, constraints, icd)
		if err != nil {
			t.Fatal(err)
		}
		baseline := utility.AverageRelativeError(sets, general.Count)
		for refine, limit := range map[disassociate.Refinement]float64{
			disassociate.RefineJoint: 0.05, disassociate.RefineScoped: 0.012,
		} {
			cfg := disassociate.Default(5, 2)
			cfg.Refine, cfg.Constraints = refine, constraints
			res, err := disassociate.Disassociate(t.Context(), d, cfg, rand.New(rand.NewPCG(1, 2)), nil)
			if err != nil {
				t.Fatal(err)
			}
			x := published.NewIndex(res.Form)
			are := utility.AverageRelativeError(sets, func(q []utility.Item) float64 { return x.CountItems(q).Expected })
			within := utility.ShareWithin(utility.MatchConstraints(constraints, d, x.CountAny), 5)
			t.Logf("level %d %s: ARE %.4f, %.1f %% within 5 %%; CBA %.4f, %d occurrences suppressed",
				level, refine, are, 100*within, baseline, general.Suppressed.Occurrences)
			if are >= baseline {
				t.Errorf("level %d %s: ARE %.4f is not below CBA's %.4f", level, refine, are, baseline)
			}
			if level == 1 && are > limit {
				t.Errorf("%s: ARE %.4f, want at most %g", refine, are, limit)
			}
			if level == 1 && refine == disassociate.RefineScoped && within < 0.96 {
				t.Errorf("%.1f %% of the constraints are within 5 %%, want 96 %%", 100*within)
			}
			for _, q := range sets {
				if e := x.CountItems(q.Items); q.Support < e.Lower || q.Support > e.Upper {
					t.Errorf("level %d %s: a count of %d is not within [%d, %d]", level, refine, q.Support, e.Lower, e.Upper)
				}
			}
		}
	}
}

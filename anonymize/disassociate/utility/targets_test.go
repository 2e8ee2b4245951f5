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

// hospital is nhds2010-631 with its classification.
func hospital(t testing.TB) (*disassociate.Dataset, *utility.Taxonomy) {
	t.Helper()
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
	return d, icd
}

// commonSets are the sets of codes that a share of the records holds.
func commonSets(t testing.TB, d *disassociate.Dataset, share float64) []utility.Frequent {
	t.Helper()
	least := int(math.Ceil(share * float64(d.Len())))
	sets, _, err := utility.FrequentSets(t.Context(), utility.HoldersOf(d, least), least, 20, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	return sets
}

func publish(
	t testing.TB, d *disassociate.Dataset, refine disassociate.Refinement,
	constraints []disassociate.Constraint,
) *published.Index {
	t.Helper()
	cfg := disassociate.Default(5, 2)
	cfg.Refine, cfg.Constraints = refine, constraints
	res, err := disassociate.Disassociate(t.Context(), d, cfg, rand.New(rand.NewPCG(1, 2)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return published.NewIndex(res.Form)
}

func estimate(x *published.Index) func([]utility.Item) float64 {
	return func(q []utility.Item) float64 { return x.CountItems(q).Expected }
}

// TestUtilityOfHospitalDischarges holds what docs/experiments.md says of level
// 1, k = 5, m = 2 and sets of codes that 1.25 % of the records hold.
func TestUtilityOfHospitalDischarges(t *testing.T) {
	d, icd := hospital(t)
	sets := commonSets(t, d, 0.0125)
	constraints := utility.LevelPolicy(d, icd, 1)
	for refine, limit := range map[disassociate.Refinement]struct{ are, within float64 }{
		disassociate.RefineJoint:  {are: 0.05, within: 0},
		disassociate.RefineScoped: {are: 0.012, within: 0.96},
	} {
		x := publish(t, d, refine, constraints)
		are := utility.AverageRelativeError(sets, estimate(x))
		within := utility.ShareWithin(utility.MatchConstraints(constraints, d, x.CountAny), 5)
		t.Logf("%s: ARE %.4f, %.1f %% within 5 %%", refine, are, 100*within)
		if are > limit.are {
			t.Errorf("%s: ARE %.4f, want at most %g", refine, are, limit.are)
		}
		if within < limit.within {
			t.Errorf("%s: %.1f %% of the constraints are within 5 %%, want %g %%", refine, 100*within,
				100*limit.within)
		}
		for _, q := range sets {
			if e := x.CountItems(q.Items); q.Support < e.Lower || q.Support > e.Upper {
				t.Errorf("%s: a count of %d is not within [%d, %d]", refine, q.Support, e.Lower, e.Upper)
			}
		}
	}
}

// TestDisassociationLosesLessThanCBA compares for each kind of policy and
// several workloads: on the first records by default, on all and for every
// policy of docs/experiments.md with TAILOR_SOAK=1.
func TestDisassociationLosesLessThanCBA(t *testing.T) {
	d, icd := hospital(t)
	soak := os.Getenv("TAILOR_SOAK") == "1"
	if !soak {
		var err error
		if d, err = setdata.Head(d, 5000); err != nil {
			t.Fatal(err)
		}
	}
	policies := map[string][]disassociate.Constraint{
		"level 1":         utility.LevelPolicy(d, icd, 1),
		"similar 10":      utility.SimilarityPolicy(d, icd, 10),
		"frequent 1.25 %": utility.FrequencyPolicy(d, commonSets(t, d, 0.0125)),
	}
	if soak {
		policies["level 2"] = utility.LevelPolicy(d, icd, 2)
		policies["level 3"] = utility.LevelPolicy(d, icd, 3)
		policies["similar 5"] = utility.SimilarityPolicy(d, icd, 5)
		policies["similar 25"] = utility.SimilarityPolicy(d, icd, 25)
		policies["similar 50"] = utility.SimilarityPolicy(d, icd, 50)
		policies["frequent 2.5 %"] = utility.FrequencyPolicy(d, commonSets(t, d, 0.025))
		policies["frequent 5 %"] = utility.FrequencyPolicy(d, commonSets(t, d, 0.05))
	}
	for name, constraints := range policies {
		general, err := cba.Anonymize(t.Context(), d, 5, 2, constraints, icd)
		if err != nil {
			t.Fatal(err)
		}
		for _, refine := range []disassociate.Refinement{
			disassociate.RefineJoint,
			disassociate.RefineScoped,
		} {
			x := publish(t, d, refine, constraints)
			for _, share := range []float64{0.00625, 0.0125, 0.025, 0.05} {
				sets := commonSets(t, d, share)
				ours := utility.AverageRelativeError(sets, estimate(x))
				theirs := utility.AverageRelativeError(sets, general.Count)
				if ours >= theirs {
					t.Errorf("%s, %s, sets of %g of the records: ARE %.4f, CBA %.4f", name, refine, share, ours,
						theirs)
				}
			}
		}
	}
}

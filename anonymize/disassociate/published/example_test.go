package published_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate/published"
	"github.com/hiatus-tailor/tailor/internal/refdata"
)

// paperExample is the part of the worked example of [Loukides2014] §5 that is
// about reading the form.
type paperExample struct {
	Dataset        map[string][]string `json:"dataset"`
	Constraints    map[string][]string `json:"utility_constraints"`
	ExpectedCounts struct {
		Queries []struct {
			Codes          []string
			True, Expected float64
		}
	} `json:"expected_counts"`
	Matching struct {
		Constraints map[string]struct{ True, Disassociated float64 }
	}
}

// publishExample publishes the example with joint clusters.
func publishExample(t *testing.T) (*paperExample, *published.Form) {
	t.Helper()
	raw, err := os.ReadFile(refdata.Path(t, "setvalued/paper_example.json"))
	if err != nil {
		t.Fatal(err)
	}
	var ex paperExample
	if err := json.Unmarshal(raw, &ex); err != nil {
		t.Fatal(err)
	}
	var b disassociate.Builder
	for _, name := range []string{"r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10"} {
		if err := b.Add(ex.Dataset[name]...); err != nil {
			t.Fatal(err)
		}
	}
	cfg := disassociate.Default(3, 2)
	cfg.Refine = disassociate.RefineJoint
	for _, name := range []string{"u1", "u2", "u3", "u4", "u5"} {
		cfg.Constraints = append(cfg.Constraints,
			disassociate.Constraint{Name: name, Codes: ex.Constraints[name]})
	}
	res, err := disassociate.Disassociate(t.Context(), b.Dataset(), cfg,
		rand.New(rand.NewPCG(1, 2)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return &ex, res.Form
}

func TestCountsOfTheWorkedExample(t *testing.T) {
	ex, form := publishExample(t)
	x := published.NewIndex(form)
	for _, q := range ex.ExpectedCounts.Queries {
		e := x.Count(q.Codes)
		if math.Abs(e.Expected-q.Expected) > 1e-9 {
			t.Errorf("%v: expected %g, want %g", q.Codes, e.Expected, q.Expected)
		}
		if float64(e.Lower) > q.True || float64(e.Upper) < q.True {
			t.Errorf("%v: %g is not within [%d, %d]", q.Codes, q.True, e.Lower, e.Upper)
		}
	}
}

func TestMatchingOfTheWorkedExample(t *testing.T) {
	ex, form := publishExample(t)
	x := published.NewIndex(form)
	for name, want := range ex.Matching.Constraints {
		if got := x.CountAny(ex.Constraints[name]); math.Abs(got-want.Disassociated) > 1e-9 {
			t.Errorf("%s: %g records match, want %g", name, got, want.Disassociated)
		}
	}
}

// TestCoveredCodesOfTheWorkedExample: 695.10 gives 692.71 away in its chunk,
// and all records of the first cluster have 296.00.
func TestCoveredCodesOfTheWorkedExample(t *testing.T) {
	_, form := publishExample(t)
	c := form.Covered()
	if c.Chunks != 4 || c.Placements != 10 {
		t.Errorf("%d codes in %d chunks, want 10 in 4", c.Placements, c.Chunks)
	}
	if c.CertainPlacements != 1 {
		t.Errorf("%d codes are certain, want 296.00 alone", c.CertainPlacements)
	}
	// 296.01 and 296.02 with 296.00; 695.10 with 692.71.
	if c.CoveredPlacements != 3 || c.ChunksWithCovered != 2 {
		t.Errorf("%d covered codes in %d chunks, want 3 in 2", c.CoveredPlacements, c.ChunksWithCovered)
	}
	if c.ExactCodes != 10 || c.Codes != 13 {
		t.Errorf("%d of %d codes are exact, want 10 of 13", c.ExactCodes, c.Codes)
	}
}

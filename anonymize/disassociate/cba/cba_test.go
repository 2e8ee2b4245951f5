package cba_test

import (
	"math"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate/cba"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate/utility"
	"github.com/hiatus-tailor/tailor/internal/setdata"
)

const taxonomy = "code,category,chapter\na1,A,1\na2,A,1\nb1,B,1\nc1,C,2\n"

func setup(t *testing.T, lines string) (*disassociate.Dataset, *utility.Taxonomy) {
	t.Helper()
	d, _, err := disassociate.ReadDataset(strings.NewReader(lines))
	if err != nil {
		t.Fatal(err)
	}
	tax, err := utility.ReadTaxonomy(strings.NewReader(taxonomy), "code", "category", "chapter")
	if err != nil {
		t.Fatal(err)
	}
	return d, tax
}

func anonymize(
	t *testing.T, d *disassociate.Dataset, tax *utility.Taxonomy, k, m int, constraints ...[]string,
) *cba.Result {
	t.Helper()
	var list []disassociate.Constraint
	for _, codes := range constraints {
		list = append(list, disassociate.Constraint{Codes: codes})
	}
	r, err := cba.Anonymize(t.Context(), d, k, m, list, tax)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRareCodesAreGeneralizedWithTheClosest(t *testing.T) {
	// a1 is too rare; a2 is closer to it than b1.
	d, tax := setup(t, "a1\na2\na2\na2\nb1\nb1\nb1\n")
	r := anonymize(t, d, tax, 2, 1, []string{"a1", "a2", "b1"})
	if r.Groups() != 1 || r.Suppressed.Codes != 0 {
		t.Fatalf("%d groups, %+v suppressed", r.Groups(), r.Suppressed)
	}
	// {a1, a2} holds 4 records; a code of two is in 2 of 3 non-empty subsets.
	for it, want := range []float64{4 * 2.0 / 3, 4 * 2.0 / 3, 3} {
		if got := r.Count([]cba.Item{cba.Item(it)}); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %g, want %g", d.Codes()[it].Text, got, want)
		}
	}
	if got := r.Count([]cba.Item{0, 1}); math.Abs(got-4.0/3) > 1e-9 {
		t.Errorf("both: %g, want 4/3", got)
	}
	if got := r.CountAny([]string{"a1", "a2", "b1"}); got != 7 {
		t.Errorf("%g records match the constraint, want 7", got)
	}
}

func TestACodeWithoutPartnerIsSuppressedAndCounted(t *testing.T) {
	d, tax := setup(t, "c1 b1\nb1\nb1\n")
	r := anonymize(t, d, tax, 2, 1, []string{"a1", "b1"}, []string{"c1"})
	if r.Suppressed != (cba.Suppression{Codes: 1, Occurrences: 1}) {
		t.Errorf("%+v suppressed", r.Suppressed)
	}
	if got := r.Count([]cba.Item{1}); got != 0 {
		t.Errorf("the suppressed code counts %g", got)
	}
}

// TestEverySetOfCodesHasKRecords: what is left of each set of up to m codes
// that occurs is held by k records, as generalized.
func TestEverySetOfCodesHasKRecords(t *testing.T) {
	d, err := setdata.Synthetic(400, 30, 4, 2)
	if err != nil {
		t.Fatal(err)
	}
	_, tax := setup(t, "a1\n")
	var u []string
	for _, c := range d.Codes() {
		u = append(u, c.Text)
	}
	const k = 5
	r := anonymize(t, d, tax, k, 2, u[:10], u[10:])
	sets, _, err := utility.FrequentSets(t.Context(), utility.HoldersOf(d, 1), 1, 2, math.MaxInt)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sets {
		if n := r.Holders(s.Items); n > 0 && n < k {
			t.Errorf("%v: %d records", s.Items, n)
		}
	}
}

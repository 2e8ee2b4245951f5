package utility_test

import (
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate/cba"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate/utility"
)

// BenchmarkHospitalDischarges publishes nhds2010-631 (level 1, k = 5, m = 2)
// in each way and with CBA, and reports what it costs: the ARE of the sets of
// codes that 1.25 % of the records hold, and the share of the constraints that
// are off by at most 5 %.
func BenchmarkHospitalDischarges(b *testing.B) {
	d, icd := hospital(b)
	sets := commonSets(b, d, 0.0125)
	constraints := utility.LevelPolicy(d, icd, 1)
	report := func(b *testing.B, count func([]utility.Item) float64, countAny func([]string) float64) {
		b.ReportMetric(utility.AverageRelativeError(sets, count), "ARE")
		b.ReportMetric(100*utility.ShareWithin(utility.MatchConstraints(constraints, d, countAny), 5),
			"%-within-5%")
	}
	for _, refine := range []disassociate.Refinement{
		disassociate.RefineNone, disassociate.RefineJoint, disassociate.RefineScoped,
	} {
		b.Run(refine.String(), func(b *testing.B) {
			for b.Loop() {
				publish(b, d, refine, constraints)
			}
			x := publish(b, d, refine, constraints)
			report(b, estimate(x), x.CountAny)
		})
	}
	b.Run("cba", func(b *testing.B) {
		var r *cba.Result
		for b.Loop() {
			var err error
			if r, err = cba.Anonymize(b.Context(), d, 5, 2, constraints, icd); err != nil {
				b.Fatal(err)
			}
		}
		report(b, r.Count, r.CountAny)
		b.ReportMetric(float64(r.Suppressed.Occurrences), "suppressed")
	})
}

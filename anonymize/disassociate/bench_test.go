package disassociate_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate"
	"github.com/hiatus-tailor/tailor/internal/refdata"
	"github.com/hiatus-tailor/tailor/internal/setdata"
)

// BenchmarkDisassociate measures everything between the data set in memory and
// the verified form, at five sizes: the time must grow less than
// quadratically.
func BenchmarkDisassociate(b *testing.B) {
	all, err := setdata.Load(refdata.Path(b, "setvalued/nhds2010-631.txt.gz"))
	if err != nil {
		b.Fatal(err)
	}
	for _, records := range []int{2500, 5000, 10000, 25000, 58302} {
		for _, refine := range []disassociate.Refinement{
			disassociate.RefineScoped,
			disassociate.RefineJoint,
		} {
			b.Run(fmt.Sprintf("records=%d/%s", records, refine), func(b *testing.B) {
				d, err := setdata.Head(all, records)
				if err != nil {
					b.Fatal(err)
				}
				benchmarkRun(b, d, disassociate.Default(5, 2), refine)
			})
		}
	}
}

// BenchmarkLargeDomain measures 150,000 records with 8,000 distinct codes.
func BenchmarkLargeDomain(b *testing.B) {
	d, err := setdata.Synthetic(150_000, 8_000, 6, 1)
	if err != nil {
		b.Fatal(err)
	}
	for _, refine := range []disassociate.Refinement{
		disassociate.RefineScoped,
		disassociate.RefineJoint,
	} {
		b.Run(refine.String(), func(b *testing.B) {
			b.ReportMetric(float64(len(d.Codes())), "codes")
			benchmarkRun(b, d, disassociate.Default(5, 2), refine)
		})
	}
}

func benchmarkRun(
	b *testing.B, d *disassociate.Dataset, cfg disassociate.Config, refine disassociate.Refinement,
) {
	cfg.Refine = refine
	b.ReportAllocs()
	for b.Loop() {
		if _, err := disassociate.Disassociate(b.Context(), d, cfg, rand.New(rand.NewPCG(1, 2)),
			nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(d.Len())*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

package anonymize_test

import (
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// BenchmarkRoot makes the root of reference data, of 50,000 patients and of a
// million rows of six columns, beside a refinement along all columns.
func BenchmarkRoot(b *testing.B) {
	adult := func(b *testing.B, columns int) *anonymize.Table {
		return loadBlockData(b, "arx/adult", "adult", columns).table(b)
	}
	for _, data := range []struct {
		name  string
		k     int
		table func(b *testing.B) *anonymize.Table
	}{
		{"adult7", 5, func(b *testing.B) *anonymize.Table { return adult(b, 7) }},
		{"adult9", 5, func(b *testing.B) *anonymize.Table { return adult(b, 9) }},
		{"adult7-k10", 10, func(b *testing.B) *anonymize.Table { return adult(b, 7) }},
		{"adult7-k50", 50, func(b *testing.B) *anonymize.Table { return adult(b, 7) }},
		{"patients", 5, func(b *testing.B) *anonymize.Table {
			t, _ := hospitalTable(b, 50_000)
			return t
		}},
		{"million", 5, func(b *testing.B) *anonymize.Table { return wideTable(b, 1e6, 6) }},
	} {
		t := data.table(b)
		all := upTo(len(t.Columns()))
		b.Run(data.name+"/refine", func(b *testing.B) {
			var p *anonymize.Partition
			for b.Loop() {
				p = refined(b, anonymize.NewPartition(t),
					anonymize.Refinement{Columns: all, Requirements: blockK(data.k)})
			}
			b.ReportMetric(p.Loss(all), "loss")
		})
		b.Run(data.name+"/root", func(b *testing.B) {
			var p *anonymize.Partition
			for b.Loop() {
				p = root(b, t, anonymize.RootPlan{Requirements: blockK(data.k)})
			}
			b.ReportMetric(p.Loss(all), "loss")
			b.ReportMetric(float64(p.Blocks()), "blocks")
		})
	}
}

package anonymize_test

import (
	"runtime"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// BenchmarkDraw draws values for the root of a million rows of six columns, and counts
// their margins, one column after the other.
func BenchmarkDraw(b *testing.B) {
	table := wideTable(b, 1e6, 6)
	p := root(b, table, anonymize.RootPlan{Requirements: blockK(5)})
	b.ReportAllocs()
	for b.Loop() {
		sketch := p.Sketch()
		for c := range table.Columns() {
			values := sketch.Draw(c, table.Margin(c, 5, 0.5), chance(uint64(c)))
			runtime.KeepAlive(values)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(table.Rows()), "ns/row")
}

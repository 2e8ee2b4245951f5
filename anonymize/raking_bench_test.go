package anonymize_test

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// BenchmarkDraw draws values for the root of a million rows of six columns, and counts
// their margins.
func BenchmarkDraw(b *testing.B) {
	table := wideTable(b, 1e6, 6)
	p := root(b, table, anonymize.RootPlan{Requirements: blockK(5)})
	b.ReportAllocs()
	for b.Loop() {
		sketch := p.Sketch()
		margins := make(map[int]*anonymize.Margin)
		for c := range table.Columns() {
			margins[c] = table.Margin(c, 5, 0.5)
		}
		runtime.KeepAlive(sketch.DrawAll(margins, func() *rand.Rand { return chance(1) }))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(table.Rows()), "ns/row")
}

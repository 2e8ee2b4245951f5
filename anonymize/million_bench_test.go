package anonymize_test

import (
	"context"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// BenchmarkMillionRows times the search alone over 1,000,000 rows of 6
// attributes, of which 986,381 tuples are distinct: k = 5, limit 5 %, geometric
// loss, 17,640 nodes.
func BenchmarkMillionRows(b *testing.B) {
	p := kAnonymous(synthetic(b, 1_000_000, []int{64, 32, 16, 8, 64, 4}, 0.3), 5)
	for _, algorithm := range []anonymize.Algorithm{
		anonymize.Flash, anonymize.BestFirst,
		anonymize.Greedy,
	} {
		b.Run(algorithm.String(), func(b *testing.B) {
			var r *anonymize.Result
			for b.Loop() {
				r = mustSearch(b, context.Background(), p, anonymize.Options{Algorithm: algorithm})
			}
			b.ReportMetric(float64(r.Checked), "nodes-checked")
			b.ReportMetric(float64(r.RolledUp), "nodes-rolled-up")
			b.ReportMetric(r.Score, "score")
		})
	}
}

package anonymize_test

import (
	"context"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// BenchmarkSearch times encoding and search, no file reading, for k = 5 and a
// limit of 5 % under geometric loss.
func BenchmarkSearch(b *testing.B) {
	for _, o := range readOptima(b) {
		if o.K != 5 || o.Metric != "loss" || o.Aggregate != "geometric_mean" || o.Variant != "default" {
			continue
		}
		for _, algorithm := range []anonymize.Algorithm{
			anonymize.Flash, anonymize.BestFirst,
			anonymize.Greedy,
		} {
			b.Run(benchName(o)+"/"+algorithm.String(), func(b *testing.B) {
				benchmarkSearch(b, o, algorithm)
			})
		}
	}
}

func benchName(o optimum) string {
	return o.Dataset + "-" + string(rune('0'+len(o.Attributes)/10)) +
		string(rune('0'+len(o.Attributes)%10))
}

func benchmarkSearch(b *testing.B, o optimum, algorithm anonymize.Algorithm) {
	sheet := readSheet(b, "arx/"+o.Dataset+"/"+o.Dataset+".csv")
	columns := o.columns(b)
	p := &anonymize.Problem{
		Privacy: []anonymize.Privacy{anonymize.KAnonymity{K: o.K}},
		Quality: o.quality(b), SuppressionLimit: o.SuppressionLimit,
	}
	var r *anonymize.Result
	b.ReportAllocs()
	for b.Loop() {
		table, err := sheet.Encode(columns, "")
		if err != nil {
			b.Fatal(err)
		}
		p.Table = table
		if r, err = anonymize.Search(context.Background(), p,
			anonymize.Options{Algorithm: algorithm}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(r.Checked), "nodes-checked")
	b.ReportMetric(float64(r.RolledUp), "nodes-rolled-up")
	b.ReportMetric(r.Score, "score")
}

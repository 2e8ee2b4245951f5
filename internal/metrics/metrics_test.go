package metrics_test

import (
	"strings"
	"testing"
	"time"

	"github.com/hiatus-tailor/tailor/internal/metrics"
)

func TestFiguresArePrintedAsPrometheusReadsThem(t *testing.T) {
	var r metrics.Registry
	r.Counter("tailor_a_total", "As.").Add(3)
	byVerdict := r.Counters("tailor_q_total", "Queries.", "verdict", "passed", "refused")
	byVerdict["refused"].Add(2)
	r.Gauge("tailor_g", "A gauge.", func() float64 { return 1.5 })
	r.Info("tailor_i", "Build.", [2]string{"version", "1.2"}, [2]string{"go_version", "go1"})
	r.Gauges("tailor_l", "Loss.", "chain").Set("7", 0.25)
	d := r.Duration("tailor_s", "Seconds.")
	d.Observe(60 * time.Microsecond)
	d.Observe(time.Hour)
	var out strings.Builder
	if err := r.Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# TYPE tailor_a_total counter\ntailor_a_total 3\n",
		"tailor_q_total{verdict=\"passed\"} 0\ntailor_q_total{verdict=\"refused\"} 2\n",
		"# TYPE tailor_g gauge\ntailor_g 1.5\n",
		"# TYPE tailor_i gauge\ntailor_i{version=\"1.2\",go_version=\"go1\"} 1\n",
		"tailor_l{chain=\"7\"} 0.25\n",
		"tailor_s_bucket{le=\"5e-05\"} 0\ntailor_s_bucket{le=\"0.0001\"} 1\n",
		"tailor_s_bucket{le=\"100\"} 1\ntailor_s_bucket{le=\"+Inf\"} 2\ntailor_s_sum " +
			"3600.00006\ntailor_s_count 2\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

func TestALabelThatGrowsIsBounded(t *testing.T) {
	var r metrics.Registry
	g := r.Gauges("tailor_l", "Loss.", "chain")
	for i := range 5000 {
		g.Set(strings.Repeat("x", i), 1)
	}
	var out strings.Builder
	if err := r.Print(&out); err != nil || strings.Count(out.String(), "chain=") != 1000 {
		t.Errorf("%d series, %v", strings.Count(out.String(), "chain="), err)
	}
}

package fidelity_test

import (
	"math"
	"testing"

	"github.com/hiatus-tailor/tailor/internal/fidelity"
)

func near(a, b float64) bool { return math.Abs(a-b) < 1e-12 }

func TestRelativeErrorsAreByTheTrueValue(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		truth, release, want float64
		defined              bool
	}{
		{100, 90, 0.1, true},
		{100, 110, 0.1, true},
		{-50, -55, 0.1, true},
		{-50, 50, 2, true},
		{0, 0, 0, true},
		{0, 1, 0, false},
		{7, 7, 0, true},
		{nan, nan, 0, true},
		{nan, 1, 0, false},
		{1, nan, 0, false},
		{inf, inf, 0, true},
		{inf, 1, 0, false},
		{1, inf, 0, false},
	} {
		if got, defined := fidelity.RelativeError(c.truth, c.release); defined != c.defined ||
			!near(got, c.want) {
			t.Errorf(
				"of %g for %g: %g, %v; want %g, %v",
				c.release,
				c.truth,
				got,
				defined,
				c.want,
				c.defined,
			)
		}
	}
}

// TestQuantilesArePostgreSQLs compares with what percentile_cont returns.
func TestQuantilesArePostgreSQLs(t *testing.T) {
	for _, c := range []struct {
		values      []float64
		median, p90 float64
	}{
		{[]float64{3}, 3, 3},
		{[]float64{1, 2}, 1.5, 1.9},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 6, 10},
		{[]float64{0, 0, 0, 10}, 0, 7},
	} {
		if median, p90 := fidelity.Quantile(c.values, 0.5), fidelity.Quantile(c.values, 0.9); !near(
			median,
			c.median,
		) ||
			!near(p90, c.p90) {
			t.Errorf("%v: %g and %g, want %g and %g", c.values, median, p90, c.median, c.p90)
		}
	}
}

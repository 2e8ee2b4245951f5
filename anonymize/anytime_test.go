package anonymize_test

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/hiatus-tailor/tailor/anonymize"
)

func TestBestFirstStoppedAfterAsManyChecksAsGreedyIsNeverWorse(t *testing.T) {
	known := tables{}
	for _, o := range readOptima(t) {
		if o.longUnderRaceDetector() {
			continue
		}
		p := o.problem(t, known)
		greedy := mustSearch(t, context.Background(), p, anonymize.Options{Algorithm: anonymize.Greedy})
		first := mustSearch(t, context.Background(), p, anonymize.Options{
			Algorithm: anonymize.BestFirst, MaxChecks: greedy.Checked,
		})
		if first.Score > greedy.Score*(1+1e-9) {
			t.Errorf("%s: best_first %v, greedy %v after %d checks", o.name(), first.Score, greedy.Score,
				greedy.Checked)
		}
		if greedy.Optimal {
			t.Errorf("%s: greedy claims a proof", o.name())
		}
	}
}

func TestBestFirstStoppedAfterTheTimeOfGreedyIsNeverWorse(t *testing.T) {
	if os.Getenv("TAILOR_SOAK") != "1" {
		t.Skip("compares times; set TAILOR_SOAK=1 on a quiet machine")
	}
	const runs = 9
	known := tables{}
	for _, o := range readOptima(t) {
		p := o.problem(t, known)
		var times []time.Duration
		var greedy *anonymize.Result
		for range runs {
			start := time.Now()
			greedy = mustSearch(t, context.Background(), p, anonymize.Options{Algorithm: anonymize.Greedy})
			times = append(times, time.Since(start))
		}
		slices.Sort(times)
		var scores []float64
		for range runs {
			ctx, cancel := context.WithTimeout(context.Background(), times[runs/2])
			r, err := anonymize.Search(ctx, p, anonymize.Options{Algorithm: anonymize.BestFirst})
			cancel()
			if err == nil {
				scores = append(scores, r.Score)
			}
		}
		slices.Sort(scores)
		if len(scores) <= runs/2 {
			t.Errorf("%s: best_first found nothing in %v in %d of %d runs", o.name(), times[runs/2],
				runs-len(scores), runs)
			continue
		}
		t.Logf("%s: %v: greedy %v, best_first median %v", o.name(), times[runs/2], greedy.Score,
			scores[runs/2])
		if scores[runs/2] > greedy.Score*(1+1e-9) {
			t.Errorf("%s: best_first %v, greedy %v after %v", o.name(), scores[runs/2], greedy.Score,
				times[runs/2])
		}
	}
}

func mustSearch(
	t testing.TB, ctx context.Context, p *anonymize.Problem, o anonymize.Options,
) *anonymize.Result {
	t.Helper()
	r, err := anonymize.Search(ctx, p, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

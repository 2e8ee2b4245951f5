package anonymize_test

import (
	"context"
	"testing"
	"time"

	"github.com/hiatus-tailor/tailor/anonymize"
)

func TestBestFirstStoppedAfterTheWorkOfGreedyIsNeverWorse(t *testing.T) {
	for _, o := range readOptima(t) {
		p := o.problem(t)
		greedy, err := anonymize.Search(context.Background(), p, anonymize.Options{Algorithm: anonymize.Greedy})
		if err != nil {
			t.Fatal(err)
		}
		first, err := anonymize.Search(context.Background(), p, anonymize.Options{
			Algorithm: anonymize.BestFirst, MaxChecks: greedy.Checked,
		})
		if err != nil {
			t.Errorf("%s: %v", o.name(), err)
			continue
		}
		start := time.Now()
		anonymize.Search(context.Background(), p, anonymize.Options{Algorithm: anonymize.Greedy})
		el := time.Since(start)
		ctx, cancel := context.WithTimeout(context.Background(), el)
		timed, err := anonymize.Search(ctx, p, anonymize.Options{Algorithm: anonymize.BestFirst})
		cancel()
		if err != nil {
			t.Error(err)
			continue
		}
		t.Logf("%s: greedy %.6g after %d, best_first %.6g, timed %.6g (%d) %v, optimum %.6g", o.name(), greedy.Score, greedy.Checked, first.Score, timed.Score, timed.Checked, el, o.Loss)
		if first.Score > greedy.Score*(1+1e-9) {
			t.Errorf("%s: best_first %v, greedy %v", o.name(), first.Score, greedy.Score)
		}
		if timed.Score > greedy.Score*(1+1e-9) {
			t.Errorf("TIMED %s: best_first %v, greedy %v", o.name(), timed.Score, greedy.Score)
		}
	}
}

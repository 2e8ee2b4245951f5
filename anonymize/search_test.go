package anonymize_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// toys is how many random tables a property is tried on.
func toys(t testing.TB) int {
	switch {
	case os.Getenv("TAILOR_SOAK") == "1":
		return 2000
	case testing.Short():
		return 40
	case raceDetector:
		return 60
	}
	return 200
}

func TestSearchAgreesWithBruteForceForEveryPairOfModels(t *testing.T) {
	for seed := range toys(t) {
		random := rand.New(rand.NewPCG(uint64(seed), 3))
		y := newToy(t, random)
		p := y.problem(t)
		classes := map[string][]*toyClass{}
		for _, v := range y.nodes() {
			classes[key(v)] = y.classes(v)
		}
		for _, privacy := range toyPrivacy(y) {
			models := []toyModel{privacy}
			if random.IntN(4) == 0 { // combined
				models = append(models, toyPrivacy(y)[random.IntN(15)])
			}
			p.Privacy, p.Population = nil, nil
			for _, m := range models {
				p.Privacy = append(p.Privacy, m.model)
				if _, ok := m.model.(anonymize.KMap); ok {
					p.Population = y.table(t, y.population, nil)
				}
			}
			for _, quality := range toyQualities() {
				p.Quality = quality.model
				want := y.optimum(classes, models, quality)
				for _, a := range []anonymize.Algorithm{anonymize.Flash, anonymize.BestFirst} {
					compareWithOracle(t, seed, p, a, want)
				}
			}
		}
		if t.Failed() {
			return
		}
	}
}

func key(v []int) string {
	b := make([]byte, len(v))
	for i, l := range v {
		b[i] = byte(l)
	}
	return string(b)
}

// toyOptimum is the best admissible node, nil levels where there is none.
type toyOptimum struct {
	levels []int
	score  float64
}

func (y *toy) optimum(classes map[string][]*toyClass, models []toyModel, q toyQuality) toyOptimum {
	best := toyOptimum{score: math.Inf(1)}
	least := 1
	for _, m := range models {
		least = max(least, m.least)
	}
	rank := func(v []int) (sum int) {
		for _, l := range v {
			sum += l
		}
		return sum
	}
	for _, v := range y.nodes() {
		o := y.judge(classes[key(v)], models)
		if !o.admissible {
			continue
		}
		score := q.score(y, v, o, least)
		better := best.levels == nil || score < best.score-1e-9
		if !better && score < best.score+1e-9 { // a tie: lowest sum, then first column
			better = rank(v) < rank(best.levels) ||
				(rank(v) == rank(best.levels) && slices.Compare(v, best.levels) < 0)
		}
		if better {
			best = toyOptimum{levels: v, score: score}
		}
	}
	return best
}

func compareWithOracle(
	t *testing.T, seed int, p *anonymize.Problem, a anonymize.Algorithm, want toyOptimum,
) {
	t.Helper()
	r, err := anonymize.Search(context.Background(), p, anonymize.Options{Algorithm: a})
	var none *anonymize.NoSolutionError
	switch {
	case errors.As(err, &none) && want.levels == nil:
		return
	case err != nil:
		t.Errorf("seed %d, %v, %v, %v: %v, want %v", seed, p.Privacy, p.Quality, a, err, want)
	case want.levels == nil:
		t.Errorf("seed %d, %v, %v, %v: found %v where nothing is admissible", seed, p.Privacy, p.Quality,
			a, r.Levels)
	case math.Abs(r.Score-want.score) > 1e-8*max(1, math.Abs(want.score)) ||
		!slices.Equal(r.Levels, want.levels) || !r.Optimal:
		t.Errorf("seed %d, %v, %v, %v: levels %v score %v optimal %v, want %v",
			seed, p.Privacy, p.Quality, a, r.Levels, r.Score, r.Optimal, want)
	}
}

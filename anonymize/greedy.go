package anonymize

import (
	"cmp"
	"math"
	"slices"
)

// greedy climbs from the bottom: it checks all direct generalizations and moves
// to the one with the lowest score, all failing classes counted as suppressed
// whether that is within the limit or not; once at an admissible node it moves
// to better admissible ones only. It is the heuristic that the exact algorithms
// are compared with (after [PrasserKohlmayer2016] §5), and proves nothing.
func (s *searcher) greedy() { s.climb(false) }

// dive climbs the same way in fewer checks: a direct generalization whose bound
// exceeds the score of a sibling is left out, as it would not be chosen.
// From where it ends it goes on to neighbours, as long as one is better.
func (s *searcher) dive() {
	s.climb(true)
	for s.best != nil && !s.stopped && s.tryNeighbours() {
	}
}

// tryNeighbours checks the unresolved nodes that differ from the best by one
// level less in one column and at most one level more in another. It returns
// whether one of them became the best.
func (s *searcher) tryNeighbours() bool {
	v := slices.Clone(s.best)
	try := func() bool {
		if s.stopped || s.hopeless(v) || s.resolved(v) {
			return false
		}
		before := s.score
		s.check(v)
		return s.score < before
	}
	for down := range v {
		if v[down] == 0 {
			continue
		}
		v[down]--
		if try() {
			return true
		}
		for up := range v {
			if up == down || v[up]+1 == s.space.lattice.heights[up] {
				continue
			}
			v[up]++
			if try() {
				return true
			}
			v[up]--
		}
		v[down]++
	}
	return false
}

func (s *searcher) climb(lazy bool) {
	judge := s.checker.judge
	judge.thorough = true
	defer func() { judge.thorough = false }()
	at := s.space.lattice.bottom()
	s.scaffold.prepare(s.checker, at)
	r := s.check(at)
	for !s.stopped {
		best, next := checked{score: math.Inf(1)}, -1
		if r.admissible {
			best = r
		}
		for _, step := range s.steps(at, lazy) {
			if s.stopped || step.bound > best.score {
				break
			}
			at[step.column]++
			if found := s.check(at); found.score < best.score && (found.admissible || !r.admissible) {
				best, next = found, step.column
			}
			at[step.column]--
		}
		if next < 0 {
			return
		}
		at[next]++
		r = best
	}
}

// climbStep is a way to a direct generalization.
type climbStep struct {
	column int
	bound  float64 // on its score
}

// steps lists the direct generalizations of a node, lazily in the order of
// their bounds, else in column order and without bounds.
func (s *searcher) steps(at levels, lazy bool) []climbStep {
	var steps []climbStep
	for c := range at {
		if at[c]+1 == s.space.lattice.heights[c] {
			continue
		}
		step := climbStep{column: c, bound: math.Inf(-1)}
		if lazy {
			at[c]++
			step.bound = s.space.quality.node(at, s.evidence.known(at))
			at[c]--
		}
		steps = append(steps, step)
	}
	slices.SortStableFunc(steps, func(a, b climbStep) int { return cmp.Compare(a.bound, b.bound) })
	return steps
}

package anonymize

import (
	"cmp"
	"math"
	"slices"
	"sync"
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
	judge := s.checker.evaluator
	judge.thorough = true
	defer func() { judge.thorough = false }()
	at := s.space.lattice.bottom()
	s.rollups.prepare(s.checker, at)
	r := s.check(at)
	for !s.stopped {
		best, next := checked{score: math.Inf(1)}, -1
		if r.admissible {
			best = r
		}
		for steps := s.steps(at, lazy); len(steps) > 0 && !s.stopped && steps[0].bound <= best.score; {
			together := 1
			if lazy && len(steps) > 1 && steps[1].bound <= best.score {
				together = 2
			}
			for i, found := range s.take(at, steps[:together]) {
				if found.score < best.score && (found.admissible || !r.admissible) {
					best, next = found, steps[i].column
				}
			}
			steps = steps[together:]
		}
		if next < 0 {
			return
		}
		at[next]++
		r = best
	}
}

// take checks the direct generalizations of a node that one or two steps lead
// to, two of them at the same time. What it finds does not depend on that.
func (s *searcher) take(at levels, steps []climbStep) []checked {
	nodes := make([]levels, len(steps))
	for i, step := range steps {
		nodes[i] = slices.Clone(at)
		nodes[i][step.column]++
	}
	if len(nodes) == 1 {
		return []checked{s.check(nodes[0])}
	}
	found := make([]checked, len(nodes))
	var aside sync.WaitGroup
	aside.Go(func() {
		if s.aside == nil {
			s.aside = newChecker(s.space)
			s.aside.evaluator.thorough = true
		}
		found[1] = s.aside.check(nodes[1])
	})
	found[0] = s.checker.check(nodes[0])
	aside.Wait()
	for i, r := range found {
		if s.stopped {
			return found[:i]
		}
		s.conclude(nodes[i], r)
	}
	return found
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
			step.bound = s.space.quality.node(at, s.pruning.known(at))
			at[c]--
		}
		steps = append(steps, step)
	}
	slices.SortStableFunc(steps, func(a, b climbStep) int { return cmp.Compare(a.bound, b.bound) })
	return steps
}

package anonymize

// greedy climbs from the bottom: it checks all direct generalizations and moves
// to the best, by score among admissible ones, else to the one with the fewest
// rows to suppress, until no direct generalization of an admissible node is
// better. It is the heuristic that the exact algorithms are compared with
// (after [PKK2016] §5), and proves nothing.
func (s *searcher) greedy() {
	at := s.space.lattice.bottom()
	r := s.check(at)
	for !s.stopped {
		best, next := r, -1
		for c := range at {
			if at[c]+1 == s.space.lattice.heights[c] || s.stopped {
				continue
			}
			at[c]++
			if found := s.check(at); next < 0 && !r.admissible || preferred(found, best) {
				best, next = found, c
			}
			at[c]--
		}
		if next < 0 {
			return
		}
		at[next]++
		r = best
	}
}

// preferred says whether greedy moves to a rather than to b.
func preferred(a, b checked) bool {
	if a.admissible != b.admissible {
		return a.admissible
	}
	if a.admissible {
		return a.score < b.score
	}
	return a.rows < b.rows
}

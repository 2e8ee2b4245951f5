package anonymize

import "math"

// flash walks the lattice from the bottom up, depth first, and leaves out what
// cannot improve on the best node. From each node that is not resolved it
// follows a greedy path upward, to where the bound cuts it off, and searches
// the path by bisection for the border between inadmissible and admissible
// nodes ([Kohlmayer2012] §3): the highest inadmissible node rules out the most.
// Unlike there, admissible nodes do not end the search, as loss is not monotone
// under suppression; they raise the bound of their specializations.
//
// It returns whether it finished. It keeps no more than the path from the
// bottom, beside the bounded evidence and the nodes checked.
func (s *searcher) flash() bool {
	s.visit(s.space.lattice.bottom())
	return !s.stopped
}

// visit resolves v and its canonical descendants (see lastRaised).
func (s *searcher) visit(v levels) {
	if s.stopped || s.hopeless(v) {
		return
	}
	for !s.stopped && !s.resolved(v) {
		s.resolve(v)
	}
	for c := v.lastRaised(); c < len(v) && !s.stopped; c++ {
		if v[c]+1 < s.space.lattice.heights[c] {
			v[c]++
			s.visit(v)
			v[c]--
		}
	}
}

// resolve checks nodes at and above v, of which v at the latest settles v.
func (s *searcher) resolve(v levels) {
	s.rollups.prepare(s.checker, v)
	s.bisect(s.path(v))
}

// path leads from v upward by the successor with the lowest bound, as long as
// there is one that may improve on the best node.
func (s *searcher) path(v levels) []levels {
	path := []levels{append(levels(nil), v...)}
	for {
		at := append(levels(nil), path[len(path)-1]...)
		next, lowest := -1, math.Inf(1)
		for c := range at {
			if at[c]+1 == s.space.lattice.heights[c] {
				continue
			}
			at[c]++
			if bound := s.space.quality.cone(at); (next < 0 || bound < lowest) && !s.hopeless(at) {
				next, lowest = c, bound
			}
			at[c]--
		}
		if next < 0 {
			return path
		}
		at[next]++
		path = append(path, at)
	}
}

// bisect looks for the border on a path. The first node of the path is checked
// at the latest when nothing else on it is left.
func (s *searcher) bisect(path []levels) {
	low, high := 0, len(path)-1
	for low <= high && !s.stopped {
		mid := (low + high) / 2
		v := path[mid]
		if s.pruning.insufficientPrivacy(v) {
			low = mid + 1
			continue
		}
		if !s.hopeless(v) && !s.resolved(v) {
			if r := s.check(v); r.certain > s.space.limit {
				low = mid + 1
				continue
			}
		}
		high = mid - 1
	}
}

package anonymize

import "container/heap"

// bestFirst resolves nodes in the order of their bound ([PrasserKohlmayer2016]
// §4.2): the node that can still be best comes first. The paths of
// [searcher.resolve] from there give a good solution early; when the lowest
// bound left exceeds the best score, that score is proven.
//
// Each node enters the queue once, after its canonical parent (see
// lastRaised), as bounds do not fall along generalization. The queue is
// bounded: a node that no longer fits has its descendants visited depth first
// instead, which is as exact and merely in another order.
func (s *searcher) bestFirst() bool {
	queue := &frontier{}
	s.dive()
	queue.add(s, s.space.lattice.bottom())
	for queue.Len() > 0 && !s.stopped {
		v := heap.Pop(queue).(queued).levels
		if s.hopeless(v) {
			continue
		}
		for !s.stopped && !s.resolved(v) {
			s.resolve(v)
		}
		for c := v.lastRaised(); c < len(v) && !s.stopped; c++ {
			if v[c]+1 == s.space.lattice.heights[c] {
				continue
			}
			child := append(levels(nil), v...)
			child[c]++
			if s.hopeless(child) {
				continue
			}
			if queue.Len() < maxFrontier {
				queue.add(s, child)
			} else {
				s.visit(child)
			}
		}
	}
	return !s.stopped
}

// maxFrontier bounds the queue: about 50 MB at 20 columns.
const maxFrontier = 1 << 19

// queued is a node that waits, with its bound.
type queued struct {
	levels levels
	bound  float64
}

// frontier is a heap of nodes by bound, then by order of the lattice.
type frontier []queued

func (f *frontier) add(s *searcher, v levels) {
	heap.Push(f, queued{levels: v, bound: s.space.quality.cone(v)})
}

func (f frontier) Len() int           { return len(f) }
func (f frontier) Less(a, b int) bool { return f[a].bound < f[b].bound }
func (f frontier) Swap(a, b int)      { f[a], f[b] = f[b], f[a] }
func (f *frontier) Push(x any)        { *f = append(*f, x.(queued)) }

func (f *frontier) Pop() any {
	last := len(*f) - 1
	x := (*f)[last]
	*f = (*f)[:last]
	return x
}

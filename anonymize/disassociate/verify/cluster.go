package verify

import (
	"slices"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate/published"
)

// Places of a code within a cluster, beside the numbers of record chunks.
const (
	nowhere  = int32(-1)
	itemPart = int32(-2)
	inShared = int32(-3)
)

// worker checks clusters and shared chunks, one at a time.
type worker struct {
	*checker
	place      []int32 // item -> its place in the cluster being checked
	touched    []published.Item
	held       []int // item -> records of the cluster that hold it
	rows       [][]published.Item
	all        []published.Item
	sets       setCheck
	violations []Violation
}

func newWorker(c *checker) *worker {
	w := &worker{checker: c, place: make([]int32, len(c.form.Codes)), held: make([]int, len(c.form.Codes))}
	for i := range w.place {
		w.place[i] = nowhere
	}
	w.sets = setCheck{k: c.form.Promise.K, m: c.form.Promise.M}
	return w
}

func (w *worker) span(p int) (from, to int) { return w.begin[p], w.begin[p+1] }

// codesOf lists the items of a member, ascending.
func (w *worker) codesOf(member int) []published.Item {
	return w.codes[w.codesAt[member]:w.codesAt[member+1]]
}

func (w *worker) broken(rule Rule, cluster, shared int) {
	v := Violation{rule, cluster, shared}
	if !slices.Contains(w.violations, v) {
		w.violations = append(w.violations, v)
	}
}

// cluster checks all that one cluster promises, shared chunks aside.
func (w *worker) cluster(p int) {
	c := &w.form.Clusters[p]
	w.placeCodes(p)
	from, to := w.span(p)
	if to-from != c.Size {
		w.broken(WrongSize, p, -1)
	}
	for i := from; i < to; i++ {
		for _, it := range w.codesOf(i) {
			if it == unknown || w.place[it] == nowhere {
				w.broken(CodeMissing, p, -1)
			} else {
				w.held[it]++
			}
		}
	}
	for _, it := range c.Items {
		if w.held[it] == 0 {
			w.broken(CodeMissing, p, -1)
		}
	}
	for i := range c.Record {
		chunk := &c.Record[i]
		w.clearRows()
		for r := from; r < to; r++ {
			w.project(w.codesOf(r), int32(i))
		}
		if !w.rowsAre(chunk) {
			w.broken(ChunkDiffers, p, -1)
		}
		if !w.sets.hold(chunk) {
			w.broken(RareSet, p, -1)
		}
	}
	w.sizes(p)
	for i := from; i < to; i++ {
		for _, it := range w.codesOf(i) {
			if it != unknown {
				w.held[it] = 0
			}
		}
	}
	for _, it := range w.touched {
		w.place[it] = nowhere
	}
	w.touched = w.touched[:0]
}

// placeCodes notes where each code of a cluster is, and that none is in two
// places or in the wrong one.
func (w *worker) placeCodes(p int) {
	put := func(items []published.Item, place int32, shared int) {
		for _, it := range items {
			if w.place[it] != nowhere {
				w.broken(CodeTwice, p, shared)
			}
			_, sensitive := slices.BinarySearch(w.form.Promise.Sensitive, it)
			if sensitive && place != itemPart {
				w.broken(SensitiveExposed, p, shared)
			}
			w.place[it] = place
			w.touched = append(w.touched, it)
		}
	}
	c := &w.form.Clusters[p]
	for i := range c.Record {
		put(c.Record[i].Codes, int32(i), -1)
	}
	put(c.Items, itemPart, -1)
	for _, s := range w.sharedOf[p] {
		put(w.form.Shared[s].Codes, inShared, int(s))
	}
}

// sizes checks what the size of a cluster has to be. w.held is set.
func (w *worker) sizes(p int) {
	c := &w.form.Clusters[p]
	promise := &w.form.Promise
	need := promise.K
	if len(promise.Sensitive) > 0 {
		need = max(need, promise.Diversity)
		if promise.StrictDiversity {
			for _, it := range promise.Sensitive {
				need = max(need, promise.Diversity*w.held[it])
			}
		}
	}
	if c.Size < need {
		w.broken(ClusterTooSmall, p, -1)
	}
	if len(c.Items) == 0 {
		filled := 0
		for i := range c.Record {
			filled += c.Record[i].NonEmpty()
		}
		chunks := min(promise.M, len(c.Record))
		if chunks == 0 || filled < c.Size+promise.K*(chunks-1) {
			w.broken(EmptyRecords, p, -1)
		}
	}
}

// shared checks one shared chunk.
func (w *worker) shared(s int) {
	chunk := &w.form.Shared[s]
	for _, it := range chunk.Codes {
		w.place[it] = 0
	}
	w.clearRows()
	for _, p := range chunk.Scope {
		from, to := w.span(int(p))
		for r := from; r < to; r++ {
			w.project(w.codesOf(r), 0)
		}
	}
	for _, it := range chunk.Codes {
		w.place[it] = nowhere
	}
	if !w.rowsAre(&chunk.Chunk) {
		w.broken(ChunkDiffers, -1, s)
	}
	if !w.sets.hold(&chunk.Chunk) {
		w.broken(RareSharedSet, -1, s)
	}
}

func (w *worker) clearRows() { w.rows, w.all = w.rows[:0], w.all[:0] }

// project keeps the items of a record that are in a place.
func (w *worker) project(items []published.Item, place int32) {
	at := len(w.all)
	for _, it := range items {
		if it != unknown && w.place[it] == place {
			w.all = append(w.all, it)
		}
	}
	if len(w.all) > at {
		w.rows = append(w.rows, w.all[at:])
	}
}

// rowsAre says whether the projections are the sub-records of a chunk.
func (w *worker) rowsAre(chunk *published.Chunk) bool {
	if len(w.rows) != chunk.NonEmpty() {
		return false
	}
	slices.SortFunc(w.rows, slices.Compare)
	at := 0
	for i := range chunk.Sub {
		for range chunk.Sub[i].Count {
			if !slices.Equal(w.rows[at], chunk.Sub[i].Items) {
				return false
			}
			at++
		}
	}
	return true
}

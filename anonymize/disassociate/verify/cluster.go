package verify

import (
	"cmp"
	"slices"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate/published"
)

// Places of a code within a cluster, beside the numbers of record chunks.
// Shared chunk s is inShared less s.
const (
	nowhere  = int32(-1)
	itemPart = int32(-2)
	inShared = int32(-3)
)

// occurrence is a code of a member, and the chunk that it should be in.
type occurrence struct {
	chunk, member int32
	item          published.Item
}

// worker checks clusters and shared chunks, one at a time.
type worker struct {
	*checker
	place      []int32 // item -> its place in the cluster being checked
	touched    []published.Item
	held       []int // item -> records of the cluster that hold it
	own        []occurrence
	loose      []occurrence // for shared chunks, over all clusters checked
	rows       [][]published.Item
	all        []published.Item
	sets       setCheck
	violations []Violation
}

func newWorker(c *checker) *worker {
	w := &worker{
		checker: c, place: make([]int32, len(c.form.Codes)),
		held: make([]int, len(c.form.Codes)),
	}
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
	w.own = w.own[:0]
	for i := from; i < to; i++ {
		for _, it := range w.codesOf(i) {
			if it == unknown || w.place[it] == nowhere {
				w.broken(CodeMissing, p, -1)
				continue
			}
			w.held[it]++
			switch at := w.place[it]; {
			case at >= 0:
				w.own = append(w.own, occurrence{at, int32(i), it})
			case at <= inShared:
				w.loose = append(w.loose, occurrence{inShared - at, int32(i), it})
			}
		}
	}
	for _, it := range c.Items {
		if w.held[it] == 0 {
			w.broken(CodeMissing, p, -1)
		}
	}
	slices.SortStableFunc(w.own, func(a, b occurrence) int { return cmp.Compare(a.chunk, b.chunk) })
	rest := w.own
	for i := range c.Record {
		n := 0
		for n < len(rest) && rest[n].chunk == int32(i) {
			n++
		}
		if !w.are(rest[:n], &c.Record[i]) {
			w.broken(ChunkDiffers, p, -1)
		}
		if !w.sets.hold(&c.Record[i]) {
			w.broken(RareSet, p, -1)
		}
		rest = rest[n:]
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
		put(w.form.Shared[s].Codes, inShared-s, int(s))
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
	if len(c.Items) == 0 && !promise.MayBeEmpty {
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
	chunk := &w.form.Shared[s].Chunk
	if !w.are(w.inShared[w.sharedAt[s]:w.sharedAt[s+1]], chunk) {
		w.broken(ChunkDiffers, -1, s)
	}
	if !w.sets.hold(chunk) {
		w.broken(RareSharedSet, -1, s)
	}
}

// are says whether occurrences make up the sub-records of a chunk. Those of a
// member stand together, in code order.
func (w *worker) are(occurrences []occurrence, chunk *published.Chunk) bool {
	w.rows, w.all = w.rows[:0], w.all[:0]
	for i := 0; i < len(occurrences); {
		first, member := len(w.all), occurrences[i].member
		for ; i < len(occurrences) && occurrences[i].member == member; i++ {
			w.all = append(w.all, occurrences[i].item)
		}
		w.rows = append(w.rows, w.all[first:])
	}
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

package anonymize

import "sync"

// snapshots keeps the classes of nodes already checked, so that a
// generalization can be rolled up from them instead of from the table
// ([Kohlmayer2012] §4). The memory is bounded by the number of classes held;
// the snapshot that has gone unused for longest makes room. Safe for concurrent
// use; a snapshot handed out stays valid after it is dropped.
type snapshots struct {
	mu     sync.Mutex
	kept   []snapshot
	held   int // classes and histogram entries
	budget int
	clock  uint64
}

type snapshot struct {
	levels  levels
	classes *classes
	weight  int
	used    uint64
}

const (
	leastBudget   = 1 << 21 // classes of 8 bytes and more: about 16 to 32 MB
	budgetFactor  = 8       // for large tables: as many classes as 8 times the entries
	snapshotCount = 192     // searched one by one at each check
)

func newSnapshots(entries int) *snapshots {
	return &snapshots{budget: max(leastBudget, budgetFactor*entries)}
}

// nearest returns the smallest snapshot of a specialization of v, or nil.
func (s *snapshots) nearest(v levels) *classes {
	s.mu.Lock()
	defer s.mu.Unlock()
	best := -1
	for i := range s.kept {
		k := &s.kept[i]
		if (best < 0 || k.weight < s.kept[best].weight) && k.levels.below(v) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	s.clock++
	s.kept[best].used = s.clock
	return s.kept[best].classes
}

// keep copies the classes of v.
func (s *snapshots) keep(v levels, c *classes) {
	weight := c.count()
	for i := range c.sensitive {
		weight += len(c.sensitive[i].values)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if weight > s.budget/4 {
		return
	}
	for len(s.kept) > 0 && (s.held+weight > s.budget || len(s.kept) >= snapshotCount) {
		s.drop()
	}
	s.clock++
	s.held += weight
	s.kept = append(s.kept, snapshot{
		levels: append(levels(nil), v...), classes: c.clone(), weight: weight, used: s.clock,
	})
}

// drop removes the snapshot that has gone unused for longest.
func (s *snapshots) drop() {
	oldest := 0
	for i := range s.kept {
		if s.kept[i].used < s.kept[oldest].used {
			oldest = i
		}
	}
	s.held -= s.kept[oldest].weight
	last := len(s.kept) - 1
	s.kept[oldest] = s.kept[last]
	s.kept[last] = snapshot{}
	s.kept = s.kept[:last]
}

func (c *classes) clone() *classes {
	k := &classes{reps: clip(c.reps), rows: clip(c.rows), population: clip(c.population)}
	k.subjects = k.rows
	if len(c.rows) > 0 && &c.subjects[0] != &c.rows[0] {
		k.subjects = clip(c.subjects)
	}
	for i := range c.sensitive {
		h := &c.sensitive[i]
		k.sensitive = append(k.sensitive, histogram{
			start: clip(h.start), values: clip(h.values),
			counts: clip(h.counts),
		})
	}
	return k
}

func clip(s []uint32) []uint32 {
	if s == nil {
		return nil
	}
	return append(make([]uint32, 0, len(s)), s...)
}

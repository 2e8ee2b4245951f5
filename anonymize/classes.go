package anonymize

// classes are the equivalence classes of one lattice node, structure of
// arrays. Class i is represented by the entry reps[i], the first of its
// entries; classes are in ascending order of it. So the classes of a node, and
// every sum over them, are the same whichever specialization they were rolled
// up from.
//
// Where a problem has no population, population is nil; subjects is the same
// slice as rows where every row is a subject of its own.
type classes struct {
	reps       []uint32
	rows       []uint32
	subjects   []uint32
	population []uint32
	sensitive  []histogram
}

func (c *classes) count() int { return len(c.reps) }

// extend appends classes without rows up to n.
func (c *classes) extend(n int) {
	alias := len(c.rows) > 0 && &c.rows[0] == &c.subjects[0]
	c.rows = append(c.rows, make([]uint32, n-len(c.rows))...)
	if alias {
		c.subjects = c.rows
		return
	}
	c.subjects = append(c.subjects, make([]uint32, n-len(c.subjects))...)
}

// histogram counts the values of a sensitive attribute in each class: class i
// holds values[j] counts[j] times for j in [start[i], start[i+1]).
type histogram struct {
	start  []uint32
	values []uint32
	counts []uint32
}

func (h *histogram) of(i int) (values, counts []uint32) {
	from, to := h.start[i], h.start[i+1]
	return h.values[from:to], h.counts[from:to]
}

// flush appends the next class from an accumulator and empties it.
func (h *histogram) flush(a *accumulator) {
	for _, v := range a.touched {
		h.values = append(h.values, v)
		h.counts = append(h.counts, a.counts[v])
		a.counts[v] = 0
	}
	a.touched = a.touched[:0]
	h.start = append(h.start, uint32(len(h.values)))
}

// accumulator sums counts by value, in time proportional to what is added.
type accumulator struct {
	counts  []uint32
	touched []uint32
}

func newAccumulator(domain int) *accumulator { return &accumulator{counts: make([]uint32, domain)} }

func (a *accumulator) add(value, count uint32) {
	if a.counts[value] == 0 {
		a.touched = append(a.touched, value)
	}
	a.counts[value] += count
}

package anonymize

// ground is a table seen in canonical order: tuples sorted lexicographically
// by leaf. A place in that order is a position. All that a partition decides
// is decided over positions, which makes it independent of the order of rows.
// The partitions of a chain share one ground. Immutable.
type ground struct {
	table    *Table
	tupleAt  []uint32   // position -> tuple
	leaf     [][]uint32 // [column][position]
	rows     []uint32   // position -> rows
	subjects csr        // position -> subjects, only if not RowPerSubject
	numbers  int        // subjects are numbered below this
}

func newGround(t *Table) *ground {
	g := &ground{table: t, tupleAt: canonicalOrder(t)}
	g.leaf = make([][]uint32, len(t.columns))
	for c := range g.leaf {
		g.leaf[c] = make([]uint32, len(g.tupleAt))
		for pos, tuple := range g.tupleAt {
			g.leaf[c][pos] = t.tuples[c][tuple]
		}
	}
	g.rows = make([]uint32, len(g.tupleAt))
	for pos, tuple := range g.tupleAt {
		g.rows[pos] = t.rowsOf.start[tuple+1] - t.rowsOf.start[tuple]
	}
	if !t.RowPerSubject() {
		g.listSubjects()
	}
	return g
}

// canonicalOrder sorts the tuples by a counting sort per column, last column
// first.
func canonicalOrder(t *Table) []uint32 {
	order := make([]uint32, t.Tuples())
	for i := range order {
		order[i] = uint32(i)
	}
	next := make([]uint32, len(order))
	for c := len(t.columns) - 1; c >= 0; c-- {
		leaf := t.tuples[c]
		start := make([]uint32, t.columns[c].Hierarchy.Leaves()+1)
		for _, v := range leaf {
			start[v+1]++
		}
		for v := 1; v < len(start); v++ {
			start[v] += start[v-1]
		}
		for _, tuple := range order {
			v := leaf[tuple]
			next[start[v]] = tuple
			start[v]++
		}
		order, next = next, order
	}
	return order
}

// listSubjects lists the distinct subjects of each position.
func (g *ground) listSubjects() {
	for _, s := range g.table.subjectOfRow {
		g.numbers = max(g.numbers, int(s)+1)
	}
	last := make([]uint32, g.numbers) // 1 + position that last listed the subject
	g.subjects.start = append(g.subjects.start, 0)
	for pos, tuple := range g.tupleAt {
		for _, row := range g.table.RowsOf(tuple) {
			s := g.table.subjectOfRow[row]
			if last[s] != uint32(pos)+1 {
				last[s] = uint32(pos) + 1
				g.subjects.items = append(g.subjects.items, s)
			}
		}
		g.subjects.start = append(g.subjects.start, uint32(len(g.subjects.items)))
	}
}

// census counts distinct subjects of sets of positions. Where every row is a
// subject it adds up rows. Not safe for concurrent use.
type census struct {
	ground *ground
	seen   []uint32 // subject -> round of the last count that met it
	round  uint32
}

func newCensus(g *ground) *census { return &census{ground: g, seen: make([]uint32, g.numbers)} }

// open starts a new count.
func (c *census) open() {
	c.round++
	if c.round == 0 { // wrapped: forget all
		clear(c.seen)
		c.round = 1
	}
}

// add returns how many subjects of a position the open count had not met.
func (c *census) add(pos uint32) int {
	if c.ground.table.RowPerSubject() {
		return int(c.ground.rows[pos])
	}
	fresh := 0
	for _, s := range c.ground.subjects.of(pos) {
		if c.seen[s] != c.round {
			c.seen[s] = c.round
			fresh++
		}
	}
	return fresh
}

// count is the number of distinct subjects at the given positions.
func (c *census) count(positions []uint32) int {
	c.open()
	n := 0
	for _, pos := range positions {
		n += c.add(pos)
	}
	return n
}

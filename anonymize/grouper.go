package anonymize

import (
	"runtime"
	"sync"
)

// grouper forms the classes of lattice nodes. It is the inner loop of every
// search: it gives each source class a mixed-radix key of its groups at the
// node, and numbers the keys (see part). Entries are in order of their blocks,
// then of the leaves of the first column, and so are the classes of any node by
// their first entries. Hence the source falls into runs of one block, or of one
// group of the first column, that share no class: large sources are cut between
// runs into parts, one a processor.
//
// It holds scratch memory and is not safe for concurrent use.
type grouper struct {
	chunks  []*chunk
	entries *entries
	parts   []*part
	classOf []uint32
	out     classes // reused; what group returns unless it is kept
	merge   *merger // nil where there is nothing but rows to add up
}

func newGrouper(e *entries, chunks []*chunk) *grouper {
	g := &grouper{chunks: chunks, entries: e}
	for range runtime.GOMAXPROCS(0) {
		g.parts = append(g.parts, &part{index: newKeyIndex(0)})
	}
	if len(e.domains) > 0 || e.members != nil {
		g.merge = newMerger(e)
	}
	return g
}

// leastPart is the number of source classes from which a part of its own pays
// for starting a goroutine.
const leastPart = 1 << 16

// group forms the classes of v from those of a specialization of it. The
// result is valid until the next call. Where subjects cannot be added up, the
// source has to be the entries themselves.
func (g *grouper) group(src *classes, v levels) *classes {
	n := src.count()
	if cap(g.classOf) < n {
		g.classOf = make([]uint32, n)
	}
	g.classOf = g.classOf[:n]
	parts := g.cut(src, v)
	var wait sync.WaitGroup
	for _, p := range parts[1:] {
		wait.Go(func() { p.group(g, src, v) })
	}
	parts[0].group(g, src, v)
	wait.Wait()
	for _, p := range parts[1:] {
		parts[0].append(p, g.classOf)
	}
	g.collect(src, parts[0])
	return &g.out
}

// cut sets the ranges of the parts: about even, each ending with a run.
func (g *grouper) cut(src *classes, v levels) []*part {
	n := src.count()
	m := g.major(v)
	count := max(1, min(len(g.parts), n/leastPart))
	from, parts := 0, g.parts[:0]
	for i := range count {
		to := max(from, n*(i+1)/count)
		for to > from && to < n && m.of(src.reps[to]) == m.of(src.reps[to-1]) {
			to++
		}
		if to > from {
			g.parts[len(parts)].from, g.parts[len(parts)].to = from, to
			parts = g.parts[:len(parts)+1]
			from = to
		}
	}
	return parts
}

// major is what the source is ordered by in the first place, at a node.
type major struct {
	values  []uint32 // by entry
	groupOf []uint32 // nil for blocks
	groups  uint64
}

func (g *grouper) major(v levels) major {
	if g.entries.block != nil {
		return major{values: g.entries.block, groups: uint64(g.entries.blocks)}
	}
	h := g.chunks[0].columns[0]
	level := int(v[0])
	if g.entries.base.population != nil {
		level = h.Root().Level // tuples of the population come last, in no order: one run
	}
	return major{
		values: g.entries.leaves[0], groupOf: h.GroupOf(level),
		groups: uint64(h.Groups(level)),
	}
}

func (m *major) of(entry uint32) uint32 {
	if m.groupOf == nil {
		return m.values[entry]
	}
	return m.groupOf[m.values[entry]]
}

// collect turns the numbering into classes with all their counts.
func (g *grouper) collect(src *classes, p *part) {
	o := &g.out
	o.reps, o.rows = p.reps, p.rows
	if &src.subjects[0] == &src.rows[0] {
		o.subjects = o.rows
	} else {
		o.subjects = g.sum(src.subjects, o.subjects)
	}
	if src.population != nil {
		o.population = g.sum(src.population, o.population)
	}
	if g.merge != nil {
		g.merge.combine(src, o, g.classOf)
	}
}

func (g *grouper) sum(counts, out []uint32) []uint32 {
	out = append(out[:0], make([]uint32, g.out.count())...)
	for i, class := range g.classOf {
		out[class] += counts[i]
	}
	return out
}

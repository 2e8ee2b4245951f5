package anonymize

import (
	"runtime"
	"sync"
)

// grouper forms the classes of lattice nodes. It is the inner loop of every
// search: it gives each source class a mixed-radix key of its groups at the
// node, and numbers the keys (see part). Large sources are cut into parts, one
// a processor; the classes of later parts are then merged into those of the
// first, which keeps them in the order of their first entries.
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
	parts := g.parts[:1]
	if g.keysFit(v) {
		parts = g.parts[:max(1, min(len(g.parts), n/leastPart))]
	}
	var wait sync.WaitGroup
	for i, p := range parts {
		p.from, p.to = n*i/len(parts), n*(i+1)/len(parts)
		if i > 0 {
			wait.Go(func() { p.group(g, src, v) })
		}
	}
	parts[0].group(g, src, v)
	wait.Wait()
	for _, p := range parts[1:] {
		parts[0].absorb(p, g.classOf)
	}
	g.collect(src, parts[0])
	return &g.out
}

// keysFit says whether the keys of v fit without compression, so that they mean
// the same in every part.
func (g *grouper) keysFit(v levels) bool {
	space := uint64(max(g.entries.blocks, 1))
	for _, k := range g.chunks {
		groups := k.groups(v)
		if space > keyLimit/groups {
			return false
		}
		space *= groups
	}
	return true
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

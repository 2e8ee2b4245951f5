package anonymize

// grouper forms the classes of lattice nodes. It is the inner loop of every
// search. Per entry it looks up one number per chunk, combines them into a
// mixed-radix key and numbers the keys: by direct addressing where the key
// space is small, by hashing otherwise. A key space beyond 62 bits is taken in
// passes, each of which replaces the key so far by its number.
//
// It holds scratch memory and is not safe for concurrent use; the chunks may be
// shared.
type grouper struct {
	chunks  []*chunk
	entries *entries
	keys    []uint64
	classOf []uint32
	dense   []uint32 // key -> class + 1, all zero between calls
	index   *keyIndex
	out     classes // reused; what group returns unless it is kept
	merge   *merger
}

func newGrouper(e *entries, chunks []*chunk) *grouper {
	g := &grouper{chunks: chunks, entries: e, index: newKeyIndex(1024)}
	if len(e.domains) > 0 || e.members != nil {
		g.merge = newMerger(e)
	}
	return g
}

const (
	keyLimit   = uint64(1) << 62
	denseLimit = uint64(1) << 20 // 4 MB of class numbers
)

// group forms the classes of v from those of a specialization of it. The
// result is valid until the next call. Where subjects cannot be added up, the
// source has to be the entries themselves.
func (g *grouper) group(src *classes, v levels) *classes {
	space := g.buildKeys(src, v)
	g.number(src, space)
	if g.merge != nil {
		g.merge.combine(src, &g.out, g.classOf)
	}
	return &g.out
}

// buildKeys leaves the key of each source class in g.keys and returns the size
// of the key space.
func (g *grouper) buildKeys(src *classes, v levels) uint64 {
	n := src.count()
	if cap(g.keys) < n {
		g.keys = make([]uint64, n)
		g.classOf = make([]uint32, n)
	}
	g.keys, g.classOf = g.keys[:n], g.classOf[:n]
	keys, reps := g.keys, src.reps
	space := uint64(1)
	if block := g.entries.block; block != nil {
		space = uint64(g.entries.blocks)
		for i, rep := range reps {
			keys[i] = uint64(block[rep])
		}
	} else {
		clear(keys)
	}
	for _, k := range g.chunks {
		groups := k.groups(v)
		if groups == 1 {
			continue
		}
		if space > keyLimit/groups {
			space = g.compress()
		}
		table, codes := k.table(v), k.codes
		if space == 1 {
			for i, rep := range reps {
				keys[i] = uint64(table[codes[rep]])
			}
		} else {
			for i, rep := range reps {
				keys[i] = keys[i]*groups + uint64(table[codes[rep]])
			}
		}
		space *= groups
	}
	return space
}

// compress replaces keys by their numbers, and returns how many there are.
func (g *grouper) compress() uint64 {
	g.index.reset(len(g.keys))
	for i, key := range g.keys {
		id, _ := g.index.number(key)
		g.keys[i] = uint64(id)
	}
	return uint64(g.index.count)
}

// number turns keys into classes and adds up their counts.
func (g *grouper) number(src *classes, space uint64) {
	o := &g.out
	o.reps, o.rows = o.reps[:0], o.rows[:0]
	if space <= denseLimit && space <= 16*uint64(len(g.keys))+4096 {
		g.numberDense(src, int(space))
	} else {
		g.numberHashed(src)
	}
	if &src.subjects[0] == &src.rows[0] {
		o.subjects = o.rows
	} else {
		o.subjects = g.sum(src.subjects, o.subjects)
	}
	if src.population != nil {
		o.population = g.sum(src.population, o.population)
	}
}

func (g *grouper) numberDense(src *classes, space int) {
	if len(g.dense) < space {
		g.dense = make([]uint32, space)
	}
	o, dense := &g.out, g.dense
	for i, key := range g.keys {
		class := dense[key]
		if class == 0 {
			o.reps = append(o.reps, src.reps[i])
			o.rows = append(o.rows, 0)
			class = uint32(len(o.reps))
			dense[key] = class
		}
		o.rows[class-1] += src.rows[i]
		g.classOf[i] = class - 1
	}
	for _, key := range g.keys {
		dense[key] = 0
	}
}

func (g *grouper) numberHashed(src *classes) {
	o := &g.out
	g.index.reset(len(g.keys))
	for i, key := range g.keys {
		class, fresh := g.index.number(key)
		if fresh {
			o.reps = append(o.reps, src.reps[i])
			o.rows = append(o.rows, 0)
		}
		o.rows[class] += src.rows[i]
		g.classOf[i] = class
	}
}

func (g *grouper) sum(counts, out []uint32) []uint32 {
	out = append(out[:0], make([]uint32, g.out.count())...)
	for i, class := range g.classOf {
		out[class] += counts[i]
	}
	return out
}

package anonymize

// part groups a range of source classes, whole runs of them. Per class it looks
// up one number per chunk, combines them into a mixed-radix key and numbers the
// keys, run by run so that the tables stay in the cache: by direct addressing
// where the key space of a run is small, by hashing otherwise. A key space
// beyond 62 bits is taken in passes, each of which replaces the key so far by
// its number; the part is then one run.
type part struct {
	from, to   int
	space      uint64
	compressed bool
	keys       []uint64
	dense      []uint32 // key -> class + 1, all zero between calls
	index      *keyIndex
	reps       []uint32
	rows       []uint32
	classKeys  []uint64
}

const (
	keyLimit   = uint64(1) << 62
	denseLimit = uint64(1) << 20 // 4 MB of class numbers
)

func (p *part) group(g *grouper, src *classes, v levels) {
	reps, rows, classOf := src.reps[p.from:p.to], src.rows[p.from:p.to], g.classOf[p.from:p.to]
	p.buildKeys(g, reps, v)
	p.reps, p.rows, p.classKeys = p.reps[:0], p.rows[:0], p.classKeys[:0]
	m := g.major(v)
	if p.compressed || m.groups == 1 {
		p.number(run{space: p.space, keys: p.keys, reps: reps, rows: rows, classOf: classOf})
		return
	}
	tail := p.space / m.groups
	for from := 0; from < len(reps); {
		group, to := m.of(reps[from]), from+1
		for to < len(reps) && m.of(reps[to]) == group {
			to++
		}
		p.number(run{
			base: uint64(group) * tail, space: tail,
			keys: p.keys[from:to], reps: reps[from:to], rows: rows[from:to], classOf: classOf[from:to],
		})
		from = to
	}
}

// run is a range of source classes whose keys lie in [base, base+space) and
// occur nowhere else.
type run struct {
	base, space         uint64
	keys                []uint64
	reps, rows, classOf []uint32
}

func (p *part) number(r run) {
	if r.space <= denseLimit && r.space <= 64*uint64(len(r.keys))+4096 {
		p.numberDense(r)
	} else {
		p.numberHashed(r)
	}
}

// buildKeys leaves the key of each source class in p.keys.
func (p *part) buildKeys(g *grouper, reps []uint32, v levels) {
	if cap(p.keys) < len(reps) {
		p.keys = make([]uint64, len(reps))
	}
	p.keys = p.keys[:len(reps)]
	keys := p.keys
	p.space, p.compressed = 1, false
	if block := g.entries.block; block != nil {
		p.space = uint64(g.entries.blocks)
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
		if p.space > keyLimit/groups {
			p.compress()
		}
		table, codes := k.table(v), k.codes
		if p.space == 1 {
			for i, rep := range reps {
				keys[i] = uint64(table[codes[rep]])
			}
		} else {
			for i, rep := range reps {
				keys[i] = keys[i]*groups + uint64(table[codes[rep]])
			}
		}
		p.space *= groups
	}
}

// compress replaces keys by their numbers.
func (p *part) compress() {
	p.index.reset(len(p.keys))
	for i, key := range p.keys {
		id, _ := p.index.number(key)
		p.keys[i] = uint64(id)
	}
	p.space, p.compressed = uint64(p.index.count), true
}

func (p *part) numberDense(r run) {
	if uint64(len(p.dense)) < r.space {
		p.dense = make([]uint32, r.space)
	}
	dense, opened := p.dense[:r.space], len(p.classKeys)
	for i, key := range r.keys {
		class := dense[key-r.base]
		if class == 0 {
			class = p.open(key, r.reps[i]) + 1
			dense[key-r.base] = class
		}
		p.rows[class-1] += r.rows[i]
		r.classOf[i] = class - 1
	}
	for _, key := range p.classKeys[opened:] {
		dense[key-r.base] = 0
	}
}

func (p *part) numberHashed(r run) {
	opened := uint32(len(p.reps))
	p.index.reset(len(r.keys) / 2)
	for i, key := range r.keys {
		number, fresh := p.index.number(key)
		class := opened + number
		if fresh {
			p.open(key, r.reps[i])
		}
		p.rows[class] += r.rows[i]
		r.classOf[i] = class
	}
}

// open starts a class and returns its number.
func (p *part) open(key uint64, rep uint32) uint32 {
	p.reps = append(p.reps, rep)
	p.rows = append(p.rows, 0)
	p.classKeys = append(p.classKeys, key)
	return uint32(len(p.reps) - 1)
}

// append adds the classes of the next part and renumbers its source classes.
func (p *part) append(next *part, classOf []uint32) {
	offset := uint32(len(p.reps))
	p.reps, p.rows = append(p.reps, next.reps...), append(p.rows, next.rows...)
	for i := next.from; i < next.to; i++ {
		classOf[i] += offset
	}
}

package anonymize

// part groups a range of source classes. Per class it looks up one number per
// chunk, combines them into a mixed-radix key and numbers the keys: by direct
// addressing where the key space is small, by hashing otherwise. A key space
// beyond 62 bits is taken in passes, each of which replaces the key so far by
// its number.
type part struct {
	from, to  int
	space     uint64
	keys      []uint64
	dense     []uint32 // key -> class + 1, all zero between calls
	index     *keyIndex
	reps      []uint32
	rows      []uint32
	classKeys []uint64
}

const (
	keyLimit   = uint64(1) << 62
	denseLimit = uint64(1) << 20 // 4 MB of class numbers
)

func (p *part) group(g *grouper, src *classes, v levels) {
	p.buildKeys(g, src.reps[p.from:p.to], v)
	p.reps, p.rows, p.classKeys = p.reps[:0], p.rows[:0], p.classKeys[:0]
	reps, rows, classOf := src.reps[p.from:p.to], src.rows[p.from:p.to], g.classOf[p.from:p.to]
	if p.isDense() {
		p.numberDense(reps, rows, classOf)
	} else {
		p.numberHashed(reps, rows, classOf)
	}
}

// buildKeys leaves the key of each source class in p.keys.
func (p *part) buildKeys(g *grouper, reps []uint32, v levels) {
	if cap(p.keys) < len(reps) {
		p.keys = make([]uint64, len(reps))
	}
	p.keys = p.keys[:len(reps)]
	keys := p.keys
	p.space = 1
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
	p.space = uint64(p.index.count)
}

func (p *part) isDense() bool {
	return p.space <= denseLimit && p.space <= 64*uint64(len(p.keys))+4096
}

func (p *part) numberDense(reps, rows, classOf []uint32) {
	if uint64(len(p.dense)) < p.space {
		p.dense = make([]uint32, p.space)
	}
	dense := p.dense
	for i, key := range p.keys {
		class := dense[key]
		if class == 0 {
			class = p.open(key, reps[i]) + 1
			dense[key] = class
		}
		p.rows[class-1] += rows[i]
		classOf[i] = class - 1
	}
	for _, key := range p.classKeys {
		dense[key] = 0
	}
}

func (p *part) numberHashed(reps, rows, classOf []uint32) {
	p.index.reset(len(p.keys) / 2)
	for i, key := range p.keys {
		class, fresh := p.index.number(key)
		if fresh {
			p.open(key, reps[i])
		}
		p.rows[class] += rows[i]
		classOf[i] = class
	}
}

// open starts a class and returns its number.
func (p *part) open(key uint64, rep uint32) uint32 {
	p.reps = append(p.reps, rep)
	p.rows = append(p.rows, 0)
	p.classKeys = append(p.classKeys, key)
	return uint32(len(p.reps) - 1)
}

// absorb merges the classes of a later part into this one and renumbers the
// source classes of that part.
func (p *part) absorb(later *part, classOf []uint32) {
	p.index.reset(len(p.classKeys) + len(later.classKeys))
	for _, key := range p.classKeys {
		p.index.number(key)
	}
	renumbered := later.keys[:0] // no longer needed
	for i, key := range later.classKeys {
		class, fresh := p.index.number(key)
		if fresh {
			p.open(key, later.reps[i])
		}
		p.rows[class] += later.rows[i]
		renumbered = append(renumbered, uint64(class))
	}
	for i := later.from; i < later.to; i++ {
		classOf[i] = uint32(renumbered[classOf[i]])
	}
}

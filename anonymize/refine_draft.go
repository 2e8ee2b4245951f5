package anonymize

import "slices"

// draft is a partition in the making: positions grouped by block, finer than
// what is released.
type draft struct {
	order  []uint32 // positions, block by block
	ends   []uint32 // block -> where it ends in order
	parent []uint32 // block -> block of the partition that is refined
}

// partition is what a draft for a refinement of p along columns comes to.
func (d *draft) partition(p *Partition, columns []int, must *requirements) *Partition {
	blockAt, blocks := d.merge(p.ground, columns, must)
	return assemble(p.ground, blockAt, blocks, p.finished).finish(columns, must.name)
}

// block lists the positions of a block.
func (d *draft) block(b uint32) []uint32 {
	from := uint32(0)
	if b > 0 {
		from = d.ends[b-1]
	}
	return d.order[from:d.ends[b]]
}

// merge undoes the cuts that do not show: blocks of one parent whose labels
// agree in all the columns asked for become one, which leaves room for later
// refinements and shows the same. It returns the block of each position and
// the number of blocks.
//
// Merging keeps every monotone requirement; where a merged block fails one all
// the same (see [Requirement]), its parts stay apart.
func (d *draft) merge(g *ground, columns []int, must *requirements) ([]uint32, int) {
	into := slices.Clone(d.parent)
	type shown struct {
		in    uint32
		label Node
	}
	index := make(map[shown]uint32, len(d.ends))
	for _, c := range columns {
		clear(index)
		from := uint32(0)
		for b, end := range d.ends {
			lo, hi := g.bounds(c, d.order[from:end])
			key := shown{into[b], g.table.columns[c].Hierarchy.Cover(lo, hi)}
			id, ok := index[key]
			if !ok {
				id = uint32(len(index))
				index[key] = id
			}
			into[b] = id
			from = end
		}
	}
	blocks := len(index)
	if len(must.others) > 0 {
		blocks = d.keepApart(g, into, blocks, must)
	}
	at := make([]uint32, len(d.order))
	from := uint32(0)
	for b, end := range d.ends {
		for _, pos := range d.order[from:end] {
			at[pos] = into[b]
		}
		from = end
	}
	return at, blocks
}

// keepApart gives the parts of each merged block that fails a requirement
// blocks of their own again, and returns the new number of blocks.
func (d *draft) keepApart(g *ground, into []uint32, blocks int, must *requirements) int {
	tuples := make([][]uint32, blocks)
	from := uint32(0)
	for b, end := range d.ends {
		for _, pos := range d.order[from:end] {
			tuples[into[b]] = append(tuples[into[b]], g.tupleAt[pos])
		}
		from = end
	}
	const kept, first, apart = 0, 1, 2
	state := make([]byte, blocks)
	for m := range tuples {
		if !must.meetsOthers(tuples[m]) {
			state[m] = first
		}
	}
	for b, m := range into {
		switch state[m] {
		case first:
			state[m] = apart // the first part keeps the number
		case apart:
			into[b] = uint32(blocks)
			blocks++
		case kept:
		}
	}
	return blocks
}

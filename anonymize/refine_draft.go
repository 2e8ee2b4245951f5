package anonymize

import "encoding/binary"

// draft is a partition in the making: positions grouped by block, finer than
// what is released.
type draft struct {
	order  []uint32 // positions, block by block
	ends   []uint32 // block -> where it ends in order
	parent []uint32 // block -> block of the partition that is refined
}

// merge undoes the cuts that do not show: blocks of one parent whose labels
// agree in all the columns asked for become one, which leaves room for later
// refinements and shows the same. It returns the block of each position and
// the number of blocks.
//
// Merging keeps every monotone requirement; where a merged block fails one all
// the same (see [Requirement]), its parts stay apart.
func (d *draft) merge(g *ground, columns []int, must *requirements) ([]uint32, int) {
	into := make([]uint32, len(d.ends))
	index := make(map[string]uint32)
	key := make([]byte, 0, 4+5*len(columns))
	from := uint32(0)
	for b, end := range d.ends {
		key = binary.LittleEndian.AppendUint32(key[:0], d.parent[b])
		for _, c := range columns {
			n := g.table.columns[c].Hierarchy.Cover(bounds(g.leaf[c], d.order[from:end]))
			key = binary.LittleEndian.AppendUint32(append(key, byte(n.Level)), n.Group)
		}
		id, ok := index[string(key)]
		if !ok {
			id = uint32(len(index))
			index[string(key)] = id
		}
		into[b] = id
		from = end
	}
	blocks := len(index)
	if len(must.others) > 0 {
		blocks = d.keepApart(g, into, blocks, must)
	}
	at := make([]uint32, len(d.order))
	from = 0
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

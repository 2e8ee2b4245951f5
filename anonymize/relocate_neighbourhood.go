package anonymize

import (
	"math"
	"math/rand/v2"
	"slices"
)

// neighbourhood is a few blocks of a draft that are regrouped among each other.
// It numbers its tuples, the items, and its blocks from 0. It is used again and
// again, for one neighbourhood at a time.
type neighbourhood struct {
	s           *splitter // to cut items, which it takes copies of
	columns     []int     // those that count; below, a column is a place in them
	scales      []*scale
	temperature float64
	random      *rand.PCG
	looks       uint64 // at an item or a block, so far

	positions []uint32 // item -> position
	rows      []uint32 // item -> rows
	leaves    []uint32 // item*columns+column
	blockOf   []uint32 // item -> block
	blocks    []loose
	extents   []extent // block*columns+column

	rest, spare []extent // of a block without one of its items
	targets     []uint32
	pool        []uint32
	pooled      []uint32
	tuples      []uint32
}

// loose is a block that may change. Without items it is gone.
type loose struct {
	items []uint32
	rows  uint32
	price float64 // of a row
}

// extent is what a block covers of a column.
type extent struct {
	low, high   uint32 // the lowest and the highest leaf
	nextLow     uint32 // the lowest of all items but one with the lowest
	nextHigh    uint32
	first, last uint32 // leaves that join at no loss
	price       float64
}

func newNeighbourhood(s *splitter, columns []int) *neighbourhood {
	n := &neighbourhood{s: s, columns: columns}
	for _, c := range columns {
		n.scales = append(n.scales, &s.scales[c])
	}
	n.rest, n.spare = make([]extent, len(columns)), make([]extent, len(columns))
	return n
}

// load takes in blocks of a draft.
func (n *neighbourhood) load(d *draft, blocks []uint32, random *rand.PCG, temperature float64) {
	n.random, n.temperature, n.looks = random, temperature, 1
	n.positions, n.rows, n.leaves, n.blockOf = n.positions[:0], n.rows[:0], n.leaves[:0], n.blockOf[:0]
	n.blocks, n.extents = n.blocks[:0], n.extents[:0]
	g := n.s.ground
	for _, b := range blocks {
		at := n.open()
		for _, pos := range d.block(b) {
			n.blocks[at].items = append(n.blocks[at].items, uint32(len(n.positions)))
			n.positions = append(n.positions, pos)
			n.rows = append(n.rows, g.rows[pos])
			n.blockOf = append(n.blockOf, at)
			for _, c := range n.columns {
				n.leaves = append(n.leaves, g.leaf(c, pos))
			}
		}
		n.measure(at)
	}
}

// open adds a block without items.
func (n *neighbourhood) open() uint32 {
	b := len(n.blocks)
	n.blocks = slices.Grow(n.blocks, 1)[:b+1]
	n.blocks[b] = loose{items: n.blocks[b].items[:0]}
	n.extents = slices.Grow(n.extents, len(n.columns))[:len(n.extents)+len(n.columns)]
	return uint32(b)
}

// store writes the positions block by block, and returns where each block
// ends.
func (n *neighbourhood) store(order []uint32) (ends []uint32) {
	at := uint32(0)
	for b := range n.blocks {
		for _, i := range n.blocks[b].items {
			order[at] = n.positions[i]
			at++
		}
		if len(n.blocks[b].items) > 0 {
			ends = append(ends, at)
		}
	}
	return ends
}

// loss is what all blocks lose, in weighted shares times rows.
func (n *neighbourhood) loss() float64 {
	loss := 0.0
	for b := range n.blocks {
		loss += n.lost(uint32(b))
	}
	return loss
}

func (n *neighbourhood) lost(b uint32) float64 {
	return float64(n.blocks[b].rows) * n.blocks[b].price
}

func (n *neighbourhood) leavesOf(i uint32) []uint32 {
	return n.leaves[int(i)*len(n.columns):][:len(n.columns)]
}

func (n *neighbourhood) extentsOf(b uint32) []extent {
	return n.extents[int(b)*len(n.columns):][:len(n.columns)]
}

// measure finds out what is kept of a block beside its items.
func (n *neighbourhood) measure(b uint32) {
	block, extents := &n.blocks[b], n.extentsOf(b)
	block.rows, block.price = 0, 0
	if len(block.items) == 0 {
		return
	}
	n.looks += uint64(len(block.items))
	for c := range extents {
		extents[c] = extent{low: ^uint32(0), nextLow: ^uint32(0)}
	}
	for _, i := range block.items {
		block.rows += n.rows[i]
		for c, v := range n.leavesOf(i) {
			e := &extents[c]
			if v < e.low {
				e.low, e.nextLow = v, e.low
			} else {
				e.nextLow = min(e.nextLow, v)
			}
			if v > e.high {
				e.high, e.nextHigh = v, e.high
			} else {
				e.nextHigh = max(e.nextHigh, v)
			}
		}
	}
	for c := range extents {
		e := &extents[c]
		h := n.scales[c].hierarchy
		e.first, e.last = h.Range(h.Cover(e.low, e.high))
		e.price = n.scales[c].price(e.low, e.high)
		block.price += e.price
	}
}

// move puts an item into another block.
func (n *neighbourhood) move(i, to uint32) {
	from := n.blockOf[i]
	items := n.blocks[from].items
	at := slices.Index(items, i)
	n.blocks[from].items = slices.Delete(items, at, at+1)
	n.blocks[to].items = append(n.blocks[to].items, i)
	n.blockOf[i] = to
	n.measure(from)
	n.measure(to)
}

// without finds what the block of an item covers without it, and the price of a
// row then: 0 if the block is gone.
func (n *neighbourhood) without(i uint32, rest []extent) float64 {
	b := n.blockOf[i]
	if len(n.blocks[b].items) == 1 {
		return 0
	}
	price := 0.0
	extents := n.extentsOf(b)
	for c, v := range n.leavesOf(i) {
		e := extents[c]
		if v == e.low || v == e.high {
			if v == e.low {
				e.low = e.nextLow
			}
			if v == e.high {
				e.high = e.nextHigh
			}
			e.first, e.last = e.low, e.high
			e.price = n.scales[c].price(e.low, e.high)
		}
		price += e.price
		rest[c] = e
	}
	return price
}

// widened is how much the price of a row grows if an item joins what has these
// extents. From most on it is not told exactly.
func (n *neighbourhood) widened(extents []extent, i uint32, most float64) float64 {
	growth := 0.0
	for c, v := range n.leavesOf(i) {
		if e := &extents[c]; v < e.first || v > e.last {
			if growth += n.scales[c].price(min(e.low, v), max(e.high, v)) - e.price; growth >= most {
				break
			}
		}
	}
	return growth
}

// suits says whether block b meets all requirements if item out leaves it and
// item in joins; either may be noItem. A block that is gone does.
func (n *neighbourhood) suits(b, out, in uint32) bool {
	rows := n.blocks[b].rows
	if out != noItem {
		rows -= n.rows[out]
	}
	if in != noItem {
		rows += n.rows[in]
	}
	if rows == 0 {
		return true
	}
	if n.s.plain || int(rows) < n.s.must.k {
		return int(rows) >= n.s.must.k
	}
	n.looks += uint64(len(n.blocks[b].items))
	subjects := 0
	n.tuples = n.tuples[:0]
	n.s.census.open()
	add := func(i uint32) {
		subjects += n.s.census.add(n.positions[i])
		n.tuples = append(n.tuples, n.s.ground.tupleAt[n.positions[i]])
	}
	for _, i := range n.blocks[b].items {
		if i != out {
			add(i)
		}
	}
	if in != noItem {
		add(in)
	}
	return subjects >= n.s.must.k && n.s.must.meetsOthers(n.tuples)
}

// patience is what the next change may cost: exponentially distributed, with
// the temperature as its mean.
func (n *neighbourhood) patience() float64 {
	if n.temperature == 0 {
		return -least
	}
	return -n.temperature * math.Log(float64(n.random.Uint64()>>11+1)/(1<<53))
}

// least is the smallest gain, in shares times rows, that is worth a change.
const least = 1e-9

// noItem stands for no item or block at all.
const noItem = ^uint32(0)

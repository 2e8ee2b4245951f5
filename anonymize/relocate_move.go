package anonymize

import (
	"context"
	"math"
	"slices"
)

// regroup tries to find a better place for each item, and better cuts for each
// block, once. A block with no others about is left as it is.
func (n *neighbourhood) regroup(ctx context.Context) error {
	if len(n.blocks) == 1 {
		return nil
	}
	for i := range uint32(len(n.positions)) {
		if i%64 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if b := n.blockOf[i]; n.blocks[b].price > 0 {
			_ = n.relocate(i) || n.dissolve(i)
		}
	}
	for b := range uint32(len(n.blocks)) {
		if n.blocks[b].price > 0 {
			n.recut(b)
		}
	}
	for b := range uint32(len(n.blocks)) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if n.blocks[b].price > 0 {
			if other := n.nearest(b); other != noItem {
				n.recut(b, other)
			}
		}
	}
	return nil
}

// relocate moves an item to where the loss grows the least. If its block cannot
// spare it, another item takes its place: one of the block that it moves to, or
// one of a third block that can.
func (n *neighbourhood) relocate(i uint32) bool {
	home := n.blockOf[i]
	patience := n.patience()
	to, cost := n.cheapest(i, patience+n.lost(home))
	rows := n.blocks[home].rows - n.rows[i]
	price := n.without(i, n.rest)
	if int(rows) >= n.s.must.k {
		if to == noItem || cost+float64(rows)*price-n.lost(home) >= patience {
			return false
		}
		if n.suits(home, i, noItem) && n.suits(to, noItem, i) {
			n.move(i, to)
			return true
		}
	}
	other, to := n.substitute(i, price, patience, to, cost)
	if other == noItem {
		return false
	}
	n.move(other, home)
	n.move(i, to)
	return true
}

// substitute is the item to take the place of another, and the block that the
// other moves to then: the best of those that it looks at, noItem if all cost
// more than there is patience for. price is that of a row without the item;
// cost is what it costs for it to join block to, which may be noItem.
func (n *neighbourhood) substitute(
	i uint32, price, patience float64, to uint32, cost float64,
) (best, target uint32) {
	home := n.blockOf[i]
	k := n.s.must.k
	left := n.blocks[home].rows - n.rows[i]
	looks := min(len(n.positions), nearTuples)
	n.looks += uint64(looks)
	best = noItem
	next := uint32(n.random.Uint64() % uint64(len(n.positions)))
	for range looks {
		j := next
		if next++; int(next) == len(n.positions) {
			next = 0
		}
		b := n.blockOf[j]
		if b == home || int(left+n.rows[j]) < k {
			continue
		}
		// If the loss of b fell to nothing, would it do?
		size := float64(left + n.rows[j])
		change := size*price - n.lost(home) - n.lost(b)
		if change >= patience {
			continue
		}
		if change += size * n.widened(n.rest, j, (patience-change)/size); change >= patience {
			continue
		}
		rows := n.blocks[b].rows - n.rows[j]
		rest := n.without(j, n.spare)
		if rows > 0 && int(rows+n.rows[i]) >= k {
			size := float64(rows + n.rows[i])
			c := change + size*rest
			if c < patience {
				c += size * n.widened(n.spare, i, (patience-c)/size)
			}
			if c < patience && (n.s.plain || n.suits(home, i, j) && n.suits(b, j, i)) {
				patience, best, target = c, j, b
			}
		}
		if to != noItem && to != b && (rows == 0 || int(rows) >= k) {
			c := change + float64(rows)*rest + cost
			if c < patience && (n.s.plain ||
				n.suits(home, i, j) && n.suits(b, j, noItem) && n.suits(to, noItem, i)) {
				patience, best, target = c, j, to
			}
		}
	}
	return best, target
}

// cheapest is the block other than its own whose loss grows the least by an
// item, and by how much; noItem if it is as much as most for each.
func (n *neighbourhood) cheapest(i uint32, most float64) (to uint32, cost float64) {
	to, cost = noItem, most
	home, rows := n.blockOf[i], float64(n.rows[i])
	n.looks += uint64(len(n.blocks))
	for b := range uint32(len(n.blocks)) {
		block := &n.blocks[b]
		base := rows * block.price
		if base >= cost || b == home || len(block.items) == 0 {
			continue
		}
		size := float64(block.rows) + rows
		if c := base + size*n.widened(n.extentsOf(b), i, (cost-base)/size); c < cost {
			to, cost = b, c
		}
	}
	return to, cost
}

// dissolve spreads the block of its first item over others, item by item. It is
// not tried under requirements other than k-anonymity, which a block that grows
// could cease to meet.
func (n *neighbourhood) dissolve(i uint32) bool {
	b := n.blockOf[i]
	if i != n.blocks[b].items[0] { // once is enough
		return false
	}
	if len(n.s.must.others) > 0 || int(n.blocks[b].rows) >= 2*n.s.must.k {
		return false
	}
	left := n.lost(b) + n.patience()
	n.targets = n.targets[:0]
	for _, i := range n.blocks[b].items {
		to, cost := n.cheapest(i, left)
		if left -= cost; to == noItem || left <= 0 {
			return false
		}
		n.targets = append(n.targets, to)
	}
	for at, i := range slices.Clone(n.blocks[b].items) {
		n.move(i, n.targets[at])
	}
	return true
}

// nearest is the block that one is joined with at the least loss, or noItem.
func (n *neighbourhood) nearest(b uint32) uint32 {
	to, least := noItem, math.Inf(1)
	n.looks += uint64(len(n.blocks))
	for other := range uint32(len(n.blocks)) {
		if other == b || len(n.blocks[other].items) == 0 {
			continue
		}
		price, extents := 0.0, n.extentsOf(other)
		for c, e := range n.extentsOf(b) {
			price += n.scales[c].price(min(e.low, extents[c].low), max(e.high, extents[c].high))
		}
		if loss := price*float64(n.blocks[b].rows+n.blocks[other].rows) - n.lost(other); loss < least {
			to, least = other, loss
		}
	}
	return to
}

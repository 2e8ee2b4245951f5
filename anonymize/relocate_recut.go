package anonymize

import (
	"cmp"
	"context"
	"slices"
)

// recut pools blocks and cuts what they hold from the top. The parts take their
// place unless they lose more than there is patience for.
func (n *neighbourhood) recut(blocks ...uint32) {
	before, rows := 0.0, 0
	n.pool = n.pool[:0]
	for _, b := range blocks {
		before += n.lost(b)
		rows += int(n.blocks[b].rows)
		n.pool = append(n.pool, n.blocks[b].items...)
	}
	if rows < 2*n.s.must.k {
		return
	}
	n.looks += 8 * uint64(len(n.pool))
	slices.SortFunc(n.pool, func(i, j uint32) int {
		return cmp.Compare(n.positions[i], n.positions[j])
	})
	n.pooled = n.pooled[:0]
	for _, i := range n.pool {
		n.pooled = append(n.pooled, n.positions[i])
	}
	parts, loss := n.s.cutPool(n.pooled)
	if len(parts) == 1 && (len(blocks) == 1 || !n.s.plain && !n.s.fit(0, len(n.pool))) ||
		loss-before >= n.patience() {
		return
	}
	for len(blocks) < len(parts) {
		blocks = append(blocks, n.open())
	}
	for at, b := range blocks {
		n.blocks[b].items = n.blocks[b].items[:0]
		if at < len(parts) {
			for rec := parts[at].from; rec < parts[at].to; rec++ {
				where, _ := slices.BinarySearch(n.pooled, n.s.position(uint32(rec)))
				i := n.pool[where]
				n.blocks[b].items = append(n.blocks[b].items, i)
				n.blockOf[i] = b
			}
		}
		n.measure(b)
	}
}

// cutPool cuts positions to the end and returns the parts and what they lose
// together.
func (s *splitter) cutPool(positions []uint32) (parts []recordRange, loss float64) {
	s.load(positions)
	parts, _ = s.cutDown(context.Background(), s.whole(0, len(positions), 0))
	for _, p := range parts {
		rows, price := uint32(0), 0.0
		for i := p.from; i < p.to; i++ {
			rows += s.rowsOf(uint32(i))
		}
		s.measure(p.from, p.to)
		for c := range s.scales {
			if s.scales[c].weight > 0 {
				price += s.scales[c].price(s.lo[c], s.hi[c])
			}
		}
		loss += float64(rows) * price
	}
	return parts, loss
}

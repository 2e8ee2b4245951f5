package anonymize

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"
)

// repair lowers the loss of a draft by regrouping tuples between blocks that
// the cuts made near each other, never across blocks of the partition that is
// refined: a tuple moves, two tuples swap, a block dissolves into others.
// Nothing of the draft has been released, so that regrouping it is as safe as
// another choice of cuts. Items are records of the splitter.
type repair struct {
	s       *splitter
	effort  effort
	columns []int      // those that count
	blockOf []uint32   // item -> block
	members [][]uint32 // block -> items, empty if dissolved
	rows    []uint32   // block -> rows
	price   []float64  // block -> price of a row
	lo, hi  []uint32   // block*columns+column -> bounds
	from    uint32     // blocks before it are another region's, as those from to on
	to      uint32
	tuples  []uint32
}

// region is the number of blocks that are repaired at a time, each region on
// its own: a fixed number, so that results do not depend on the machine.
const region = 1024

// effort is how hard a refinement looks for a low loss. It depends on the
// number of tuples alone, so that results do not depend on the machine.
type effort struct {
	exactBelow int // blocks up to so many tuples weigh cuts over all columns
	passes     int // of repair
	reach      int // blocks on either side that a tuple may move to
}

// effortFor keeps the cost of a refinement near linear: what is spent on a
// tuple falls with the number of tuples.
func effortFor(tuples int) effort {
	switch {
	case tuples <= 1<<15:
		return effort{exactBelow: 32, passes: 2, reach: 4}
	case tuples <= 1<<16:
		return effort{exactBelow: 16, passes: 1, reach: 4}
	case tuples <= 1<<18:
		return effort{exactBelow: 16, passes: 1, reach: 2}
	}
	return effort{}
}

// widest is the number of tuples from which on a block takes no part in moves
// out of it: each costs a look at all its tuples.
const widest = 64

func newRepair(s *splitter, d *draft, e effort) *repair {
	blocks, columns := len(d.ends), len(s.scales)
	r := &repair{
		s: s, effort: e,
		blockOf: make([]uint32, len(d.order)), members: make([][]uint32, blocks),
		rows: make([]uint32, blocks), price: make([]float64, blocks),
		lo: make([]uint32, blocks*columns), hi: make([]uint32, blocks*columns),
	}
	for c := range s.scales {
		if s.scales[c].weight > 0 {
			r.columns = append(r.columns, c)
		}
	}
	items := make([]uint32, len(d.order))
	from := uint32(0)
	for b, end := range d.ends {
		for i := from; i < end; i++ {
			items[i], r.blockOf[i] = i, uint32(b)
		}
		r.members[b] = items[from:end:end]
		r.measure(uint32(b))
		from = end
	}
	return r
}

// run repairs the draft in place, several regions at a time.
func (r *repair) run(ctx context.Context, d *draft, workers team) error {
	group, ctx := errgroup.WithContext(ctx)
	blocks := uint32(len(d.ends))
	for from := uint32(0); from < blocks; from += region {
		group.Go(func() error {
			return workers.borrow(func(s *splitter) error {
				part := *r
				part.s, part.from, part.to = s, from, min(from+region, blocks)
				return part.runRegion(ctx, d)
			})
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	r.rewrite(d)
	return nil
}

// runRegion repairs the blocks of a region. Its items stay in it.
func (r *repair) runRegion(ctx context.Context, d *draft) error {
	first, end := uint32(0), d.ends[r.to-1]
	if r.from > 0 {
		first = d.ends[r.from-1]
	}
	for range r.effort.passes {
		for i := first; i < end; i++ {
			if i%4096 == 0 {
				if err := ctx.Err(); err != nil {
					return err
				}
			}
			b := r.blockOf[i]
			if r.price[b] > 0 && len(r.members[b]) <= widest {
				_ = r.relocate(i, d.parent) || r.dissolve(i, d.parent) || r.swap(i, d.parent)
			}
		}
	}
	return nil
}

// rewrite puts the draft in the order of the repaired blocks.
func (r *repair) rewrite(d *draft) {
	d.order = d.order[:0]
	blocks := 0
	for b, items := range r.members {
		if len(items) == 0 {
			continue
		}
		for _, i := range items {
			d.order = append(d.order, r.s.position(i))
		}
		d.ends[blocks], d.parent[blocks] = uint32(len(d.order)), d.parent[b]
		blocks++
	}
	d.ends, d.parent = d.ends[:blocks], d.parent[:blocks]
}

// near returns the range of blocks that tuples of b may move to, b included.
func (r *repair) near(b uint32, parent []uint32) (first, last uint32) {
	first, last = b, b
	for range r.effort.reach {
		if first > r.from && parent[first-1] == parent[b] {
			first--
		}
		if last+1 < r.to && parent[last+1] == parent[b] {
			last++
		}
	}
	return first, last
}

// relocate moves an item to where the loss falls the most.
func (r *repair) relocate(i uint32, parent []uint32) bool {
	b := r.blockOf[i]
	if !r.suits(b, i, noItem) {
		return false
	}
	rows := r.s.rowsOf(i)
	saved := float64(r.rows[b])*r.price[b] - float64(r.rows[b]-rows)*r.exchanged(b, i, noItem)
	if saved <= least {
		return false
	}
	to, cost := r.cheapest(i, parent)
	if saved-cost <= least || !r.suits(to, noItem, i) {
		return false
	}
	r.move(i, to)
	return true
}

// least is the smallest gain, in shares times rows, that is worth a change.
const least = 1e-9

// noItem stands for no item at all.
const noItem = ^uint32(0)

// cheapest is the nearby block whose loss grows the least by an item.
func (r *repair) cheapest(i uint32, parent []uint32) (to uint32, cost float64) {
	home, rows := r.blockOf[i], r.s.rowsOf(i)
	to, cost = home, float64(r.s.ground.table.Rows())*heaviest
	first, last := r.near(home, parent)
	for b := first; b <= last; b++ {
		if b == home || len(r.members[b]) == 0 {
			continue
		}
		if c := float64(r.rows[b]+rows)*r.joined(b, i) - float64(r.rows[b])*r.price[b]; c < cost {
			to, cost = b, c
		}
	}
	return to, cost
}

// dissolve spreads the block of its first item over nearby ones, tuple by
// tuple. It is not
// tried under requirements other than k-anonymity, which a block that grows
// could cease to meet.
func (r *repair) dissolve(i uint32, parent []uint32) bool {
	b := r.blockOf[i]
	if i != r.members[b][0] {
		return false // once a pass is enough
	}
	if len(r.s.must.others) > 0 || int(r.rows[b]) >= 2*r.s.must.k {
		return false
	}
	saved := float64(r.rows[b]) * r.price[b]
	var targets [widest]uint32
	for n, i := range r.members[b] {
		to, cost := r.cheapest(i, parent)
		if saved -= cost; saved <= least {
			return false
		}
		targets[n] = to
	}
	for n, i := range slices.Clone(r.members[b]) {
		r.move(i, targets[n])
	}
	return true
}

// swap exchanges an item with one of a nearby block.
func (r *repair) swap(i uint32, parent []uint32) bool {
	a := r.blockOf[i]
	if r.exchanged(a, i, noItem) >= r.price[a] {
		return false
	}
	first, last := r.near(a, parent)
	for b := first; b <= last; b++ {
		if b == a || r.price[b] == 0 || len(r.members[b]) > widest {
			continue
		}
		before := float64(r.rows[a])*r.price[a] + float64(r.rows[b])*r.price[b]
		for _, j := range r.members[b] {
			change := r.s.rowsOf(j) - r.s.rowsOf(i) // wraps, as the sums below do
			after := float64(r.rows[a]+change) * r.exchanged(a, i, j)
			if after >= before {
				continue
			}
			after += float64(r.rows[b]-change) * r.exchanged(b, j, i)
			if before-after > least && r.suits(a, i, j) && r.suits(b, j, i) {
				r.move(i, b)
				r.move(j, a)
				return true
			}
		}
	}
	return false
}

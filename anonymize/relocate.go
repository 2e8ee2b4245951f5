package anonymize

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"
)

// relocation lowers the loss of a draft by regrouping its tuples, never across
// blocks of the partition that is refined: a tuple moves to another block,
// tuples change places, a block dissolves into others, two blocks are cut
// anew. Nothing of the draft has been released, so that regrouping it is as
// safe as another choice of cuts.
//
// It works in rounds. Each puts the blocks in an order in which like blocks are
// near, another order every time, and regroups the neighbourhoods of that order
// one by one. Some changes that raise the loss are made as well, less and less
// of them ([Kirkpatrick1983]); the draft that loses least is kept.
type relocation struct {
	s       *splitter
	columns []int // those that count
	effort  effort
	workers chan *neighbourhood
	told    progress
}

// A neighbourhood holds at least so many tuples and so many blocks, if there
// are.
const (
	nearTuples = 128
	nearBlocks = 24
)

// The temperature is the mean of what a change may cost. It falls from that of
// the effort to the part coldest of it over the first part of the work, cooling,
// and is 0 after that: only gains count.
const (
	coldest = 0.3
	cooling = 0.85
)

// worthwhile is the part of the loss that a round at temperature 0 must gain
// for another one to follow.
const worthwhile = 0.001

// relocate returns a draft that loses no more than d, and as little as the
// effort allows.
func (s *splitter) relocate(
	ctx context.Context, d *draft, e effort, told func(share float64),
) (*draft, error) {
	if e.looks == 0 {
		return d, nil
	}
	r := &relocation{s: s, effort: e, told: progress{tell: told, whole: e.looks}}
	for c := range s.scales {
		if s.scales[c].weight > 0 {
			r.columns = append(r.columns, c)
		}
	}
	r.workers = make(chan *neighbourhood, runtime.GOMAXPROCS(0))
	for range cap(r.workers) {
		must, err := s.must.another(s.ground.table)
		if err != nil {
			return nil, err
		}
		r.workers <- newNeighbourhood(newSplitter(s.ground, s.scales, must, recutExactBelow), r.columns)
	}
	return r.run(ctx, d)
}

// run regroups a draft round by round and returns the best.
func (r *relocation) run(ctx context.Context, d *draft) (*draft, error) {
	loss, tuples := r.loss(d)
	best, lowest, first := d, loss, loss
	for round := uint64(0); tuples > 0 && r.told.done < r.effort.looks; round++ {
		share := float64(r.told.done) / float64(r.effort.looks) / cooling
		temperature := 0.0
		if share < 1 {
			temperature = r.effort.temperature * first / float64(tuples) * math.Pow(coldest, share)
		}
		next, after, err := r.round(ctx, d, round, temperature)
		if err != nil {
			return nil, err
		}
		if after < lowest {
			best, lowest = next, after
		}
		if temperature == 0 && loss-after <= worthwhile*loss {
			break
		}
		d, loss = next, after
	}
	return best, nil
}

// loss is what a draft loses, in weighted shares times rows, and the number of
// tuples that lose any of it.
func (r *relocation) loss(d *draft) (loss float64, tuples int) {
	from := uint32(0)
	for _, end := range d.ends {
		rows, price := uint32(0), 0.0
		for _, pos := range d.order[from:end] {
			rows += r.s.ground.rows[pos]
		}
		for _, c := range r.columns {
			price += r.s.scales[c].price(r.s.ground.bounds(c, d.order[from:end]))
		}
		if price > 0 {
			tuples += int(end - from)
		}
		loss += float64(rows) * price
		from = end
	}
	return loss, tuples
}

// round regroups every neighbourhood of one order, several at a time, and
// returns the new draft and its loss.
func (r *relocation) round(
	ctx context.Context, d *draft, round uint64, temperature float64,
) (*draft, float64, error) {
	order := r.arrange(d, round)
	next := &draft{order: make([]uint32, 0, len(d.order))}
	type result struct {
		ends []uint32
		loss float64
	}
	var results []*result
	var parents []uint32
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(cap(r.workers))
	for len(order) > 0 {
		size, tuples := d.near(order)
		blocks, into := order[:size], next.order[len(next.order):len(next.order)+tuples]
		random := rand.NewPCG(round, uint64(len(next.order)))
		order, next.order = order[size:], next.order[:len(next.order)+tuples]
		done := new(result)
		results, parents = append(results, done), append(parents, d.parent[blocks[0]])
		group.Go(func() error {
			n := <-r.workers
			defer func() { r.workers <- n }()
			n.load(d, blocks, random, temperature)
			if err := n.regroup(ctx); err != nil {
				return err
			}
			done.ends, done.loss = n.store(into), n.loss()
			r.told.add(n.looks)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, 0, err
	}
	loss, from := 0.0, uint32(0)
	for i, done := range results {
		for _, end := range done.ends {
			next.ends, next.parent = append(next.ends, from+end), append(next.parent, parents[i])
		}
		loss += done.loss
		from = next.ends[len(next.ends)-1]
	}
	return next, loss, nil
}

// near is how many of the blocks in an order are the first neighbourhood, and
// how many tuples they hold. They are parts of one block of the partition that
// is refined.
func (d *draft) near(order []uint32) (blocks, tuples int) {
	for _, b := range order {
		if blocks >= nearBlocks && tuples >= nearTuples || d.parent[b] != d.parent[order[0]] {
			break
		}
		blocks++
		tuples += len(d.block(b))
	}
	return blocks, tuples
}

// progress tells how much of the whole is done, each time by a hundredth more
// at least. Safe for concurrent use.
type progress struct {
	tell        func(share float64) // nil: nobody
	whole, done uint64
	mutex       sync.Mutex
	last        float64
}

func (p *progress) add(done uint64) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.done += done
	if share := float64(p.done) / float64(p.whole); p.tell != nil && share >= p.last+0.01 &&
		share < 1 {
		p.last = share
		p.tell(share)
	}
}

package anonymize

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"
)

// stretch is a run of records, [from, to), within a block of the partition that is
// refined. settled says that it is a block of the draft.
type stretch struct {
	from, to int
	parent   uint32
	settled  bool
}

// shares is the number of parts, at least, into which the work is cut before
// it is shared out.
const shares = 8

// split cuts every block of p as far as it goes and returns the positions
// block by block, with the end of each. Large blocks are cut one after the
// other; what they fall into is cut at the same time. The result is the same.
func (s *splitter) split(ctx context.Context, p *Partition) (*draft, error) {
	s.load(p.members.items)
	d := &draft{order: make([]uint32, len(p.members.items))}
	grain := len(p.members.items) / shares
	var stretches []stretch
	for b := range p.Blocks() {
		if b%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		from, to := int(p.members.start[b]), int(p.members.start[b+1])
		mid := s.standAlone(from, to)
		for i := from; i < mid; i++ {
			stretches = append(stretches, stretch{i, i + 1, uint32(b), true})
		}
		if mid == to {
			continue
		}
		var err error
		if stretches, err = s.cutDown(ctx, stretch{from: mid, to: to, parent: uint32(b)}, grain, stretches); err != nil {
			return nil, err
		}
	}
	return d, s.finish(ctx, stretches, grain, d)
}

// cutDown cuts a stretch into stretches of at most so many records and appends them,
// in their order.
func (s *splitter) cutDown(ctx context.Context, whole stretch, grain int, stretches []stretch) ([]stretch, error) {
	stack := []stretch{whole}
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if at.to-at.from <= grain {
			stretches = append(stretches, at)
			continue
		}
		if at.to-at.from > 1024 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		starts := s.cutBlock(at.from, at.to)
		if len(starts) == 0 {
			at.settled = true
			stretches = append(stretches, at)
			continue
		}
		for i := len(starts) - 1; i >= 0; i-- {
			stack = append(stack, stretch{from: starts[i], to: at.to, parent: at.parent})
			at.to = starts[i]
		}
		stack = append(stack, at)
	}
	return stretches, nil
}

// finish cuts the stretches to their end, several at a time, and puts the blocks
// together in the order of the stretches.
func (s *splitter) finish(ctx context.Context, stretches []stretch, grain int, d *draft) error {
	var batches [][]stretch
	for first := 0; first < len(stretches); {
		next, records := first, 0
		for ; next < len(stretches) && (records == 0 || records+stretches[next].to-stretches[next].from <= grain); next++ {
			records += stretches[next].to - stretches[next].from
		}
		batches = append(batches, stretches[first:next])
		first = next
	}
	finished := make([][]stretch, len(batches))
	workers := make(chan *splitter, runtime.GOMAXPROCS(0))
	workers <- s
	for range min(cap(workers), len(batches)) - 1 {
		must, err := s.must.another(s.ground.table)
		if err != nil {
			return err
		}
		other := newSplitter(s.ground, s.scales, must, s.exactBelow)
		other.work = s.work // stretches do not overlap
		workers <- other
	}
	group, ctx := errgroup.WithContext(ctx)
	for i, batch := range batches {
		w := <-workers
		group.Go(func() error {
			defer func() { workers <- w }()
			var err error
			for _, one := range batch {
				if one.settled {
					finished[i] = append(finished[i], one)
					continue
				}
				if finished[i], err = w.cutDown(ctx, one, 0, finished[i]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, batch := range finished {
		for _, one := range batch {
			s.settle(one.from, one.to, one.parent, d)
		}
	}
	return nil
}

// settle makes the records from from to to a block of the draft.
func (s *splitter) settle(from, to int, parent uint32, d *draft) {
	for i := from; i < to; i++ {
		d.order[i] = s.position(uint32(i))
	}
	d.ends = append(d.ends, uint32(to))
	d.parent = append(d.parent, parent)
}

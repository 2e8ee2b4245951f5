package anonymize

import (
	"context"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
)

// recordRange is a run of records, [from, to), within a block of the partition that is
// refined. settled says that it is a block of the draft.
type recordRange struct {
	from, to int
	parent   uint32
	settled  bool
}

// shares is the number of parts, at least, into which the work is cut before
// it is shared out.
const shares = 16

// workerPool is a number of splitters, one for each processor, over the same records.
// They work on stretches that do not overlap.
type workerPool chan *splitter

// newTeam readies others to work beside a splitter whose records are loaded.
func newTeam(s *splitter) (workerPool, error) {
	workers := make(workerPool, runtime.GOMAXPROCS(0))
	workers <- s
	for range cap(workers) - 1 {
		must, err := s.must.another(s.ground.table)
		if err != nil {
			return nil, err
		}
		other := newSplitter(s.ground, s.scales, must, s.exactBelow)
		other.work = s.work
		workers <- other
	}
	return workers, nil
}

// borrow waits for a splitter and gives it back afterwards.
func (t workerPool) borrow(use func(*splitter) error) error {
	s := <-t
	defer func() { t <- s }()
	return use(s)
}

// split cuts every block of p as far as it goes and returns the positions
// block by block, with the end of each. The result does not depend on the
// number of processors.
func (s *splitter) split(ctx context.Context, p *Partition) (*draft, error) {
	s.load(p.members.items)
	var stretches []recordRange
	for b := range p.Blocks() {
		if b%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		from, to := int(p.members.start[b]), int(p.members.start[b+1])
		stretches = append(stretches, s.whole(from, to, uint32(b))...)
	}
	workers, err := newTeam(s)
	if err != nil {
		return nil, err
	}
	blocks, err := workers.cut(ctx, stretches, len(p.members.items)/shares)
	if err != nil {
		return nil, err
	}
	d := &draft{order: make([]uint32, len(p.members.items))}
	for i := range d.order {
		d.order[i] = s.position(uint32(i))
	}
	for _, block := range blocks {
		d.ends = append(d.ends, uint32(block.to))
		d.parent = append(d.parent, block.parent)
	}
	return d, nil
}

// whole is all of a block, the tuples that stand alone apart from the others.
func (s *splitter) whole(from, to int, parent uint32) (stretches []recordRange) {
	mid := s.standAlone(from, to)
	for i := from; i < mid; i++ {
		stretches = append(stretches, recordRange{i, i + 1, parent, true})
	}
	if mid < to {
		stretches = append(stretches, recordRange{from: mid, to: to, parent: parent})
	}
	return stretches
}

// cut cuts stretches to their end, several at a time, and returns the blocks
// in order. What holds more than grain records is cut once, and what it falls
// into shared out again.
func (t workerPool) cut(
	ctx context.Context, stretches []recordRange, grain int,
) ([]recordRange, error) {
	var batches [][]recordRange
	for first := 0; first < len(stretches); {
		next, records := first, 0
		for ; next < len(stretches) &&
			(records == 0 || records+stretches[next].to-stretches[next].from <= grain); next++ {
			records += stretches[next].to - stretches[next].from
		}
		batches = append(batches, stretches[first:next])
		first = next
	}
	finished := make([][]recordRange, len(batches))
	group, ctx := errgroup.WithContext(ctx)
	for i, batch := range batches {
		group.Go(func() error {
			if one := batch[0]; !one.settled && one.to-one.from > grain {
				var parts []recordRange
				if err := t.borrow(func(s *splitter) error {
					parts = s.cutOnce(one)
					return ctx.Err()
				}); err != nil {
					return err
				}
				var err error
				finished[i], err = t.cut(ctx, parts, grain)
				return err
			}
			return t.borrow(func(s *splitter) (err error) {
				finished[i], err = s.cutDown(ctx, batch)
				return err
			})
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.Concat(finished...), nil
}

// cutOnce cuts a stretch by its best cut; where none helps it is a block.
func (s *splitter) cutOnce(at recordRange) []recordRange {
	starts := s.cutBlock(at.from, at.to)
	if len(starts) == 0 {
		at.settled = true
		return []recordRange{at}
	}
	parts := make([]recordRange, 0, len(starts)+1)
	from := at.from
	for _, next := range append(starts, at.to) {
		parts = append(parts, recordRange{from: from, to: next, parent: at.parent})
		from = next
	}
	return parts
}

// cutDown cuts stretches to their end and returns the blocks, in their order.
func (s *splitter) cutDown(
	ctx context.Context, stretches []recordRange,
) (blocks []recordRange, err error) {
	var stack []recordRange
	for _, whole := range stretches {
		stack = append(stack[:0], whole)
		for len(stack) > 0 {
			at := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if at.to-at.from > 1024 && ctx.Err() != nil {
				return nil, ctx.Err()
			}
			var starts []int
			if !at.settled {
				starts = s.cutBlock(at.from, at.to)
			}
			for i := len(starts) - 1; i >= 0; i-- {
				stack = append(stack, recordRange{from: starts[i], to: at.to, parent: at.parent})
				at.to = starts[i]
			}
			if len(starts) == 0 {
				blocks = append(blocks, at)
			} else {
				stack = append(stack, at)
			}
		}
	}
	return blocks, nil
}

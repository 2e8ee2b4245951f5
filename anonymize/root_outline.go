package anonymize

import "context"

// A table of up to so many tuples is cut in several ways before its tuples are
// relocated.
const outlined = 1 << 13

// outline drafts the blocks of a root. Cuts are taken back by no later one, and
// the first that gains most can be the wrong one: in a small table, to tell two
// sexes apart leaves blocks of either in which nothing else can be told. So the
// table is cut without each of its columns, too, and what comes of it once more
// along all of them; the draft that loses least is returned.
func outline(
	ctx context.Context, p *Partition, columns []int, weights []float64, must *requirements,
) (*splitter, *draft, error) {
	s, best, err := draftBlocks(ctx, p, columns, weights, must)
	if err != nil || p.Table().Tuples() > outlined || len(columns) == 1 {
		return s, best, err
	}
	measure := &relocation{s: s, columns: columns}
	lowest, _ := measure.loss(best)
	for _, last := range columns {
		others := append([]float64(nil), weights...)
		others[last] = 0
		_, first, err := draftBlocks(ctx, p, without(columns, last), others, must)
		if err != nil {
			return nil, nil, err
		}
		_, d, err := draftBlocks(ctx, first.cuts(p), columns, weights, must)
		if err != nil {
			return nil, nil, err
		}
		if loss, _ := measure.loss(d); loss < lowest {
			best, lowest = d, loss
			clear(d.parent) // tuples may go to any block
		}
	}
	return s, best, nil
}

func without(columns []int, column int) []int {
	var out []int
	for _, c := range columns {
		if c != column {
			out = append(out, c)
		}
	}
	return out
}

// cuts is the partition that a draft for a refinement of p stands for, as it is.
func (d *draft) cuts(p *Partition) *Partition {
	blockAt := make([]uint32, len(d.order))
	for b := range uint32(len(d.ends)) {
		for _, pos := range d.block(b) {
			blockAt[pos] = b
		}
	}
	return assemble(p.ground, blockAt, len(d.ends), nil)
}

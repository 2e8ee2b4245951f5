package anonymize

import "context"

// draftBlocks drafts the blocks for a refinement along columns, given the weight
// of every column of the table. It returns the splitter that did it as well.
func draftBlocks(
	ctx context.Context, p *Partition, columns []int, weights []float64, must *requirements,
) (*splitter, *draft, error) {
	scales := make([]scale, len(weights))
	for c := range scales {
		scales[c] = newScale(p.Table().columns[c].Hierarchy, weights[c])
	}
	s := newSplitter(p.ground, scales, must, exactBelow(p.Table().Tuples()))
	d, err := s.split(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	if s, d, err = s.reserve(ctx, p, d, columns); err != nil {
		return nil, nil, err
	}
	d, err = s.relocate(ctx, d, quickly(p.Table().Tuples()), nil)
	return s, d, err
}

// reserve replaces a draft by one for the columns alone where the outlook on
// others costs more than [MaxOutlookCost].
func (s *splitter) reserve(
	ctx context.Context, p *Partition, d *draft, columns []int,
) (*splitter, *draft, error) {
	if len(columns) == len(s.scales) {
		return s, d, nil
	}
	lost := s.loss(d, columns)
	if lost <= MaxOutlookCost {
		return s, d, nil
	}
	narrow := make([]scale, len(s.scales))
	for _, c := range columns {
		narrow[c] = s.scales[c]
	}
	alone := newSplitter(p.ground, narrow, s.must, s.exactBelow)
	other, err := alone.split(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	if lost-alone.loss(other, columns) > MaxOutlookCost {
		return alone, other, nil
	}
	return s, d, nil
}

// loss is the weighted mean over the columns and all rows of what a draft
// loses, as long as the records of the splitter are in its order.
func (s *splitter) loss(d *draft, columns []int) float64 {
	lost, weight := 0.0, 0.0
	for _, c := range columns {
		weight += s.scales[c].weight
	}
	rows := uint32(0)
	from := uint32(0)
	for _, end := range d.ends {
		s.measure(int(from), int(end))
		block := uint32(0)
		for i := from; i < end; i++ {
			block += s.rowsOf(i)
		}
		for _, c := range columns {
			lost += float64(block) * s.scales[c].price(s.lo[c], s.hi[c])
		}
		rows += block
		from = end
	}
	return lost / weight / float64(rows)
}

package anonymize

import "context"

// plan drafts the blocks for a refinement along columns, given the weight of
// every column of the table.
func plan(ctx context.Context, p *Partition, columns []int, weights []float64, must *requirements) (*draft, error) {
	scales := make([]scale, len(weights))
	for c := range scales {
		scales[c] = newScale(p.Table().columns[c].Hierarchy, weights[c])
	}
	e := effortFor(p.Table().Tuples())
	s := newSplitter(p.ground, scales, must, e.exactBelow)
	d, workers, err := s.split(ctx, p)
	if err != nil {
		return nil, err
	}
	if s, d, workers, err = s.reserve(ctx, p, d, workers, columns); err != nil {
		return nil, err
	}
	if e.passes == 0 {
		return d, nil
	}
	return d, newRepair(s, d, e).run(ctx, d, workers)
}

// reserve replaces a draft by one for the columns alone where the outlook on
// others costs more than [Reserve].
func (s *splitter) reserve(ctx context.Context, p *Partition, d *draft, workers team, columns []int) (*splitter, *draft, team, error) {
	if len(columns) == len(s.scales) {
		return s, d, workers, nil
	}
	lost := s.loss(d, columns)
	if lost <= Reserve {
		return s, d, workers, nil
	}
	narrow := make([]scale, len(s.scales))
	for _, c := range columns {
		narrow[c] = s.scales[c]
	}
	alone := newSplitter(p.ground, narrow, s.must, s.exactBelow)
	other, others, err := alone.split(ctx, p)
	if err != nil {
		return nil, nil, nil, err
	}
	if lost-alone.loss(other, columns) > Reserve {
		return alone, other, others, nil
	}
	return s, d, workers, nil
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

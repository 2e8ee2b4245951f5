package anonymize

import "context"

// splitter cuts blocks top-down. At each block it takes, over all columns and
// all places between two leaves, the cut that lowers the weighted loss the
// most and leaves both sides fit.
type splitter struct {
	ground  *ground
	columns []int
	scales  []scale
	must    *requirements
	census  *census
	spare   []uint32
	hist    []uint32
}

// scale is the price of a range of leaves of one column.
type scale struct {
	hierarchy *Hierarchy
	weight    float64
}

// price is the weighted share of the narrowest node over [lo, hi].
func (s *scale) price(lo, hi uint32) float64 {
	return s.weight * s.hierarchy.Share(s.hierarchy.Cover(lo, hi))
}

func newSplitter(g *ground, columns []int, weights []float64, must *requirements) *splitter {
	s := &splitter{ground: g, columns: columns, must: must, census: newCensus(g)}
	for i, c := range columns {
		s.scales = append(s.scales, scale{g.table.columns[c].Hierarchy, weights[i]})
	}
	s.spare = make([]uint32, len(g.tupleAt))
	return s
}

// split returns the block of each position and the number of blocks.
func (s *splitter) split(ctx context.Context, p *Partition) ([]uint32, int, error) {
	items := append([]uint32(nil), p.members.items...)
	blockAt := make([]uint32, len(items))
	blocks := 0
	for b := range p.Blocks() {
		stack := [][]uint32{items[p.members.start[b]:p.members.start[b+1]]}
		for len(stack) > 0 {
			if err := ctx.Err(); err != nil {
				return nil, 0, err
			}
			block := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if n := s.cut(block); n > 0 {
				stack = append(stack, block[n:], block[:n])
				continue
			}
			for _, pos := range block {
				blockAt[pos] = uint32(blocks)
			}
			blocks++
		}
	}
	return blockAt, blocks, nil
}

// cut reorders the block so that the left side of the best cut comes first,
// and returns its length, or 0 if no cut helps.
func (s *splitter) cut(block []uint32) int {
	bestGain, bestColumn, bestLeaf := 0.0, -1, uint32(0)
	for i := range s.columns {
		if gain, leaf := s.bestCut(block, i); gain > bestGain {
			bestGain, bestColumn, bestLeaf = gain, i, leaf
		}
	}
	if bestColumn < 0 {
		return 0
	}
	leaf := s.ground.leaf[s.columns[bestColumn]]
	right := s.spare[:0]
	n := 0
	for _, pos := range block {
		if leaf[pos] < bestLeaf {
			block[n] = pos
			n++
		} else {
			right = append(right, pos)
		}
	}
	copy(block[n:], right)
	if len(s.must.others) > 0 && !(s.fit(block[:n]) && s.fit(block[n:])) {
		return 0
	}
	return n
}

func (s *splitter) fit(block []uint32) bool {
	tuples := make([]uint32, len(block))
	for i, pos := range block {
		tuples[i] = s.ground.tupleAt[pos]
	}
	return s.must.meetsOthers(tuples)
}

// bestCut finds the first leaf of the right side.
func (s *splitter) bestCut(block []uint32, i int) (gain float64, cut uint32) {
	leaf := s.ground.leaf[s.columns[i]]
	lo, hi := bounds(leaf, block)
	whole := s.scales[i].price(lo, hi)
	if whole == 0 {
		return 0, 0
	}
	buckets := make([][]uint32, hi-lo+1)
	for _, pos := range block {
		buckets[leaf[pos]-lo] = append(buckets[leaf[pos]-lo], pos)
	}
	after := make([]int, len(buckets)+1) // subjects from a leaf on
	rows := make([]int, len(buckets)+1)
	s.census.open()
	for v := len(buckets) - 1; v >= 0; v-- {
		after[v], rows[v] = after[v+1], rows[v+1]
		for _, pos := range buckets[v] {
			after[v] += s.census.add(pos)
			rows[v] += int(s.ground.rows[pos])
		}
	}
	s.census.open()
	before, last := 0, uint32(0)
	for v := range buckets {
		if len(buckets[v]) == 0 {
			continue
		}
		if before >= s.must.k && after[v] >= s.must.k {
			here := lo + uint32(v)
			g := whole*float64(rows[0]) - s.scales[i].price(lo, last)*float64(rows[0]-rows[v]) -
				s.scales[i].price(here, hi)*float64(rows[v])
			if g > gain {
				gain, cut = g, here
			}
		}
		for _, pos := range buckets[v] {
			before += s.census.add(pos)
		}
		last = lo + uint32(v)
	}
	return gain, cut
}

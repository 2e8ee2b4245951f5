package anonymize

import (
	"context"
	"slices"
)

// splitter cuts blocks top-down into the partition of least weighted loss that
// a greedy choice of cuts finds. It works on a copy of the tuples, one record
// each, which it reorders so that every block is contiguous.
type splitter struct {
	ground  *ground
	scales  []scale // one a column; weight 0: the column does not count
	must    *requirements
	census  *census
	stride  int
	work    []uint32 // records: the leaf of each column, rows, position
	stock   [][]uint32
	lo, hi  []uint32
	runs    []run
	packed  []uint64
	options []cut
	tuples  []uint32
}

// run is a leaf that occurs in a block, and how much of the block it and all
// leaves below it hold.
type run struct {
	leaf   uint32
	rows   uint32
	before uint32 // rows of lower leaves
}

// cut takes the tuples with leaves from first to last of a column apart from
// the rest of a block.
type cut struct {
	gain        float64
	column      int
	first, last uint32
}

func newSplitter(g *ground, scales []scale, must *requirements) *splitter {
	columns := len(scales)
	s := &splitter{
		ground: g, scales: scales, must: must, census: newCensus(g), stride: columns + 2,
		lo: make([]uint32, columns), hi: make([]uint32, columns), stock: make([][]uint32, columns),
	}
	for c := range s.stock {
		if n := g.table.columns[c].Hierarchy.Leaves(); scales[c].weight > 0 {
			s.stock[c] = make([]uint32, n)
		}
	}
	return s
}

// load lays out the records of the positions.
func (s *splitter) load(positions []uint32) {
	columns := len(s.scales)
	s.work = make([]uint32, s.stride*len(positions))
	for i, pos := range positions {
		rec := s.work[i*s.stride : (i+1)*s.stride]
		for c := range columns {
			rec[c] = s.ground.leaf[c][pos]
		}
		rec[columns] = s.ground.rows[pos]
		rec[columns+1] = pos
	}
}

// split cuts every block of p as far as it goes and returns the positions
// block by block, with the end of each.
func (s *splitter) split(ctx context.Context, p *Partition) (*draft, error) {
	s.load(p.members.items)
	d := &draft{order: make([]uint32, len(p.members.items)), ends: make([]uint32, 0, 2*p.Blocks())}
	type span struct{ from, to int }
	var stack []span
	for b := range p.Blocks() {
		stack = append(stack[:0], span{int(p.members.start[b]), int(p.members.start[b+1])})
		for len(stack) > 0 {
			at := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if at.to-at.from > 1000 {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
			}
			if mid := s.cutBlock(at.from, at.to); mid > 0 {
				stack = append(stack, span{mid, at.to}, span{at.from, mid})
				continue
			}
			for i := at.from; i < at.to; i++ {
				d.order[i] = s.work[(i+1)*s.stride-1]
			}
			d.ends = append(d.ends, uint32(at.to))
			d.parent = append(d.parent, uint32(b))
		}
	}
	return d, nil
}

// draft is a partition in the making: positions grouped by block.
type draft struct {
	order  []uint32
	ends   []uint32
	parent []uint32 // block -> block of the partition that is refined
}

// cutBlock applies the best cut to the records from from to to, and returns
// where the second part starts, or 0 if no cut helps.
func (s *splitter) cutBlock(from, to int) int {
	if to-from < 2 {
		return 0
	}
	s.measure(from, to)
	best := cut{}
	s.options = s.options[:0]
	keep := len(s.must.others) > 0 || !s.ground.table.RowPerSubject()
	for c := range s.scales {
		if s.scales[c].weight == 0 || s.scales[c].price(s.lo[c], s.hi[c]) == 0 {
			continue
		}
		s.count(from, to, c)
		s.propose(c, keep, &best)
	}
	if !keep {
		if best.gain <= 0 {
			return 0
		}
		return s.apply(from, to, best)
	}
	for tries := 1 << 17 / (to - from); tries > -16 && len(s.options) > 0; tries-- {
		at := 0
		for i := range s.options {
			if s.options[i].gain > s.options[at].gain {
				at = i
			}
		}
		mid := s.apply(from, to, s.options[at])
		if s.fit(from, mid) && s.fit(mid, to) {
			return mid
		}
		s.options = slices.Delete(s.options, at, at+1)
	}
	return 0
}

// measure finds the bounds of the block in every column.
func (s *splitter) measure(from, to int) {
	columns := len(s.scales)
	first := s.work[from*s.stride : from*s.stride+columns]
	copy(s.lo, first)
	copy(s.hi, first)
	for i := from + 1; i < to; i++ {
		rec := s.work[i*s.stride : i*s.stride+columns]
		for c, v := range rec {
			if v < s.lo[c] {
				s.lo[c] = v
			} else if v > s.hi[c] {
				s.hi[c] = v
			}
		}
	}
}

// count fills in the runs of a column.
func (s *splitter) count(from, to, c int) {
	s.runs = s.runs[:0]
	columns := len(s.scales)
	width := int(s.hi[c]-s.lo[c]) + 1
	if width > 8*(to-from) {
		s.packed = s.packed[:0]
		for i := from; i < to; i++ {
			rec := s.work[i*s.stride : (i+1)*s.stride]
			s.packed = append(s.packed, uint64(rec[c])<<32|uint64(rec[columns]))
		}
		slices.Sort(s.packed)
		for _, p := range s.packed {
			if n := len(s.runs); n > 0 && s.runs[n-1].leaf == uint32(p>>32) {
				s.runs[n-1].rows += uint32(p)
				continue
			}
			s.runs = append(s.runs, run{leaf: uint32(p >> 32), rows: uint32(p)})
		}
	} else {
		stock := s.stock[c][s.lo[c] : s.hi[c]+1]
		base := s.lo[c]
		for i := from * s.stride; i < to*s.stride; i += s.stride {
			stock[s.work[i+c]-base] += s.work[i+columns]
		}
		for v, rows := range stock {
			if rows > 0 {
				s.runs = append(s.runs, run{leaf: base + uint32(v), rows: rows})
				stock[v] = 0
			}
		}
	}
	before := uint32(0)
	for i := range s.runs {
		s.runs[i].before = before
		before += s.runs[i].rows
	}
}

// propose weighs all cuts of a column: between two leaves, and of one node
// against the rest.
func (s *splitter) propose(c int, keep bool, best *cut) {
	runs, sc := s.runs, &s.scales[c]
	n := len(runs)
	total := runs[n-1].before + runs[n-1].rows
	k := uint32(s.must.k)
	whole := sc.price(s.lo[c], s.hi[c]) * float64(total)
	offer := func(o cut) {
		if o.gain <= 1e-12*whole {
			return
		}
		if keep {
			s.options = append(s.options, o)
		} else if o.gain > best.gain {
			*best = o
		}
	}
	for i := 1; i < n; i++ {
		left := runs[i].before
		if left < k || total-left < k {
			continue
		}
		gain := whole - sc.price(runs[0].leaf, runs[i-1].leaf)*float64(left) -
			sc.price(runs[i].leaf, runs[n-1].leaf)*float64(total-left)
		offer(cut{gain, c, runs[0].leaf, runs[i-1].leaf})
	}
	h := sc.hierarchy
	top := h.Cover(s.lo[c], s.hi[c]).Level
	for l := range top {
		groupOf := h.levels[l].groupOf
		for i := 0; i < n; {
			j := i + 1
			for j < n && groupOf[runs[j].leaf] == groupOf[runs[i].leaf] {
				j++
			}
			end := total
			if j < n {
				end = runs[j].before
			}
			rows := end - runs[i].before
			if i > 0 && j < n && rows >= k && total-rows >= k {
				gain := (sc.price(s.lo[c], s.hi[c]) - sc.price(runs[i].leaf, runs[j-1].leaf)) * float64(rows)
				offer(cut{gain, c, runs[i].leaf, runs[j-1].leaf})
			}
			i = j
		}
	}
}

// apply reorders the records so that those inside the cut come first, and
// returns where the others start.
func (s *splitter) apply(from, to int, o cut) int {
	i, j := from, to
	for i < j {
		a := s.work[i*s.stride : (i+1)*s.stride]
		if v := a[o.column]; v >= o.first && v <= o.last {
			i++
			continue
		}
		j--
		b := s.work[j*s.stride : (j+1)*s.stride]
		for x := range a {
			a[x], b[x] = b[x], a[x]
		}
	}
	return i
}

// fit says whether the records as a block meet all requirements.
func (s *splitter) fit(from, to int) bool {
	if from == to {
		return false
	}
	s.census.open()
	subjects := 0
	s.tuples = s.tuples[:0]
	for i := from; i < to; i++ {
		pos := s.work[(i+1)*s.stride-1]
		subjects += s.census.add(pos)
		s.tuples = append(s.tuples, s.ground.tupleAt[pos])
	}
	return subjects >= s.must.k && s.must.meetsOthers(s.tuples)
}

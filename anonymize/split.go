package anonymize

import "slices"

// splitter cuts blocks top-down, as Mondrian does ([LeFevre2006] §4), with three
// departures, each because it loses less: a cut is chosen by the loss it saves
// for each bit of room it takes, not at the median of the widest column; a cut
// may set one hierarchy node against the rest, so that blocks need not be
// boxes; tuples that suffice on their own are taken out first. It works on a
// copy of the tuples, one record each, which it reorders so that every block is
// contiguous.
type splitter struct {
	ground  *ground
	scales  []scale // one a column; weight 0: the column does not count
	must    *requirements
	census  *census
	plain   bool // rows are subjects and k is the only requirement
	stride  int
	work    []uint32 // records: the leaf of each column, rows, position
	stock   [][]uint32
	lo, hi  []uint32
	runs    []leafRun
	packed  []uint64
	options []cut
	after   []float64 // run -> price of a row of it and those after it
	starts  []int
	tuples  []uint32

	entropies  [entropySteps]float64 // at the middle of each step
	exactBelow int                   // blocks up to so many tuples weigh cuts over all columns
	bounds     runBounds
}

func newSplitter(g *ground, scales []scale, must *requirements, exactBelow int) *splitter {
	columns := len(scales)
	s := &splitter{
		ground: g, scales: scales, must: must, census: newCensus(g), stride: columns + 2,
		lo: make([]uint32, columns), hi: make([]uint32, columns), stock: make([][]uint32, columns),
		exactBelow: exactBelow, plain: len(must.others) == 0 && g.table.RowPerSubject(),
		bounds: runBounds{columns: columns},
	}
	for i := range s.entropies {
		s.entropies[i] = binaryEntropy((float64(i) + 0.5) / entropySteps)
	}
	for c := range s.stock {
		if n := g.table.columns[c].Hierarchy.Leaves(); scales[c].weight > 0 {
			s.stock[c] = make([]uint32, n)
		}
	}
	return s
}

// load lays out the records of the positions, in place of those before.
func (s *splitter) load(positions []uint32) {
	columns := len(s.scales)
	s.work = slices.Grow(s.work[:0], s.stride*len(positions))[:s.stride*len(positions)]
	for i, pos := range positions {
		rec := s.work[i*s.stride : (i+1)*s.stride]
		tuple := s.ground.tupleAt[pos]
		for c := range columns {
			rec[c] = s.ground.table.tuples[c][tuple]
		}
		rec[columns] = s.ground.rows[pos]
		rec[columns+1] = pos
	}
}

// standAlone puts the tuples that meet all requirements on their own first,
// which are blocks at no loss, and returns where the others start. The others
// must meet the requirements together; otherwise nothing stands alone.
func (s *splitter) standAlone(from, to int) int {
	mid := from
	for i := from; i < to; i++ {
		if int(s.rowsOf(uint32(i))) >= s.must.k && s.fit(i, i+1) {
			s.exchange(mid, i)
			mid++
		}
	}
	if mid < to && !s.fit(mid, to) {
		return from
	}
	return mid
}

// record is all that is known of an item, see load.
func (s *splitter) record(i uint32) []uint32 { return s.work[int(i)*s.stride:][:s.stride] }

func (s *splitter) rowsOf(i uint32) uint32 { return s.work[int(i)*s.stride+s.stride-2] }

func (s *splitter) position(i uint32) uint32 { return s.work[int(i)*s.stride+s.stride-1] }

func (s *splitter) exchange(i, j int) {
	a, b := s.record(uint32(i)), s.record(uint32(j))
	for x := range a {
		a[x], b[x] = b[x], a[x]
	}
}

// cutBlock applies the best cut to the records from from to to, and returns
// where the second and later parts start; nothing if no cut helps.
func (s *splitter) cutBlock(from, to int) []int {
	if to-from < 2 {
		return nil
	}
	s.measure(from, to)
	if to-from > s.exactBelow {
		best := cut{}
		s.proposeAll(from, to, &best)
		if best.gain <= 0 {
			return nil
		}
		if starts := s.fan(from, to, best); starts != nil {
			return starts
		}
		if mid := s.apply(from, to, best); s.plain || s.fit(from, mid) && s.fit(mid, to) {
			return s.inTwo(mid)
		}
	}
	s.proposeAll(from, to, nil)
	return s.applyFit(from, to)
}

// inTwo is what cutBlock returns for two parts.
func (s *splitter) inTwo(mid int) []int {
	s.starts = append(s.starts[:0], mid)
	return s.starts
}

// applyFit applies the best of the options that leaves both parts fit. Of
// large blocks it tries the first few only.
func (s *splitter) applyFit(from, to int) []int {
	for tries := 16 + tried/(to-from); tries > 0 && len(s.options) > 0; tries-- {
		best := 0
		for i := range s.options {
			if s.options[i].gain > s.options[best].gain {
				best = i
			}
		}
		mid := s.apply(from, to, s.options[best])
		if s.plain || s.fit(from, mid) && s.fit(mid, to) {
			return s.inTwo(mid)
		}
		s.options = slices.Delete(s.options, best, best+1)
	}
	return nil
}

// tried bounds the tuples looked at to find a cut that leaves both parts fit.
const tried = 1 << 17

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

// apply reorders the records so that those inside the cut come first, and
// returns where the others start.
func (s *splitter) apply(from, to int, o cut) int {
	i, j := from, to
	for i < j {
		if v := s.work[i*s.stride+o.column]; v >= o.first && v <= o.last {
			i++
			continue
		}
		j--
		s.exchange(i, j)
	}
	return i
}

// fit says whether the records as a block meet all requirements.
func (s *splitter) fit(from, to int) bool {
	if from == to {
		return false
	}
	s.census.open()
	subjects, look := 0, to-from
	if s.must.upward {
		look = 64 // most blocks show at once that they are fit
	}
	s.tuples = s.tuples[:0]
	for i := from; i < to; look *= 8 {
		for end := min(i+look, to); i < end; i++ {
			pos := s.position(uint32(i))
			subjects += s.census.add(pos)
			s.tuples = append(s.tuples, s.ground.tupleAt[pos])
		}
		if subjects >= s.must.k && s.must.meetsOthers(s.tuples) {
			return true
		}
	}
	return false
}

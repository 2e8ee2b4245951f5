package anonymize

// A block of more than fanAbove tuples is cut into all nodes of a level at once
// where the best of them would take less than one part in fanOut. Cutting them
// off one by one would look at the block once for each of its values, which is
// quadratic for long flat hierarchies. In smaller blocks, and where one node
// prevails, one by one loses less.
const (
	fanAbove = 1024
	fanOut   = 16
)

// fan cuts a block into one part for each node, on the level of the best cut,
// that is fit on its own, and a last part for the rest. It returns the starts
// of all parts but the first, or nil if the block is better cut in two, or the
// rest would not be fit.
func (s *splitter) fan(from, to int, o cut) []int {
	h := s.scales[o.column].hierarchy
	level := h.Cover(o.first, o.last).Level
	if to-from <= fanAbove || level >= h.Cover(s.lo[o.column], s.hi[o.column]).Level {
		return nil
	}
	groupOf := h.levels[level].groupOf
	first := groupOf[s.lo[o.column]]
	rows := make([]uint32, groupOf[s.hi[o.column]]-first+1)
	total := 0
	for i := from; i < to; i++ {
		rec := s.record(uint32(i))
		rows[groupOf[rec[o.column]]-first] += rec[len(s.scales)]
		total += int(rec[len(s.scales)])
	}
	if int(rows[groupOf[o.first]-first])*fanOut >= total {
		return nil
	}
	alone := make([]bool, len(rows))
	for g, n := range rows {
		alone[g] = int(n) >= s.must.k
	}
	for {
		starts := s.deal(from, to, o.column, groupOf, first, alone)
		unfit, part := false, 0
		for g := range alone {
			if alone[g] {
				if !s.fit(starts[part], starts[part+1]) {
					alone[g], unfit = false, true
				}
				part++
			}
		}
		if unfit {
			continue
		}
		if rest := starts[part]; part == 0 || rest < to && !s.fit(rest, to) {
			return nil
		} else if rest == to {
			part--
		}
		return starts[1 : part+1]
	}
}

// deal reorders the records so that those of each group that stands alone are
// together, in order, and the others last. It returns the start of each part
// and the end.
func (s *splitter) deal(from, to, column int, groupOf []uint32, first uint32, alone []bool) []int {
	parts := 0
	part := make([]int, len(alone)) // group -> part
	for g := range alone {
		if alone[g] {
			part[g] = parts
			parts++
		}
	}
	for g := range alone {
		if !alone[g] {
			part[g] = parts
		}
	}
	starts := make([]int, parts+2)
	at := func(i int) int { return part[groupOf[s.work[i*s.stride+column]]-first] }
	for i := from; i < to; i++ {
		starts[at(i)+1]++
	}
	starts[0] = from
	for p := range parts + 1 {
		starts[p+1] += starts[p]
	}
	next := append([]int(nil), starts[:parts+1]...)
	for p := range next {
		for next[p] < starts[p+1] {
			q := at(next[p])
			if q != p {
				s.exchange(next[p], next[q])
			}
			next[q]++
		}
	}
	return starts
}

package anonymize

import (
	"math"
	"slices"
)

// leafRun is a leaf that occurs in a block, and how much of the block it and all
// leaves below it hold.
type leafRun struct {
	leaf   uint32
	rows   uint32
	before uint32 // rows of lower leaves
}

// cut takes the tuples with leaves from first to last of a column apart from
// the rest of a block. Its gain is the fall of the loss for each bit of room.
type cut struct {
	gain        float64
	column      int
	first, last uint32
	rows        uint32
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
			s.runs = append(s.runs, leafRun{leaf: uint32(p >> 32), rows: uint32(p)})
		}
	} else {
		stock := s.stock[c][s.lo[c] : s.hi[c]+1]
		base := s.lo[c]
		for i := from * s.stride; i < to*s.stride; i += s.stride {
			stock[s.work[i+c]-base] += s.work[i+columns]
		}
		for v, rows := range stock {
			if rows > 0 {
				s.runs = append(s.runs, leafRun{leaf: base + uint32(v), rows: rows})
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

// proposeAll weighs the cuts of all columns that count and leave something to
// gain: it finds the best, or where best is nil keeps all as options, with
// their gain over all columns.
func (s *splitter) proposeAll(from, to int, best *cut) {
	s.options = s.options[:0]
	for c := range s.scales {
		if s.scales[c].weight == 0 || s.scales[c].price(s.lo[c], s.hi[c]) == 0 {
			continue
		}
		s.count(from, to, c)
		exact := best == nil && to-from <= s.exactBelow
		if exact {
			s.bounds.measure(s, from, to, c)
		}
		s.propose(c, func(gain float64, i, j int, rows uint32) {
			total := s.runs[len(s.runs)-1].before + s.runs[len(s.runs)-1].rows
			if exact {
				gain = s.bounds.gain(s, i, j, rows, total)
			}
			o := cut{gain / s.bits(rows, total), c, s.runs[i].leaf, s.runs[j-1].leaf, rows}
			switch {
			case best == nil:
				s.options = append(s.options, o)
			case o.gain > best.gain:
				*best = o
			}
		})
	}
}

// propose offers the cuts of a column that lower its loss, with the fall of it
// times rows: between two leaves, and of one node against the rest. A cut takes
// the runs from i up to j out.
func (s *splitter) propose(c int, offer func(gain float64, i, j int, rows uint32)) {
	runs, sc := s.runs, &s.scales[c]
	n := len(runs)
	total := runs[n-1].before + runs[n-1].rows
	k := uint32(s.must.k)
	price := sc.price(s.lo[c], s.hi[c])
	whole := price * float64(total)
	least := 1e-12 * whole
	s.after = slices.Grow(s.after[:0], n)[:n]
	back := sc.sweep(runs[n-1].leaf)
	for i := n - 1; i > 0; i-- {
		s.after[i] = back.to(runs[i].leaf)
	}
	ahead := sc.sweep(runs[0].leaf)
	for i := 1; i < n; i++ {
		left, before := runs[i].before, ahead.to(runs[i-1].leaf)
		if left < k || total-left < k {
			continue
		}
		if gain := whole - before*float64(left) - s.after[i]*float64(total-left); gain > least {
			offer(gain, 0, i, left)
		}
	}
	h := sc.hierarchy
	top := h.Cover(s.lo[c], s.hi[c]).Level
	for l := range top {
		groupOf := h.levels[l].groupOf
		for i := 0; i < n; {
			j, group := i+1, groupOf[runs[i].leaf]
			for j < n && groupOf[runs[j].leaf] == group {
				j++
			}
			end := total
			if j < n {
				end = runs[j].before
			}
			rows := end - runs[i].before
			if i > 0 && j < n && rows >= k && total-rows >= k {
				if gain := (price - sc.price(runs[i].leaf, runs[j-1].leaf)) * float64(rows); gain > least {
					offer(gain, i, j, rows)
				}
			}
			i = j
		}
	}
}

// bits is the room that a cut takes up: how much it tells of a row, by the
// entropy of its two parts. All but lopsided cuts are looked up.
func (s *splitter) bits(part, total uint32) float64 {
	p := float64(part) / float64(total)
	if i := p * entropySteps; i >= 16 && i < entropySteps-16 {
		return s.entropies[int(i)]
	}
	return binaryEntropy(p)
}

// entropySteps is the length of the table of entropies.
const entropySteps = 1024

func binaryEntropy(p float64) float64 {
	return -(p*math.Log(p) + (1-p)*math.Log(1-p)) / math.Ln2
}

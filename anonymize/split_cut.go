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
		o.gain /= s.bits(o.rows, total)
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
		offer(cut{gain, c, runs[0].leaf, runs[i-1].leaf, left})
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
				offer(cut{gain, c, runs[i].leaf, runs[j-1].leaf, rows})
			}
			i = j
		}
	}
}

// gain is the exact gain of a cut: propose looks at the cut column
// only, but the parts may be narrower in others too.
func (s *splitter) gain(from, to int, o cut) float64 {
	columns := len(s.scales)
	rows := [2]uint32{}
	for i := from; i < to; i++ {
		rec := s.record(uint32(i))
		side := 1
		if v := rec[o.column]; v >= o.first && v <= o.last {
			side = 0
		}
		lo, hi := s.sideLo[side], s.sideHi[side]
		if rows[side] == 0 {
			copy(lo, rec[:columns])
			copy(hi, rec[:columns])
		}
		rows[side] += rec[columns]
		for c, v := range rec[:columns] {
			if v < lo[c] {
				lo[c] = v
			} else if v > hi[c] {
				hi[c] = v
			}
		}
	}
	gain := 0.0
	for c := range s.scales {
		sc := &s.scales[c]
		if sc.weight == 0 {
			continue
		}
		gain += sc.price(s.lo[c], s.hi[c]) * float64(rows[0]+rows[1])
		for side, n := range rows {
			gain -= sc.price(s.sideLo[side][c], s.sideHi[side][c]) * float64(n)
		}
	}
	return gain / s.bits(rows[0], rows[0]+rows[1])
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

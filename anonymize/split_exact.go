package anonymize

import "slices"

// runBounds are the bounds, in all columns, of the records of each run of one
// column, of the runs up to each, and of those from each on. They serve to
// price the parts of any cut of a small block without another look at it.
type runBounds struct {
	columns         int
	run, upTo, from []bound // [run*columns+column]
}

type bound struct{ lo, hi uint32 }

func (b bound) with(other bound) bound {
	return bound{min(b.lo, other.lo), max(b.hi, other.hi)}
}

// nothing is the bound of no record.
var nothing = bound{lo: ^uint32(0)}

// measure takes the bounds of the runs of a column, which count has filled in.
func (b *runBounds) measure(s *splitter, from, to, column int) {
	n := len(s.runs)
	size := n * b.columns
	b.run = slices.Grow(b.run[:0], size)[:size]
	for i := range b.run {
		b.run[i] = nothing
	}
	for i := from; i < to; i++ {
		rec := s.record(uint32(i))
		r := s.runOf(rec[column])
		of := b.run[r*b.columns:][:b.columns]
		for c, v := range rec[:b.columns] {
			of[c] = of[c].with(bound{v, v})
		}
	}
	b.upTo = append(b.upTo[:0], b.run...)
	for i := b.columns; i < size; i++ {
		b.upTo[i] = b.upTo[i].with(b.upTo[i-b.columns])
	}
	b.from = append(b.from[:0], b.run...)
	for i := size - b.columns - 1; i >= 0; i-- {
		b.from[i] = b.from[i].with(b.from[i+b.columns])
	}
}

// runOf finds the run of a leaf.
func (s *splitter) runOf(leaf uint32) int {
	lo, hi := 0, len(s.runs)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; s.runs[mid].leaf <= leaf {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// gain is the fall of the loss, times rows, over all columns that count, by a
// cut that takes the runs from i up to j, with so many of the rows, out.
func (b *runBounds) gain(s *splitter, i, j int, rows, total uint32) float64 {
	gain := 0.0
	for c := range s.scales {
		sc := &s.scales[c]
		if sc.weight == 0 {
			continue
		}
		inside := b.upTo[(j-1)*b.columns+c]
		if i > 0 {
			inside = nothing
			for r := i; r < j; r++ {
				inside = inside.with(b.run[r*b.columns+c])
			}
		}
		outside := nothing
		if i > 0 {
			outside = b.upTo[(i-1)*b.columns+c]
		}
		if j < len(s.runs) {
			outside = outside.with(b.from[j*b.columns+c])
		}
		gain += sc.price(s.lo[c], s.hi[c])*float64(total) - sc.price(inside.lo, inside.hi)*float64(rows) -
			sc.price(outside.lo, outside.hi)*float64(total-rows)
	}
	return gain
}

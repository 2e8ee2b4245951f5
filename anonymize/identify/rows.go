package identify

import (
	"math/rand/v2"
	"slices"
)

// Rows are the cells of some columns as codes: two cells of a column are equal
// where their codes are.
type Rows struct {
	Names []string
	Codes [][]uint32 // [column][row]; codes are dense from 0
	// Texts has the value of each code of a column, nil where a column has more
	// than [TextsAtMost].
	Texts [][]string
	Count int
	// Share of the rows of the table that these are.
	Share float64
}

// Coder numbers the values of a column densely from 0.
type Coder[T comparable] map[T]uint32

// Code is the number of a value.
func (c Coder[T]) Code(value T) uint32 {
	code, known := c[value]
	if !known {
		code = uint32(len(c))
		c[value] = code
	}
	return code
}

// NewRows encodes the columns of the names, each of count cells. Of more than
// atMost rows it takes that many, chosen at random and the same every time.
func NewRows(names []string, cells [][]string, count, atMost int) *Rows {
	r := &Rows{Names: names, Count: count, Share: 1}
	var chosen []bool
	if count > atMost {
		chosen = sample(count, atMost)
		r.Count, r.Share = atMost, float64(atMost)/float64(count)
	}
	for _, column := range cells {
		coder := Coder[string]{}
		codes := make([]uint32, 0, r.Count)
		for row, cell := range column {
			if chosen == nil || chosen[row] {
				codes = append(codes, coder.Code(cell))
			}
		}
		r.Codes, r.Texts = append(r.Codes, codes), append(r.Texts, coder.list())
	}
	return r
}

// list has the values of the codes, nil for too many.
func (c Coder[T]) list() []T {
	if len(c) > TextsAtMost {
		return nil
	}
	values := make([]T, len(c))
	for value, code := range c {
		values[code] = value
	}
	return values
}

// Of are the columns of the names alone.
func (r *Rows) Of(names []string) *Rows {
	out := &Rows{Count: r.Count, Share: r.Share}
	for c, name := range r.Names {
		if slices.Contains(names, name) {
			out.Names, out.Codes = append(out.Names, name), append(out.Codes, r.Codes[c])
			out.Texts = append(out.Texts, r.Texts[c])
		}
	}
	return out
}

// sample marks n of count rows, each set of n with the same probability.
func sample(count, n int) []bool {
	random := rand.New(rand.NewPCG(1, 2))
	chosen := make([]bool, count)
	for row := range count {
		if random.IntN(count-row) < n {
			chosen[row] = true
			n--
		}
	}
	return chosen
}

// groups are the rows that some columns tell from all rows but those of their
// own group: rows[ends[i-1]:ends[i]] are equal in these columns. Rows that are
// equal to no other are left out, as they stay so whatever column is added.
type groups struct{ rows, ends []uint32 }

// everything is one group of all rows.
func everything(count int) *groups {
	g := &groups{rows: make([]uint32, count), ends: []uint32{uint32(count)}}
	for i := range g.rows {
		g.rows[i] = uint32(i)
	}
	return g
}

// each calls f with the rows of every group.
func (g *groups) each(f func(rows []uint32)) {
	start := uint32(0)
	for _, end := range g.ends {
		f(g.rows[start:end])
		start = end
	}
}

// tally counts codes, in time proportional to what is counted.
type tally struct{ counts, touched []uint32 }

func newTally(codes []uint32) *tally {
	most := uint32(0)
	for _, c := range codes {
		most = max(most, c)
	}
	return &tally{counts: make([]uint32, most+1)}
}

func (t *tally) add(code uint32) {
	if t.counts[code] == 0 {
		t.touched = append(t.touched, code)
	}
	t.counts[code]++
}

func (t *tally) reset() {
	for _, code := range t.touched {
		t.counts[code] = 0
	}
	t.touched = t.touched[:0]
}

// refine tells the rows of each group apart by a column more.
func (g *groups) refine(codes []uint32, t *tally) *groups {
	out := &groups{rows: make([]uint32, 0, len(g.rows))}
	g.each(func(rows []uint32) {
		for _, row := range rows {
			t.add(codes[row])
		}
		// Counts become places in the output, 0 for codes of a single row.
		at := uint32(len(out.rows))
		for _, code := range t.touched {
			n := t.counts[code]
			if t.counts[code] = 0; n > 1 {
				t.counts[code] = at + 1
				at += n
				out.ends = append(out.ends, at)
			}
		}
		out.rows = out.rows[:at]
		for _, row := range rows {
			if place := t.counts[codes[row]]; place > 0 {
				out.rows[place-1] = row
				t.counts[codes[row]]++
			}
		}
		t.reset()
	})
	return out
}

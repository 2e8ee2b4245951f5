package catalog

import (
	"cmp"
	"slices"
)

// A table of many rows is cut into parts by how many of them each cell has: rows whose
// values are in the same buckets of all columns. PostgreSQL counts them (parts.go).

// mostCells bounds the cells that there can be, most of them without a row.
const mostCells = 1 << 16

// gridCell is one that has rows. Its number has its buckets as digits, the first column's lowest.
type gridCell struct {
	number, rows int
	buckets      []int // by column
}

// grid divides the values of each column, in the order of their hierarchy, into
// buckets of about as many rows each.
type grid struct {
	sizes []int   // how many each column has
	place [][]int // [column][leaf]: the number of a cell is the sum over its columns
}

// newGrid finds the buckets by how often values occur: rows[column][leaf].
func newGrid(rows [][]int) *grid {
	g := &grid{sizes: make([]int, len(rows))}
	values, cells := make([]int, len(rows)), 1
	for c, of := range rows {
		g.sizes[c] = 1
		for _, n := range of {
			if n > 0 {
				values[c]++
			}
		}
	}
	for {
		least := -1
		for c, size := range g.sizes {
			if size < values[c] && cells/size*(size+1) <= mostCells &&
				(least < 0 || size < g.sizes[least]) {
				least = c
			}
		}
		if least < 0 {
			break
		}
		cells = cells / g.sizes[least] * (g.sizes[least] + 1)
		g.sizes[least]++
	}
	digit := 1
	for c, of := range rows {
		all := 0
		for _, n := range of {
			all += n
		}
		place, before := make([]int, len(of)), 0
		for leaf, n := range of { // by the row in its middle
			place[leaf] = digit * min((2*before+n)*g.sizes[c]/max(2*all, 1), g.sizes[c]-1)
			before += n
		}
		g.place = append(g.place, place)
		digit *= g.sizes[c]
	}
	return g
}

// cell is that of a number.
func (g *grid) cell(number, rows int) gridCell {
	c := gridCell{number, rows, make([]int, len(g.sizes))}
	for column, size := range g.sizes {
		c.buckets[column] = number % size
		number /= size
	}
	return c
}

// tablePart is a set of cells. Its halves are divided further; it has none if it is not.
type tablePart struct {
	cells  []gridCell
	rows   int
	halves []*tablePart
}

func newPart(cells []gridCell) *tablePart {
	p := &tablePart{cells: cells}
	for i := range cells {
		p.rows += cells[i].rows
	}
	return p
}

// divide cuts cells until no part has more than so many rows, or has nothing to be cut
// by: at the middle of the column that has the most buckets left, so that a part loses
// least by what the cut keeps apart. It sorts the cells.
func divide(cells []gridCell, most int) *tablePart {
	p := newPart(cells)
	column := widest(cells)
	if p.rows <= most || column < 0 {
		return p
	}
	slices.SortFunc(cells, func(x, y gridCell) int {
		return cmp.Or(cmp.Compare(x.buckets[column], y.buckets[column]), cmp.Compare(x.number, y.number))
	})
	at, before, best := 0, 0, p.rows
	for i := range cells {
		off := 2*before - p.rows
		if off = max(off, -off); i > 0 && off < best &&
			cells[i].buckets[column] > cells[i-1].buckets[column] {
			at, best = i, off
		}
		before += cells[i].rows
	}
	p.halves = []*tablePart{divide(cells[:at:at], most), divide(cells[at:], most)}
	return p
}

// widest is the column with the most buckets that cells are in, -1 where all are in the
// same ones.
func widest(cells []gridCell) int {
	best, most := -1, 1
	if len(cells) == 0 {
		return best
	}
	for column := range cells[0].buckets {
		seen := make(map[int]bool)
		for i := range cells {
			seen[cells[i].buckets[column]] = true
		}
		if len(seen) > most {
			best, most = column, len(seen)
		}
	}
	return best
}

// settle finds the parts into which one is divided in the end. Where one cannot be shown by
// itself, it is put together with the smallest beside it, and with the next as long as that
// is not enough. could says that all can be shown; else one part is left.
func (p *tablePart) settle(can func(*tablePart) (bool, error)) (
	parts []*tablePart, could bool, err error,
) {
	if p.halves == nil {
		could, err = can(p)
		return []*tablePart{p}, could, err
	}
	var failing []gridCell
	for _, half := range p.halves {
		settled, could, err := half.settle(can)
		if err != nil {
			return nil, false, err
		}
		if could {
			parts = append(parts, settled...)
		} else {
			failing = append(failing, settled[0].cells...)
		}
	}
	for len(failing) > 0 {
		if len(parts) > 0 {
			at := 0
			for i := range parts {
				if parts[i].rows < parts[at].rows {
					at = i
				}
			}
			failing = append(failing, parts[at].cells...)
			parts = slices.Delete(parts, at, at+1)
		}
		together := newPart(failing)
		if could, err = can(together); err != nil {
			return nil, false, err
		}
		if could || len(parts) == 0 {
			return append(parts, together), could, nil
		}
	}
	return parts, true, nil
}

package anonymize

import (
	"cmp"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// DrawAll draws values of several columns, by their margins, as [Sketch.Draw] does. Of two
// columns that nearly determine one another, such as age and date of birth, the values of
// a row are drawn together: in proportions that make the labels of both most likely (EM,
// [Dempster1977]), raked to both margins. A column is in one such pair at most. random is
// called once for each column, in their order.
//
// Guarantee: as of Draw, of the sketch, all margins and chance. Tests:
// TestValuesFollowFromLabelsAndMargins, TestPairsComeInRandomOrder.
func (s *Sketch) DrawAll(margins map[int]*Margin, random func() *rand.Rand) map[int]*Values {
	indexes := make(map[int]*cellIndex, len(margins))
	chance := make(map[int]*rand.Rand, len(margins))
	s.masses = nil
	if s.Large {
		s.masses = make([][]float64, len(s.Hierarchies))
		for column := range s.masses {
			s.masses[column] = s.index(column, margins[column]).masses()
		}
	}
	out := make(map[int]*Values, len(margins))
	columns := make([]int, 0, len(margins))
	for column := range s.Hierarchies {
		if m, drawn := margins[column]; drawn {
			columns = append(columns, column)
			indexes[column], chance[column] = s.index(column, m), random()
		}
	}
	var drawing errgroup.Group // each column's draw holds 16 bytes a row
	drawing.SetLimit(runtime.GOMAXPROCS(0))
	var writing sync.Mutex
	keep := func(column int, v *Values) {
		writing.Lock()
		defer writing.Unlock()
		out[column] = v
	}
	paired := make(map[int]bool)
	for _, p := range s.pairs(columns, margins) {
		first, second := indexes[p.first], indexes[p.second]
		if len(first.margin.Cells) > len(second.margin.Cells) {
			first, second = second, first
		}
		paired[p.first], paired[p.second] = true, true
		drawing.Go(func() error {
			density := s.likely(first, second)
			values := s.draw(first, &companion{sketch: s, x: second, density: density.at},
				chance[first.column])
			after := &companion{
				sketch: s, x: first, values: values,
				density: func(own, other int) float64 { return density.at(other, own) },
			}
			others := s.draw(second, after, chance[second.column])
			for block, own := range values.Of {
				chance[second.column].Shuffle(len(own), func(i, j int) {
					own[i], own[j] = own[j], own[i]
					of := others.Of[block]
					of[i], of[j] = of[j], of[i]
				})
			}
			keep(first.column, values)
			keep(second.column, others)
			return nil
		})
	}
	for _, column := range columns {
		if !paired[column] {
			drawing.Go(func() error {
				keep(column, s.draw(indexes[column], nil, chance[column]))
				return nil
			})
		}
	}
	_ = drawing.Wait()
	return out
}

// companion is what a row shows of another column, of which some cells are likely beside
// those of the own one: a label, or a value if that has been drawn.
type companion struct {
	sketch  *Sketch
	x       *cellIndex
	values  *Values
	density func(own, other int) float64 // of two cells, see [densities]
}

// known are rows of a block of which the companion is the same.
type known struct {
	node        Node // the label, or the cell of the value
	first, rows int
}

// parts are the rows of a block by companion. It sorts the values of the companion.
func (c *companion) parts(block, rows int) []known {
	switch {
	case c == nil:
		return []known{{rows: rows}}
	case c.values == nil:
		return []known{{node: c.sketch.Labels[block][c.x.column], rows: rows}}
	}
	own := c.values.Of[block]
	slices.SortFunc(own, func(x, y uint32) int {
		return cmp.Compare(c.values.cell[x], c.values.cell[y])
	})
	var out []known
	for row, place := range own {
		if row == 0 || c.values.cell[place] != c.values.cell[own[row-1]] {
			out = append(out, known{node: c.x.nodes[c.values.cell[place]], first: row})
		}
		out[len(out)-1].rows++
	}
	return out
}

// weigh weighs shares by how likely they are beside a companion.
func (c *companion) weigh(shares []share, n Node) {
	others := []share{{cell: c.x.at[n], weight: 1}}
	if c.values == nil {
		others = c.x.shares(n)
	}
	for i := range shares {
		sum := 0.0
		for _, o := range others {
			sum += o.weight * c.density(shares[i].cell, o.cell)
		}
		shares[i].weight *= sum
	}
}

// Bounds of the pairing.
const (
	mostCellPairs   = 1 << 20
	mostGroups      = 32      // of a level by which columns are compared
	leastKnown      = 0.1     // of all rows, by which columns are compared
	determined      = 0.5     // of the entropy of a column, by the other one
	expectations    = 30      // iterations of the expectation-maximization algorithm,
	mostExpected    = 1 << 27 // pairs of cells that all of them look at, about
	independentPart = 1e-3
)

// densities are how many people have a value of one cell and a value of another column's
// cell, for each pair of values.
type densities struct {
	of    []float64
	width int
}

func (d *densities) at(first, second int) float64 { return d.of[first*d.width+second] }

// likely estimates densities from labels and margins: those that make the labels most
// likely, fitted to both margins, and a little as if columns were independent.
func (s *Sketch) likely(a, b *cellIndex) *densities {
	type labels struct{ a, b Node }
	rows := make(map[labels]int)
	var seen []labels
	sharesA, sharesB := make(map[Node][]share), make(map[Node][]share)
	for block, n := range s.Rows {
		l := labels{s.Labels[block][a.column], s.Labels[block][b.column]}
		if rows[l] == 0 {
			seen = append(seen, l)
			if sharesA[l.a] == nil {
				sharesA[l.a] = a.shares(l.a)
			}
			if sharesB[l.b] == nil {
				sharesB[l.b] = b.shares(l.b)
			}
		}
		rows[l] += n
	}
	looks := 1
	for _, l := range seen {
		looks += len(sharesA[l.a]) * len(sharesB[l.b])
	}
	sizeA, sizeB := a.sizes(), b.sizes()
	d := &densities{of: make([]float64, len(sizeA)*len(sizeB)), width: len(sizeB)}
	for i := range d.of {
		d.of[i] = 1
	}
	people := make([]float64, len(d.of))
	for range min(expectations, 1+mostExpected/looks) {
		clear(people)
		for _, l := range seen {
			all := 0.0
			for _, x := range sharesA[l.a] {
				for _, y := range sharesB[l.b] {
					all += x.weight * y.weight * d.at(x.cell, y.cell)
				}
			}
			for _, x := range sharesA[l.a] {
				for _, y := range sharesB[l.b] {
					people[x.cell*d.width+y.cell] += float64(rows[l]) * x.weight * y.weight * d.at(x.cell,
						y.cell) / all
				}
			}
		}
		meet(people, d.width, a.margin, b.margin)
		total := 0.0
		for _, n := range people {
			total += n
		}
		for i := range people {
			x, y := i/d.width, i%d.width
			alike := float64(a.margin.Cells[x].Rows) * float64(b.margin.Cells[y].Rows) / total
			d.of[i] = ((1-independentPart)*people[i] + independentPart*alike) / (sizeA[x] * sizeB[y])
		}
	}
	return d
}

// meet scales a table of people to the margin of its rows, and then of its columns.
func meet(people []float64, width int, rows, columns *Margin) {
	byRow, byColumn := make([]float64, len(rows.Cells)), make([]float64, width)
	for i, n := range people {
		byRow[i/width] += n
	}
	for i := range people {
		if sum := byRow[i/width]; sum > 0 {
			people[i] *= float64(rows.Cells[i/width].Rows) / sum
		}
		byColumn[i%width] += people[i]
	}
	for i := range people {
		if sum := byColumn[i%width]; sum > 0 {
			people[i] *= float64(columns.Cells[i%width].Rows) / sum
		}
	}
}

// sizes are how many values each cell has.
func (x *cellIndex) sizes() []float64 {
	out := make([]float64, len(x.nodes))
	for i, n := range x.nodes {
		out[i] = max(1, x.region(n).size)
	}
	return out
}

// pair are two columns that nearly determine one another.
type pair struct{ first, second int }

// pairs finds such columns among those whose margins are known, the most alike first: the
// mutual information of their labels, at the lowest level with few groups, is more than a
// share of the entropy of one of them, less what chance alone is expected to yield.
func (s *Sketch) pairs(columns []int, margins map[int]*Margin) []pair {
	type likeness struct {
		pair
		share float64
	}
	var found []likeness
	for i, first := range columns {
		for _, second := range columns[i+1:] {
			a, b := margins[first], margins[second]
			if a == nil || b == nil || len(a.Cells) == 0 || len(b.Cells) == 0 ||
				len(a.Cells)*len(b.Cells) > mostCellPairs {
				continue
			}
			if share := s.likeness(first, second); share > determined {
				found = append(found, likeness{pair{first, second}, share})
			}
		}
	}
	slices.SortStableFunc(found, func(x, y likeness) int { return cmp.Compare(y.share, x.share) })
	var out []pair
	used := make(map[int]bool)
	for _, f := range found {
		if !used[f.first] && !used[f.second] {
			used[f.first], used[f.second] = true, true
			out = append(out, f.pair)
		}
	}
	return out
}

// likeness is the share of the entropy of one of two columns that the other one tells.
func (s *Sketch) likeness(first, second int) float64 {
	var levels [2]int
	for i, column := range []int{first, second} {
		h := s.Hierarchies[column]
		for h.Groups(levels[i]) > mostGroups {
			levels[i]++
		}
	}
	group := func(block, column, level int) (uint32, bool) {
		n := s.Labels[block][column]
		leaf, _ := s.Hierarchies[column].Range(n)
		return s.Hierarchies[column].Generalize(leaf, level), n.Level <= level
	}
	var rows [mostGroups * mostGroups]float64
	var ofFirst, ofSecond [mostGroups]float64
	for block, own := range s.Rows {
		x, known := group(block, first, levels[0])
		y, too := group(block, second, levels[1])
		if known && too {
			rows[x*mostGroups+y] += float64(own)
			ofFirst[x] += float64(own)
			ofSecond[y] += float64(own)
		}
	}
	n, groups := sumAndNonzero(ofFirst[:])
	_, others := sumAndNonzero(ofSecond[:])
	all := 0
	for _, own := range s.Rows {
		all += own
	}
	// What a few rows are like says nothing of those whose labels are wide.
	if groups < 2 || others < 2 || n < leastKnown*float64(all) {
		return 0
	}
	x, y := entropyOf(ofFirst[:], n), entropyOf(ofSecond[:], n)
	return (x + y - entropyOf(rows[:], n) - float64((groups-1)*(others-1))/(2*n)) / min(x, y)
}

func sumAndNonzero(rows []float64) (sum float64, nonzero int) {
	for _, n := range rows {
		sum += n
		if n > 0 {
			nonzero++
		}
	}
	return sum, nonzero
}

// entropyOf is in nats.
func entropyOf(rows []float64, all float64) (sum float64) {
	for _, n := range rows {
		if n > 0 {
			sum -= n / all * math.Log(n/all)
		}
	}
	return sum
}

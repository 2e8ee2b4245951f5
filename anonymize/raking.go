package anonymize

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// Sketch is what a release shows of its blocks: how many rows each has, and its label in
// each column.
type Sketch struct {
	Hierarchies []*Hierarchy
	Rows        []int    // of each block
	Labels      [][]Node // [block][column]
	Large       bool     // blocks have many times k rows, and are cut along few columns

	masses [][]float64 // [column] of [cellIndex.masses], where blocks are large
}

// Sketch is what a partition shows.
func (p *Partition) Sketch() *Sketch {
	s := &Sketch{}
	for _, c := range p.Table().Columns() {
		s.Hierarchies = append(s.Hierarchies, c.Hierarchy)
	}
	for block := range uint32(p.Blocks()) {
		labels := make([]Node, len(s.Hierarchies))
		for i := range labels {
			labels[i] = p.Cover(block, i)
		}
		s.Rows, s.Labels = append(s.Rows, p.Rows(block)), append(s.Labels, labels)
	}
	return s
}

// Values are values of one column, each told by its place in Texts; place 0 is NULL.
type Values struct {
	Texts []string
	Of    [][]uint32 // [block][row]

	cell []int // of the margin that each text counts in
}

// Draw draws a value for each row of a column: one that the label of its block covers, in
// proportions raked to a margin (iterative proportional fitting, [Deming1940]), so
// that all values together meet the margin as exactly as rounding allows. A margin that is
// nil or has no cells spreads values evenly.
//
// Values of one label are spread evenly over its cells, over each cell's values, and over
// blocks in the order of their other labels, so that any part of the release that other
// columns tell has its share of each. Those that other blocks show by a narrower label,
// the other columns being alike, are drawn rarely: the cuts have taken them out. Within a
// block values come in random order.
//
// Guarantee: a function of the sketch, the margin and chance alone. Whoever sees values
// learns nothing that labels and margins do not tell; who of a block has which payload
// least of all. Test: TestValuesFollowFromLabelsAndMargins.
func (s *Sketch) Draw(column int, m *Margin, random *rand.Rand) *Values {
	return s.draw(s.index(column, m), nil, random)
}

// draw draws values of a column, in view of another one that is like it; nil for none.
func (s *Sketch) draw(x *cellIndex, beside *companion, random *rand.Rand) *Values {
	out := &Values{Texts: []string{""}, Of: make([][]uint32, len(s.Rows)), cell: []int{0}}
	total := 0
	for _, rows := range s.Rows {
		total += rows
	}
	all := make([]uint32, total)
	for block, rows := range s.Rows {
		out.Of[block], all = all[:rows:rows], all[rows:]
	}
	known := make(map[string]uint32)
	groups := s.groups(x, beside)
	x.rake(groups)
	for _, group := range groups {
		var drawn []uint32
		for _, share := range group.shares {
			start := random.Float64()
			for i := range share.rows {
				text, null := share.region.at((float64(i) + start) / float64(share.rows))
				if null {
					out.cell[0] = share.cell
					drawn = append(drawn, 0)
					continue
				}
				place, found := known[text]
				if !found {
					place = uint32(len(out.Texts))
					known[text] = place
					out.Texts, out.cell = append(out.Texts, text), append(out.cell, share.cell)
				}
				drawn = append(drawn, place)
			}
		}
		group.deal(drawn, out.Of, random)
	}
	return out
}

// labelled are rows that show one label in a column, and of which as much is known besides
// as decides how often values are drawn.
type labelled struct {
	label   Node
	members []member
	rows    int
	shares  []share
}

// member are rows of a block.
type member struct{ block, first, rows int }

// mostShares bounds what is kept of a column. Beyond it, blocks of a label are drawn for
// alike.
const mostShares = 1 << 18

// groups are the rows by label and by what is known besides, those of one label in the
// order of their other labels.
func (s *Sketch) groups(x *cellIndex, beside *companion) []labelled {
	type kept struct {
		Node
		taken  string
		beside Node
	}
	at := make(map[kept]int)
	ofLabel := make(map[Node][]share)
	var out []labelled
	shares := 0
	taken := newTaken(s, x)
	if s.masses != nil {
		taken.byDensity(s, x)
	}
	for _, block := range taken.order {
		label := s.Labels[block][x.column]
		for _, part := range beside.parts(block, s.Rows[block]) {
			key := kept{Node: label}
			if label.Level > 0 && shares < mostShares {
				key.taken, key.beside = taken.of[block], part.node
			}
			g, known := at[key]
			if !known {
				if ofLabel[label] == nil {
					ofLabel[label] = x.shares(label)
				}
				g = len(out)
				at[key] = g
				own := slices.Clone(ofLabel[label])
				if key.taken != "" {
					taken.weigh(key.taken, own)
				}
				if beside != nil && label.Level > 0 && key.beside == part.node {
					beside.weigh(own, part.node)
				}
				shares += len(own)
				out = append(out, labelled{label: label, shares: own})
			}
			out[g].members = append(out[g].members, member{block, part.first, part.rows})
			out[g].rows += part.rows
		}
	}
	slices.SortStableFunc(out, func(x, y labelled) int { return compareNodes(x.label, y.label) })
	return out
}

func compareNodes(x, y Node) int {
	return cmp.Or(cmp.Compare(x.Level, y.Level), cmp.Compare(x.Group, y.Group))
}

// deal hands values, which are in order, to the rows of blocks. Rows take them at places
// that go round by the golden ratio: of any stretch of rows the places are spread evenly.
func (g *labelled) deal(drawn []uint32, of [][]uint32, random *rand.Rand) {
	type seat struct {
		at  float64
		row int
	}
	seats := make([]seat, len(drawn))
	start := random.Float64()
	for i := range seats {
		_, at := math.Modf(start + float64(i)*math.Phi)
		seats[i] = seat{at, i}
	}
	slices.SortFunc(seats, func(x, y seat) int { return cmp.Compare(x.at, y.at) })
	dealt := make([]uint32, len(drawn))
	for i, value := range drawn {
		dealt[seats[i].row] = value
	}
	for _, m := range g.members {
		own := of[m.block][m.first : m.first+m.rows]
		dealt = dealt[copy(own, dealt):]
		random.Shuffle(len(own), func(i, j int) { own[i], own[j] = own[j], own[i] })
	}
}

// share is how many rows of a label have values of a region.
type share struct {
	region
	cell   int
	weight float64
	rows   int
}

// Bounds of the fitting.
const (
	mostFittings = 200
	closeFit     = 1e-4 // of a cell's rows
)

// rake divides the rows of each group among the cells of the margin.
func (x *cellIndex) rake(groups []labelled) {
	got := make([]float64, len(x.margin.Cells))
	for range mostFittings {
		clear(got)
		for g := range groups {
			fit(groups[g].shares, float64(groups[g].rows))
			for _, s := range groups[g].shares {
				got[s.cell] += s.weight
			}
		}
		if x.margin.isMet(got) {
			break
		}
		for g := range groups {
			for i := range groups[g].shares {
				s := &groups[g].shares[i]
				if want := float64(x.margin.Cells[s.cell].Rows); want > 0 && got[s.cell] > 0 {
					s.weight *= want / got[s.cell]
				}
			}
		}
	}
	owed := make([]float64, len(x.margin.Cells))
	for g := range groups {
		fit(groups[g].shares, float64(groups[g].rows))
		round(groups[g].shares, groups[g].rows, owed)
	}
}

// isMet says whether the cells have about as many rows as they should.
func (m *Margin) isMet(got []float64) bool {
	for c := range got {
		if want := float64(m.Cells[c].Rows); got[c] > 0 && want > 0 &&
			math.Abs(got[c]-want) > closeFit*want {
			return false
		}
	}
	return true
}

// cellIndex finds the cells of a column's margin by their leaves.
type cellIndex struct {
	column int
	h      *Hierarchy
	margin *Margin
	nodes  []Node // of the cells
	at     map[Node]int
	order  []int // by first leaf
}

func (s *Sketch) index(column int, m *Margin) *cellIndex {
	h := s.Hierarchies[column]
	if m == nil || len(m.Cells) == 0 {
		m = &Margin{Cells: []Cell{{Node: h.Root()}}}
	}
	x := &cellIndex{column: column, h: h, margin: m, at: make(map[Node]int, len(m.Cells))}
	for c := range m.Cells {
		x.nodes, x.order = append(x.nodes, m.Cells[c].Node), append(x.order, c)
		x.at[m.Cells[c].Node] = c
	}
	slices.SortFunc(x.order, func(i, j int) int { return cmp.Compare(x.first(i), x.first(j)) })
	return x
}

func (x *cellIndex) first(cell int) uint32 {
	first, _ := x.h.Range(x.nodes[cell])
	return first
}

// inside are the cells whose leaves are all a node's.
func (x *cellIndex) inside(n Node) []int {
	first, last := x.h.Range(n)
	from, _ := slices.BinarySearchFunc(x.order, first, func(cell int, leaf uint32) int {
		return cmp.Compare(x.first(cell), leaf)
	})
	var out []int
	for _, cell := range x.order[from:] {
		if x.first(cell) > last {
			break
		}
		if x.h.contains(n, x.nodes[cell]) {
			out = append(out, cell)
		}
	}
	return out
}

// around is the narrowest cell that holds a node and is not the node; ok is false for none.
func (x *cellIndex) around(n Node) (cell int, ok bool) {
	first, _ := x.h.Range(n)
	for level := n.Level + 1; level < x.h.Height(); level++ {
		if cell, ok = x.at[Node{Level: level, Group: x.h.Generalize(first, level)}]; ok {
			return cell, true
		}
	}
	return 0, false
}

// region are the values of a node of which no narrower cell is.
func (x *cellIndex) region(n Node) region {
	var taken []Node
	for _, cell := range x.inside(n) {
		if x.nodes[cell] != n {
			taken = append(taken, x.nodes[cell])
		}
	}
	return x.h.region(n, taken)
}

// shares are the regions that the values of a label can be of: of the cells that lie in
// it, and of the narrowest one around it what they leave.
func (x *cellIndex) shares(label Node) []share {
	_, isCell := x.at[label]
	around, found := x.around(label)
	var out []share
	if first, _ := x.h.Range(label); label.Level > 0 && !x.h.isNull(first) {
		for _, cell := range x.inside(label) {
			if r := x.region(x.nodes[cell]); r.size > 0 {
				out = append(out, share{region: r, cell: cell, weight: r.size})
			}
		}
		if !isCell && found {
			if r := x.region(label); r.size > 0 {
				out = append(out, share{region: r, cell: around, weight: r.size})
			}
		}
	} else if isCell {
		around = x.at[label]
	}
	if len(out) == 0 { // a value itself, or what no cell is of
		out = append(out, share{region: x.h.region(label, nil), cell: around, weight: 1})
	}
	return out
}

// fit scales weights to a sum.
func fit(shares []share, sum float64) {
	total := 0.0
	for i := range shares {
		total += shares[i].weight
	}
	for i := range shares {
		if total > 0 {
			shares[i].weight *= sum / total
		} else {
			shares[i].weight = sum / float64(len(shares))
		}
	}
}

// round makes whole numbers of weights, which keep their sum: those are rounded up of which
// much is left and whose cells are owed much by the roundings before.
func round(shares []share, sum int, owed []float64) {
	left := sum
	order, rank := make([]int, len(shares)), make([]float64, len(shares))
	for i := range shares {
		order[i] = i
		shares[i].rows = int(math.Floor(shares[i].weight + 1e-9))
		left -= shares[i].rows
		rest := shares[i].weight - float64(shares[i].rows)
		owed[shares[i].cell] += rest
		rank[i] = rest * math.Exp(owed[shares[i].cell])
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(rank[y], rank[x]) })
	for i := range left {
		s := &shares[order[i%len(order)]]
		s.rows++
		owed[s.cell]--
	}
}

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
}

// Draw draws a value for each row of a column: one that the label of its block covers, in
// proportions raked to a margin (iterative proportional fitting, [Deming1940]), so
// that all values together meet the margin as exactly as rounding allows. A margin that is
// nil or has no cells spreads values evenly.
//
// Values of one label are spread evenly over its cells, over each cell's values, and over
// blocks in the order of their other labels, so that any part of the release that other
// columns tell has its share of each. Within a block they come in random order.
//
// Guarantee: a function of the sketch, the margin and chance alone. Whoever sees values
// learns nothing that labels and margins do not tell; who of a block has which payload
// least of all. Test: TestValuesFollowFromLabelsAndMargins.
func (s *Sketch) Draw(column int, m *Margin, random *rand.Rand) *Values {
	h := s.Hierarchies[column]
	out := &Values{Texts: []string{""}, Of: make([][]uint32, len(s.Rows))}
	known := make(map[string]uint32)
	groups := s.groups(column)
	shares := h.rake(groups, m)
	for g, group := range groups {
		var drawn []uint32
		for _, share := range shares[g] {
			start := random.Float64()
			for i := range share.rows {
				text, null := share.region.at((float64(i) + start) / float64(share.rows))
				if null {
					drawn = append(drawn, 0)
					continue
				}
				place, found := known[text]
				if !found {
					place = uint32(len(out.Texts))
					known[text] = place
					out.Texts = append(out.Texts, text)
				}
				drawn = append(drawn, place)
			}
		}
		s.deal(group, drawn, out.Of, random)
	}
	return out
}

// labelled are the blocks that show one label in a column.
type labelled struct {
	label  Node
	blocks []int
	rows   int
}

// groups are the blocks by their label, those of one in the order of their other labels.
func (s *Sketch) groups(column int) []labelled {
	at := make(map[Node]int)
	var out []labelled
	for block, labels := range s.Labels {
		g, known := at[labels[column]]
		if !known {
			g = len(out)
			at[labels[column]] = g
			out = append(out, labelled{label: labels[column]})
		}
		out[g].blocks = append(out[g].blocks, block)
		out[g].rows += s.Rows[block]
	}
	for _, g := range out {
		slices.SortStableFunc(g.blocks, func(x, y int) int {
			for i := range s.Hierarchies {
				if order := compareNodes(s.Labels[x][i], s.Labels[y][i]); order != 0 {
					return order
				}
			}
			return 0
		})
	}
	slices.SortFunc(out, func(x, y labelled) int { return compareNodes(x.label, y.label) })
	return out
}

func compareNodes(x, y Node) int {
	return cmp.Or(cmp.Compare(x.Level, y.Level), cmp.Compare(x.Group, y.Group))
}

// deal hands values, which are in order, to the rows of blocks. Rows take them at places
// that go round by the golden ratio: of any stretch of rows the places are spread evenly.
func (s *Sketch) deal(group labelled, drawn []uint32, of [][]uint32, random *rand.Rand) {
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
	for _, block := range group.blocks {
		own := dealt[:s.Rows[block]:s.Rows[block]]
		dealt = dealt[s.Rows[block]:]
		random.Shuffle(len(own), func(i, j int) { own[i], own[j] = own[j], own[i] })
		of[block] = own
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

// rake divides the rows of each label among the cells of a margin.
func (h *Hierarchy) rake(groups []labelled, m *Margin) [][]share {
	if m == nil || len(m.Cells) == 0 {
		m = &Margin{Cells: []Cell{{Node: h.Root()}}}
	}
	cells := h.index(m)
	shares := make([][]share, len(groups))
	for g := range groups {
		shares[g] = cells.shares(groups[g].label)
	}
	got := make([]float64, len(m.Cells))
	for range mostFittings {
		clear(got)
		for g := range groups {
			fit(shares[g], float64(groups[g].rows))
			for i := range shares[g] {
				got[shares[g][i].cell] += shares[g][i].weight
			}
		}
		if m.isMet(got) {
			break
		}
		for g := range groups {
			for i := range shares[g] {
				s := &shares[g][i]
				if want := float64(m.Cells[s.cell].Rows); want > 0 && got[s.cell] > 0 {
					s.weight *= want / got[s.cell]
				}
			}
		}
	}
	owed := make([]float64, len(m.Cells))
	for g := range groups {
		fit(shares[g], float64(groups[g].rows))
		round(shares[g], groups[g].rows, owed)
	}
	return shares
}

// isMet says whether the cells have about as many rows as they should.
func (m *Margin) isMet(got []float64) bool {
	for c := range got {
		if want := float64(m.Cells[c].Rows); got[c] > 0 && want > 0 && math.Abs(got[c]-want) > closeFit*want {
			return false
		}
	}
	return true
}

// cellIndex finds the cells of a margin by their leaves.
type cellIndex struct {
	h     *Hierarchy
	nodes []Node // of the cells
	at    map[Node]int
	order []int // by first leaf
}

func (h *Hierarchy) index(m *Margin) cellIndex {
	x := cellIndex{h: h, at: make(map[Node]int, len(m.Cells))}
	for c := range m.Cells {
		x.nodes, x.order = append(x.nodes, m.Cells[c].Node), append(x.order, c)
		x.at[m.Cells[c].Node] = c
	}
	slices.SortFunc(x.order, func(i, j int) int { return cmp.Compare(x.first(i), x.first(j)) })
	return x
}

func (x cellIndex) first(cell int) uint32 {
	first, _ := x.h.Range(x.nodes[cell])
	return first
}

// inside are the cells whose leaves are all a node's.
func (x cellIndex) inside(n Node) []int {
	first, last := x.h.Range(n)
	from, _ := slices.BinarySearchFunc(x.order, first, func(cell int, leaf uint32) int { return cmp.Compare(x.first(cell), leaf) })
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
func (x cellIndex) around(n Node) (cell int, ok bool) {
	first, _ := x.h.Range(n)
	for level := n.Level + 1; level < x.h.Height(); level++ {
		if cell, ok = x.at[Node{Level: level, Group: x.h.Generalize(first, level)}]; ok {
			return cell, true
		}
	}
	return 0, false
}

// region are the values of a node of which no narrower cell is.
func (x cellIndex) region(n Node) region {
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
func (x cellIndex) shares(label Node) []share {
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

// round makes whole numbers of weights, which keep their sum: those are rounded up whose
// cells are owed most by the roundings before.
func round(shares []share, sum int, owed []float64) {
	left := sum
	order := make([]int, len(shares))
	for i := range shares {
		order[i] = i
		shares[i].rows = int(math.Floor(shares[i].weight + 1e-9))
		left -= shares[i].rows
		owed[shares[i].cell] += shares[i].weight - float64(shares[i].rows)
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(owed[shares[y].cell], owed[shares[x].cell]) })
	for i := range left {
		s := &shares[order[i%len(order)]]
		s.rows++
		owed[s.cell]--
	}
}

package anonymize

import (
	"slices"
	"strconv"
)

// mostCompared bounds the pairs of blocks that are looked at for what is taken.
const mostCompared = 1 << 26

// byDensity finds what is taken where blocks are large. There are few of them, cut along few
// columns, so that hardly any has another one's labels in all columns but one, and what a wide
// label leaves out is more than labels of a hierarchy say: people of 40 to 79 years in any area
// but three. So of each combination every block whose labels cover it takes as much as it is dense:
// as it has people, beside as many as margins alone lead to expect, and no more than all.
func (t *taken) byDensity(s *Sketch, x *cellIndex) {
	mass := func(column int, n Node) float64 {
		first, last := s.Hierarchies[column].Range(n)
		return s.masses[column][last+1] - s.masses[column][first]
	}
	all := 0
	for _, rows := range s.Rows {
		all += rows
	}
	// Blocks with the same labels stand beside each other, and count together.
	var boxes []int
	rows := make(map[int]float64)
	for i, block := range t.order {
		if i == 0 || !slices.Equal(s.Labels[block], s.Labels[boxes[len(boxes)-1]]) {
			boxes = append(boxes, block)
		}
		rows[boxes[len(boxes)-1]] += float64(s.Rows[block])
	}
	if len(boxes)*len(boxes) > mostCompared {
		return
	}
	density := make([]float64, len(boxes))
	for i, block := range boxes {
		expected := float64(all)
		for column, n := range s.Labels[block] {
			expected *= mass(column, n)
		}
		density[i] = min(1, rows[block]/max(expected, 1e-9))
	}
	type part struct {
		Node
		density float64
	}
	takenFrom := func(labels []Node) (out []part) {
		for i, block := range boxes {
			other := s.Labels[block]
			if other[x.column] == labels[x.column] || !x.h.contains(labels[x.column], other[x.column]) {
				continue
			}
			p := part{other[x.column], density[i]}
			for column, h := range s.Hierarchies {
				switch own := labels[column]; {
				case column == x.column || h.contains(other[column], own):
				case h.contains(own, other[column]):
					p.density *= mass(column, other[column]) / max(mass(column, own), 1e-9)
				default:
					p.density = 0
				}
			}
			if p.density > 0 {
				out = append(out, p)
			}
		}
		return out
	}
	// How much is taken depends on all labels of a block: each box is drawn for by itself.
	parts := make(map[string][]part)
	for i, block := range t.order {
		if i > 0 && slices.Equal(s.Labels[block], s.Labels[t.order[i-1]]) {
			t.of[block] = t.of[t.order[i-1]]
			continue
		}
		t.of[block] = ""
		if taken := takenFrom(s.Labels[block]); taken != nil {
			t.of[block] = strconv.Itoa(block)
			parts[t.of[block]] = taken
		}
	}
	t.weigh = func(key string, shares []share) {
		for i := range shares {
			left := 1.0
			for _, p := range parts[key] {
				if x.h.contains(p.Node, x.nodes[shares[i].cell]) {
					left -= p.density
				}
			}
			shares[i].weight *= max(left, leftOver)
		}
	}
}

// masses are sums of the shares of the rows that the leaves before each one are expected to have:
// those of a cell evenly.
func (x *cellIndex) masses() []float64 {
	cells, leaves := make([]int, x.h.Leaves()), make([]float64, len(x.nodes))
	rows := make([]float64, len(x.nodes))
	for leaf := range cells {
		n := Node{Level: 0, Group: x.h.Generalize(uint32(leaf), 0)}
		cell, known := x.at[n]
		if !known {
			cell, _ = x.around(n)
		}
		cells[leaf] = cell
		leaves[cell]++
	}
	all := 0.0
	for cell := range rows {
		rows[cell] = max(float64(x.margin.Cells[cell].Rows), 1e-9)
		if leaves[cell] > 0 {
			all += rows[cell]
		}
	}
	sums := make([]float64, len(cells)+1)
	for leaf, cell := range cells {
		sums[leaf+1] = sums[leaf] + rows[cell]/leaves[cell]/all
	}
	return sums
}

package anonymize

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// leftOver weighs the values of a label that are taken. Of the rows of Adult (k = 5) that
// have a coarse label, 2 % have a combination that a narrower block covers too.
const leftOver = 0.02

// taken finds the narrower labels that other blocks show in a column, the labels of all
// other columns being the same. Each combination of values is of one block, and cuts leave
// in a wide block what is too little for a narrow one.
type taken struct {
	order []int             // blocks, by their labels in all other columns
	of    []string          // [block] -> key of its nodes
	nodes map[string][]Node // by first leaf; none holds another
	weigh func(key string, shares []share)
}

func newTaken(s *Sketch, x *cellIndex) *taken {
	column := x.column
	t := &taken{
		order: make([]int, len(s.Rows)), of: make([]string, len(s.Rows)),
		nodes: make(map[string][]Node),
	}
	t.weigh = func(key string, shares []share) { x.without(shares, t.nodes[key]) }
	for block := range t.order {
		t.order[block] = block
	}
	compare := func(x, y int) int {
		for i := range s.Hierarchies {
			if i == column {
				continue
			}
			if order := compareNodes(s.Labels[x][i], s.Labels[y][i]); order != 0 {
				return order
			}
		}
		return 0
	}
	slices.SortStableFunc(t.order, compare)
	for from := 0; from < len(t.order); {
		to := from + 1
		for to < len(t.order) && compare(t.order[from], t.order[to]) == 0 {
			to++
		}
		t.look(s, column, t.order[from:to])
		from = to
	}
	return t
}

// look finds what is taken among blocks whose labels differ in one column only, each by
// the blocks that its label holds: as often as the hierarchy has levels at most.
func (t *taken) look(s *Sketch, column int, blocks []int) {
	h := s.Hierarchies[column]
	label := func(block int) Node { return s.Labels[block][column] }
	slices.SortStableFunc(blocks, func(x, y int) int {
		first, _ := h.Range(label(x))
		other, _ := h.Range(label(y))
		if first != other {
			return int(first) - int(other)
		}
		return label(y).Level - label(x).Level
	})
	for i, block := range blocks {
		if i > 0 && label(blocks[i-1]) == label(block) {
			t.of[block] = t.of[blocks[i-1]]
			continue
		}
		var nodes []Node
		var key []byte
		for _, other := range blocks[i+1:] {
			n := label(other)
			if !h.contains(label(block), n) {
				break
			}
			if n != label(block) && (len(nodes) == 0 || !h.contains(nodes[len(nodes)-1], n)) {
				nodes = append(nodes, n)
				key = binary.AppendUvarint(binary.AppendUvarint(key, uint64(n.Level)), uint64(n.Group))
			}
		}
		t.of[block] = string(key)
		t.nodes[t.of[block]] = nodes
	}
}

// without weighs less the shares of cells that nodes hold, which are disjoint and in order.
func (x *cellIndex) without(shares []share, nodes []Node) {
	for i := range shares {
		cell := x.nodes[shares[i].cell]
		leaf := x.first(shares[i].cell)
		at, _ := slices.BinarySearchFunc(nodes, leaf, func(n Node, leaf uint32) int {
			_, last := x.h.Range(n)
			return cmp.Compare(last, leaf)
		})
		if at < len(nodes) && x.h.contains(nodes[at], cell) {
			shares[i].weight *= leftOver
		}
	}
}

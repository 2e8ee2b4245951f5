package anonymize

import "strconv"

// SquaredError is the mean squared error of the numeric columns: the difference
// between a value and the number that stands for its label, squared. A label is
// stood for by its representative, or by the middle of the smallest and the
// largest number that it covers; suppression by that of the whole domain.
// NULL and other texts cost nothing. It fails to bind where no column holds
// numbers.
type SquaredError struct{}

func (SquaredError) String() string { return "mean squared error" }

func (SquaredError) bind(b *binding) (quality, error) {
	numeric := false
	numbers := make([]numbering, len(b.columns()))
	for c, column := range b.columns() {
		numbers[c] = newNumbering(column.Hierarchy)
		numeric = numeric || numbers[c].any
	}
	if !numeric {
		return nil, &ProblemError{
			"mean squared error needs a numeric column",
			"choose another quality model",
		}
	}
	cost := func(c, leaf int, n Node) float64 {
		x, ok := numbers[c].leaf(leaf)
		y, known := numbers[c].node(n)
		if !ok || !known {
			return 0
		}
		return (x - y) * (x - y)
	}
	withheld := flatCosts(b, 0)
	for c := range withheld {
		for leaf := range withheld[c] {
			withheld[c][leaf] = cost(c, leaf, b.columns()[c].Hierarchy.Root())
		}
	}
	q := newCellwise(b, costTables(b, cost), withheld, Arithmetic)
	q.byLeaf = true
	return q, nil
}

// numbering reads the labels of a hierarchy as numbers.
type numbering struct {
	hierarchy *Hierarchy
	any       bool
	values    []float64
	isNumber  []bool
}

func newNumbering(h *Hierarchy) numbering {
	n := numbering{
		hierarchy: h, values: make([]float64, h.Leaves()),
		isNumber: make([]bool, h.Leaves()),
	}
	for leaf := range n.values {
		if x, err := strconv.ParseFloat(h.Label(Node{Group: uint32(leaf)}), 64); err == nil {
			n.values[leaf], n.isNumber[leaf], n.any = x, true, true
		}
	}
	return n
}

func (n *numbering) leaf(leaf int) (float64, bool) { return n.values[leaf], n.isNumber[leaf] }

func (n *numbering) node(node Node) (float64, bool) {
	if text, ok := n.hierarchy.Representative(node); ok && node.Level > 0 {
		if x, err := strconv.ParseFloat(text, 64); err == nil {
			return x, true
		}
	}
	first, last := n.hierarchy.Range(node)
	lowest, highest, found := 0.0, 0.0, false
	for leaf := first; leaf <= last; leaf++ {
		if x, ok := n.leaf(int(leaf)); ok {
			if !found {
				lowest, highest, found = x, x, true
			}
			lowest, highest = min(lowest, x), max(highest, x)
		}
	}
	return (lowest + highest) / 2, found
}

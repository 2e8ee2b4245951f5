package anonymize

import "slices"

// Margin is how many subjects of a cohort have which value of one column: what a release
// publishes of that column's distribution. A value counts in the narrowest of its cells
// that covers it.
//
// Guarantee: each cell holds k subjects or more, none of whom owns more than a share of
// its rows; so does every union of cells. A cohort of which that cannot be said as a whole
// has no cells. Attacker: has no register; to who has one, a margin says nothing. Tests:
// TestMarginsHaveNoCellBelowK, TestMarginsThatWereReadCountNobodyTwice.
type Margin struct {
	Cells []Cell
	// SeveralRows says that a subject may have rows in several cells.
	SeveralRows bool
}

// Cell is a cell of a [Margin]. Of a margin that was read and pooled, Subjects is a lower
// bound if subjects have several rows.
type Cell struct {
	Node           Node
	Rows, Subjects int

	of map[uint32]int // rows of each subject, if they have several; nil if that is not known
}

// Margin counts the values of a column. Cells with fewer than k subjects, or of whose
// rows one subject owns more than maxShare, are joined along the hierarchy: the small
// ones below a node are one cell of the node, and if they are too small together, of the
// node above it. What is too small at the root is joined with the smallest other cells.
func (t *Table) Margin(column, k int, maxShare float64) *Margin {
	h := t.columns[column].Hierarchy
	leaves := make([]Cell, h.Leaves())
	for row, tuple := range t.tupleOfRow {
		leaf := t.tuples[column][tuple]
		c := &leaves[leaf]
		c.Node.Group = leaf
		c.Rows++
		if t.subjectOfRow == nil {
			c.Subjects++
			continue
		}
		if c.of == nil {
			c.of = make(map[uint32]int)
		}
		c.of[t.subjectOfRow[row]]++
		c.Subjects = len(c.of)
	}
	m := &Margin{
		Cells:       slices.DeleteFunc(leaves, func(c Cell) bool { return c.Rows == 0 }),
		SeveralRows: t.subjectOfRow != nil,
	}
	return m.Pool(h, k, maxShare)
}

// Pool joins the cells of a margin that are too small, as [Table.Margin] does. Of a
// margin that was read, whose subjects are not known one by one, it counts in a joint
// cell only as many as are certain to be different where subjects have several rows.
func (m *Margin) Pool(h *Hierarchy, k int, maxShare float64) *Margin {
	enough := func(c *Cell) bool {
		if c.Subjects < k {
			return false
		}
		for _, rows := range c.of {
			if rows > 1 && float64(rows) > maxShare*float64(c.Rows) {
				return false
			}
		}
		return true
	}
	levels := make([]map[uint32]Cell, h.Height())
	for i := range levels {
		levels[i] = make(map[uint32]Cell)
	}
	for _, c := range m.Cells {
		levels[c.Node.Level][c.Node.Group] = c
	}
	out := &Margin{SeveralRows: m.SeveralRows}
	root := h.Root()
	for level := range root.Level {
		for _, group := range sortedKeys(levels[level]) {
			c := levels[level][group]
			if enough(&c) {
				out.Cells = append(out.Cells, c)
				continue
			}
			first, _ := h.Range(c.Node)
			up := h.Generalize(first, level+1)
			above, there := levels[level+1][up]
			if !there {
				above.Node = Node{Level: level + 1, Group: up}
			}
			levels[level+1][up] = m.join(above, c)
		}
	}
	rest, there := levels[root.Level][root.Group]
	for there && !enough(&rest) && len(out.Cells) > 0 {
		i := out.smallestOutermost(h)
		rest = m.join(rest, out.Cells[i])
		out.Cells = slices.Delete(out.Cells, i, i+1)
	}
	if there && enough(&rest) {
		out.Cells = append(out.Cells, rest)
	}
	return out
}

// smallestOutermost is the cell with the fewest rows of those that lie in no other: if
// one in another were taken out, its values would count in that.
func (m *Margin) smallestOutermost(h *Hierarchy) int {
	nodes := make(map[Node]bool, len(m.Cells))
	for i := range m.Cells {
		nodes[m.Cells[i].Node] = true
	}
	lies := func(n Node) bool {
		first, _ := h.Range(n)
		for level := n.Level + 1; level < h.Height(); level++ {
			if nodes[Node{level, h.Generalize(first, level)}] {
				return true
			}
		}
		return false
	}
	best := -1
	for i := range m.Cells {
		if (best < 0 || m.Cells[i].Rows < m.Cells[best].Rows) && !lies(m.Cells[i].Node) {
			best = i
		}
	}
	return best
}

func sortedKeys(cells map[uint32]Cell) []uint32 {
	keys := make([]uint32, 0, len(cells))
	for key := range cells {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// join is a cell with the rows of another one.
func (m *Margin) join(c, o Cell) Cell {
	c.Rows += o.Rows
	switch {
	case c.Subjects == 0:
		c.Subjects, c.of = o.Subjects, o.of
	case !m.SeveralRows:
		c.Subjects += o.Subjects
	case c.of == nil || o.of == nil:
		c.Subjects, c.of = max(c.Subjects, o.Subjects), nil
	default:
		of := make(map[uint32]int, len(c.of)+len(o.of))
		for subject, rows := range c.of {
			of[subject] += rows
		}
		for subject, rows := range o.of {
			of[subject] += rows
		}
		c.of, c.Subjects = of, len(of)
	}
	return c
}

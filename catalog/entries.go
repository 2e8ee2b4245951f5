package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// entry is a label of a dictionary with the value that stands for it, if any.
type entry struct {
	label, value string
	valued       bool
}

// compare orders entries as a dictionary holds them.
func (e entry) compare(o entry) int {
	switch {
	case e.valued && !o.valued:
		return -1
	case o.valued && !e.valued:
		return 1
	}
	return cmp.Or(strings.Compare(e.label, o.label), strings.Compare(e.value, o.value))
}

// entries are what a dictionary holds for a partition: those with a value first, in
// the order of their labels, so that their numbers tell nothing else. The number of an
// entry is its place, from 1; that of a text's NULL, which no array needs, is 0.
type entries struct {
	dictionary
	all     []entry
	numbers []uint32 // of each block
}

// hierarchy is that of a dimension's labels.
func (s *state) hierarchy(dimension int) *anonymize.Hierarchy {
	if m := s.means[dimension]; m != nil {
		return m.Hierarchy()
	}
	return s.partition.Table().Columns()[dimension].Hierarchy
}

// node is the one whose label a block shows.
func (s *state) node(dimension int, block uint32) anonymize.Node {
	if m := s.means[dimension]; m != nil {
		return m.Label(block)
	}
	return s.partition.Cover(block, dimension)
}

// shown is the label of a block's node with the mean of the block's group, or else
// with what stands for the node.
func (s *state) shown(q *Column, dimension int, block uint32) entry {
	h, node := s.hierarchy(dimension), s.node(dimension, block)
	e := entry{label: h.Label(node)}
	if m := s.means[dimension]; m != nil {
		e.value, e.valued = meanOf(q, m, block)
	}
	if !e.valued {
		e.value, e.valued = released(q, h, node)
	}
	return e
}

// entries collects what a chain shows of a dimension.
func (d dictionary) entries(s *state, dimension int) entries {
	out := entries{dictionary: d, numbers: make([]uint32, s.partition.Blocks())}
	ofNode, ofEntry := make(map[anonymize.Node]int), make(map[entry]int)
	met := make([]int, len(out.numbers))
	for block := range met {
		node := s.node(dimension, uint32(block))
		at, known := ofNode[node]
		if !known || s.means[dimension] != nil {
			e := s.shown(d.column, dimension, uint32(block))
			if at, known = ofEntry[e]; !known {
				at = len(out.all)
				ofEntry[e] = at
				out.all = append(out.all, e)
			}
			ofNode[node] = at
		}
		met[block] = at
	}
	order := make([]int, len(out.all))
	for at := range order {
		order[at] = at
	}
	slices.SortFunc(order, func(x, y int) int { return out.all[x].compare(out.all[y]) })
	numberOf := make([]uint32, len(out.all))
	var sorted []entry
	for _, at := range order {
		if e := out.all[at]; e.valued || !d.isText() {
			sorted = append(sorted, e)
			numberOf[at] = uint32(len(sorted))
		}
	}
	out.all = sorted
	for block, at := range met {
		out.numbers[block] = numberOf[at]
	}
	return out
}

// values are those of the entries that have one.
func (e *entries) values() []string {
	out := []string{}
	for _, entry := range e.all {
		if !entry.valued {
			break
		}
		out = append(out, entry.value)
	}
	return out
}

// labels are those of all entries.
func (e *entries) labels() []string {
	out := []string{}
	for _, entry := range e.all {
		out = append(out, entry.label)
	}
	return out
}

// row is what the chain's row holds of the entries, given the block of each row of
// the copy: arguments for a statement, and expressions of them.
func (e *entries) row(blocks []uint32, arguments *[]any) (expressions []string) {
	add := func(form string, argument any) {
		*arguments = append(*arguments, argument)
		expressions = append(expressions, fmt.Sprintf(form, len(*arguments)))
	}
	for i := range e.bytes {
		bytes := make([]byte, len(blocks))
		for row, block := range blocks {
			bytes[row] = byte(e.numbers[block] >> (8 * i))
		}
		add("$%d", bytes)
	}
	if e.named {
		add("$%d::text[]::name[]", e.labels())
	}
	if !e.named || e.listed {
		add("'[null]'::jsonb || to_jsonb($%d::text[])", e.labels())
	}
	if e.isFixed() {
		add("$%d::text[]::"+e.column.ReleaseType()+"[]", e.values())
	}
	return expressions
}

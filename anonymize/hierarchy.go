package anonymize

import (
	"fmt"
	"slices"
)

// Top is the label of the root of every hierarchy: the value is withheld.
const Top = "*"

// Null is the label under which SQL NULL is shown at every level below the
// root. NULL is a value of its own: it never shares a node with another value
// except the root.
const Null = "NULL"

// Node names one node of a [Hierarchy]: a level (0 is the value itself) and
// the group at that level. Groups are numbered in leaf order.
type Node struct {
	Level int
	Group uint32
}

// Hierarchy is an immutable generalization hierarchy over the values (leaves)
// that a column can take. Leaves are kept in an order in which every node of
// every level covers a contiguous range, so that "the narrowest node that
// covers these values" depends only on the lowest and the highest of them.
//
// The last level always holds exactly one group, the root, labelled [Top].
// A Hierarchy is safe for concurrent use.
type Hierarchy struct {
	codes  map[string]uint32
	levels []level
	null   int64 // leaf code of NULL, or -1
	units  bool  // shares count units of ranges, not leaves
	domain domain
}

// level is one level of the hierarchy, leaf to group and group to properties.
type level struct {
	groupOf []uint32 // leaf -> group, non-decreasing
	groups  []group
}

// group is one node: its leaves [first, last], how it is shown, and the share of
// the domain that it covers.
type group struct {
	first, last    uint32
	label          string
	representative string
	hasRepr        bool
	share          float64
	low, high      float64 // the part of a measured domain, high exclusive
}

// Height is the number of levels, the leaves and the root included. A
// hierarchy of height 1 has a single leaf, which is its own root.
func (h *Hierarchy) Height() int { return len(h.levels) }

// Leaves is the number of distinct values at level 0, NULL included.
func (h *Hierarchy) Leaves() int { return len(h.levels[0].groups) }

// Groups is the number of nodes at a level.
func (h *Hierarchy) Groups(level int) int { return len(h.levels[level].groups) }

// Code returns the leaf that encodes a value, and whether the hierarchy knows
// the value.
func (h *Hierarchy) Code(value string) (leaf uint32, ok bool) {
	leaf, ok = h.codes[value]
	return leaf, ok
}

// NullCode returns the leaf of SQL NULL and whether the hierarchy has one.
func (h *Hierarchy) NullCode() (leaf uint32, ok bool) { return uint32(h.null), h.null >= 0 }

// Generalize maps a leaf to its group at a level.
func (h *Hierarchy) Generalize(leaf uint32, level int) uint32 {
	return h.levels[level].groupOf[leaf]
}

// GroupOf is the whole map from leaf to group at a level. The slice belongs to
// the hierarchy and must not be changed.
func (h *Hierarchy) GroupOf(level int) []uint32 { return h.levels[level].groupOf }

// Range returns the leaves that a node covers, first and last inclusive.
func (h *Hierarchy) Range(n Node) (first, last uint32) {
	g := &h.levels[n.Level].groups[n.Group]
	return g.first, g.last
}

// Label is the text that stands for a node, such as "30-39", "352**" or "*".
func (h *Hierarchy) Label(n Node) string { return h.levels[n.Level].groups[n.Group].label }

// Representative is one value of the column's own type that stands for a node
// where text will not do: the middle of a numeric or date range, the value
// itself for a leaf. It depends on the node alone, never on the data below it.
// ok is false where the node has none (NULL, and the root of a domain without
// bounds).
func (h *Hierarchy) Representative(n Node) (value string, ok bool) {
	g := &h.levels[n.Level].groups[n.Group]
	return g.representative, g.hasRepr
}

// Share is the part of the domain that a node covers, in [0, 1]: 0 for a leaf,
// 1 for the root. It is the per-cell term of the loss metric ([Iyengar2002]).
// Enumerated hierarchies count leaves; interval and date hierarchies count the
// units of the range.
func (h *Hierarchy) Share(n Node) float64 { return h.levels[n.Level].groups[n.Group].share }

// Root is the node that covers everything.
func (h *Hierarchy) Root() Node { return Node{Level: len(h.levels) - 1} }

// Cover is the narrowest node that covers the leaves from lo to hi, both
// inclusive. It costs one step per level.
func (h *Hierarchy) Cover(lo, hi uint32) Node {
	for l := range h.levels {
		if g := h.levels[l].groupOf[lo]; g == h.levels[l].groupOf[hi] {
			return Node{Level: l, Group: g}
		}
	}
	return h.Root()
}

// HierarchyError says why a hierarchy cannot be built or used. It never quotes
// a value: Line (counted from 1, 0 if unknown) and Level (counted from 0, -1
// if unknown) say where to look.
type HierarchyError struct {
	Line, Level int
	Reason      string
}

func (e *HierarchyError) Error() string {
	switch {
	case e.Line > 0 && e.Level >= 0:
		return fmt.Sprintf("hierarchy line %d, level %d: %s", e.Line, e.Level, e.Reason)
	case e.Line > 0:
		return fmt.Sprintf("hierarchy line %d: %s", e.Line, e.Reason)
	case e.Level >= 0:
		return fmt.Sprintf("hierarchy level %d: %s", e.Level, e.Reason)
	}
	return "hierarchy: " + e.Reason
}

// NewHierarchy builds a hierarchy from one path per value: path[0] is the
// value, path[j] its label at level j. All paths have the same length. A root
// labelled [Top] is added where the last level does not already consist of one
// group. Values keep the order of the paths as far as nesting allows.
//
// It fails with a *[HierarchyError] if there are no paths, lengths differ, a
// value stands twice with different paths, or levels do not nest: a label of
// level j must always have the same label at level j+1.
func NewHierarchy(paths [][]string) (*Hierarchy, error) {
	if len(paths) == 0 {
		return nil, &HierarchyError{Level: -1, Reason: "no values"}
	}
	height := len(paths[0])
	if height == 0 {
		return nil, &HierarchyError{Line: 1, Level: -1, Reason: "no levels"}
	}
	if err := checkPaths(paths, height); err != nil {
		return nil, err
	}
	ordered := nestedOrder(paths, height)
	h := &Hierarchy{
		codes: make(map[string]uint32, len(ordered)), null: -1,
		domain: domain{listed: true},
	}
	for i, p := range ordered {
		h.codes[p[0]] = uint32(i)
	}
	for l := range height {
		h.levels = append(h.levels, enumeratedLevel(ordered, l))
	}
	h.addRoot()
	h.countShares()
	return h, nil
}

// checkPaths asserts equal lengths, consistent duplicates and nesting.
func checkPaths(paths [][]string, height int) error {
	parents := make([]map[string]string, height)
	for j := range parents {
		parents[j] = make(map[string]string)
	}
	for i, p := range paths {
		if len(p) != height {
			return &HierarchyError{
				Line: i + 1, Level: -1,
				Reason: fmt.Sprintf("has %d levels where the first line has %d", len(p), height),
			}
		}
		for j := range height - 1 {
			parent, seen := parents[j][p[j]]
			if seen && parent != p[j+1] {
				return &HierarchyError{
					Line: i + 1, Level: j,
					Reason: "levels do not nest: the same label has two different parents",
				}
			}
			parents[j][p[j]] = p[j+1]
		}
	}
	return nil
}

// nestedOrder drops repeated values and orders the rest so that every node is
// a contiguous range: by the first appearance of the node at each level, from
// the top down.
func nestedOrder(paths [][]string, height int) [][]string {
	rank := make([]map[string]int, height)
	for j := range rank {
		rank[j] = make(map[string]int)
		for _, p := range paths {
			if _, ok := rank[j][p[j]]; !ok {
				rank[j][p[j]] = len(rank[j])
			}
		}
	}
	seen := make(map[string]bool, len(paths))
	ordered := make([][]string, 0, len(paths))
	for _, p := range paths {
		if !seen[p[0]] {
			seen[p[0]] = true
			ordered = append(ordered, p)
		}
	}
	slices.SortStableFunc(ordered, func(a, b []string) int {
		for j := height - 1; j >= 0; j-- {
			if d := rank[j][a[j]] - rank[j][b[j]]; d != 0 {
				return d
			}
		}
		return 0
	})
	return ordered
}

func enumeratedLevel(ordered [][]string, l int) level {
	lv := level{groupOf: make([]uint32, len(ordered))}
	for i, p := range ordered {
		if n := len(lv.groups); n == 0 || lv.groups[n-1].label != p[l] {
			lv.groups = append(lv.groups, group{
				first: uint32(i), label: p[l], representative: p[l], hasRepr: true,
			})
		}
		lv.groups[len(lv.groups)-1].last = uint32(i)
		lv.groupOf[i] = uint32(len(lv.groups) - 1)
	}
	return lv
}

// addRoot completes the hierarchy with one group over everything.
func (h *Hierarchy) addRoot() {
	if len(h.levels[len(h.levels)-1].groups) == 1 {
		return
	}
	n := h.Leaves()
	h.levels = append(h.levels, level{
		groupOf: make([]uint32, n),
		groups:  []group{{last: uint32(n - 1), label: Top, representative: Top, hasRepr: true}},
	})
}

// countShares sets the share of every node to its part of the leaves.
func (h *Hierarchy) countShares() {
	n := float64(h.Leaves())
	for l := 1; l < len(h.levels); l++ {
		for g := range h.levels[l].groups {
			gr := &h.levels[l].groups[g]
			gr.share = float64(gr.last-gr.first+1) / n
			if gr.first == gr.last {
				gr.share = 0 // covers one value: shows no less than the value
			}
		}
	}
}

package console

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// node is a label of a hierarchy with those below it.
type node struct {
	Label    string  `json:"label"`
	Children []*node `json:"children,omitempty"`
	// More says what is below and not shown.
	More string `json:"more,omitempty"`
}

// mostNodes bounds a tree that the page draws.
const mostNodes = 400

// tree draws a hierarchy from its definition. Of a code list, whose values may
// be those of a protected column, it shows only labels above at least two
// values, and numbers in place of the others. note says what cannot be drawn.
func (h *hierarchy) tree() (_ *node, note string) {
	var d struct {
		Widths       []float64       `json:"widths"`
		Keep         []int           `json:"keep"`
		Levels       []string        `json:"levels"`
		Lower, Upper json.RawMessage // numbers or days
		Paths        [][]*string     `json:"paths"`
	}
	if json.Unmarshal(h.Definition, &d) != nil {
		return nil, "the definition cannot be shown"
	}
	switch h.Kind {
	case "interval":
		var lower, upper *float64
		_, _ = json.Unmarshal(d.Lower, &lower), json.Unmarshal(d.Upper, &upper)
		if lower != nil && upper != nil {
			return intervals(*lower, *upper, d.Widths), ""
		}
		return nil, fmt.Sprintf("steps of %s, without bounds", joined(d.Widths))
	case "prefix":
		return prefixes(d.Keep), ""
	case "date":
		if d.Lower != nil {
			note = strings.ReplaceAll(fmt.Sprintf("from %s to %s", d.Lower, d.Upper), `"`, "")
		}
		return dates(d.Levels), note
	case "table":
		return codes(d.Paths), ""
	}
	return nil, "hierarchies of kind " + h.Kind + " are not drawn"
}

func joined[T any](numbers []T) string {
	parts := make([]string, len(numbers))
	for i, n := range numbers {
		parts[i] = fmt.Sprint(n)
	}
	return strings.Join(parts, ", ")
}

// intervals are nested, the widest first.
func intervals(lower, upper float64, widths []float64) *node {
	widths = slices.Sorted(slices.Values(widths))
	slices.Reverse(widths)
	left := mostNodes
	var below func(from, to float64, widths []float64) ([]*node, string)
	below = func(from, to float64, widths []float64) ([]*node, string) {
		if len(widths) == 0 {
			return nil, "each value"
		}
		if widths[0] <= 0 || (to-from)/widths[0] > float64(left) {
			return nil, fmt.Sprintf("steps of %g", widths[0])
		}
		var out []*node
		for at := from; at <= to; at += widths[0] {
			left--
			n := &node{Label: fmt.Sprintf("%g – %g", at, min(at+widths[0]-1, to))}
			n.Children, n.More = below(at, min(at+widths[0]-1, to), widths[1:])
			out = append(out, n)
		}
		return out, ""
	}
	root := &node{Label: "*"}
	root.Children, root.More = below(lower, upper, widths)
	return root
}

// prefixes is one branch, as all are alike: how much of a text each level shows.
func prefixes(keep []int) *node {
	var labels []string
	for _, n := range slices.Sorted(slices.Values(keep)) {
		labels = append(labels, strings.Repeat("x", min(n, 12))+"… ("+plural(n, "character")+")")
	}
	return one(labels)
}

// dates is one branch, as all are alike: what each level shows of a date.
func dates(levels []string) *node {
	labels := slices.Clone(levels)
	slices.Reverse(labels)
	for i, label := range labels {
		labels[i] = "each " + label
	}
	return one(labels)
}

// one is a tree of a single branch, from the widest label on.
func one(labels []string) *node {
	root := &node{Label: "*"}
	at := root
	for _, label := range labels {
		next := &node{Label: label}
		at.Children = []*node{next}
		at = next
	}
	at.More = "each value"
	return root
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// codes draws a code list: paths from a value to its widest label.
func codes(paths [][]*string) *node {
	type branch struct {
		node   *node
		values int
		below  map[string]*branch
	}
	root := &branch{node: &node{Label: "*"}, below: make(map[string]*branch)}
	for _, path := range paths {
		at := root
		at.values++
		for _, label := range slices.Backward(path[min(1, len(path)):]) {
			if label == nil {
				continue
			}
			next := at.below[*label]
			if next == nil {
				next = &branch{node: &node{Label: *label}, below: make(map[string]*branch)}
				at.below[*label] = next
			}
			at = next
			at.values++
		}
	}
	left := mostNodes
	var show func(b *branch) *node
	show = func(b *branch) *node {
		left--
		labels := make([]string, 0, len(b.below))
		for label := range b.below {
			labels = append(labels, label)
		}
		slices.Sort(labels)
		hidden := b.values
		for _, label := range labels {
			if next := b.below[label]; next.values >= 2 && left > 0 {
				b.node.Children = append(b.node.Children, show(next))
				hidden -= next.values
			}
		}
		if hidden > 0 {
			b.node.More = fmt.Sprintf("%d values", hidden)
		}
		return b.node
	}
	return show(root)
}

package identify

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Bounds of what is grouped.
const (
	// TextsAtMost is how many values a column may have for a list of places.
	TextsAtMost   = 300
	groupedAtMost = 100 // values that are grouped by the data
	groupedFrom   = 4   // values; fewer are shown or withheld
	profileValues = 64  // values of the columns by which others are compared
)

// Grouping is a proposed hierarchy over the values of a text column.
type Grouping struct {
	// Paths as [anonymize.NewHierarchy] takes them: each value with its groups.
	Paths [][]string
	// Ordered says that the values have an order, which the groups keep.
	Ordered bool
	// List is the title of a known list that the values are on, "" for none.
	List string
}

// Group proposes groups of the values of a column: those of a known list
// ([byPlace]); else of neighbours if the values
// have an order ([inOrder]), else of values whose rows are distributed alike in
// the other columns (Jensen-Shannon divergence). From
// level to level a group takes twice as many values, and none has fewer than
// least rows. Labels name values of at least named rows only, as a reader who
// is shown a group may know nothing of rarer ones. It is nil for columns with
// few or many values.
func Group(r *Rows, name string, least, named int) *Grouping {
	column := slices.Index(r.Names, name)
	if column < 0 || len(r.Texts[column]) < groupedFrom {
		return nil
	}
	g := &grouper{named: named, known: make(map[[2]*cluster]float64)}
	texts := r.Texts[column]
	var present []string
	for _, v := range texts {
		if v != "" {
			present = append(present, v)
		}
	}
	if len(present) < groupedFrom {
		return nil
	}
	if paths, title := byPlace(name, present); paths != nil {
		return &Grouping{Paths: paths, List: title}
	}
	if len(present) > groupedAtMost {
		return nil
	}
	if ordered, ok := inOrder(present); ok {
		present, g.ordered = ordered, true
	}
	of := make(map[string]*cluster)
	for _, v := range present {
		of[v] = &cluster{values: []string{v}}
		g.clusters = append(g.clusters, of[v])
	}
	g.profile(r, column, of)
	return g.build(least)
}

// cluster is a group that is being made.
type cluster struct {
	values []string
	counts []int // rows of each value
	rows   int
	// profile counts, for each other column, the rows of each of its values.
	profile [][]float64
}

type grouper struct {
	clusters []*cluster // in order, if there is one
	ordered  bool
	named    int
	whole    [][]float64 // the distribution of each other column in all rows
	known    map[[2]*cluster]float64
}

// profile counts how the rows of each value are distributed in other columns.
func (g *grouper) profile(r *Rows, column int, of map[string]*cluster) {
	var others []int
	for c := range r.Codes {
		if n := len(newTally(r.Codes[c]).counts); c != column && n > 1 && n <= profileValues {
			others = append(others, c)
		}
	}
	for _, c := range g.clusters {
		c.counts = []int{0}
	}
	for _, other := range others {
		shares := make([]float64, len(newTally(r.Codes[other]).counts))
		for _, code := range r.Codes[other] {
			shares[code] += 1 / float64(r.Count)
		}
		g.whole = append(g.whole, shares)
		for _, c := range g.clusters {
			c.profile = append(c.profile, make([]float64, len(shares)))
		}
	}
	for row, code := range r.Codes[column] {
		c := of[r.Texts[column][code]]
		if c == nil { // missing
			continue
		}
		c.rows++
		c.counts[0]++
		for i, other := range others {
			c.profile[i][r.Codes[other][row]]++
		}
	}
}

// shrinkage is how many rows of the whole table are added to those of a value
// when distributions are compared: what few rows show may be chance.
const shrinkage = 20

// divergence tells how differently the rows of two clusters are distributed in
// the other columns: the sum of the Jensen-Shannon divergences [Lin1991].
func (g *grouper) divergence(a, b *cluster) float64 {
	if known, ok := g.known[[2]*cluster{a, b}]; ok {
		return known
	}
	sum := 0.0
	for i, whole := range g.whole {
		for v, all := range whole {
			x := (a.profile[i][v] + shrinkage*all) / (float64(a.rows) + shrinkage)
			y := (b.profile[i][v] + shrinkage*all) / (float64(b.rows) + shrinkage)
			sum += part(x, (x+y)/2) + part(y, (x+y)/2)
		}
	}
	g.known[[2]*cluster{a, b}] = sum
	return sum
}

// part is one summand of the divergence of a distribution from a mean.
func part(share, mean float64) float64 {
	if share == 0 {
		return 0
	}
	return share * math.Log(share/mean) / 2
}

// build merges clusters level by level.
func (g *grouper) build(least int) *Grouping {
	labels := make(map[string][]string)
	for _, c := range g.clusters {
		labels[c.values[0]] = []string{c.values[0]}
	}
	for size := 2; len(g.clusters) > 2 && size < 2*len(labels); size *= 2 {
		before := len(g.clusters)
		for g.merge(func(a, b *cluster) bool { return len(a.values)+len(b.values) <= size }) {
		}
		for g.enlarge(least) {
		}
		if len(g.clusters) == 1 {
			break // the root
		}
		if len(g.clusters) == before {
			continue
		}
		for i, c := range g.clusters {
			label := g.label(c, i)
			for _, v := range c.values {
				labels[v] = append(labels[v], label)
			}
		}
	}
	out := &Grouping{Ordered: g.ordered}
	for _, c := range g.clusters {
		for _, v := range c.values {
			out.Paths = append(out.Paths, labels[v])
		}
	}
	if len(out.Paths[0]) == 1 {
		return nil // too few rows for any group but all
	}
	return out
}

// merge joins the pair that may be and is the most alike of those that have no
// cluster nearer than each other, if there is one.
func (g *grouper) merge(may func(a, b *cluster) bool) bool {
	nearest, distance := g.nearest()
	first := -1
	for i, j := range nearest {
		if j > i && nearest[j] == i && may(g.clusters[i], g.clusters[j]) &&
			(first < 0 || distance[i] < distance[first]) {
			first = i
		}
	}
	if first < 0 {
		return false
	}
	g.join(first, nearest[first])
	return true
}

// enlarge joins the smallest cluster that has fewer rows than least with the one
// that is the most like it.
func (g *grouper) enlarge(least int) bool {
	small := -1
	for i, c := range g.clusters {
		if c.rows < least && (small < 0 || c.rows < g.clusters[small].rows) {
			small = i
		}
	}
	if small < 0 || len(g.clusters) == 1 {
		return false
	}
	nearest, _ := g.nearest()
	g.join(min(small, nearest[small]), max(small, nearest[small]))
	return true
}

// nearest finds the most similar other cluster of each, a neighbour if they have
// an order.
func (g *grouper) nearest() (nearest []int, distance []float64) {
	n := len(g.clusters)
	nearest, distance = make([]int, n), make([]float64, n)
	for i := range n {
		nearest[i], distance[i] = -1, math.Inf(1)
	}
	for i := range n {
		last := n - 1
		if g.ordered {
			last = min(last, i+1)
		}
		for j := i + 1; j <= last; j++ {
			d := g.divergence(g.clusters[i], g.clusters[j])
			if d < distance[i] {
				nearest[i], distance[i] = j, d
			}
			if d < distance[j] {
				nearest[j], distance[j] = i, d
			}
		}
	}
	return nearest, distance
}

// join puts two clusters into the place of the first.
func (g *grouper) join(first, second int) {
	a, b := g.clusters[first], g.clusters[second]
	merged := &cluster{
		values: append(
			slices.Clone(a.values),
			b.values...), counts: append(slices.Clone(a.counts), b.counts...), rows: a.rows + b.rows,
	}
	for i := range a.profile {
		sum := slices.Clone(a.profile[i])
		for v, y := range b.profile[i] {
			sum[v] += y
		}
		merged.profile = append(merged.profile, sum)
	}
	g.clusters[first] = merged
	g.clusters = slices.Delete(g.clusters, second, second+1)
}

// label names a group of number i by values that have rows enough.
func (g *grouper) label(c *cluster, i int) string {
	if len(c.values) == 1 {
		return c.values[0]
	}
	var common []string
	for v, n := range c.counts {
		if n >= g.named {
			common = append(common, c.values[v])
		}
	}
	hidden := len(c.values) - len(common)
	switch {
	case len(common) == 0:
		return fmt.Sprintf("group %d", i+1)
	case g.ordered && hidden == 0:
		return common[0] + " to " + common[len(common)-1]
	case len(common) > 3:
		common, hidden = common[:2], len(c.values)-2
	}
	label := strings.Join(common, ", ")
	if hidden > 0 {
		label += fmt.Sprintf(" and %d more", hidden)
	}
	return label
}

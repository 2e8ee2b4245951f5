package anonymize

import (
	"maps"
	"slices"
	"strconv"
)

// Means is what one column of a partition is shown as where means stand for
// labels' middles: the blocks are put together into groups, and every row of a
// group is shown the group's label and, where the guard lets it, its mean.
// It is immutable.
//
// A group is a union of blocks. The sum of everybody is rounded. A group splits
// only into parts that may all show theirs: the sums of all but one are rounded,
// and that one's is what they leave of the group's. A group that is refined and
// does not split stays as it is for ever, and where everybody's mean is held back,
// so are all others: what is told of parts would say why.
//
// Guarantee. Each sum that is rounded gives one threshold; the others follow
// from those. The errors of rounding could be any, whatever is known of labels:
// for each present group, every sum within the slack of what was told is one that
// people with its label can have ([sample.passes]). So all that is told of a
// column together narrows no sum that was rounded to less than one width of its
// label, and no other to less than that of its own. Attacker: knows the labels
// and all that was told. Precondition: the people and their values stay the same
// ([Partition.Carry]). TestWhatWasToldOfAllGroupsNarrowsNoneBelowOneWidth and
// TestWhatIsLeftOverPassesTheGuardToo check it.
type Means struct {
	partition *Partition
	values    Measured
	k         int
	unit      float64
	groupOf   []uint32 // block -> group
	groups    []meanGroup
}

// Measured is a column that is shown by means. It is not one of the partition's
// table, so that blocks do not depend on it.
type Measured struct {
	Hierarchy *Hierarchy
	LeafOfRow []uint32 // of the partition's table
}

type meanGroup struct {
	label Node
	shown bool // its mean is, as told
	// closed says that it has not split where it might have: it stays as it is.
	closed bool
	told   told
}

// NewMeans starts with each block as a group of its own, of which nothing but
// labels has been shown. integer says that the column holds whole numbers or
// days. Blocks are groups for ever where subjects have several rows, or the
// column's hierarchy is a list: nothing guards their means.
func NewMeans(p *Partition, values Measured, k int, integer bool) *Means {
	m := &Means{partition: p, values: values, k: k, unit: unitOf(integer), groupOf: make([]uint32, p.Blocks())}
	for b := range uint32(p.Blocks()) {
		m.add([]uint32{b}, m.look([]uint32{b}))
	}
	return m
}

func unitOf(integer bool) float64 {
	if integer {
		return 1
	}
	return 0
}

// add makes a group of blocks.
func (m *Means) add(blocks []uint32, g meanGroup) {
	for _, b := range blocks {
		m.groupOf[b] = uint32(len(m.groups))
	}
	m.groups = append(m.groups, g)
}

// cover is the narrowest node over blocks.
func (m *Means) cover(blocks []uint32) Node {
	lo, hi := ^uint32(0), uint32(0)
	for leaf := range m.people(blocks) {
		lo, hi = min(lo, leaf), max(hi, leaf)
	}
	return m.values.Hierarchy.Cover(lo, hi)
}

// people are how many rows of blocks have each leaf.
func (m *Means) people(blocks []uint32) map[uint32]uint32 {
	g, people := m.partition.ground, make(map[uint32]uint32)
	for _, b := range blocks {
		for _, pos := range m.partition.members.of(b) {
			for _, row := range g.table.RowsOf(g.tupleAt[pos]) {
				people[m.values.LeafOfRow[row]]++
			}
		}
	}
	return people
}

// sample is the values of blocks under their label. ok is false where nothing
// guards a mean of them.
func (m *Means) sample(blocks []uint32, label Node) (s sample, ok bool) {
	h := m.values.Hierarchy
	low, high, ok := h.Ends(label)
	if !ok || !m.partition.Table().RowPerSubject() {
		return s, false
	}
	people := m.people(blocks)
	s = sample{low: low, width: high - low, unit: m.unit}
	for _, leaf := range slices.Sorted(maps.Keys(people)) {
		at, _, ok := h.Ends(Node{Group: leaf})
		if !ok { // NULL has no place on the line
			s.nulls += people[leaf]
			continue
		}
		if n := len(s.values); n > 0 && s.values[n-1] == at { // one number in two ways, as 1 and 1.0 are
			s.people[n-1] += people[leaf]
			continue
		}
		s.values, s.people = append(s.values, at), append(s.people, people[leaf])
	}
	return s, true
}

// look is what a group of blocks shows of which nothing has been shown.
func (m *Means) look(blocks []uint32) meanGroup {
	g := meanGroup{label: m.cover(blocks)}
	if s, ok := m.sample(blocks, g.label); ok && s.width > 0 {
		if t := s.rounded(); s.passes(m.k, t, false) {
			g.shown, g.told = true, t
		}
	}
	return g
}

// Hierarchy is that of the labels.
func (m *Means) Hierarchy() *Hierarchy { return m.values.Hierarchy }

// Label is the narrowest node that covers the group of a block.
func (m *Means) Label(block uint32) Node { return m.groups[m.groupOf[block]].label }

// Mean is the mean of the group of a block, rounded: the sum behind it is off by
// at most the slack of what was told. ok is false where the guard holds it back.
func (m *Means) Mean(block uint32) (mean float64, ok bool) {
	if g := &m.groups[m.groupOf[block]]; g.shown {
		return g.told.mean(), true
	}
	return 0, false
}

// FormatMean prints a mean for a column of numbers, whole ones where it is told
// so.
func FormatMean(mean float64, integer bool) string {
	if integer {
		return strconv.FormatFloat(mean, 'f', 0, 64)
	}
	return strconv.FormatFloat(mean, 'f', -1, 64)
}

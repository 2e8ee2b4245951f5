package anonymize

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
)

// Means is what one column of a partition is shown as where means stand for
// labels' middles: the blocks are put together into groups, and every row of a
// group is shown the group's label and, where the guard lets it, its mean.
// It is immutable.
//
// A group is a union of blocks. Once a mean has been shown over it, it splits
// only into parts that may all show theirs: the blocks that may, and the others
// together, where they need it with as many people again who could do without;
// else it stays. A group that has shown nothing comes apart freely.
//
// Guarantee. All that is told of the column, now and before, is a function of
// label, size and sum of each group. In particular the difference of two sums
// that were ever told is a sum of groups each of which the guard has passed
// ([sample.mean] says for which attackers). Within an epoch.
// TestWhatIsLeftOverPassesTheGuardToo checks it.
type Means struct {
	partition *Partition
	column, k int
	unit      float64
	groupOf   []uint32 // block -> group
	groups    []meanGroup
	loss      float64
}

type meanGroup struct {
	label Node
	mean  float64
	shown bool // the mean is
	// told says that a mean has been shown over the group, now or before, or
	// over one that it is a part of.
	told bool
}

// NewMeans starts with each block as a group of its own, of which nothing but
// labels has been shown. integer says that the column holds whole numbers or
// days. Blocks are groups for ever where subjects have several rows, or the
// column's hierarchy is a list: nothing guards their means.
func NewMeans(p *Partition, column, k int, integer bool) *Means {
	m := &Means{partition: p, column: column, k: k, unit: unitOf(integer), groupOf: make([]uint32, p.Blocks())}
	for b := range m.groupOf {
		m.groupOf[b] = m.add([]uint32{uint32(b)}, false)
	}
	return m.weighed()
}

func unitOf(integer bool) float64 {
	if integer {
		return 1
	}
	return 0
}

// add makes a group of blocks.
func (m *Means) add(blocks []uint32, told bool) uint32 {
	g := m.look(blocks)
	g.told = g.shown || told
	m.groups = append(m.groups, g)
	return uint32(len(m.groups) - 1)
}

// look is what a group of blocks would show.
func (m *Means) look(blocks []uint32) meanGroup {
	g := m.partition.ground
	h := g.table.columns[m.column].Hierarchy
	people := make(map[uint32]uint32) // by leaf
	lo, hi := ^uint32(0), uint32(0)
	for _, b := range blocks {
		for _, pos := range m.partition.members.of(b) {
			people[g.leaf(m.column, pos)] += g.rows[pos]
		}
		lo, hi = min(lo, m.partition.lo[m.column][b]), max(hi, m.partition.hi[m.column][b])
	}
	out := meanGroup{label: h.Cover(lo, hi)}
	low, high, ok := h.Ends(out.label)
	if !ok || !g.table.RowPerSubject() {
		return out
	}
	s := sample{low: low, width: high - low, unit: m.unit}
	for _, leaf := range slices.Sorted(maps.Keys(people)) {
		at, _, ok := h.Ends(Node{Group: leaf})
		if !ok {
			return out // NULL has no place on the line
		}
		s.values, s.people = append(s.values, at), append(s.people, people[leaf])
	}
	out.mean, out.shown = s.mean(m.k)
	return out
}

// Refine is what is shown after a refinement of the partition, which must be of
// the same table.
func (m *Means) Refine(p *Partition) *Means {
	if p == m.partition {
		return m
	}
	next := &Means{partition: p, column: m.column, k: m.k, unit: m.unit, groupOf: make([]uint32, p.Blocks())}
	parts := make([][]uint32, len(m.groups))
	for b := range uint32(p.Blocks()) {
		g := m.groupOf[m.partition.blockOf[p.ground.tupleAt[p.members.of(b)[0]]]]
		parts[g] = append(parts[g], b)
	}
	for g, blocks := range parts {
		next.divide(blocks, m.groups[g].told)
	}
	return next.weighed()
}

// divide makes groups of the blocks that a group has come to.
func (m *Means) divide(blocks []uint32, told bool) {
	var alone, together []uint32
	if told {
		slices.SortFunc(blocks, m.compare)
	}
	for _, b := range blocks {
		if !told || m.look([]uint32{b}).shown {
			alone = append(alone, b)
		} else {
			together = append(together, b)
		}
	}
	if len(together) > 0 && !m.look(together).shown {
		alone, together = m.accompanied(alone, together)
		if !m.look(together).shown {
			alone, together = nil, blocks
		}
	}
	for _, b := range alone {
		m.groupOf[b] = m.add([]uint32{b}, told)
	}
	if len(together) > 0 {
		m.put(together, m.add(together, told))
	}
}

// accompanied moves blocks to those that are held back together, until their
// number of people has doubled: those that follow in the order of labels, in a
// circle. Values of the column count last in it, so that who is moved says
// little of them.
func (m *Means) accompanied(alone, together []uint32) (left, more []uint32) {
	from, _ := slices.BinarySearchFunc(alone, together[0], m.compare)
	people := 0
	for _, b := range together {
		people += m.partition.Rows(b)
	}
	more = together
	for i := range alone {
		b := alone[(from+i)%len(alone)]
		if people <= 0 {
			left = append(left, b)
			continue
		}
		more, people = append(more, b), people-m.partition.Rows(b)
	}
	return left, more
}

// compare orders blocks by the labels of the other columns, then by the
// column's.
func (m *Means) compare(a, b uint32) int {
	for i := 1; i <= len(m.partition.lo); i++ {
		c := (m.column + i) % len(m.partition.lo)
		x, y := m.partition.Cover(a, c), m.partition.Cover(b, c)
		if d := cmp.Or(cmp.Compare(x.Level, y.Level), cmp.Compare(x.Group, y.Group)); d != 0 {
			return d
		}
	}
	return cmp.Compare(a, b)
}

func (m *Means) put(blocks []uint32, group uint32) {
	for _, b := range blocks {
		m.groupOf[b] = group
	}
}

// Label is the narrowest node that covers the group of a block.
func (m *Means) Label(block uint32) Node { return m.groups[m.groupOf[block]].label }

// Mean is the mean of the group of a block, rounded: it is off by at most half
// of the label's width divided by the number of people. ok is false where the
// guard holds it back.
func (m *Means) Mean(block uint32) (mean float64, ok bool) {
	g := &m.groups[m.groupOf[block]]
	return g.mean, g.shown
}

// Loss is the mean over all rows of the share of the domain that a row's label
// covers, as [Partition.Loss] has it for the labels of blocks.
func (m *Means) Loss() float64 { return m.loss }

// weighed is m with its loss.
func (m *Means) weighed() *Means {
	h, sum := m.partition.Table().columns[m.column].Hierarchy, 0.0
	for b, rows := range m.partition.rows {
		sum += float64(rows) * h.Share(m.Label(uint32(b)))
	}
	m.loss = sum / float64(max(1, m.partition.Table().Rows()))
	return m
}

// FormatMean prints a mean for a column of numbers, whole ones where it is told
// so.
func FormatMean(mean float64, integer bool) string {
	if integer {
		return strconv.FormatFloat(mean, 'f', 0, 64)
	}
	return strconv.FormatFloat(mean, 'f', -1, 64)
}

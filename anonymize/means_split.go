package anonymize

import (
	"cmp"
	"slices"
)

// room is how many times the slack of what a split leaves over the range of
// those people is to be: with less, few sums would pass.
const room = 4

// Refine is what is shown after a refinement of the partition, which must be of
// the same table.
func (m *Means) Refine(p *Partition) *Means {
	if p == m.partition {
		return m
	}
	next := &Means{partition: p, values: m.values, k: m.k, unit: m.unit, groupOf: make([]uint32, p.Blocks())}
	parts := make([][]uint32, len(m.groups))
	for b := range uint32(p.Blocks()) {
		g := m.groupOf[m.partition.blockOf[p.ground.tupleAt[p.members.of(b)[0]]]]
		parts[g] = append(parts[g], b)
	}
	before := make([]int, len(m.groups)) // blocks of each
	for _, g := range m.groupOf {
		before[g]++
	}
	for g, blocks := range parts {
		next.divide(blocks, m.groups[g], before[g])
	}
	return next
}

// divide makes groups of the blocks that a group of so many has come to.
func (m *Means) divide(blocks []uint32, g meanGroup, before int) {
	switch {
	case !g.shown:
		for _, b := range blocks {
			m.add([]uint32{b}, meanGroup{label: m.cover([]uint32{b})})
		}
	case g.closed || len(blocks) == before:
		m.add(blocks, g)
	default:
		m.split(blocks, g)
	}
}

// split divides a group of which a mean has been shown: into each block that
// passes the guard, with its sum rounded, and the rest, with what these leave of
// the group's. The rest is what does not pass, with others beside; where it does
// not pass so, with as many again; else the group stays as it is for ever.
func (m *Means) split(blocks []uint32, g meanGroup) {
	s := &splitting{m: m, group: g, shown: make(map[uint32]meanGroup)}
	for _, b := range blocks {
		if look := m.look([]uint32{b}); look.shown {
			s.alone, s.shown[b] = append(s.alone, b), look
		} else {
			s.rest = append(s.rest, b)
		}
	}
	if len(s.rest) == 0 {
		b := slices.MaxFunc(s.alone, m.wider)
		s.alone, s.rest = slices.DeleteFunc(s.alone, func(x uint32) bool { return x == b }), []uint32{b}
	}
	s.accompany(0)
	rest, ok := s.left()
	if !ok {
		s.accompany(2 * s.people())
		rest, ok = s.left()
	}
	if !ok {
		g.closed = true
		m.add(blocks, g)
		return
	}
	for _, b := range s.alone {
		m.add([]uint32{b}, s.shown[b])
	}
	m.add(s.rest, rest)
}

// splitting is a group about to split.
type splitting struct {
	m           *Means
	group       meanGroup
	alone, rest []uint32
	shown       map[uint32]meanGroup // what blocks would show alone
}

func (s *splitting) people() int {
	n := 0
	for _, b := range s.rest {
		n += s.m.partition.Rows(b)
	}
	return n
}

// slack is that of what the others leave for the rest.
func (s *splitting) slack() float64 {
	slack := s.group.told.slack
	for _, b := range s.alone {
		slack += s.shown[b].told.slack
	}
	return slack
}

// accompany moves blocks to the rest until it has so many people, and room for
// the slack: those that follow by number, in a circle.
func (s *splitting) accompany(least int) {
	from, _ := slices.BinarySearch(s.alone, s.rest[0])
	alone := slices.Concat(s.alone[from:], s.alone[:from])
	low, high, _ := s.m.values.Hierarchy.Ends(s.group.label)
	people, slack := s.people(), s.slack()
	for len(alone) > 0 && (people < least || float64(people)*(high-low) < room*slack) {
		b := alone[0]
		s.rest, alone = append(s.rest, b), alone[1:]
		people, slack = people+s.m.partition.Rows(b), slack-s.shown[b].told.slack
	}
	slices.Sort(alone)
	s.alone = alone
}

// left is what the rest would show.
func (s *splitting) left() (g meanGroup, ok bool) {
	if len(s.alone) == 0 {
		return g, false
	}
	g = meanGroup{label: s.m.cover(s.rest), shown: true, told: told{sum: s.group.told.sum, slack: s.slack()}}
	for _, b := range s.alone {
		g.told.sum -= s.shown[b].told.sum
	}
	sample, ok := s.m.sample(s.rest, g.label)
	g.told.people = sample.count()
	return g, ok && sample.passes(s.m.k, g.told, true)
}

// wider orders blocks by their labels' widths, then by their people, then by
// number.
func (m *Means) wider(a, b uint32) int {
	h := m.values.Hierarchy
	x, y := h.Share(m.cover([]uint32{a})), h.Share(m.cover([]uint32{b}))
	return cmp.Or(cmp.Compare(x, y), cmp.Compare(m.partition.Rows(a), m.partition.Rows(b)), cmp.Compare(a, b))
}

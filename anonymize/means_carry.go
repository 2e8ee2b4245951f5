package anonymize

import "slices"

// Refit carries means to the partition of a new epoch; from is
// [RefitReport.From]. A group tells again what it has told. Where its values are
// not the same it never tells anything else: it stays whole, its label does not
// get narrower, and its mean is the one that was told before the first change,
// of the people of then, or the middle of the label where that mean lies
// outside; where it has told none, it comes apart as blocks do and shows no
// mean. Groups stay together, and those join whose blocks have joined, so
// that no group of the new epoch cuts across one of the old; newcomers outside
// all old labels are a group that shows no mean.
//
// Guarantee. Over all epochs, each sum is rounded once. So who has watched a
// group of which people come and go has one threshold, of the first, whatever he
// knows of those people. A group that tells something new has the values that it
// had when the chain began: all that is told of those is as [Means] says.
// TestAGroupThatHasChangedTellsNothingNew checks it.
func (m *Means) Refit(p *Partition, from [][]uint32, k int) *Means {
	next := &Means{partition: p, column: m.column, k: k, unit: m.unit, groupOf: make([]uint32, p.Blocks())}
	same := newUnion(len(m.groups) + p.Blocks())
	for b, olds := range from {
		for _, old := range olds {
			same.join(len(m.groups)+b, int(m.groupOf[old]))
		}
	}
	before, after := make(map[int][]uint32), make(map[int][]uint32) // groups and blocks by root
	for g := range m.groups {
		root := same.find(g)
		before[root] = append(before[root], uint32(g))
	}
	var order []int
	for b := range p.Blocks() {
		root := same.find(len(m.groups) + b)
		if after[root] == nil {
			order = append(order, root)
		}
		after[root] = append(after[root], uint32(b))
	}
	blocks := m.blocksOf()
	for _, root := range order {
		var old []uint32
		if groups := before[root]; len(groups) == 1 {
			old = blocks[groups[0]]
		}
		if g := m.carried(before[root], old, next, after[root]); g.mute {
			next.apart(after[root])
		} else {
			next.add(after[root], g)
		}
	}
	return next.weighed()
}

// blocksOf lists the blocks of each group.
func (m *Means) blocksOf() [][]uint32 {
	out := make([][]uint32, len(m.groups))
	for b, g := range m.groupOf {
		out[g] = append(out[g], uint32(b))
	}
	return out
}

// carried is what a group of the next epoch shows that continues groups of m:
// none for newcomers. old is the blocks of a single one.
func (m *Means) carried(groups, old []uint32, next *Means, blocks []uint32) meanGroup {
	if len(groups) == 1 && !m.groups[groups[0]].whole && !m.groups[groups[0]].mute && m.unchanged(old, next, blocks) {
		g := m.groups[groups[0]]
		if g.label = next.cover(blocks, 0); g.shown {
			return g
		}
		return next.look(blocks)
	}
	if len(groups) > 0 && !slices.ContainsFunc(groups, func(g uint32) bool { return m.groups[g].shown || m.groups[g].whole }) {
		return meanGroup{mute: true}
	}
	out, level := meanGroup{shown: len(groups) > 0, whole: true}, 0
	for _, i := range groups {
		g := &m.groups[i]
		level, out.shown = max(level, g.label.Level), out.shown && g.shown
		out.told.sum, out.told.slack = out.told.sum+g.told.sum, out.told.slack+g.told.slack
		out.told.people += g.told.people
	}
	out.label = next.cover(blocks, level)
	if low, high, ok := next.hierarchy().Ends(out.label); !ok || !out.shown || out.told.mean() < low || out.told.mean() >= high {
		out.shown, out.told = false, told{}
	}
	return out
}

// unchanged says whether blocks of the next epoch hold the values of old ones,
// each as often.
func (m *Means) unchanged(old []uint32, next *Means, blocks []uint32) bool {
	x, ok := m.sample(old, m.hierarchy().Root())
	y, again := next.sample(blocks, next.hierarchy().Root())
	return ok && again && x.nulls == y.nulls && slices.Equal(x.values, y.values) && slices.Equal(x.people, y.people)
}

// union is a forest of sets that can be joined.
type union []int

func newUnion(n int) union {
	u := make(union, n)
	for i := range u {
		u[i] = i
	}
	return u
}

func (u union) find(i int) int {
	for u[i] != i {
		u[i] = u[u[i]]
		i = u[i]
	}
	return i
}

func (u union) join(i, j int) { u[u.find(i)] = u.find(j) }

package anonymize

// Antichain gives the external tests access to the prefix tree.
type Antichain struct {
	up   *antichain
	down *downset
}

func NewAntichain(heights []uint8) Antichain {
	return Antichain{up: newAntichain(heights), down: newDownset(heights)}
}

// InsertUp and CoversUp work on the set of nodes above the inserted ones.
func (a Antichain) InsertUp(v []uint8)      { a.up.insert(v) }
func (a Antichain) CoversUp(v []uint8) bool { return a.up.covers(v) }

// InsertDown and CoversDown work on the set of nodes below the inserted ones.
func (a Antichain) InsertDown(v []uint8)      { a.down.insert(v) }
func (a Antichain) CoversDown(v []uint8) bool { return a.down.covers(v) }

// Elements counts what is stored in either direction.
func (a Antichain) Elements() (up, down int) { return a.up.elements, a.down.mirrored.elements }

// Group is the number of a block's group.
func (m *Means) Group(block uint32) uint32 { return m.groupOf[block] }

// Told is what has been told of the sum of a block's group: it lies within slack
// of sum. ok is false where nothing has.
func (m *Means) Told(block uint32) (sum, slack float64, ok bool) {
	g := &m.groups[m.groupOf[block]]
	return g.told.sum, g.told.slack, g.shown
}

// Varied says whether the values of a whole table may have a mean shown, whatever
// their sum is.
func (m *Means) Varied() bool {
	blocks := make([]uint32, m.partition.Blocks())
	for b := range blocks {
		blocks[b] = uint32(b)
	}
	s, ok := m.sample(blocks, m.cover(blocks))
	return ok && s.varied(m.k)
}

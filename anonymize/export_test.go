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

// Pairs counts the pairs of columns whose values are drawn together.
func (s *Sketch) Pairs(columns []int, margins map[int]*Margin) int {
	return len(s.pairs(columns, margins))
}

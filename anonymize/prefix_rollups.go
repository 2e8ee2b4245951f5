package anonymize

// prefixRollups decides which nodes are worth forming for no other reason than that
// their generalizations can be rolled up from them. A search asks mostly for
// high nodes, whose own specializations it never checks, so that snapshots of
// checked nodes alone would send most checks back to the table.
//
// Candidates are the prefixes of the node in hand: its first columns as they
// are, the others at level 0. Each prefix is charged with the classes that the
// checks above it had to merge; it is built once that exceeds the rent, a
// multiple of what building it can cost. So no more than a constant share of
// the work goes into scaffolding, whether it pays or not.
type prefixRollups struct {
	spent map[string]int
	rent  int
	open  []string // prefixes of the node in hand
}

const (
	rentFactor    = 2
	scaffoldBound = 1 << 16 // prefixes remembered
	built         = -1 << 62
)

func newPrefixRollups(entries int) *prefixRollups {
	return &prefixRollups{spent: make(map[string]int), rent: rentFactor * entries}
}

// prepare makes v the node in hand and builds those of its prefixes that have
// earned it.
func (s *prefixRollups) prepare(c *checker, v levels) {
	if len(s.spent) > scaffoldBound {
		clear(s.spent)
	}
	s.open = s.open[:0]
	for n := 1; n <= len(v); n++ {
		if v[n-1] == 0 {
			continue // the same node as the prefix before
		}
		prefix := string(v[:n])
		s.open = append(s.open, prefix)
		if s.spent[prefix] > s.rent {
			s.spent[prefix] = built
			node := make(levels, len(v))
			copy(node, prefix)
			c.support(node)
		}
	}
}

// spend charges the prefixes of the node in hand with merged classes.
func (s *prefixRollups) spend(merged int) {
	for _, prefix := range s.open {
		s.spent[prefix] += merged
	}
}

package anonymize

import "fmt"

// BlockK requires at least K distinct subjects in every block: k-anonymity
// ([Sweeney2002]) counted in persons. Attacker: knows the quasi-identifiers of
// all rows of a subject. Then at least K subjects fit what the block shows.
// TestSubjectsAreCountedNotRows checks it. K is at least 1; at 1 every subject
// may stand alone.
type BlockK struct{ K int }

func (r BlockK) String() string { return fmt.Sprintf("%d-anonymity", r.K) }

// Bind fails on K below 1.
func (r BlockK) Bind(t *Table) (Checker, error) {
	if r.K < 1 {
		return nil, fmt.Errorf("k must be at least 1, not %d", r.K)
	}
	return &blockK{k: r.K, tally: newTally(t, nil)}, nil
}

type blockK struct {
	k     int
	tally *tally
}

func (c *blockK) Meets(tuples []uint32) bool { return c.tally.subjects(tuples) >= c.k }

package anonymize

import "fmt"

// BlockApart requires that of each value as many subjects as K be in a block, or none.
// Attacker: knows of everybody which value it is, and which rows of a block have which.
// Then nobody is one of fewer than K. Values that fewer subjects of the table have are
// not asked about: no partition could be made otherwise. Each subject has one row.
type BlockApart struct {
	K  int
	Of Sensitive
}

func (r BlockApart) String() string {
	return fmt.Sprintf("%d subjects of each %q, or none", r.K, r.Of.Name)
}

// Bind fails on K below 2 and on values that do not fit the table.
func (r BlockApart) Bind(t *Table) (Checker, error) {
	if r.K < 2 {
		return nil, fmt.Errorf("k must be at least 2, not %d", r.K)
	}
	all := make(map[uint32]int)
	for _, v := range r.Of.CodeOfRow {
		all[v]++
	}
	return newTallied(t, r.Of, func(y *tally) bool {
		for _, v := range y.values {
			if n := int(y.counts[v]); n < r.K && all[v] >= r.K {
				return false
			}
		}
		return true
	})
}

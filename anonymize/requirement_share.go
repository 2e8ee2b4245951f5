package anonymize

import "fmt"

// BlockMaxShare requires that no subject own more than the share Share of the
// rows of a block: a dominance bound. Attacker: knows one subject's rows, or is
// that subject, and takes them off what the block shows. Then at least the rest
// is others'. TestNoSubjectDominatesABlock checks it. Share is above 0 and at
// most 1; at 1 the block must hold rows of somebody, as every block does.
//
// It is monotone however many rows a subject has: what a subject owns of two
// blocks together is between its shares of them.
type BlockMaxShare struct{ Share float64 }

func (r BlockMaxShare) String() string {
	return fmt.Sprintf("share of each subject at most %g", r.Share)
}

// Bind fails on Share out of range.
func (r BlockMaxShare) Bind(t *Table) (Checker, error) {
	if !(r.Share > 0 && r.Share <= 1) {
		return nil, fmt.Errorf("share must be above 0 and at most 1, not %g", r.Share)
	}
	c := &maxShare{table: t, share: r.Share}
	if !t.RowPerSubject() {
		c.owned = make([]uint32, dictionary(t.subjectOfRow))
	}
	return c, nil
}

// maxShare counts the rows of each subject of a block.
type maxShare struct {
	table *Table
	share float64
	owned []uint32 // subject -> rows in the block, only if not RowPerSubject
	met   []uint32 // subjects with any
}

func (c *maxShare) Meets(tuples []uint32) bool {
	rows, most := 0, uint32(1)
	for _, tuple := range tuples {
		rows += len(c.table.RowsOf(tuple))
		if c.owned == nil {
			continue
		}
		for _, row := range c.table.RowsOf(tuple) {
			s := c.table.subjectOfRow[row]
			if c.owned[s] == 0 {
				c.met = append(c.met, s)
			}
			c.owned[s]++
			most = max(most, c.owned[s])
		}
	}
	for _, s := range c.met {
		c.owned[s] = 0
	}
	c.met = c.met[:0]
	return float64(most) <= c.share*float64(rows)+slack
}

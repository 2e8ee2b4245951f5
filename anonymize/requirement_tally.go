package anonymize

import (
	"errors"
	"fmt"
)

// Sensitive is a sensitive attribute beside a table: the dictionary code of
// the value of each row. Name tells attributes apart in names of requirements.
// The slice is kept, not copied, and must not be changed.
type Sensitive struct {
	Name      string
	CodeOfRow []uint32
}

// tally counts subjects and, per sensitive value, the subjects that have it.
// A subject counts once for each of its values, however many rows repeat it.
type tally struct {
	table  *Table
	codes  []uint32
	counts []uint32 // value -> subjects in the current block
	values []uint32 // values with a count above 0
	total  int      // sum of counts
	seen   map[uint64]struct{}
}

func newTally(t *Table, codes []uint32) *tally {
	return &tally{
		table: t, codes: codes, counts: make([]uint32, dictionary(codes)),
		seen: make(map[uint64]struct{}),
	}
}

// dictionary is the number of codes there may be.
func dictionary(codes []uint32) int {
	n := 0
	for _, c := range codes {
		n = max(n, int(c)+1)
	}
	return n
}

// checkSensitive asserts that there is one code for each row, and that there are not many more
// codes than rows or shares of the reference, if there is one.
func checkSensitive(t *Table, s Sensitive, to *Reference) error {
	if len(s.CodeOfRow) != t.Rows() {
		return fmt.Errorf("sensitive attribute %q has %d values for %d rows", s.Name, len(s.CodeOfRow),
			t.Rows())
	}
	most := 4*int64(t.Rows()) + 1024
	if to != nil {
		most += int64(len(to.shares))
	}
	for _, c := range s.CodeOfRow {
		if int64(c) > most {
			return errors.New("sensitive values must be coded densely from 0")
		}
	}
	return nil
}

// tallied is a checker over the counts of sensitive values of a block.
type tallied struct {
	tally  *tally
	model  ValueModel
	counts []uint32
}

func newTallied(t *Table, s Sensitive, to *Reference, model ValueModel) (Checker, error) {
	if err := checkSensitive(t, s, to); err != nil {
		return nil, err
	}
	return &tallied{tally: newTally(t, s.CodeOfRow), model: model}, nil
}

func (c *tallied) Meets(tuples []uint32) bool {
	c.tally.count(tuples)
	c.counts = c.counts[:0]
	for _, v := range c.tally.values {
		c.counts = append(c.counts, c.tally.counts[v])
	}
	return c.model.Holds(c.tally.values, c.counts)
}

// subjects counts the distinct subjects of the tuples.
func (y *tally) subjects(tuples []uint32) int {
	n := 0
	if y.table.RowPerSubject() {
		for _, tuple := range tuples {
			n += len(y.table.RowsOf(tuple))
		}
		return n
	}
	clear(y.seen)
	for _, tuple := range tuples {
		for _, row := range y.table.RowsOf(tuple) {
			y.seen[uint64(y.table.Subject(row))] = struct{}{}
		}
	}
	return len(y.seen)
}

// count fills in counts, values and total for a block.
func (y *tally) count(tuples []uint32) {
	for _, v := range y.values {
		y.counts[v] = 0
	}
	y.values, y.total = y.values[:0], 0
	clear(y.seen)
	for _, tuple := range tuples {
		for _, row := range y.table.RowsOf(tuple) {
			v := y.codes[row]
			if !y.table.RowPerSubject() {
				key := uint64(y.table.Subject(row))<<32 | uint64(v)
				if _, again := y.seen[key]; again {
					continue
				}
				y.seen[key] = struct{}{}
			}
			if y.counts[v] == 0 {
				y.values = append(y.values, v)
			}
			y.counts[v]++
			y.total++
		}
	}
}

package anonymize

import (
	"fmt"
	"math"
	"slices"
)

// ValueModel is a [Requirement] that looks at nothing but how many subjects of a block have
// each sensitive value.
type ValueModel interface {
	Requirement
	// Holds says whether a block meets the model in which so many subjects, above 0, have each
	// of some values, by code. What makes a model of likeness has a [Reference].
	Holds(values, counts []uint32) bool
}

// BlockDistinctL requires at least L distinct sensitive values in every block
// ([Machanavajjhala2006] §4, distinct l-diversity). Attacker: knows the block
// of a subject and nothing of the sensitive values. Then no value is certain.
// L is at least 2.
type BlockDistinctL struct {
	L  int
	Of Sensitive
}

func (r BlockDistinctL) String() string {
	return fmt.Sprintf("distinct %d-diversity of %q", r.L, r.Of.Name)
}

// Bind fails on L below 2 and on values that do not fit the table.
func (r BlockDistinctL) Bind(t *Table) (Checker, error) {
	if r.L < 2 {
		return nil, fmt.Errorf("l must be at least 2, not %d", r.L)
	}
	if err := checkSensitive(t, r.Of, nil); err != nil {
		return nil, err
	}
	return &distinctValues{
		table: t, codes: r.Of.CodeOfRow, least: r.L,
		met: make([]uint32, dictionary(r.Of.CodeOfRow)),
	}, nil
}

// Holds implements [ValueModel].
func (r BlockDistinctL) Holds(_, counts []uint32) bool { return len(counts) >= r.L }

// distinctValues counts the values of a block as far as it has to.
type distinctValues struct {
	table *Table
	codes []uint32
	least int
	met   []uint32 // value -> round of the last look that met it
	round uint32
}

func (c *distinctValues) Meets(tuples []uint32) bool {
	c.round++
	if c.round == 0 { // wrapped: forget all
		clear(c.met)
		c.round = 1
	}
	missing := c.least
	for _, tuple := range tuples {
		for _, row := range c.table.RowsOf(tuple) {
			if v := c.codes[row]; c.met[v] != c.round {
				c.met[v] = c.round
				if missing--; missing == 0 {
					return true
				}
			}
		}
	}
	return false
}

// partSuffices implements [upward].
func (c *distinctValues) partSuffices() {}

// BlockEntropyL requires that the entropy of the sensitive values in every
// block be at least that of L equally frequent values ([Machanavajjhala2006]
// §4, entropy l-diversity). L is above 1 and need not be whole.
type BlockEntropyL struct {
	L  float64
	Of Sensitive
}

func (r BlockEntropyL) String() string {
	return fmt.Sprintf("entropy %g-diversity of %q", r.L, r.Of.Name)
}

// Bind fails on L of 1 or less and on values that do not fit the table.
func (r BlockEntropyL) Bind(t *Table) (Checker, error) {
	if !(r.L > 1) || math.IsInf(r.L, 0) {
		return nil, fmt.Errorf("l must be above 1, not %g", r.L)
	}
	return newTallied(t, r.Of, nil, r)
}

// Holds implements [ValueModel].
func (r BlockEntropyL) Holds(_, counts []uint32) bool {
	return entropy(counts) >= math.Log(r.L)-slack
}

// slack forgives rounding where a block meets a model exactly.
const slack = 1e-12

// BlockRecursiveCL requires that in every block the most frequent sensitive
// value be less than C times as frequent as all but the L-1 most frequent ones
// together ([Machanavajjhala2006] §4, recursive (c,l)-diversity). C is above
// 0, L at least 2.
type BlockRecursiveCL struct {
	C  float64
	L  int
	Of Sensitive
}

func (r BlockRecursiveCL) String() string {
	return fmt.Sprintf("recursive (%g,%d)-diversity of %q", r.C, r.L, r.Of.Name)
}

// Bind fails on parameters out of range and on values that do not fit the
// table.
func (r BlockRecursiveCL) Bind(t *Table) (Checker, error) {
	if r.L < 2 {
		return nil, fmt.Errorf("l must be at least 2, not %d", r.L)
	}
	if !(r.C > 0) || math.IsInf(r.C, 0) {
		return nil, fmt.Errorf("c must be above 0, not %g", r.C)
	}
	return newTallied(t, r.Of, nil, r)
}

// Holds implements [ValueModel].
func (r BlockRecursiveCL) Holds(_, counts []uint32) bool {
	most, tail := recursiveParts(counts, r.L)
	return most < r.C*tail-slack*most
}

// BlockAlpha requires that no sensitive value be held by more than the share
// Alpha of a block: with [BlockK], (α,k)-anonymity ([Wong2006]). Alpha is
// above 0 and below 1.
type BlockAlpha struct {
	Alpha float64
	Of    Sensitive
}

func (r BlockAlpha) String() string {
	return fmt.Sprintf("share of each %q at most %g", r.Of.Name, r.Alpha)
}

// Bind fails on Alpha out of range and on values that do not fit the table.
func (r BlockAlpha) Bind(t *Table) (Checker, error) {
	if !(r.Alpha > 0 && r.Alpha < 1) {
		return nil, fmt.Errorf("alpha must be between 0 and 1, not %g", r.Alpha)
	}
	return newTallied(t, r.Of, nil, r)
}

// Holds implements [ValueModel].
func (r BlockAlpha) Holds(_, counts []uint32) bool {
	return len(counts) > 0 && float64(slices.Max(counts)) <= r.Alpha*sumCounts(counts)+slack
}

package anonymize

import (
	"fmt"
	"math"
)

// BlockTCloseness requires that the distribution of the sensitive values in every block be
// within T of the reference, by the earth mover's distance ([Li2007] §4): with equal distances
// between values, or, if Ordered, with values at even steps of a scale. Attacker: knows the
// reference and the block of a subject. Then the belief about the subject's value moves by at
// most T. T is above 0 and below 1.
type BlockTCloseness struct {
	T       float64
	Ordered bool
	Of      Sensitive
	To      *Reference // nil: the whole table, on the scale in the order of its codes
}

func (r BlockTCloseness) String() string {
	if r.Ordered {
		return fmt.Sprintf("ordered %g-closeness of %q", r.T, r.Of.Name)
	}
	return fmt.Sprintf("%g-closeness of %q", r.T, r.Of.Name)
}

// Bind fails on T out of range and on values that do not fit the table.
func (r BlockTCloseness) Bind(t *Table) (Checker, error) {
	if !(r.T > 0 && r.T < 1) {
		return nil, fmt.Errorf("t must be between 0 and 1, not %g", r.T)
	}
	err := refer(&r.To, t, r.Of)
	if err != nil {
		return nil, err
	}
	return newTallied(t, r.Of, r.To, r)
}

// Holds implements [ValueModel].
func (r BlockTCloseness) Holds(values, counts []uint32) bool {
	if r.Ordered {
		return r.To.orderedDistance(values, counts) <= r.T+slack
	}
	return r.To.equalDistance(values, counts) <= r.T+slack
}

// BlockBetaLikeness requires that no sensitive value gain more than Beta times its share in the
// reference: (q-p)/p <= Beta for every value ([Cao2012] §3). Enhanced, the bound is
// min(Beta, -ln p), so that frequent values may gain less. A value that the reference lacks
// gains too much. Attacker: knows the reference and the block of a subject. Then the belief that
// the subject has a value grows by a factor of at most 1+Beta. Beta is above 0.
type BlockBetaLikeness struct {
	Beta     float64
	Enhanced bool
	Of       Sensitive
	To       *Reference // nil: the whole table
}

func (r BlockBetaLikeness) String() string {
	if r.Enhanced {
		return fmt.Sprintf("enhanced %g-likeness of %q", r.Beta, r.Of.Name)
	}
	return fmt.Sprintf("%g-likeness of %q", r.Beta, r.Of.Name)
}

// Bind fails on Beta out of range and on values that do not fit the table.
func (r BlockBetaLikeness) Bind(t *Table) (Checker, error) {
	if !(r.Beta > 0) || math.IsInf(r.Beta, 0) {
		return nil, fmt.Errorf("beta must be above 0, not %g", r.Beta)
	}
	if err := refer(&r.To, t, r.Of); err != nil {
		return nil, err
	}
	return newTallied(t, r.Of, r.To, r)
}

// Holds implements [ValueModel].
func (r BlockBetaLikeness) Holds(values, counts []uint32) bool {
	total := sumCounts(counts)
	for j, v := range values {
		bound := r.Beta
		if r.Enhanced {
			bound = min(bound, -math.Log(r.To.share(v)))
		}
		if r.To.gain(v, counts[j], total) > bound+slack {
			return false
		}
	}
	return true
}

// BlockDisclosure requires that every value of the reference be in every block, and that its
// share there differ from that in the reference by a factor of less than e^Delta: |ln(q/p)| <
// Delta, δ-disclosure privacy ([Brickell2008]). Attacker: knows the reference and the block of a
// subject. Then the belief that the subject has a value, or has not, grows by less than that
// factor, and nothing becomes impossible. Delta is above 0.
type BlockDisclosure struct {
	Delta float64
	Of    Sensitive
	To    *Reference // nil: the whole table
}

func (r BlockDisclosure) String() string {
	return fmt.Sprintf("%g-disclosure privacy of %q", r.Delta, r.Of.Name)
}

// Bind fails on Delta out of range and on values that do not fit the table.
func (r BlockDisclosure) Bind(t *Table) (Checker, error) {
	if !(r.Delta > 0) || math.IsInf(r.Delta, 0) {
		return nil, fmt.Errorf("delta must be above 0, not %g", r.Delta)
	}
	if err := refer(&r.To, t, r.Of); err != nil {
		return nil, err
	}
	return newTallied(t, r.Of, r.To, r)
}

// Holds implements [ValueModel].
func (r BlockDisclosure) Holds(values, counts []uint32) bool {
	return len(values) == r.To.values && r.To.disclosure(values, counts) < r.Delta-slack
}

// refer fills in the whole table as the reference where none is given.
func refer(to **Reference, t *Table, s Sensitive) error {
	if *to != nil {
		return nil
	}
	if err := checkSensitive(t, s, nil); err != nil {
		return err
	}
	y := newTally(t, s.CodeOfRow)
	all := make([]uint32, t.Tuples())
	for i := range all {
		all[i] = uint32(i)
	}
	y.count(all)
	base := make([]float64, len(y.counts))
	for v, n := range y.counts {
		base[v] = float64(n) / float64(max(y.total, 1))
	}
	*to = onScale(base)
	return nil
}

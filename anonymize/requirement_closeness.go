package anonymize

import (
	"fmt"
	"math"
)

// BlockTCloseness requires that the distribution of the sensitive values in
// every block be within T of that in the whole table, by the earth mover's
// distance ([Li2007] §4): with equal distances between values, or, if Ordered,
// with values that lie evenly on a line in the order of their codes. Attacker:
// knows the distribution in the table and the block of a subject. Then the
// belief about the subject's value moves by at most T. T is above 0 and below
// 1.
type BlockTCloseness struct {
	T       float64
	Ordered bool
	Of      Sensitive
}

func (r BlockTCloseness) String() string {
	if r.Ordered {
		return fmt.Sprintf("ordered %g-closeness of %q", r.T, r.Of.Name)
	}
	return fmt.Sprintf("%g-closeness of %q", r.T, r.Of.Name)
}

// Bind counts the whole table. It fails on T out of range and on values that
// do not fit the table.
func (r BlockTCloseness) Bind(t *Table) (Checker, error) {
	if !(r.T > 0 && r.T < 1) {
		return nil, fmt.Errorf("t must be between 0 and 1, not %g", r.T)
	}
	base, err := tableShares(t, r.Of)
	if err != nil {
		return nil, err
	}
	if r.Ordered {
		return newTallied(t, r.Of, func(y *tally) bool { return orderedDistance(y, base) <= r.T+slack })
	}
	return newTallied(t, r.Of, func(y *tally) bool { return equalDistance(y, base) <= r.T+slack })
}

// equalDistance is half the sum of the differences, computed over the values
// of the block only: the mass that a block has too much of.
func equalDistance(y *tally, base []float64) float64 {
	excess := 0.0
	for _, v := range y.values {
		excess += max(0, float64(y.counts[v])/float64(y.total)-base[v])
	}
	return excess
}

func orderedDistance(y *tally, base []float64) float64 {
	if len(base) < 2 {
		return 0
	}
	work, carried := 0.0, 0.0
	for v := range base {
		carried += float64(y.counts[v])/float64(y.total) - base[v]
		work += math.Abs(carried)
	}
	return work / float64(len(base)-1)
}

// BlockBetaLikeness requires that no sensitive value gain more than Beta times
// its share in the whole table: (q-p)/p <= Beta for every value, basic
// β-likeness ([Cao2012] §3). Beta is above 0.
type BlockBetaLikeness struct {
	Beta float64
	Of   Sensitive
}

func (r BlockBetaLikeness) String() string {
	return fmt.Sprintf("%g-likeness of %q", r.Beta, r.Of.Name)
}

// Bind counts the whole table. It fails on Beta out of range and on values
// that do not fit the table.
func (r BlockBetaLikeness) Bind(t *Table) (Checker, error) {
	if !(r.Beta > 0) || math.IsInf(r.Beta, 0) {
		return nil, fmt.Errorf("beta must be above 0, not %g", r.Beta)
	}
	base, err := tableShares(t, r.Of)
	if err != nil {
		return nil, err
	}
	return newTallied(t, r.Of, func(y *tally) bool {
		for _, v := range y.values {
			q := float64(y.counts[v]) / float64(y.total)
			if q-base[v] > r.Beta*base[v]+slack {
				return false
			}
		}
		return true
	})
}

// tableShares is the distribution of the values over the whole table.
func tableShares(t *Table, s Sensitive) ([]float64, error) {
	if err := checkSensitive(t, s); err != nil {
		return nil, err
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
	return base, nil
}

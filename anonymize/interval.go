package anonymize

import (
	"math"
	"math/big"
	"strconv"
)

// Interval describes a hierarchy over numbers: level i groups them into
// half-open ranges of Widths[i-1], counted from Lower. Values below Lower or
// above Upper have no place; bounds come from the policy, never from the data,
// so that no label tells an extreme value.
type Interval struct {
	Widths       []float64
	Lower, Upper float64
	// Integer says that the column holds whole numbers: labels then read
	// "30-39" instead of "[30,40)" and representatives are whole numbers.
	Integer bool
}

// Build makes the hierarchy over the given values, each as PostgreSQL prints
// it. withNull adds a leaf for SQL NULL. It fails with a *[HierarchyError] on
// bad bounds or widths and on values that are not numbers within the bounds.
func (iv Interval) Build(values []string, withNull bool) (*Hierarchy, error) {
	if !(iv.Lower < iv.Upper) || math.IsInf(iv.Lower, 0) || math.IsInf(iv.Upper, 0) {
		return nil, &HierarchyError{Level: -1, Reason: "the lower bound must be below the upper bound"}
	}
	if err := checkMultiples(iv.Widths); err != nil {
		return nil, err
	}
	all := make([]placed, len(values))
	for i, text := range values {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(v) {
			return nil, &HierarchyError{Line: i + 1, Level: 0, Reason: "a value is not a number"}
		}
		if v < iv.Lower || v > iv.Upper {
			return nil, &HierarchyError{Line: i + 1, Level: 0, Reason: "a value is outside the bounds"}
		}
		nodes := make([]span, len(iv.Widths))
		for l, w := range iv.Widths {
			nodes[l] = iv.node(iv.Lower+w*math.Floor((v-iv.Lower)/w), w)
		}
		all[i] = placed{text: text, at: v, nodes: nodes}
	}
	root := span{
		low: iv.Lower, high: iv.upperEdge(),
		representative: iv.middle(iv.Lower, iv.upperEdge()),
	}
	d := domain{text: number}
	if iv.Integer {
		d.step, d.unit = 1, 1
	}
	return newComputed(all, len(iv.Widths), root, withNull, d)
}

// upperEdge is the exclusive upper end of the domain.
func (iv Interval) upperEdge() float64 {
	if iv.Integer {
		return iv.Upper + 1
	}
	return iv.Upper
}

func (iv Interval) node(low, width float64) span {
	high := low + width
	s := span{low: low, high: high, representative: iv.middle(low, min(high, iv.upperEdge()))}
	switch {
	case iv.Integer && width == 1:
		s.label = number(low)
	case iv.Integer:
		s.label = number(low) + "-" + number(min(high-1, iv.Upper))
	default:
		s.label = "[" + number(low) + "," + number(high) + ")"
	}
	return s
}

// middle is the midpoint of [low, high), a whole number for whole numbers.
func (iv Interval) middle(low, high float64) string {
	if iv.Integer {
		return number(math.Floor((low + high - 1) / 2))
	}
	return number((low + high) / 2)
}

// number prints a bound without exponent and without trailing zeros.
func number(v float64) string {
	if v == math.Trunc(v) {
		i, _ := big.NewFloat(v).Int(nil)
		return i.String()
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

package anonymize

import (
	"cmp"
	"math"
	"slices"
)

// domain says which values a node stands for, whatever the data hold: those of a list,
// the units of a range, or, where it says nothing, only the node itself.
type domain struct {
	listed bool                 // the leaves are those of a code list
	text   func(float64) string // prints a value of a measured domain; nil for others
	step   float64              // between drawn values of a measured domain, 0 if they are dense
	unit   float64              // between values that there may be, 0 if they are dense
}

// grain is how many values are drawn from of a range whose values are dense.
const grain = 1000

// region is a set of values of a hierarchy: those of a node that narrower ones do not
// take.
type region struct {
	h     *Hierarchy
	parts []reach // of a measured domain
	codes []uint32
	only  Node // where the values of the node are not known: it stands for itself
	size  float64
}

// reach is a range of a measured domain, high exclusive.
type reach struct{ low, high float64 }

// region returns the values of a node without those of others that lie in it.
func (h *Hierarchy) region(n Node, taken []Node) region {
	r := region{h: h, only: n}
	g := &h.levels[n.Level].groups[n.Group]
	if g.first == g.last && (h.isNull(g.first) || n.Level == 0 || h.domain.listed) {
		r.codes, r.size = []uint32{g.first}, 1
		return r
	}
	if null, ok := h.NullCode(); ok && g.last == null && !slices.ContainsFunc(taken, h.isNullNode) {
		r.codes = []uint32{null}
	}
	switch {
	case h.domain.text != nil:
		r.parts = h.without(g, taken)
		for _, p := range r.parts {
			r.size += r.values(p)
		}
		r.size += float64(len(r.codes))
	case h.domain.listed:
		out := make([]bool, g.last-g.first+1)
		for _, t := range taken {
			first, last := h.Range(t)
			for code := first; code <= last; code++ {
				out[code-g.first] = true
			}
		}
		r.codes = nil
		for i := range out {
			if !out[i] {
				r.codes = append(r.codes, g.first+uint32(i))
			}
		}
		r.size = float64(len(r.codes))
	default:
		r.codes, r.size = nil, 1
	}
	return r
}

func (h *Hierarchy) isNull(leaf uint32) bool { return h.null >= 0 && leaf == uint32(h.null) }

// isNullNode says that a node stands for NULL alone.
func (h *Hierarchy) isNullNode(n Node) bool {
	first, last := h.Range(n)
	return first == last && h.isNull(first)
}

// without are the parts of a range that nodes in it leave.
func (h *Hierarchy) without(g *group, taken []Node) []reach {
	var holes []reach
	for _, t := range taken {
		if in := &h.levels[t.Level].groups[t.Group]; in.high > in.low {
			holes = append(holes, reach{in.low, in.high})
		}
	}
	slices.SortFunc(holes, func(a, b reach) int { return cmp.Compare(a.low, b.low) })
	var out []reach
	at := g.low
	for _, hole := range holes {
		if hole.low > at {
			out = append(out, reach{at, hole.low})
		}
		at = max(at, hole.high)
	}
	if at < g.high {
		out = append(out, reach{at, g.high})
	}
	return out
}

// values is how many values are drawn from of a part.
func (r *region) values(p reach) float64 {
	if r.h.domain.step > 0 {
		return math.Floor((p.high - p.low) / r.h.domain.step)
	}
	root := r.h.Root()
	g := &r.h.levels[root.Level].groups[root.Group]
	return grain * (p.high - p.low) / (g.high - g.low)
}

// at is the value at a place of the region, from 0 to below 1. null says that it is
// SQL NULL.
func (r *region) at(place float64) (value string, null bool) {
	switch {
	case r.h.domain.text == nil && len(r.codes) == 0:
		return r.h.Label(r.only), false
	case len(r.parts) == 0:
		code := r.codes[min(int(place*float64(len(r.codes))), len(r.codes)-1)]
		return r.h.Label(Node{Group: code}), r.h.isNull(code)
	}
	seek := place * r.size
	for _, p := range r.parts {
		n := r.values(p)
		if seek < n {
			if r.h.domain.step > 0 {
				return r.h.domain.text(p.low + r.h.domain.step*math.Floor(seek)), false
			}
			return r.h.domain.text(dense(p, seek/n)), false
		}
		seek -= n
	}
	if len(r.codes) > 0 {
		return "", true
	}
	last := r.parts[len(r.parts)-1]
	return r.h.domain.text(max(last.low, last.high-r.h.domain.step)), false
}

// dense is a value of a range whose values are dense, with as many digits as tell
// [grain] of them apart.
func dense(p reach, place float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10((p.high-p.low)/grain)))
	return max(p.low, math.Floor((p.low+place*(p.high-p.low))/unit)*unit)
}

// Bounds are the least and the greatest value of a node of a measured domain, ok is
// false for others. Of dense values the greatest is the end of the range.
func (h *Hierarchy) Bounds(n Node) (low, high string, ok bool) {
	g := &h.levels[n.Level].groups[n.Group]
	if h.domain.text == nil || h.isNullNode(n) {
		return "", "", false
	}
	if n.Level == 0 {
		return g.label, g.label, true
	}
	return h.domain.text(g.low), h.domain.text(g.high - h.domain.unit), true
}

// contains says whether the leaves of one node are among those of another.
func (h *Hierarchy) contains(outer, inner Node) bool {
	a, b := h.Range(outer)
	c, d := h.Range(inner)
	return a <= c && d <= b && (outer.Level >= inner.Level)
}

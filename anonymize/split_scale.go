package anonymize

// scale is the price of a range of leaves of one column: what a row loses
// whose block spans it.
type scale struct {
	hierarchy *Hierarchy
	weight    float64
	leaves    uint32
	table     []float64 // [lo*leaves+hi], nil for large domains
}

// tabled is the largest domain whose prices are kept in a table.
const tabled = 128

func newScale(h *Hierarchy, weight float64) scale {
	s := scale{hierarchy: h, weight: weight, leaves: uint32(h.Leaves())}
	if weight > 0 && s.leaves <= tabled {
		s.table = make([]float64, s.leaves*s.leaves)
		for lo := range s.leaves {
			for hi := lo; hi < s.leaves; hi++ {
				s.table[lo*s.leaves+hi] = weight * h.Share(h.Cover(lo, hi))
			}
		}
	}
	return s
}

// price is the weighted share of the narrowest node over [lo, hi].
func (s *scale) price(lo, hi uint32) float64 {
	if s.table != nil {
		return s.table[lo*s.leaves+hi]
	}
	return s.weight * s.hierarchy.Share(s.hierarchy.Cover(lo, hi))
}

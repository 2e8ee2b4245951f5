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

// sweep prices ranges that grow from one leaf.
type sweep struct {
	scale *scale
	from  uint32
	level int
	group uint32
	price float64
}

func (s *scale) sweep(from uint32) sweep {
	return sweep{
		scale: s, from: from, group: s.hierarchy.levels[0].groupOf[from],
		price: s.price(from, from),
	}
}

// to is the price of the range between the first leaf and another, which lies
// no nearer than the one before.
func (w *sweep) to(leaf uint32) float64 {
	levels := w.scale.hierarchy.levels
	if levels[w.level].groupOf[leaf] == w.group {
		return w.price
	}
	for levels[w.level].groupOf[leaf] != w.group {
		w.level++
		w.group = levels[w.level].groupOf[w.from]
	}
	w.price = w.scale.weight * w.scale.hierarchy.Share(Node{Level: w.level, Group: w.group})
	return w.price
}

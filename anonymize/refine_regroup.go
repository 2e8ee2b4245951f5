package anonymize

import "slices"

// move puts an item into another block.
func (r *repair) move(i, to uint32) {
	from := r.blockOf[i]
	at := slices.Index(r.members[from], i)
	r.members[from] = slices.Delete(r.members[from], at, at+1)
	r.members[to] = append(r.members[to], i)
	r.blockOf[i] = to
	r.measure(from)
	r.measure(to)
}

// measure recomputes rows, bounds and price of a block.
func (r *repair) measure(b uint32) {
	width := len(r.s.scales)
	lo, hi := r.lo[int(b)*width:][:width], r.hi[int(b)*width:][:width]
	r.rows[b], r.price[b] = 0, 0
	for n, i := range r.members[b] {
		rec := r.s.record(i)
		r.rows[b] += rec[width]
		for _, c := range r.columns {
			if v := rec[c]; n == 0 {
				lo[c], hi[c] = v, v
			} else {
				lo[c], hi[c] = min(lo[c], v), max(hi[c], v)
			}
		}
	}
	if len(r.members[b]) > 0 {
		for _, c := range r.columns {
			r.price[b] += r.s.scales[c].price(lo[c], hi[c])
		}
	}
}

// joined is the price of a row of block b if item i joins it.
func (r *repair) joined(b, i uint32) float64 {
	width := len(r.s.scales)
	lo, hi := r.lo[int(b)*width:][:width], r.hi[int(b)*width:][:width]
	rec := r.s.record(i)
	price := 0.0
	for _, c := range r.columns {
		v := rec[c]
		price += r.s.scales[c].price(min(lo[c], v), max(hi[c], v))
	}
	return price
}

// exchanged is the price of a row of block b if item out leaves it and item
// in, unless noItem, joins.
func (r *repair) exchanged(b, out, in uint32) float64 {
	width := len(r.s.scales)
	gone := r.s.record(out)
	price := 0.0
	for _, c := range r.columns {
		lo, hi := r.lo[int(b)*width+c], r.hi[int(b)*width+c]
		if v := gone[c]; lo != hi && (v == lo || v == hi) {
			lo, hi = hi, lo
			for _, i := range r.members[b] {
				if i != out {
					v := r.s.record(i)[c]
					lo, hi = min(lo, v), max(hi, v)
				}
			}
		}
		if in != noItem {
			v := r.s.record(in)[c]
			lo, hi = min(lo, v), max(hi, v)
		}
		price += r.s.scales[c].price(lo, hi)
	}
	return price
}

// suits says whether block b still meets all requirements if item out leaves
// it and item in joins; either may be noItem.
func (r *repair) suits(b, out, in uint32) bool {
	if r.s.plain {
		rows := r.rows[b]
		if out != noItem {
			rows -= r.s.rowsOf(out)
		}
		if in != noItem {
			rows += r.s.rowsOf(in)
		}
		return int(rows) >= r.s.must.k
	}
	subjects := 0
	r.tuples = r.tuples[:0]
	r.s.census.open()
	add := func(i uint32) {
		pos := r.s.position(i)
		subjects += r.s.census.add(pos)
		r.tuples = append(r.tuples, r.s.ground.tupleAt[pos])
	}
	for _, i := range r.members[b] {
		if i != out {
			add(i)
		}
	}
	if in != noItem {
		add(in)
	}
	return subjects >= r.s.must.k && r.s.must.meetsOthers(r.tuples)
}

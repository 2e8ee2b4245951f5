package disassociate

import (
	"cmp"
	"slices"
)

// cluster is a group of records while the form is being made.
type cluster struct {
	records  []int32
	chunks   [][]Item // the codes of each record chunk, in order of acceptance
	nonEmpty int      // sub-records with a code, in all record chunks together
	items    []Item   // the item chunk, ascending
	support  []int32  // of each code of the item chunk
}

// vertical runs VERPART ([Loukides2014]) on one cluster at a
// time. It is scratch space of one worker.
type vertical struct {
	k, m       int
	mayBeEmpty bool
	roles      *roles
	cols       *columns
	check      chunkCheck
	lead       map[int32]int32 // constraint -> its first column in the order
	left       map[int32]int   // constraint -> its columns that are not placed yet
}

func newVertical(cfg *Config, r *roles) *vertical {
	return &vertical{
		k: cfg.K, m: cfg.M, mayBeEmpty: cfg.MayBeEmpty, roles: r, cols: newColumns(len(r.constraint)),
		check: chunkCheck{k: cfg.K, m: cfg.M},
		lead:  make(map[int32]int32), left: make(map[int32]int),
	}
}

// cut divides the codes of a cluster into record chunks and the item chunk.
// Codes of fewer than k records and sensitive codes go to the item chunk.
func (v *vertical) cut(d *Dataset, records []int32) cluster {
	v.cols.reset(len(records))
	for row, r := range records {
		for _, it := range d.Items(int(r)) {
			v.cols.add(row, it)
		}
	}
	c := cluster{records: records}
	var rare, frequent []int32
	for col, it := range v.cols.items {
		if int(v.cols.support[col]) < v.k || v.roles.sensitive[it] {
			rare = append(rare, int32(col))
		} else {
			frequent = append(frequent, int32(col))
		}
	}
	chunks := v.chunks(frequent)
	c.nonEmpty = v.nonEmpty(chunks)
	if len(rare) == 0 && !v.mayBeEmpty &&
		!emptyRuleHolds(len(records), c.nonEmpty, len(chunks), v.k, v.m) {
		var moved int32
		chunks, moved = v.dropLeastFrequent(chunks)
		rare = append(rare, moved)
		c.nonEmpty = v.nonEmpty(chunks)
	}
	for _, chunk := range chunks {
		c.chunks = append(c.chunks, v.itemsOf(chunk))
	}
	slices.SortFunc(rare, func(x, y int32) int {
		return cmp.Compare(v.cols.items[x], v.cols.items[y])
	})
	c.items = v.itemsOf(rare)
	c.support = make([]int32, len(rare))
	for i, col := range rare {
		c.support[i] = v.cols.support[col]
	}
	return c
}

// nonEmpty is the number of sub-records with a code, in all chunks together.
func (v *vertical) nonEmpty(chunks [][]int32) int {
	n := 0
	for _, chunk := range chunks {
		n += v.cols.nonEmpty(chunk)
	}
	return n
}

func (v *vertical) itemsOf(cols []int32) []Item {
	items := make([]Item, len(cols))
	for i, col := range cols {
		items[i] = v.cols.items[col]
	}
	return items
}

// dropLeastFrequent takes the least frequent code (the last in code order of
// several) out of the last chunk, and the chunk with it if nothing is left.
func (v *vertical) dropLeastFrequent(chunks [][]int32) (rest [][]int32, moved int32) {
	last := chunks[len(chunks)-1]
	least := 0
	for i, col := range last {
		if d := cmp.Compare(v.cols.support[col], v.cols.support[last[least]]); d < 0 ||
			d == 0 && v.cols.items[col] > v.cols.items[last[least]] {
			least = i
		}
	}
	moved = last[least]
	if last = slices.Delete(last, least, least+1); len(last) == 0 {
		return chunks[:len(chunks)-1], moved
	}
	chunks[len(chunks)-1] = last
	return chunks, moved
}

// chunks divides columns, each of at least k records, into k^m-anonymous
// chunks: over and over it takes the columns in order, adds each to the chunk
// where that stays k^m-anonymous, and gives back the codes of constraints that
// did not fit in whole.
func (v *vertical) chunks(remaining []int32) [][]int32 {
	v.order(remaining)
	var chunks [][]int32
	for len(remaining) > 0 {
		v.check.begin(v.cols)
		for _, col := range remaining {
			v.check.accept(col)
		}
		chunk := v.keepWhole(slices.Clone(v.check.chunk), remaining)
		chunks = append(chunks, chunk)
		placed := 0
		remaining = slices.DeleteFunc(remaining, func(col int32) bool {
			if placed < len(chunk) && chunk[placed] == col {
				placed++
				return true
			}
			return false
		})
	}
	return chunks
}

// order sorts columns constraint by constraint, the constraint with the most
// frequent code first, and by falling support within one. A code without a
// constraint is a group of its own. Ties are broken in code order.
func (v *vertical) order(cols []int32) {
	byCode := func(x, y int32) int {
		return cmp.Or(
			cmp.Compare(v.cols.support[y], v.cols.support[x]),
			cmp.Compare(v.cols.items[x], v.cols.items[y]),
		)
	}
	slices.SortFunc(cols, byCode)
	clear(v.lead)
	constrained := false
	for _, col := range cols {
		if u := v.constraint(col); u != none {
			constrained = true
			if _, ok := v.lead[u]; !ok {
				v.lead[u] = col
			}
		}
	}
	if !constrained {
		return
	}
	leader := func(col int32) int32 {
		if u := v.constraint(col); u != none {
			return v.lead[u]
		}
		return col
	}
	slices.SortStableFunc(cols, func(x, y int32) int { return byCode(leader(x), leader(y)) })
}

func (v *vertical) constraint(col int32) int32 { return v.roles.constraint[v.cols.items[col]] }

// keepWhole removes from a chunk the codes of every constraint, other than
// that of the first code, of which the chunk does not have all codes that
// remain. Codes without a constraint stay. A chunk stays k^m-anonymous when
// codes are removed.
//
// Departure: lines 16-17 of the algorithm remove a constraint whose codes are
// all there. The worked example (692.71 leaves the first chunk because 695.10
// is not in it) needs the opposite.
func (v *vertical) keepWhole(chunk, remaining []int32) []int32 {
	clear(v.left)
	for _, col := range remaining {
		if u := v.constraint(col); u != none {
			v.left[u]++
		}
	}
	if len(v.left) == 0 {
		return chunk
	}
	for _, col := range chunk {
		if u := v.constraint(col); u != none {
			v.left[u]--
		}
	}
	first := v.constraint(chunk[0])
	return slices.DeleteFunc(chunk, func(col int32) bool {
		u := v.constraint(col)
		return u != none && u != first && v.left[u] > 0
	})
}

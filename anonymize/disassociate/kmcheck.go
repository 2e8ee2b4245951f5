package disassociate

import "slices"

// chunkCheck grows one chunk code by code and keeps it k^m-anonymous: each set
// of at most m of its codes that occurs in a sub-record occurs in at least k
// of them ([Loukides2014] §4). It is scratch space of one worker.
type chunkCheck struct {
	k, m  int
	cols  *columns
	chunk []int32  // columns of the chunk
	all   []uint64 // records that hold every code of the chunk
	depth [][]uint64
	with  []uint64
}

// begin starts a chunk over the given columns.
func (c *chunkCheck) begin(cols *columns) {
	c.cols = cols
	c.chunk = c.chunk[:0]
	c.all = slices.Grow(c.all[:0], cols.words)[:cols.words]
	for w := range c.all {
		c.all[w] = ^uint64(0)
	}
	c.with = slices.Grow(c.with[:0], cols.words)[:cols.words]
}

// accept adds a column to the chunk if the chunk stays k^m-anonymous. The
// column itself has at least k records, so only sets of two and more codes
// need checking, and of these only those with the new code.
func (c *chunkCheck) accept(col int32) bool {
	column := c.cols.of(col)
	if len(c.chunk) == 0 || intersect(c.with, c.all, column) >= c.k {
		// All codes together occur in k records, so every set of them does.
		c.add(col)
		return true
	}
	if c.m > 1 && !c.setsHold(column) {
		return false
	}
	c.add(col)
	return true
}

func (c *chunkCheck) add(col int32) {
	c.chunk = append(c.chunk, col)
	intersect(c.all, c.all, c.cols.of(col))
}

// setsHold checks the sets of column with up to m-1 columns of the chunk.
func (c *chunkCheck) setsHold(column []uint64) bool {
	next, ok := c.narrow(0, column, len(c.chunk), func(i int) []uint64 { return c.cols.of(c.chunk[i]) })
	return ok && c.deeper(1, next, c.m-1)
}

// narrow intersects the records of a set with those of n further columns and
// stores at a depth the different results that are smaller than the set: a
// column that leaves the set as it is, or as another column does, adds nothing
// to check. ok is false where a result has between 1 and k-1 records.
func (c *chunkCheck) narrow(depth int, set []uint64, n int, further func(int) []uint64) (next []uint64, ok bool) {
	if depth == len(c.depth) {
		c.depth = append(c.depth, nil)
	}
	w := len(set)
	next = c.depth[depth][:0]
columns:
	for i := range n {
		next = slices.Grow(next, w)[:len(next)+w]
		result := next[len(next)-w:]
		size := intersect(result, set, further(i))
		c.depth[depth] = next
		if size > 0 && size < c.k {
			return nil, false
		}
		if size == 0 || slices.Equal(result, set) {
			next = next[:len(next)-w]
			continue
		}
		for j := 0; j < len(next)-w; j += w {
			if slices.Equal(result, next[j:j+w]) {
				next = next[:len(next)-w]
				continue columns
			}
		}
	}
	return next, true
}

// deeper checks the intersections of up to left of the given sets of records,
// each of which is known to hold itself.
func (c *chunkCheck) deeper(depth int, sets []uint64, left int) bool {
	if left < 2 {
		return true
	}
	w := len(c.with)
	for i := 0; i+w < len(sets); i += w {
		rest := sets[i+w:]
		next, ok := c.narrow(depth, sets[i:i+w], len(rest)/w, func(j int) []uint64 { return rest[j*w : (j+1)*w] })
		if !ok || !c.deeper(depth+1, next, left-1) {
			return false
		}
	}
	return true
}

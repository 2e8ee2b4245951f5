package disassociate

import "slices"

// maxIntersections is how many intersections the check of one code may take.
// Where it takes more, the code is not accepted and goes to another chunk:
// still k^m-anonymous, a little less useful, and the time stays bounded for
// any m. Neither reference data set gets near it.
const maxIntersections = 1 << 15

// chunkCheck grows one chunk code by code and keeps it k^m-anonymous: each set
// of at most m of its codes that occurs in a sub-record occurs in at least k
// of them ([Loukides2014]). It is scratch space of one worker.
type chunkCheck struct {
	k, m  int
	cols  *columns
	chunk []int32  // columns of the chunk
	all   []uint64 // records that hold every code of the chunk
	with  []uint64
	depth []level // scratch by depth of the search
	spent int     // intersections for the present code
}

// level is a list of sets of records, set by set, and their sizes.
type level struct {
	sets  []uint64
	sizes []int
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
	// Where all codes together occur in k records, every set of them does.
	together := len(c.chunk) == 0 || intersect(c.with, c.all, column) >= c.k
	if !together && c.m > 1 && !c.setsHold(col) {
		return false
	}
	c.chunk = append(c.chunk, col)
	intersect(c.all, c.all, column)
	return true
}

// setsHold checks the sets of a column with up to m-1 columns of the chunk.
func (c *chunkCheck) setsHold(col int32) bool {
	c.spent = 0
	further := func(i int) []uint64 { return c.cols.of(c.chunk[i]) }
	size := int(c.cols.support[col])
	return c.narrow(0, c.cols.of(col), size, len(c.chunk), further) && c.deeper(0, size, c.m-1)
}

// narrow intersects the records of a set with those of n further columns and
// stores at a depth the different results that are smaller than the set: a
// column that leaves the set as it is, or as another column does, adds nothing
// to check. It is false where a result has between 1 and k-1 records.
func (c *chunkCheck) narrow(depth int, set []uint64, size, n int, further func(int) []uint64) bool {
	if depth == len(c.depth) {
		c.depth = append(c.depth, level{})
	}
	if c.spent += n; c.spent > maxIntersections {
		return false
	}
	w := len(set)
	sets := slices.Grow(c.depth[depth].sets[:0], n*w)
	sizes := c.depth[depth].sizes[:0]
	rare := false
columns:
	for i := 0; i < n && !rare; i++ {
		result := sets[len(sets) : len(sets)+w]
		shrunk := intersect(result, set, further(i))
		rare = shrunk > 0 && shrunk < c.k
		if shrunk == 0 || shrunk == size {
			continue
		}
		for j := range sizes {
			if sizes[j] == shrunk && slices.Equal(result, sets[j*w:(j+1)*w]) {
				continue columns
			}
		}
		sets, sizes = sets[:len(sets)+w], append(sizes, shrunk)
	}
	c.depth[depth] = level{sets, sizes}
	return !rare
}

// deeper checks the intersections of two to left of the sets at a depth, each
// of which is known to hold itself. size is the number of records of the set
// that they were made from.
//
// What a column takes away from a set only gets less when others have taken
// from it, so left columns leave at least size less the left largest losses:
// where that is k for what remains, nothing remains to be checked.
func (c *chunkCheck) deeper(depth, size, left int) bool {
	if left < 2 {
		return true
	}
	w := len(c.with)
	for i, own := range c.depth[depth].sizes {
		rest := level{c.depth[depth].sets[(i+1)*w:], c.depth[depth].sizes[i+1:]}
		if own-c.largestLosses(rest.sizes, size, left-1) >= c.k {
			continue
		}
		set := c.depth[depth].sets[i*w : (i+1)*w]
		further := func(j int) []uint64 { return rest.sets[j*w : (j+1)*w] }
		if !c.narrow(depth+1, set, own, len(rest.sizes), further) || !c.deeper(depth+1, own, left-1) {
			return false
		}
	}
	return true
}

// largestLosses sums the n largest differences between size and sizes.
func (c *chunkCheck) largestLosses(sizes []int, size, n int) int {
	if n == 1 {
		if len(sizes) == 0 {
			return 0
		}
		return size - slices.Min(sizes)
	}
	smallest := make([]int, 0, n+1)
	for _, s := range sizes {
		at, _ := slices.BinarySearch(smallest, s)
		if at < n {
			smallest = slices.Insert(smallest, at, s)
			smallest = smallest[:min(n, len(smallest))]
		}
	}
	total := 0
	for _, s := range smallest {
		total += size - s
	}
	return total
}

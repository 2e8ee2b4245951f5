package anonymize

// antichain keeps the minimal elements of an up-set of lattice nodes in a
// prefix tree: the set of all nodes that lie at or above one of them. Each
// tree node holds the least rank (sum of levels) among the elements under it,
// so that a lookup leaves every branch whose elements are all too high
// ([PrasserKohlmayer2016] §3).
//
// A property that spreads upward (insufficient quality) is stored as it is; one
// that spreads downward (insufficient privacy) is stored mirrored, each level
// counted from the top (see downset). The memory is bounded by limit elements,
// beyond which insertions are dropped: a lookup then misses, which costs time
// and never correctness.
//
// It is not safe for concurrent use.
type antichain struct {
	heights  []uint8
	nodes    []prefixNode
	children []int32 // blocks of heights[depth] node numbers, 0 for none
	free     [][]int32
	elements int
	limit    int
}

// prefixNode is one prefix of levels; its children start at first.
type prefixNode struct {
	minRank int32
	first   int32
}

// maxAntichain bounds an antichain: about 100 MB of prefix tree at 20 columns,
// far beyond what a search that ends within a minute collects.
const maxAntichain = 1 << 18

func newAntichain(heights []uint8) *antichain {
	a := &antichain{heights: heights, limit: maxAntichain, free: make([][]int32, len(heights)+1)}
	a.nodes = append(a.nodes, prefixNode{minRank: noRank})
	a.nodes[0].first = a.newChildren(0)
	return a
}

const noRank = int32(1) << 30

func (a *antichain) newChildren(depth int) int32 {
	if depth == len(a.heights) {
		return -1
	}
	first := int32(len(a.children))
	for range a.heights[depth] {
		a.children = append(a.children, 0)
	}
	return first
}

// covers says whether v lies at or above an element.
func (a *antichain) covers(v levels) bool {
	return a.elements > 0 && a.coversFrom(0, 0, v, int32(v.rank()))
}

func (a *antichain) coversFrom(n int32, depth int, v levels, rank int32) bool {
	if a.nodes[n].minRank > rank {
		return false
	}
	if depth == len(v) {
		return true
	}
	block := a.children[a.nodes[n].first:]
	for l := int(v[depth]); l >= 0; l-- {
		if c := block[l]; c != 0 && a.coversFrom(c, depth+1, v, rank) {
			return true
		}
	}
	return false
}

// insert adds v, unless an element covers it already, and removes the elements
// that v covers.
func (a *antichain) insert(v levels) {
	if a.covers(v) || a.elements >= a.limit {
		return
	}
	if a.elements > 0 {
		a.remove(0, 0, v)
	}
	a.add(0, 0, v, int32(v.rank()))
	a.elements++
}

func (a *antichain) add(n int32, depth int, v levels, rank int32) {
	a.nodes[n].minRank = min(a.nodes[n].minRank, rank)
	if depth == len(v) {
		return
	}
	slot := a.nodes[n].first + int32(v[depth])
	if a.children[slot] == 0 {
		child := a.newNode(depth + 1) // may move children
		a.children[slot] = child
	}
	a.add(a.children[slot], depth+1, v, rank)
}

func (a *antichain) newNode(depth int) int32 {
	if free := a.free[depth]; len(free) > 0 {
		n := free[len(free)-1]
		a.free[depth] = free[:len(free)-1]
		a.nodes[n].minRank = noRank
		return n
	}
	a.nodes = append(a.nodes, prefixNode{minRank: noRank, first: a.newChildren(depth)})
	return int32(len(a.nodes) - 1)
}

// remove deletes the elements under n that lie at or above v, and mends the
// ranks on the way back. An emptied node is kept for reuse.
func (a *antichain) remove(n int32, depth int, v levels) {
	if depth == len(v) {
		a.elements--
		a.nodes[n].minRank = noRank
		return
	}
	block := a.children[a.nodes[n].first:]
	for l := int(v[depth]); l < int(a.heights[depth]); l++ {
		c := block[l]
		if c == 0 {
			continue
		}
		a.remove(c, depth+1, v)
		if a.nodes[c].minRank == noRank {
			block[l] = 0
			a.free[depth+1] = append(a.free[depth+1], c)
		}
	}
	least := noRank
	for _, c := range block[:a.heights[depth]] {
		if c != 0 {
			least = min(least, a.nodes[c].minRank)
		}
	}
	a.nodes[n].minRank = least
}

// downset is the set of all nodes at or below one of its elements, kept as an
// antichain of mirrored nodes.
type downset struct {
	mirrored *antichain
	scratch  levels
}

func newDownset(heights []uint8) *downset {
	return &downset{mirrored: newAntichain(heights), scratch: make(levels, len(heights))}
}

func (d *downset) mirror(v levels) levels {
	for i, l := range v {
		d.scratch[i] = d.mirrored.heights[i] - 1 - l
	}
	return d.scratch
}

func (d *downset) covers(v levels) bool { return d.mirrored.covers(d.mirror(v)) }

func (d *downset) insert(v levels) { d.mirrored.insert(d.mirror(v)) }

package disassociate

import "context"

// leaves are groups of similar records: records lists them group by group in
// the order in which HORPART finds them, ends says where each group ends.
type leaves struct {
	records []int32
	ends    []int
}

func (l *leaves) add(records []int32) {
	if len(records) > 0 {
		l.records = append(l.records, records...)
		l.ends = append(l.ends, len(l.records))
	}
}

// addEvenly cuts records into as few pieces below max as there can be, of
// nearly equal size. It serves records that no code is left to part.
func (l *leaves) addEvenly(records []int32, limit int) {
	pieces := (len(records) + limit - 2) / (limit - 1)
	for i := range pieces {
		l.add(records[i*len(records)/pieces : (i+1)*len(records)/pieces])
	}
}

// part is a set of records that HORPART has yet to split. The splits of one
// part against its most frequent codes, one after the other, are a loop over
// it: each takes the records with the code out of it. The taken records, if
// too many for a leaf, are the next part, one level deeper. A level is deeper
// by one code that all its records hold, so there are at most as many levels
// as codes in a record.
type part struct {
	records    []int32
	left       int    // records not taken yet
	held       int32  // the item that all records hold, ignored below; or none
	constraint int32  // the constraint that the first split should follow, or none
	items      []Item // the items of the records that are not ignored
	support    []int32
	holders    []int32 // records by item: those of it are holders[first[it]:end[it]]
	first, end []int32
	queue      supportQueue
}

// horizontal runs HORPART ([Loukides2014]).
type horizontal struct {
	data    *Dataset
	roles   *roles
	limit   int // a part below it is a leaf
	ignored []bool
	level   []int32 // record -> level of the part it is in, or none
	parts   []*part // by level, kept for reuse
	out     leaves
	taken   []int32
}

// newHorizontal is scratch space for groups of records of a data set.
func newHorizontal(d *Dataset, r *roles, limit int) *horizontal {
	h := &horizontal{
		data: d, roles: r, limit: limit,
		ignored: make([]bool, len(d.codes)),
		level:   make([]int32, d.Len()),
	}
	copy(h.ignored, r.sensitive)
	return h
}

// part groups records of the data set. A part smaller than limit is a leaf; another is split into
// the records with and without its most frequent code. A code of the constraint of the last split
// comes first, then a code of any constraint, then any code; sensitive codes do not count.
//
// Departure: the records without the code keep the codes that their part
// ignores. The paper's example passes an empty set there, where it was empty
// before; in general that only splits on codes that all records hold.
//
// Cost: each level of nesting reads the codes of its records a few times, so
// O(codes × depth), plus a logarithmic factor for the queue.
func (h *horizontal) part(
	ctx context.Context, records []int32, progress func(done int),
) (*leaves, error) {
	h.out = leaves{records: h.out.records[:0], ends: h.out.ends[:0]}
	if len(records) < h.limit {
		h.out.add(records)
		return &h.out, nil
	}
	h.push(0, records, none, none)
	for depth, splits := 0, 0; depth >= 0; splits++ {
		if splits%1024 == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			progress(len(h.out.records))
		}
		depth = h.step(depth)
	}
	return &h.out, nil
}

// step makes one split of the part at a level and returns the level to go on
// with.
func (h *horizontal) step(depth int) int {
	p := h.parts[depth]
	var a Item
	ok := false
	if p.left >= h.limit {
		a, ok = h.choose(p)
	}
	if !ok {
		rest := h.taken[:0]
		for _, r := range p.records {
			if h.level[r] == int32(depth) {
				rest = append(rest, r)
			}
		}
		h.taken = rest
		h.out.addEvenly(rest, h.limit)
		h.pop(p)
		return depth - 1
	}
	taken := h.taken[:0]
	for _, r := range p.holders[p.first[a]:p.end[a]] {
		if h.level[r] == int32(depth) {
			taken = append(taken, r)
		}
	}
	h.taken = taken
	for _, r := range taken {
		h.level[r] = none
		for _, it := range h.data.Items(int(r)) {
			if !h.ignored[it] {
				p.support[it]--
			}
		}
	}
	p.left -= len(taken)
	if len(taken) < h.limit {
		h.out.add(taken)
		return depth
	}
	h.push(depth+1, taken, int32(a), h.roles.constraint[a])
	return depth + 1
}

// choose returns the code to split a part on.
func (h *horizontal) choose(p *part) (Item, bool) {
	if u := p.constraint; u != none {
		p.constraint = none // it guides the first split only
		best, found := Item(0), false
		for _, it := range p.items {
			if h.roles.constraint[it] != u || p.support[it] == 0 {
				continue
			}
			if !found || p.support[it] > p.support[best] || p.support[it] == p.support[best] && it < best {
				best, found = it, true
			}
		}
		if found {
			return best, true
		}
	}
	return p.queue.next(p.support)
}

// push makes records the part of a level.
func (h *horizontal) push(depth int, records []int32, held, constraint int32) {
	if depth == len(h.parts) {
		n := len(h.data.codes)
		h.parts = append(h.parts, &part{
			support: make([]int32, n), first: make([]int32, n), end: make([]int32, n),
		})
	}
	p := h.parts[depth]
	p.records = append(p.records[:0], records...)
	p.left, p.held, p.constraint = len(records), held, constraint
	if held != none {
		h.ignored[held] = true
	}
	p.items = p.items[:0]
	for _, r := range records {
		h.level[r] = int32(depth)
		for _, it := range h.data.Items(int(r)) {
			if h.ignored[it] {
				continue
			}
			if p.support[it] == 0 {
				p.items = append(p.items, it)
			}
			p.support[it]++
		}
	}
	h.listHolders(p)
	p.queue.reset(p.items, p.support, h.roles)
}

// listHolders lists the records of a part by item, in the order of the part.
func (h *horizontal) listHolders(p *part) {
	n := int32(0)
	for _, it := range p.items {
		p.first[it], p.end[it] = n, n
		n += p.support[it]
	}
	if int(n) > cap(p.holders) {
		p.holders = make([]int32, n)
	}
	p.holders = p.holders[:n]
	for _, r := range p.records {
		for _, it := range h.data.Items(int(r)) {
			if !h.ignored[it] {
				p.holders[p.end[it]] = r
				p.end[it]++
			}
		}
	}
}

// pop forgets a part whose records have all found a leaf.
func (h *horizontal) pop(p *part) {
	for _, it := range p.items {
		p.support[it] = 0
	}
	if p.held != none {
		h.ignored[p.held] = false
	}
}

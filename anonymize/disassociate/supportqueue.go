package disassociate

// supportQueue yields the items of a part of the data, codes of constraints
// first, then by support, most frequent first, then in code order. Supports
// only ever fall, so an entry whose support has changed is put back when it
// comes up (lazily), and the whole costs O(changes log items).
type supportQueue struct {
	entries []queueEntry
}

type queueEntry struct {
	item        Item
	support     int32
	constrained bool
}

func (e queueEntry) before(o queueEntry) bool {
	if e.constrained != o.constrained {
		return e.constrained
	}
	if e.support != o.support {
		return e.support > o.support
	}
	return e.item < o.item
}

// reset fills the queue with the items that have a support.
func (q *supportQueue) reset(items []Item, support []int32, r *roles) {
	q.entries = q.entries[:0]
	for _, it := range items {
		q.entries = append(q.entries, queueEntry{it, support[it], r.constraint[it] != none})
	}
	for i := len(q.entries)/2 - 1; i >= 0; i-- {
		q.sink(i)
	}
}

// next returns the first item in order by the present supports, and false when
// none has any.
func (q *supportQueue) next(support []int32) (Item, bool) {
	for len(q.entries) > 0 {
		top := &q.entries[0]
		now := support[top.item]
		if now == top.support && now > 0 {
			return top.item, true
		}
		if now > 0 {
			top.support = now
		} else {
			last := len(q.entries) - 1
			q.entries[0] = q.entries[last]
			q.entries = q.entries[:last]
		}
		q.sink(0)
	}
	return 0, false
}

func (q *supportQueue) sink(i int) {
	for {
		child := 2*i + 1
		if child >= len(q.entries) {
			return
		}
		if right := child + 1; right < len(q.entries) && q.entries[right].before(q.entries[child]) {
			child = right
		}
		if !q.entries[child].before(q.entries[i]) {
			return
		}
		q.entries[i], q.entries[child] = q.entries[child], q.entries[i]
		i = child
	}
}

package proxy

import "strings"

// While the server copies from the client it passes over Sync; before and after
// it answers each. Drivers send one right behind Execute and one behind the end
// of the copy. Where it cannot be known who has read one, the queue holds rather
// too few expectations than too many: an answer that nobody expects ends the
// session, while one that is taken for another's would be forwarded.

// copied removes what was sent into the copy of the head, which has ended well:
// up to the mark of the copy's end. It returns how many Sync were among it.
func (q *replyQueue) copied() (syncs int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue[0].copying = false
	end := q.ofCopy("c")
	if end == len(q.queue) {
		return 0
	}
	for _, e := range q.queue[1 : end+1] {
		if e.kind == 'S' {
			syncs++
		}
	}
	q.cut(end + 1)
	return syncs
}

// failedCopy says whether it is clear what the server answers next, after the
// copy of a simple query, the head, has failed.
func (q *replyQueue) failedCopy() (clear bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.syncsIn(1, q.ofCopy("c"))
}

// leaveCopy removes what was sent into the copy of the head, which has failed
// with a code. clear is false where a Sync came between its data and its end: the
// server has passed over it or will answer it.
func (q *replyQueue) leaveCopy(code string) (clear bool) {
	first := q.ofCopy("dc")
	if q.syncsIn(first, q.ofCopy("c")) {
		return false
	}
	switch {
	case first < len(q.queue):
		q.cut(first + 1)
	case strings.HasPrefix(code, "57"):
		// It was cancelled while it waited for data, behind the Sync. Other errors
		// without data come before the server reads anything, as from a trigger.
		n := 1
		for n < len(q.queue) && q.queue[n].kind == 'S' {
			n++
		}
		q.cut(n)
	}
	return true
}

// ofCopy is the place behind the head of the first mark of one of the kinds, the
// queue's length for none.
func (q *replyQueue) ofCopy(kinds string) int {
	for i := 1; i < len(q.queue); i++ {
		if strings.IndexByte(kinds, q.queue[i].kind) >= 0 {
			return i
		}
	}
	return len(q.queue)
}

// syncsIn says whether a Sync is in a part of the queue.
func (q *replyQueue) syncsIn(from, to int) bool {
	for i := from; i < to; i++ {
		if q.queue[i].kind == 'S' {
			return true
		}
	}
	return false
}

// cut drops what stands behind the head and before a place.
func (q *replyQueue) cut(end int) {
	head := q.shift()
	for range end - 1 {
		q.drop(q.shift())
	}
	q.queue = append([]*pendingReply{head}, q.queue...)
	q.owed.add(head.weight)
}

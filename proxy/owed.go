package proxy

import (
	"context"
	"sync/atomic"

	"github.com/jackc/pgproto3/v2"

	"github.com/hiatus-tailor/tailor/internal/audit"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// What the server owes is bounded: a session that has asked for more waits with what its
// client sends next, as PostgreSQL itself does where a client does not read. Attacker: a
// client that sends as fast as it can and reads nothing, or what is never answered.
// Property: the queue takes no more than maxOwed, and one message beyond it. Nobody else
// waits: the session has left the loop by then. TestASessionTakesAtMostFourMegabytes
// checks it.

const (
	// maxOwed is how much the queue of replies may take, in bytes. Half of it has to
	// be answered before the client is read from again.
	maxOwed = 1 << 20
	// What an expectation takes: one that sessions share, another without its texts, and
	// an audit record.
	bareWeight     = 16
	expectedWeight = 256
	recordWeight   = 1 << 10
)

// owed is how much the queue takes. The queue's lock guards bytes; all else is safe for
// concurrent use.
type owed struct {
	bytes   int
	crowded atomic.Bool   // no more is to be asked for now
	eased   chan struct{} // may have changed that; has room for one
}

func (o *owed) add(bytes int) {
	o.bytes += bytes
	if o.bytes > maxOwed {
		o.crowded.Store(true)
	} else if o.bytes <= maxOwed/2 && o.crowded.CompareAndSwap(true, false) {
		o.wake()
	}
}

func (o *owed) wake() {
	select {
	case o.eased <- struct{}{}:
	default:
	}
}

// weigh settles what an expectation takes, and drops what only its own time needed.
func (e *pendingReply) weigh() int {
	if e.weight > 0 {
		return e.weight
	}
	if e.rewritten == nil && e.resolved == nil { // no position will be looked for
		e.statement, e.sent = audit.Shown(e.statement), ""
	}
	e.weight = expectedWeight + len(e.statement) + len(e.sent) + len(e.prelude)
	if e.record != nil {
		e.weight += recordWeight
	}
	if e.decision != nil {
		e.weight += releasedWeight
	}
	return e.weight
}

// errSyncsInCopy ends a session whose client sends no end to a copy, but Sync after Sync,
// which the server passes over: nothing of it would ever be answered.
var errSyncsInCopy = sqlstate.New(sqlstate.ProgramLimitExceeded,
	"too many messages within a copy from the client").
	WithHint("Send Sync only before the data of a copy or after its end.")

// awaitRoom waits, before a message is handled, until the server owes less. The error is
// errWaits on a loop.
func (s *session) awaitRoom(ctx context.Context) error {
	if !s.expect.owed.crowded.Load() {
		return nil
	}
	if s.loopSession != nil {
		return errWaits
	}
	// Without Sync the server may keep its answers until its buffer is full.
	if err := send(s.up, &pgproto3.Flush{}); err != nil {
		return err
	}
	if err := s.up.Flush(); err != nil {
		return err
	}
	return s.expect.ease(ctx)
}

func (q *replyQueue) ease(ctx context.Context) error {
	for q.owed.crowded.Load() {
		if q.isStuck() {
			return errSyncsInCopy
		}
		select {
		case <-q.owed.eased:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// isStuck says that the server copies from the client and that nothing which was sent
// ends that.
func (q *replyQueue) isStuck() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) == 0 || !q.queue[0].copying {
		return false
	}
	for _, e := range q.queue[1:] {
		if e.kind != 'S' && e.kind != 'd' {
			return false
		}
	}
	return true
}

// copies notes that the server has asked for a copy from the client.
func (q *replyQueue) copies(e *pendingReply) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e.copying = true
	q.owed.wake()
}

package proxy

import (
	"context"
	"sync"
	"time"
)

// A message on a loop may take longer than others are to wait. Then its session
// hands the loop over to another goroutine, and the one that was the loop's goes on
// with the message, beside it; the session's other side has its turns meanwhile.
// Waking another thread is not free, so this is put off until somebody begins to
// wait, and if nobody else has asked anything for a while the session lingers: the
// loop waits with it for a disk's flush.

// solitude is how long nobody else must have had a turn where a session lingers.
const solitude = 50 * time.Millisecond

// mayWait lets the message of the client that is handled take its time, and wait
// for whatever it likes.
func (s *session) mayWait() {
	if t := s.turn; t != nil {
		t.goBeside(&t.client)
	}
}

// answerMayWait lets the message of the server that is handled.
func (s *session) answerMayWait() {
	if t := s.turn; t != nil {
		t.goBeside(&t.server)
	}
}

// waiting is a context for work on a message of the client that mostly needs no
// waiting: the loop is handed over when somebody begins to wait under it.
func (s *session) waiting(ctx context.Context) context.Context {
	if s.turn == nil {
		return ctx
	}
	return &handingOver{Context: ctx, session: s}
}

type handingOver struct {
	context.Context
	session *session
	once    sync.Once
}

// Done is asked for by who is about to wait, and once more by timers of contexts
// that were made from this one, which may be late: the message is over then.
func (h *handingOver) Done() <-chan struct{} {
	h.once.Do(h.session.mayWait)
	return h.Context.Done()
}

// goBeside hands the loop over while a message of a side is handled, if that has
// not happened yet.
func (t *turn) goBeside(from *side) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !from.beside {
		from.beside = true
		t.loop.handOver()
	}
}

func (t *turn) isBeside(from *side) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return from.beside
}

// linger does what waits for no more than a disk, on the loop where nobody else
// seems to need that now. Where the client has sent more, it would wait for that too.
func (s *session) linger(do func() error) error {
	t := s.turn
	if t == nil {
		return do()
	}
	l := s.loop
	if t.isBeside(&t.client) {
		return do()
	}
	if !l.alone(t) || s.in.buffered() {
		s.mayWait()
		return do()
	}
	l.lingering.Store(t)
	defer l.lingering.CompareAndSwap(t, nil) // it may have been relieved
	return do()
}

// relieve takes the loop from a session that lingers on it.
func (l *loop) relieve() {
	t := l.lingering.Load()
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.lingering.CompareAndSwap(t, nil) {
		t.client.beside = true
		l.handOver()
	}
}

// isInCompany says that others have turns beside the session: it then leaves the
// loop before it plans.
func (s *session) isInCompany() bool {
	t := s.turn
	return t != nil && !t.isBeside(&t.client) && !s.loop.alone(t)
}

// alone says that a session has had the loop for itself, and that no other has
// waited for records.
func (l *loop) alone(t *turn) bool {
	now := time.Now()
	return l.latest == t && now.Sub(l.change) > solitude && t.session.proxy.company.consistsOf(t.session, now)
}

// waits says that what has come is to wait: what came before it is handled yet, or
// the session's turns are to end.
func (t *turn) waits(from *side) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !from.beside && t.end == nil {
		return false
	}
	t.loop.unwatch(from)
	return true
}

// handled is the end of what was handled beside the loop.
func (t *turn) handled(from *side, stays bool, reason error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !stays {
		t.note(reason)
	}
	t.loop.post(func() { t.loop.resume(t, from) })
}

// left is the end of a side's being beside the loop. It returns why the session's
// turns are to end, nil where they go on.
func (t *turn) left(from *side) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	from.beside = false
	return t.end
}

// ends notes the first reason why the session's turns end, and says whether they
// do now: nothing is handled beside the loop.
func (t *turn) ends(reason error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.note(reason)
	return !t.client.beside && !t.server.beside
}

// note keeps the first reason. Whoever waits beside the loop for what the session
// would have done there waits in vain from now on (see ended), and for anything
// else if the session is over.
func (t *turn) note(reason error) {
	if t.end != nil {
		return
	}
	t.end = reason
	close(t.ending)
	if final(reason) && reason != errLeft && (t.client.beside || t.server.beside) {
		t.session.stop(reason)
	}
}

// final says that a session ends with its turns.
func final(reason error) bool { return reason != errWaits && reason != errFull && reason != errAsked }

// ended is closed when the loop does not serve the session's other side any more,
// while a message is handled beside it; nil where there is no loop.
func (s *session) ended() <-chan struct{} {
	if s.turn == nil {
		return nil
	}
	return s.turn.ending
}

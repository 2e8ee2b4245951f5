package proxy

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"
)

// homecoming brings a session with goroutines of its own back to its loop, once it
// asks for nothing any more that makes it wait, or nobody else has turns there. The
// goroutine that forwards answers calls the other one, which stops where nothing is
// under way, and lets the first stop too.
type homecoming struct {
	called  atomic.Bool
	stopped atomic.Bool  // the goroutine that forwards statements
	waited  atomic.Int64 // when the session last waited for a record, in Unix nanoseconds

	// The rest belongs to the goroutine that forwards answers.
	next time.Time // when it may be tried
}

// errHome ends a session's goroutines where it goes on by turns.
var errHome = errors.New("the session goes back to its loop")

// restlessness is how long a session that could not go home stays away, and one
// that is not alone after it last waited.
const restlessness = 250 * time.Millisecond

// callHome asks the goroutine that forwards statements to stop, if the session is
// to go home. The server has just said that it is ready.
func (s *session) callHome(ctx context.Context) {
	h, now := &s.homecoming, time.Now()
	if now.Before(h.next) || h.called.Load() {
		return
	}
	h.next = now.Add(restlessness)
	if !s.hasHome() {
		return
	}
	alone := s.proxy.company.consistsOf(s, now) && s.loop.quiet(now)
	if !alone && now.Sub(time.Unix(0, h.waited.Load())) < restlessness {
		return
	}
	h.called.Store(true)
	s.touch.Lock()
	defer s.touch.Unlock()
	if ctx.Err() == nil {
		_ = s.client.SetReadDeadline(past)
	}
}

// hasHome says whether a loop could serve the session.
func (s *session) hasHome() bool {
	return s.pool == nil && hasSocket(s.client) && hasSocket(s.server.conn)
}

// stopsForHome says whether an error of reading from the client was the call. Then
// the goroutine that forwards statements stops, or reads again because something is
// under way: the data of a copy, say, that nobody would forward.
func (s *session) stopsForHome(ctx context.Context, err error) (stops, again bool) {
	h := &s.homecoming
	if !h.called.Load() || !late(err) {
		return false, false
	}
	s.touch.Lock()
	defer s.touch.Unlock()
	if ctx.Err() != nil {
		return false, false
	}
	_ = s.client.SetReadDeadline(time.Time{})
	if s.expect.head() != nil {
		h.called.Store(false)
		return false, true
	}
	h.stopped.Store(true)
	_ = s.server.conn.SetReadDeadline(past)
	return true, false
}

// calledHome says whether an error of reading from the server was only the sign
// that the session goes home.
func (s *session) calledHome(ctx context.Context, err error) bool {
	if !s.homecoming.stopped.Load() || !late(err) {
		return false
	}
	s.touch.Lock()
	defer s.touch.Unlock()
	_ = s.server.conn.SetReadDeadline(time.Time{})
	return ctx.Err() == nil
}

// mayGo says that nothing of an answer is at hand of a session that goes home.
func (s *session) mayGo() bool {
	in := s.server.frames
	return s.homecoming.stopped.Load() && !in.unread() && !in.inside()
}

// settleDown is for a session that has begun with its goroutines, or has ended
// them to go home. It says whether the session goes on.
func (s *session) settleDown(ctx context.Context) bool {
	h := &s.homecoming
	h.called.Store(false)
	h.stopped.Store(false)
	h.next = time.Now().Add(solitude)
	s.touch.Lock()
	defer s.touch.Unlock()
	if ctx.Err() != nil {
		return false
	}
	if s.hasHome() {
		_ = s.server.conn.SetReadDeadline(time.Time{}) // the sign may have come too late
	}
	return true
}

func late(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// quiet says that nobody has had a turn on the loop for a while.
func (l *loop) quiet(now time.Time) bool { return now.Sub(time.Unix(0, l.stirred.Load())) > solitude }

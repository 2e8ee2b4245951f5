package proxy

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"
)

// loopRejoin brings a session with goroutines of its own to its loop, unless it has
// asked for anything that may be protected: then it would leave again, and stays away.
// The goroutine that forwards answers calls the other one, which stops where nothing is
// under way, and lets the first stop too.
type loopRejoin struct {
	away    atomic.Bool // for good
	called  atomic.Bool
	stopped atomic.Bool // the goroutine that forwards statements

	// The rest belongs to the goroutine that forwards answers.
	next time.Time // when it may be tried
}

// errHome ends a session's goroutines where it goes on by turns.
var errHome = errors.New("the session goes to its loop")

const (
	// settling is how long a session stays away that has just begun, or left its loop.
	settling = 50 * time.Millisecond
	// restlessness is how long one does that could not go.
	restlessness = 250 * time.Millisecond
)

// callHome asks the goroutine that forwards statements to stop, if the session is
// to go home. The server has just said that it is ready.
func (s *session) callHome(ctx context.Context) {
	h, now := &s.loopRejoin, time.Now()
	if now.Before(h.next) || h.called.Load() {
		return
	}
	h.next = now.Add(restlessness)
	if h.away.Load() || !s.hasHome() {
		return
	}
	h.called.Store(true)
	s.touch.Lock()
	defer s.touch.Unlock()
	if ctx.Err() == nil {
		_ = s.client.SetReadDeadline(past)
	}
}

// hasHome says whether a loop could serve the session: not one that is about to wait for
// releases.
func (s *session) hasHome() bool {
	return s.pool == nil && s.activated.Load() == nil && hasSocket(s.client) &&
		hasSocket(s.server.conn)
}

// stopsForHome says whether an error of reading from the client was the call. Then
// the goroutine that forwards statements stops, or reads again because something is
// under way: the data of a copy, say, that nobody would forward.
func (s *session) stopsForHome(ctx context.Context, err error) (stops, again bool) {
	h := &s.loopRejoin
	if !h.called.Load() || !late(err) {
		return false, false
	}
	s.touch.Lock()
	defer s.touch.Unlock()
	if ctx.Err() != nil {
		return false, false
	}
	_ = s.client.SetReadDeadline(time.Time{})
	if s.expect.head() != nil || h.away.Load() || s.activated.Load() != nil {
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
	if !s.loopRejoin.stopped.Load() || !late(err) {
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
	return s.loopRejoin.stopped.Load() && !in.unread() && !in.inside()
}

// settleDown is for a session that has begun with its goroutines, or has ended
// them to go home. It says whether the session goes on.
func (s *session) settleDown(ctx context.Context) bool {
	h := &s.loopRejoin
	h.called.Store(false)
	h.stopped.Store(false)
	h.next = time.Now().Add(settling)
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

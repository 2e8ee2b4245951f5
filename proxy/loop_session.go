package proxy

import (
	"context"
	"errors"
	"net"
	"runtime/debug"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// loopSession is a session's place on a loop. On it the session does what its two
// goroutines would do, one message after the other. A message that takes its time
// ends its turns.
type loopSession struct {
	session        *session
	loop           *loop
	ctx            context.Context
	client, server descriptor
	taken          bool          // the loop serves it; for the loop's goroutine
	end            error         // why the loop is done with it
	over           chan struct{} // closed when it is
}

var (
	// errWaits ends a session's turns at messages, not handled yet, that take more
	// time than others are to wait.
	errWaits = errors.New("the proxy has to wait")
	// errAsked ends them where the session is to end.
	errAsked = errors.New("the session was asked to leave")
)

// What bounds how long a session has its turn while others wait: how often it is
// read from, how many messages of its client it handles, and how long one may be.
const (
	maxReads     = 8
	maxMessages  = 256
	maxStatement = 16 << 10
)

// take serves a side that can be read from. Where the session does not stay on
// the loop it says why.
func (t *loopSession) take(client bool) (stays bool, reason error) {
	defer func() {
		if fault := recover(); fault != nil {
			stays, reason = false, t.session.failed()
		}
	}()
	if client {
		reason = t.fromClient()
	} else {
		reason = t.fromServer()
	}
	return reason == errAgain, reason
}

// fromClient is what statements does for what is at hand. The error is never nil.
func (t *loopSession) fromClient() error {
	s := t.session
	for reads, messages := 0, 0; ; messages++ {
		if messages == maxMessages {
			return errWaits
		}
		inside := s.in.inside()
		frame, err := s.in.next()
		if err != nil {
			return err
		}
		if !inside && frame[0] == 'X' {
			return errLeft
		}
		if err = s.pass(t.ctx, frame, inside); err == errWaits {
			s.in.back(frame) // it has yet to be handled
		}
		if err != nil {
			return err
		}
		if s.in.buffered() {
			continue
		}
		if reads++; s.in.drained || reads == maxReads {
			return errAgain
		}
	}
}

// fromServer is what answers does for what is at hand. The error is never nil.
func (t *loopSession) fromServer() error {
	s := t.session
	in := s.server.frames
	for reads := 0; ; {
		inside := in.inside()
		frame, err := in.next()
		if err != nil {
			return err
		}
		if _, err := s.passBack(frame, inside); err != nil {
			return err
		}
		if in.buffered() {
			continue
		}
		if reads++; in.drained || reads == maxReads {
			return errAgain
		}
	}
}

// leave asks a session to leave.
func (t *loopSession) leave() { t.loop.post(func() { t.loop.dismiss(t, errAsked) }) }

// takeTurns serves the session on its loop, until it has ended or needs goroutines
// of its own. over says that it has ended, and err why.
func (s *session) takeTurns(ctx context.Context) (over bool, err error) {
	if s.in.unread() || s.server.frames.unread() { // the loop wakes for what is to be read
		return false, nil
	}
	t := &loopSession{session: s, loop: s.loop, ctx: ctx, over: make(chan struct{})}
	if !s.board(t) {
		return false, nil
	}
	t.loop.post(func() { t.loop.add(t) })
	<-t.over
	if err := s.alight(t); err != nil {
		return true, err
	}
	if final(t.end) {
		return true, t.end
	}
	return ctx.Err() != nil, nil
}

// board takes the session's connections from Go's poller, and says whether it could:
// they have to be plain.
func (s *session) board(t *loopSession) (ok bool) {
	if t.client, ok = descriptorOf(s.client); !ok {
		return false
	}
	if t.server, ok = descriptorOf(s.server.conn); !ok {
		t.client.close()
		return false
	}
	s.touch.Lock()
	defer s.touch.Unlock()
	s.loopSession = t
	_, _ = s.client.Close(), s.server.conn.Close()
	s.in.source, s.out.to = t.client, t.client
	s.server.frames.source, s.up.to = t.server, t.server
	s.out.whole, s.up.whole = true, true
	s.in.brief, s.server.frames.brief = maxStatement, bufferBytes
	return true
}

// alight gives the connections back. Where that fails both are closed.
func (s *session) alight(t *loopSession) error {
	silence := s.proxy.running.Load().KeepAlive
	client, err := t.client.conn(silence)
	server, failed := t.server.conn(silence)
	s.touch.Lock()
	defer s.touch.Unlock()
	s.loopSession = nil
	if err = errors.Join(err, failed); err == nil {
		s.client, s.server.conn = client, server
	} else {
		for _, conn := range []net.Conn{client, server} {
			if conn != nil {
				_ = conn.Close()
			}
		}
		err = sqlstate.New(sqlstate.InternalError, "the session's connections are lost").Wrap(err)
	}
	// The descriptors' numbers may be others' by now.
	s.in.source, s.out.to = s.client, s.client
	s.server.frames.source, s.up.to = s.server.conn, s.server.conn
	s.out.whole, s.up.whole = false, false
	s.in.brief, s.server.frames.brief = 0, 0
	return err
}

// final says that a session ends with its turns.
func final(reason error) bool {
	return reason != errWaits && reason != errFull && reason != errAsked
}

// failed is the end of a session in which an invariant is broken.
func (s *session) failed() error {
	s.log().Error("session failed", "stack", string(debug.Stack()))
	return sqlstate.New(sqlstate.InternalError, "internal error in session %s", s.id)
}

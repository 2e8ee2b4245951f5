package proxy

import (
	"context"
	"errors"
	"net"
	"runtime/debug"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// turn is a session's place on a loop. On it the session does what its two
// goroutines would do, as far as that needs no waiting.
type turn struct {
	session        *session
	ctx            context.Context
	loop           *loop
	client, server descriptor
	left           chan error // gets why the loop is done with the session; has room for one
}

var (
	// errWaits ends a session's turns at a message, not handled yet, that takes
	// more than to be forwarded, or more time than others are to wait.
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
func (t *turn) take(client bool) (stays bool, reason error) {
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
func (t *turn) fromClient() error {
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
			s.in.start -= len(frame) // it has yet to be handled
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
func (t *turn) fromServer() error {
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

// takeTurns serves the session on a loop, where there is one for it, until it
// has ended or needs goroutines of its own. over says that it has ended, and err
// why.
func (s *session) takeTurns(ctx context.Context) (over bool, err error) {
	l := s.proxy.loopOf()
	if l == nil || s.pool != nil || s.in.unread() || s.server.frames.unread() { // the loop wakes for what is to be read
		return false, nil
	}
	t := &turn{session: s, ctx: ctx, loop: l, left: make(chan error, 1)}
	var ok bool
	if t.client, ok = descriptorOf(s.client); !ok {
		return false, nil
	}
	if t.server, ok = descriptorOf(s.server.conn); !ok {
		t.client.close()
		return false, nil
	}
	s.enter(t)
	if err = l.add(t); err != nil || ctx.Err() != nil {
		l.leave(t) // it may have its turn already
	}
	why := <-t.left
	if err := s.resume(t, why); err != nil {
		return true, err
	}
	switch why {
	case errWaits, errFull, errAsked:
		return ctx.Err() != nil, nil
	}
	return true, why
}

// enter hands the session's connections to a loop.
func (s *session) enter(t *turn) {
	s.touch.Lock()
	defer s.touch.Unlock()
	s.turn = t
	_ = s.client.Close()
	_ = s.server.conn.Close()
	s.in.source, s.out.to = t.client, t.client
	s.server.frames.source, s.up.to = t.server, t.server
	s.out.whole, s.up.whole = true, true
	s.in.brief, s.server.frames.brief = maxStatement, bufferBytes
}

// resume takes them back: the client's unless it has said goodbye. Where that
// fails both are closed.
func (s *session) resume(t *turn, why error) error {
	client, err := s.client, error(nil) // which is closed
	if why == errLeft {
		t.client.close()
	} else {
		client, err = t.client.conn()
	}
	server, failed := t.server.conn()
	if err = errors.Join(err, failed); err != nil {
		err = sqlstate.New(sqlstate.InternalError, "the session's connections are lost").Wrap(err)
	}
	s.touch.Lock()
	defer s.touch.Unlock()
	s.turn = nil
	if err == nil {
		s.client, s.server.conn = client, server
	} else {
		for _, c := range []net.Conn{client, server} {
			if c != nil {
				_ = c.Close()
			}
		}
	}
	// The descriptors' numbers may be others' by now.
	s.in.source, s.out.to = s.client, s.client
	s.server.frames.source, s.up.to = s.server.conn, s.server.conn
	s.out.whole, s.up.whole = false, false
	s.in.brief, s.server.frames.brief = 0, 0
	for _, c := range []net.Conn{s.client, s.server.conn} {
		if plain, ok := c.(*net.TCPConn); ok { // where it is closed, there is nothing to keep alive
			_ = plain.SetKeepAliveConfig(keepAlive(s.proxy.running.Load().KeepAlive))
		}
	}
	return err
}

// failed is the end of a session in which an invariant is broken.
func (s *session) failed() error {
	s.log.Error("session failed", "stack", string(debug.Stack()))
	return sqlstate.New(sqlstate.InternalError, "internal error in session %s", s.id)
}

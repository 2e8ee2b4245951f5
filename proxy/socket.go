package proxy

import (
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// socket is a plain connection of a course. While that is on its loop, reading
// gives way to others; else it is a connection of Go's own. Deadlines may be set,
// and the connection be hung up, by everyone; all else is the course's.
type socket struct {
	descriptor
	course        *course // nil on a shelf
	watched       bool    // by the loop
	remote, local net.Addr
	keepAlive     func() net.KeepAliveConfig

	mu              sync.Mutex
	plain           net.Conn // in place of the descriptor; nil on the loop
	closed          bool
	readBy, writeBy time.Time
	alarm           *time.Timer // resumes the course when readBy has come
	late            bool        // it has
}

// Read fails with os.ErrDeadlineExceeded when there is nothing to read by the
// deadline.
func (s *socket) Read(p []byte) (int, error) {
	for {
		if c := s.direct(); c != nil {
			return c.Read(p)
		}
		if s.closed { // its number may be another's
			return 0, net.ErrClosed
		}
		n, err := s.descriptor.Read(p)
		if err != errAgain {
			return n, err
		}
		if s.isLate() {
			return 0, os.ErrDeadlineExceeded
		}
		if err := s.course.await(s); err != nil {
			return 0, err
		}
	}
}

// Write takes the course from its loop where it would have to wait.
func (s *socket) Write(p []byte) (int, error) {
	if c := s.direct(); c != nil {
		return c.Write(p)
	}
	if s.closed {
		return 0, net.ErrClosed
	}
	n, err := s.descriptor.Write(p)
	if err != errFull {
		return n, err
	}
	s.course.leave()
	rest, err := s.direct().Write(p[n:])
	return n + rest, err
}

// direct is Go's own connection in place of the descriptor, nil where a loop
// serves the course.
func (s *socket) direct() net.Conn {
	if s.course != nil && s.course.onLoop {
		return nil
	}
	return s.toPlain()
}

// toPlain gives the descriptor to Go. Where that fails the connection is broken.
func (s *socket) toPlain() net.Conn {
	if s.plain != nil { // the course alone changes it
		return s.plain
	}
	if s.watched {
		s.course.loop.unwatch(s)
	}
	conn, err := net.Conn(broken{s, net.ErrClosed}), error(nil)
	if !s.closed {
		conn, err = s.descriptor.conn()
	}
	if err != nil {
		conn = broken{s, sqlstate.New(sqlstate.InternalError, "the session's connections are lost").Wrap(err)}
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(s.keepAlive())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plain = conn
	s.stopAlarm()
	_, _ = conn.SetReadDeadline(s.readBy), conn.SetWriteDeadline(s.writeBy)
	return conn
}

// toDescriptor takes it back from Go, and says whether it could.
func (s *socket) toDescriptor() bool {
	if s.plain == nil {
		return true
	}
	d, ok := descriptorOf(s.plain)
	if !ok {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.plain.Close()
	s.descriptor, s.plain = d, nil
	return true
}

// abandon leaves the connection without a course.
func (s *socket) abandon() net.Conn {
	if s.plain != nil {
		return s.plain
	}
	if s.watched {
		s.course.loop.unwatch(s)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopAlarm()
	s.course = nil
	return s
}

// Close closes the connection. Only the course may.
func (s *socket) Close() error {
	if s.watched && s.plain == nil {
		s.course.loop.unwatch(s)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopAlarm()
	switch {
	case s.plain != nil:
		return s.plain.Close()
	case s.closed:
		return net.ErrClosed
	}
	s.closed = true
	s.descriptor.close()
	return nil
}

// hangUp makes reading and writing fail.
func (s *socket) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.plain != nil:
		_ = s.plain.Close()
	case !s.closed: // its number stays its own until the course has closed it
		_ = syscall.Shutdown(int(s.descriptor), syscall.SHUT_RDWR)
	}
}

// hangUp ends a connection that others use.
func hangUp(conn net.Conn) {
	if s, ok := conn.(*socket); ok {
		s.hangUp()
		return
	}
	_ = conn.Close()
}

func (s *socket) LocalAddr() net.Addr  { return s.local }
func (s *socket) RemoteAddr() net.Addr { return s.remote }

func (s *socket) SetDeadline(t time.Time) error {
	_ = s.SetWriteDeadline(t)
	return s.SetReadDeadline(t)
}

func (s *socket) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readBy = t
	if s.plain != nil {
		return s.plain.SetReadDeadline(t)
	}
	s.stopAlarm()
	if c := s.course; c != nil && !t.IsZero() {
		s.alarm = time.AfterFunc(time.Until(t), func() { s.ring(c, t) })
	}
	return nil
}

// SetWriteDeadline is for when the course has left its loop: there it never waits.
func (s *socket) SetWriteDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeBy = t
	if s.plain != nil {
		return s.plain.SetWriteDeadline(t)
	}
	return nil
}

func (s *socket) stopAlarm() {
	s.late = false
	if s.alarm != nil {
		s.alarm.Stop()
		s.alarm = nil
	}
}

// ring resumes a course that waits beyond a deadline.
func (s *socket) ring(c *course, deadline time.Time) {
	s.mu.Lock()
	s.late = s.late || s.readBy.Equal(deadline)
	s.mu.Unlock()
	c.loop.post(func() {
		if c.awaited == s {
			c.step()
		}
	})
}

func (s *socket) isLate() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.late
}

// readable resumes the course if it waits for the socket. What it does not want
// yet is not to wake the loop all the time.
func (s *socket) readable(descriptor) (beside bool) {
	if s.course.awaited == s {
		s.course.step()
	} else {
		s.course.loop.unwatch(s)
	}
	return false
}

// hasSocket says whether a connection has a socket with nothing in between.
func hasSocket(conn net.Conn) bool {
	switch conn.(type) {
	case *socket, *net.TCPConn, *net.UnixConn:
		return true
	}
	return false
}

// broken is a connection that Go would not take back.
type broken struct {
	*socket
	cause error
}

func (b broken) Read([]byte) (int, error)         { return 0, b.cause }
func (b broken) Write([]byte) (int, error)        { return 0, b.cause }
func (b broken) Close() error                     { return nil }
func (b broken) SetDeadline(time.Time) error      { return nil }
func (b broken) SetReadDeadline(time.Time) error  { return nil }
func (b broken) SetWriteDeadline(time.Time) error { return nil }

package proxy

import (
	"net"
	"slices"
	"time"
)

// course is the way of one connection from its first packet to its end, as
// straight-line code. It runs on a loop, by turns with others, where it waits for
// nothing but its sockets; before it waits for anything else it leaves the loop,
// and goes on with a goroutine of its own. A nil course never was on a loop.
//
// On the loop it is a coroutine of the loop's goroutine: giving way and being
// resumed takes no scheduler, whose threads would have to wake each other at each
// step of a login.
type course struct {
	loop     *loop
	*carrier // nil when it has ended
	onLoop   bool
	slow     bool // the other side takes its time now
	sockets  []*socket
	awaited  *socket // the loop's goroutine alone looks at it
}

// begin starts the course of a connection, on the loop's goroutine.
func (l *loop) begin(s *socket, run func(*course, *socket)) {
	c := &course{loop: l, onLoop: true, sockets: []*socket{s}}
	s.course = c
	l.carry(c, func() { run(c, s) })
	c.step()
}

// step lets the course go on until it waits, on the loop's goroutine.
func (c *course) step() {
	if c.carrier == nil {
		return
	}
	if _, more := c.resume(); more && !c.onLoop {
		go c.runAlone()
	}
}

// runAlone lets it go on beside the loop until it ends or is back.
func (c *course) runAlone() {
	for {
		_, more := c.resume()
		if !more {
			return
		}
		if c.onLoop {
			c.loop.post(c.step)
			return
		}
	}
}

// leave takes the course from its loop, if it is there: from now on it may wait
// for whatever it likes.
func (c *course) leave() {
	if c == nil || !c.onLoop {
		return
	}
	for _, s := range c.sockets {
		s.toPlain()
	}
	c.onLoop = false
	c.give(struct{}{})
}

// join brings it back to its loop.
func (c *course) join() {
	if !c.onLoop {
		c.onLoop = true
		c.give(struct{}{})
	}
}

// await waits on the loop until a socket may be read from, or its deadline has
// come.
func (c *course) await(s *socket) error {
	if err := c.loop.watch(s); err != nil {
		return err
	}
	c.awaited = s
	if !c.slow {
		c.loop.stayAwake()
	}
	c.give(struct{}{})
	c.awaited = nil
	return nil
}

// unhurried does what waits for somebody who is known to take long: the loop need
// not stay awake for it.
func (c *course) unhurried(do func()) {
	if c != nil {
		c.slow = true
		defer func() { c.slow = false }()
	}
	do()
}

// elsewhere does what may take time, without the loop.
func (c *course) elsewhere(do func()) {
	if c == nil || !c.onLoop {
		do()
		return
	}
	var fault any
	go func() {
		defer func() {
			fault = recover()
			c.loop.post(c.step)
		}()
		do()
	}()
	c.give(struct{}{})
	if fault != nil {
		panic(fault) // it ends the course, and not the process
	}
}

// letOthersGoFirst waits on the loop until it has nothing else to do, or for a
// few milliseconds.
func (c *course) letOthersGoFirst() {
	if c == nil || !c.onLoop {
		return
	}
	if l := c.loop; len(l.patient) == 0 {
		l.since = time.Now()
	}
	c.loop.patient = append(c.loop.patient, c)
	c.give(struct{}{})
}

// takeTurns lets the loop serve a session, until it is done with it for a reason.
func (c *course) takeTurns(t *turn) (reason error) {
	// Who asks it to leave from now on does so by the loop, which is busy with this.
	if t.ctx.Err() != nil || c.loop.add(t) != nil {
		return errAsked
	}
	c.loop.stayAwake()
	c.give(struct{}{})
	return t.end
}

// adopt makes a connection, which is nobody else's, one of the course: a socket of
// the loop where it is there and the connection plain.
func (c *course) adopt(conn net.Conn) net.Conn {
	s, isSocket := conn.(*socket)
	if c == nil || !c.onLoop {
		if isSocket {
			return s.toPlain()
		}
		return conn
	}
	if isSocket && !s.toDescriptor() { // it may have left a loop, with this course or another
		return s.plain
	}
	if !isSocket {
		d, ok := descriptorOf(conn)
		if !ok {
			return conn
		}
		s = &socket{descriptor: d, remote: conn.RemoteAddr(), local: conn.LocalAddr(), keepAlive: c.loop.keepAlive}
		_ = conn.Close()
	}
	s.course = c
	if !slices.Contains(c.sockets, s) {
		c.sockets = append(c.sockets, s)
	}
	return s
}

// release makes a connection nobody's.
func (c *course) release(conn net.Conn) net.Conn {
	s, isSocket := conn.(*socket)
	if c == nil || !isSocket {
		return conn
	}
	c.sockets = slices.DeleteFunc(c.sockets, func(other *socket) bool { return other == s })
	return s.abandon()
}

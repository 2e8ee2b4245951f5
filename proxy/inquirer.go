package proxy

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgproto3/v2"

	"github.com/hiatus-tailor/tailor/catalog"
)

const (
	// inquiryPatience is how long a question may stay without an answer before the
	// inquirer's connection is given up, and inquiryPause how long there is none then.
	inquiryPatience = time.Second
	inquiryPause    = time.Second
	// inquiryRest is how long it is kept without a question.
	inquiryRest = 5 * time.Second
	// inquiryRound is how often it is looked after.
	inquiryRound = inquiryPatience / 4
)

// inquirer asks the catalog about those who log in on a loop. Its connection is
// one of the loop's members: neither a question nor its answer wakes a goroutine.
// It has one only while logins rush in. Who gets no answer here asks in the way of
// all others. It is for the loop's goroutine; a nil inquirer has no connection.
type inquirer struct {
	loop     *loop
	open     func(context.Context) (*catalog.Inquiry, net.Conn, error)
	remember func(name string, found *catalog.Principal)
	log      *slog.Logger

	line   *line       // nil for none
	rounds *time.Timer // while there is one
	pause  time.Time   // before which none is made
	unfit  bool        // none is ever: it is no plain socket
	making sync.WaitGroup
	cancel context.CancelFunc // of what is being made; nil for nothing
	made   *made              // it, until the loop has it
}

// made is what came of making a connection.
type made struct {
	inquiry *catalog.Inquiry
	conn    net.Conn
	err     error
}

// inquired is the question of a login.
type inquired struct {
	name   string
	course *course
	waits  bool // the course does, for nothing but this
	over   bool
	found  *catalog.Principal // the answer, nil for none
	asked  time.Time          // when it was
}

// inquirer makes the one of a loop.
func (p *Proxy) inquirer(l *loop) *inquirer {
	return &inquirer{loop: l, open: p.catalog.Inquire, log: p.log, remember: func(name string, found *catalog.Principal) {
		p.principals.heard(name, found, p.clock())
	}}
}

// inquire asks the catalog about a role on the course's loop; nil where it cannot
// be asked there.
func (c *course) inquire(name string) *inquired {
	if c == nil || !c.onLoop {
		return nil
	}
	return c.loop.inquirer.ask(c, name)
}

// wait returns the answer; nil if there is none, or none before the context ends.
// The course may have gone on in the meantime, but on its loop.
func (a *inquired) wait(ctx context.Context) *catalog.Principal {
	if !a.over {
		a.course.loop.inquirer.hurry()
	}
	if !a.over {
		defer context.AfterFunc(ctx, func() { a.course.loop.post(a.wake) })()
		a.waits = true
		a.course.give(struct{}{})
	}
	return a.found
}

// wake resumes the course, if it waits.
func (a *inquired) wake() {
	if a.waits {
		a.waits = false
		a.course.step()
	}
}

func (q *inquirer) ask(c *course, name string) *inquired {
	if q == nil {
		return nil
	}
	if q.line == nil {
		q.make()
		return nil
	}
	a := &inquired{name: name, course: c}
	if err := q.line.ask(a); err != nil {
		q.fail(err)
		return nil
	}
	// Where others want the processors it is asked when somebody waits for the answer:
	// that is also the answer of all who are at work on their proofs.
	if q.loop.processors.spare() {
		q.hurry()
	}
	if a.over { // it has failed
		return nil
	}
	return a
}

// hurry sends what is to be asked.
func (q *inquirer) hurry() {
	if q.line == nil {
		return
	}
	if err := q.line.flush(); err != nil {
		q.fail(err)
	}
}

// make begins to make a connection, beside the loop, unless that goes on or is of
// no use.
func (q *inquirer) make() {
	if q.cancel != nil || q.unfit || time.Now().Before(q.pause) {
		return
	}
	var ctx context.Context
	ctx, q.cancel = context.WithTimeout(context.Background(), askPatience)
	q.making.Go(func() {
		m := &made{}
		m.inquiry, m.conn, m.err = q.open(ctx)
		if m.err == nil && !hasSocket(m.conn) {
			m.close()
			m.err = errNoSocket
		}
		q.made = m
		q.loop.post(q.enter)
	})
}

// errNoSocket is of a connection that no loop can serve.
var errNoSocket = errors.New("the service connection is encrypted")

func (m *made) close() {
	_ = m.conn.SetDeadline(time.Now().Add(leaveTimeout))
	_ = send(m.conn, &pgproto3.Terminate{})
	_ = m.conn.Close()
}

// enter brings what was made to the loop.
func (q *inquirer) enter() {
	m := q.made
	q.cancel()
	q.cancel, q.made = nil, nil
	if m.err != nil {
		q.refuse(m.err)
		return
	}
	d, ok := descriptorOf(m.conn)
	if !ok {
		_ = m.conn.Close()
		q.refuse(net.ErrClosed)
		return
	}
	_ = m.conn.Close()
	if err := q.loop.poll.add(d); err != nil {
		d.close()
		q.refuse(err)
		return
	}
	q.line = newLine(d, m.inquiry, newFrames(d))
	q.loop.members[d] = q
	q.rounds = time.AfterFunc(inquiryRound, func() { q.loop.post(func() { q.look(time.Now()) }) })
}

// refuse has no connection made for a while.
func (q *inquirer) refuse(cause error) {
	if q.unfit = cause == errNoSocket; q.unfit {
		return // which is nobody's fault
	}
	q.pause = time.Now().Add(inquiryPause)
	q.log.Warn("no connection to look logins up on", "error", cause)
}

// look gives up a connection that does not answer, and closes one that nobody
// needs any more.
func (q *inquirer) look(now time.Time) {
	if q.line != nil && q.line.silent(now) {
		q.readable(q.line.descriptor) // who looks late may be it that is late
	}
	q.hurry() // for who went away
	switch l := q.line; {
	case l == nil:
		return
	case l.silent(now):
		q.fail(errSilentCatalog)
	case len(l.asked) == 0 && now.Sub(l.at) > inquiryRest:
		q.close()
	default:
		q.rounds.Reset(inquiryRound)
	}
}

var errSilentCatalog = errors.New("the catalog does not answer")

// fail gives the connection up. Who has asked on it asks elsewhere.
func (q *inquirer) fail(cause error) {
	left := q.line.waiting()
	q.close()
	q.refuse(cause)
	for _, a := range left {
		a.over, a.found = true, nil
	}
	q.loop.post(func() { // whoever gave it up is a course himself, it may be
		for _, a := range left {
			a.wake()
		}
	})
}

// close ends the connection, of which nobody waits for an answer.
func (q *inquirer) close() {
	l := q.line
	q.line = nil
	q.rounds.Stop()
	delete(q.loop.members, l.descriptor)
	_ = q.loop.poll.remove(l.descriptor)
	_ = send(l.descriptor, &pgproto3.Terminate{})
	l.descriptor.close()
	l.in.release()
}

// end leaves nothing when the loop ends.
func (q *inquirer) end() {
	if q == nil {
		return
	}
	if q.cancel != nil {
		q.cancel()
		q.making.Wait()
	}
	if q.made != nil && q.made.err == nil {
		q.made.close()
	}
	if q.line != nil {
		q.close()
	}
}

// readable takes the answers that have come.
func (q *inquirer) readable(descriptor) (beside bool) {
	answered, err := q.line.read()
	err = cmp.Or(err, q.line.flush())
	for _, a := range answered {
		q.remember(a.name, a.found)
	}
	if err != nil {
		q.fail(err)
	}
	for _, a := range answered {
		a.wake()
	}
	return false
}

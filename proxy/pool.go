package proxy

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgproto3/v2"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/proxy/internal/protocol"
	"github.com/hiatus-tailor/tailor/proxy/internal/scram"
)

// Pooling is what a session shares with others.
type Pooling string

// The ways: a connection to PostgreSQL of its own to the end, or only while it
// has a transaction open or nobody else waits for one.
const (
	PoolSession     Pooling = "session"
	PoolTransaction Pooling = "transaction"
)

// pooled is what a session needs that gives up its connection to PostgreSQL
// between transactions. Attacker: another session of the proxy, of the same role
// or another. A connection goes only to a session of the same role with the same
// password and start-up parameters, at a moment when PostgreSQL owes nothing and
// no cancel request is on its way to it, and after DISCARD ALL; so neither rows,
// nor state, nor a cancel of one reach the other. TestSessionsThatShareConnections
// and TestNoStateLeaks check it.
type pooled struct {
	parameters map[string]string // of the start-up
	keys       *scram.Keys

	// turn is held while a message of the client is handled, and while the
	// connection is given up. The fields up to the next lock belong to it.
	turn    sync.Mutex
	asleep  bool   // has no connection
	settled bool   // no message lies half handled or unsent
	pinned  bool   // has state that nothing could restore
	carried []byte // settings, for the next connection

	// touch guards the connection against those who only interrupt it.
	touch sync.Mutex
	away  bool // it is not to be touched: it is being cleared, or another's

	woken chan struct{} // the session has a connection again; has room for one
}

// keptFor is how long a connection that was given up waits for a session.
const keptFor = 10 * time.Second

// begin asks a reader's settings ahead.
func (s *session) begin(ctx context.Context) error {
	if !s.principal.Reader {
		return nil
	}
	if s.pool != nil {
		s.pool.turn.Lock()
		defer s.pool.turn.Unlock()
		if err := s.wake(ctx); err != nil {
			return err
		}
	}
	if s.recall() {
		return nil
	}
	err := s.askSettings()
	s.server.first, s.within = s.asked, false
	return err
}

// forward handles one message of the client, or a further piece of one.
func (s *session) forward(ctx context.Context, frame []byte, inside bool) error {
	if s.pool == nil {
		return s.pass(ctx, frame, inside)
	}
	// The answer may have come, and found the turn taken.
	defer s.offer()
	s.pool.turn.Lock()
	defer s.pool.turn.Unlock()
	if s.state == protocol.Unserved {
		return s.unserved(frame, inside)
	}
	if err := s.wake(ctx); err != nil {
		return s.refuseUnserved(frame, inside, err)
	}
	s.pool.settled = false
	err := s.pass(ctx, frame, inside)
	s.pool.settled = err == nil && !s.in.buffered() && !s.in.inside()
	return err
}

// pass handles one message of the client, or a further piece of one, and sends
// what came of it, unless more is at hand.
func (s *session) pass(ctx context.Context, frame []byte, inside bool) error {
	kind := frame[0]
	var err error
	if inside {
		err = s.up.piece(frame)
	} else if err = s.awaitRoom(ctx); err == nil {
		s.messages.Add(1)
		err = s.statement(ctx, frame)
	}
	if err == nil && s.in.buffered() {
		return nil
	}
	s.arrival = time.Time{}
	if err != nil {
		return err
	}
	if err := s.up.Flush(); err != nil {
		return err
	}
	if !inside && kind != 'd' {
		s.in.settle()
	}
	return nil
}

// requestYield asks sessions that are at rest to give up their connections.
func (p *Proxy) requestYield() {
	for _, s := range p.registry.all() {
		if s.pool != nil {
			s.offer()
		}
	}
}

// offer makes the goroutine that reads from the server see whether the
// connection is wanted by another, where the session is at rest.
func (s *session) offer() {
	if s.proxy.upstreamLimiter.Queued() == 0 || !s.owedNothing() {
		return
	}
	s.pool.touch.Lock()
	defer s.pool.touch.Unlock()
	if !s.pool.away {
		_ = s.server.conn.SetReadDeadline(past)
	}
}

// poked says whether an error of reading from the server was only a poke, and
// makes the connection readable again.
func (s *session) poked(ctx context.Context, err error) bool {
	var late net.Error
	if s.pool == nil || !errors.As(err, &late) || !late.Timeout() {
		return false
	}
	s.pool.touch.Lock()
	defer s.pool.touch.Unlock()
	_ = s.server.conn.SetReadDeadline(time.Time{})
	return ctx.Err() == nil
}

// share gives the connection up where the session is at rest and another waits
// for one, and returns when the session has one again. Only the goroutine that
// reads from the server calls it.
func (s *session) share(ctx context.Context) error {
	if s.pool == nil || s.proxy.upstreamLimiter.Queued() == 0 || !s.owedNothing() {
		return nil
	}
	gave, err := s.yield()
	if err != nil || !gave {
		return err
	}
	select {
	case <-s.pool.woken:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// yield gives the connection up unless the session still needs it. What can be
// restored of its state is kept.
func (s *session) yield() (gave bool, err error) {
	q := s.pool
	if !q.turn.TryLock() {
		return false, nil // the client wants something
	}
	defer q.turn.Unlock()
	u := s.server
	if q.pinned || !q.settled || s.state.InPipeline() || !s.owedNothing() ||
		u.frames.start != u.frames.end {
		return false, nil
	}
	if err := s.out.Flush(); err != nil {
		return false, err
	}
	q.setAway(true)
	s.proxy.cancels.point(s.key, nil)
	carried, kept, err := u.state(s.principal.Name)
	if err != nil || kept {
		q.pinned = kept
		_ = u.conn.SetDeadline(time.Time{})
		s.proxy.cancels.point(s.key, u)
		q.setAway(false)
		return false, err
	}
	q.asleep, q.carried = true, carried
	s.generation++
	clear(s.names.portals)
	if u.from != s.proxy.running.Load() || u.clear() != nil || s.proxy.draining.Load() {
		u.close()
	} else {
		s.proxy.idle.put(u, s.proxy.clock(), keptFor)
	}
	s.proxy.upstreamLimiter.Release()
	return true, nil
}

func (q *pooled) setAway(away bool) {
	q.touch.Lock()
	defer q.touch.Unlock()
	q.away = away
}

// errChanged ends a session whose role is not what it was when it logged in.
var errChanged = sqlstate.New(sqlstate.InvalidAuthorization,
	"the role has changed since this session logged in").
	WithHint("Connect again.")

// wake gets a connection for a session that has none. The caller has the turn.
// A role that may no longer log in, has another password or reads differently
// gets none.
func (s *session) wake(ctx context.Context) error {
	q := s.pool
	if !q.asleep {
		return nil
	}
	working, done := s.work.during(ctx)
	defer done()
	r := s.proxy.running.Load()
	working, cancel := context.WithTimeout(working, r.StartupTimeout+r.QueueTimeout)
	defer cancel()
	asked := time.Now()
	principal, err := s.proxy.principals.find(working, s.proxy.catalog, s.principal.Name)
	if err != nil {
		return interrupted(working, err)
	}
	again := &admitted{principal: principal, asked: asked, keys: q.keys}
	if s.changed(again.principal) {
		return errChanged
	}
	u, err := s.proxy.server(working, r, q.parameters, again)
	if err != nil {
		return interrupted(working, err)
	}
	if s.changed(again.principal) { // while it waited in line
		u.close()
		s.proxy.upstreamLimiter.Release()
		return errChanged
	}
	if err := errors.Join(u.restore(q.carried), u.bindSessionID(s.principal)); err != nil {
		u.close()
		s.proxy.upstreamLimiter.Release()
		return err
	}
	_ = u.conn.SetDeadline(time.Time{})
	u.frames.ofServer()
	q.touch.Lock()
	defer q.touch.Unlock()
	if ctx.Err() != nil {
		u.close()
		s.proxy.upstreamLimiter.Release()
		return context.Cause(ctx)
	}
	s.server, s.up.to = u, u.conn
	q.asleep, q.away = false, false
	s.proxy.cancels.point(s.key, u)
	q.woken <- struct{}{}
	return nil
}

// changed says that the session's role is no longer what it was at the login.
func (s *session) changed(now *catalog.Principal) bool {
	return now.Verifier != s.principal.Verifier || now.Reader != s.principal.Reader ||
		now.Inherits != s.principal.Inherits || !slices.Equal(now.Projects, s.principal.Projects)
}

// refuseUnserved answers a message for which there is no connection, as the server would one that
// fails. Errors that are not the moment's end the session. The goroutine that reads from the
// server, which else writes to the client, waits.
func (s *session) refuseUnserved(frame []byte, inside bool, err error) error {
	if s.state.On(frame[0]).Act == protocol.Reject && !inside {
		return errUnknownMessage(frame[0])
	}
	var known *sqlstate.Error
	if !errors.As(err, &known) ||
		known.Code != sqlstate.QueryCanceled && known.Code != sqlstate.TooManyConnections {
		return err
	}
	if inside || strings.IndexByte("dcf", frame[0]) >= 0 {
		return nil
	}
	s.logRefusal(known)
	if _, err := s.out.Write(errorFrame("ERROR", known)); err != nil {
		return err
	}
	if strings.IndexByte("QFS", frame[0]) >= 0 {
		return s.answerUnserved()
	}
	s.state = protocol.Unserved
	return s.out.Flush()
}

// unserved handles a message behind one for which there was no connection.
func (s *session) unserved(frame []byte, inside bool) error {
	if inside {
		return nil
	}
	does := s.state.On(frame[0])
	s.state = does.Next
	switch does.Act {
	case protocol.Reject:
		return errUnknownMessage(frame[0])
	case protocol.Answer:
		return s.answerUnserved()
	}
	return nil
}

// answerUnserved tells the client that what comes next is handled.
func (s *session) answerUnserved() error {
	return errors.Join(send(s.out, &pgproto3.ReadyForQuery{TxStatus: 'I'}), s.out.Flush())
}

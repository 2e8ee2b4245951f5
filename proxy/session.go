package proxy

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgproto3/v2"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/audit"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/proxy/internal/cancelkey"
	"github.com/hiatus-tailor/tailor/proxy/internal/protocol"
)

// session is one logged-in client with its connection to the server.
type session struct {
	proxy     *Proxy
	loop      *loop // on which it may have its turns
	id        string
	client    net.Conn
	address   string // of the client
	server    *upstream
	principal *catalog.Principal
	database  string
	pool      *pooled        // nil where the connection is the session's to the end
	key       string         // of cancel requests
	keyring   cancelkey.Ring // makes it
	keyLength int            // of the cancel key's secret

	in  *frames // from the client
	out *sink   // to the client
	up  *sink   // to the server

	touch       sync.Mutex   // guards what follows, client and server.conn against those who interrupt
	loopSession *loopSession // of the loop that serves the session; nil for none
	parted      bool         // the server's side may be another's

	stop     context.CancelCauseFunc // ends the session, for the reason given
	end      error                   // why it has ended
	reusable bool                    // the server's side needs no more than to be cleared

	messages atomic.Int64 // of the client
	seen     int64        // messages, when maintain last found that they had changed
	since    time.Time    // that was

	loopRejoin loopRejoin
	expect     replyQueue
	// swallows says so of the pieces of the server's message: the goroutine that forwards answers
	// looks.
	swallows bool
	giving   *pendingReply // what the row before belonged to: it is asked for once a run of rows
	work     interrupts
	stats    *statementStats
	together bool          // the statistics are not the session's alone
	status   atomic.Uint32 // of the last ReadyForQuery: 'I', 'T' or 'E'
	// activated is the text that has called tailor.activate since then, nil for none.
	activated atomic.Pointer[string]
	// questions counts what was sent that ReadyForQuery answers, whatever is expected,
	// and replies the ReadyForQuery and the Sync that a copy passed over.
	questions, replies atomic.Int64

	// The rest belongs to the goroutine that forwards statements.
	names   names
	tickets []ticket
	state   protocol.State // behind the messages that have been handled
	// generation counts connections to the server, of which each has to be told
	// the prepared statements.
	generation int64
	knowledge
	looks        looks
	lastSnapshot *catalog.Snapshot
	snapshots    int       // how many there were, the last one included
	arrival      time.Time // see arrived; zero where the clock has not been asked
	// A message that may begin a transaction is beginning until it is sent, and began says
	// when, or beganAt where in the log that a standby had replayed: the transaction's snapshot
	// is not older.
	beginning bool
	began     time.Time
	beganAt   catalog.Position
}

// open authenticates a client and logs in to the server as its role. The
// principal's entry is taken, and a seat: who has not proved who he is takes none
// from others.
func (p *Proxy) open(ctx context.Context, r *running, g *greeting) (*session, error) {
	user := g.parameters["user"]
	if err := assertParameters(g.parameters); err != nil {
		return nil, err
	}
	if err := negotiate(g.conn, g, p.newestMinor()); err != nil {
		return nil, err
	}
	in := newFrames(g.conn)
	in.limit = maxStartup
	client, err := p.admit(ctx, r.Authentication, g.conn, in, user)
	if err != nil {
		return nil, err
	}
	in.ofClient()
	if err := p.clientLimiter.Acquire(ctx, r.QueueTimeout); err != nil {
		return nil, err
	}
	if err := p.clientLimiter.Enter(user); err != nil {
		p.clientLimiter.Release()
		return nil, err
	}
	server, err := p.server(ctx, r, g.parameters, client)
	if err != nil {
		p.clientLimiter.Exit(user)
		p.clientLimiter.Release()
		return nil, err
	}
	server.frames.ofServer()
	s := &session{
		proxy: p, loop: p.loopOf(), id: newID(), client: g.conn, address: g.conn.RemoteAddr().String(),
		server: server, principal: client.principal,
		database: g.parameters["database"], keyring: r.peers.Ring, keyLength: cancelkey.Short, in: in,
		out:       &sink{to: g.conn, meter: p.metrics.toClients},
		up:        &sink{to: server.conn, meter: p.metrics.toServer},
		stats:     &statementStats{seed: p.seed},
		names:     newNames(),
		expect:    replyQueue{owed: owed{eased: make(chan struct{}, 1)}},
		knowledge: knowledge{settings: settings{notices: true}},
	}
	s.up.questions = &s.questions
	if r.Pool == PoolTransaction {
		s.names.complete = true
		s.pool = &pooled{
			parameters: g.parameters, keys: client.keys, settled: true,
			woken: make(chan struct{}, 1),
		}
	}
	if g.minor >= 2 {
		s.keyLength = cancelkey.Long
	}
	s.out.pending = client.last
	s.status.Store('I')
	s.began = p.clock()
	return s, nil
}

// run serves the session until one side ends it.
func (s *session) run(ctx context.Context) {
	defer s.leaveServer()
	if s.server.served && s.pool == nil {
		defer s.hurry()()
	}
	s.key = s.proxy.cancels.register(s.keyring, s.keyLength, &s.work, s.server)
	defer s.proxy.cancels.forget(s.key)
	if err := s.welcome(s.key); err != nil {
		s.end = err
		return
	}
	s.expect.dropped = func(e *pendingReply) { s.finish(e, audit.Failed, e.ahead.code()) }
	ctx, s.stop = context.WithCancelCause(ctx)
	spare := context.AfterFunc(ctx, func() { s.interrupt(context.Cause(ctx)) })
	defer spare()
	s.proxy.registry.add(s)
	defer s.proxy.registry.remove(s)
	if s.proxy.draining.Load() {
		s.stop(errShutdown)
	}
	err := s.guard(func() error { return s.begin(ctx) })
	over := err != nil
	for !over && s.runDirections(ctx) {
		over, err = s.takeTurns(ctx)
	}
	if over {
		spare()
		s.flushRest()
		s.stop(reason(err))
		s.cutShort(context.Cause(ctx))
	}
	s.end = context.Cause(ctx)
	s.part(s.end)
	s.reusable = s.end == errLeft && !s.state.InPipeline() && s.owedNothing()
	s.expect.drain()
	s.noteTally()
	s.in.release()
}

// runDirections forwards with a goroutine for each direction until one ends, or
// until the session goes home.
func (s *session) runDirections(ctx context.Context) (home bool) {
	s.settleDown(ctx)
	if ctx.Err() != nil { // who interrupted it may have found it on the loop
		s.interrupt(context.Cause(ctx))
	}
	run := func(direction func(context.Context) error) {
		if err := s.guard(func() error { return direction(ctx) }); err != errHome {
			s.stop(reason(err))
		}
	}
	forwarded := make(chan struct{})
	go func() {
		defer close(forwarded)
		run(s.statements)
	}()
	run(s.answers)
	// Both directions end before anything else is written: each owns a buffer.
	<-forwarded
	return s.settleDown(ctx)
}

// flushRest sends the server what the client had sent before the session ended.
func (s *session) flushRest() {
	_ = s.server.conn.SetWriteDeadline(time.Now().Add(farewell))
	_ = s.up.Flush()
	_ = s.server.conn.SetWriteDeadline(time.Time{})
}

// cutShort bounds the end of a session that nothing waits for any more.
func (s *session) cutShort(cause error) {
	_ = s.client.SetWriteDeadline(time.Now().Add(farewell))
	if cause != errLeft {
		_ = s.server.conn.Close()
	}
}

// errLeft ends a session whose client has said goodbye.
var errLeft = errors.New("the client has left")

// reason makes sure that the first direction to end says why.
func reason(err error) error {
	if err == nil {
		return errLeft
	}
	return err
}

// interrupt makes both directions end, wherever they wait.
func (s *session) interrupt(cause error) {
	s.work.end()
	s.touch.Lock()
	defer s.touch.Unlock()
	if s.loopSession != nil {
		s.loopSession.leave()
		return
	}
	_ = s.client.SetReadDeadline(past)
	_ = s.client.SetWriteDeadline(time.Now().Add(farewell))
	if s.parted {
		return
	}
	if q := s.pool; q != nil {
		q.touch.Lock()
		defer q.touch.Unlock()
		if q.away {
			return
		}
	}
	if cause == errLeft {
		_ = s.server.conn.SetReadDeadline(past) // it may serve another
		return
	}
	_ = s.server.conn.Close()
}

// past is a deadline that ends what waits.
var past = time.Unix(1, 0)

// farewell bounds how long the last bytes to a client may take.
const farewell = 5 * time.Second

// guard ends the session, and not the process, where an invariant is broken.
func (s *session) guard(run func() error) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = s.failed()
		}
	}()
	return run()
}

// welcome ends the login towards the client.
func (s *session) welcome(key string) error {
	if err := send(s.out, &pgproto3.AuthenticationOk{}); err != nil {
		return err
	}
	if _, err := s.out.Write(s.server.greeting); err != nil {
		return err
	}
	if _, err := s.out.Write(append(binary.BigEndian.AppendUint32([]byte{'K'}, uint32(4+len(key))),
		key...)); err != nil {
		return err
	}
	if _, err := s.out.Write(s.server.ready); err != nil {
		return err
	}
	return s.out.Flush()
}

// part sends the client what is left and, where it broke the protocol, why the
// session ends, and closes its connection.
func (s *session) part(err error) {
	var server *errorResponse
	if errors.As(err, &server) {
		_, _ = s.out.Write(server.frame)
	}
	var known *sqlstate.Error
	if errors.As(err, &known) {
		s.log().Info("session ended", "sqlstate", string(known.Code))
		_, _ = s.out.Write(errorFrame("FATAL", known))
	}
	_ = s.out.Flush()
	_ = s.client.Close()
}

// noteTally hands over the records of runs that were counted only, unless they
// are counted together with those of others.
func (s *session) noteTally() {
	if s.together {
		return
	}
	for _, counted := range s.stats.take(s.proxy.clock(), s.recordAt) {
		s.proxy.audit.Finish(counted.record, counted.outcome)
	}
}

// arrived is when the present message was read, or one that was read with it: what
// comes in one piece has one time.
func (s *session) arrived() time.Time {
	if s.arrival.IsZero() {
		s.arrival = s.proxy.clock()
	}
	return s.arrival
}

// record starts the audit record of a statement of this session.
func (s *session) record(statement string) *audit.Record {
	return s.recordAt(s.proxy.clock(), statement)
}

func (s *session) recordAt(started time.Time, statement string) *audit.Record {
	r := audit.NewRecord(started, statement)
	r.Session, r.Principal, r.Database = s.id, s.principal.Name, s.database
	r.Client = s.address
	return r
}

// log is made where it is used: few sessions have anything to tell.
func (s *session) log() *slog.Logger { return s.proxy.log.With("session", s.id) }

func (s *session) logRefusal(e *sqlstate.Error) {
	if e.Code == sqlstate.InternalError || e.Cause != nil {
		s.log().Error("statement refused", "sqlstate", string(e.Code), "cause", e.Cause)
		return
	}
	s.log().Info("statement refused", "sqlstate", string(e.Code), "rule", e.Message)
}

// newID is a random name for a session.
func newID() string { return hex.EncodeToString(randomBytes(8)) }

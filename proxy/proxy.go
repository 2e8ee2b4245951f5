package proxy

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/audit"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/planner"
	"github.com/hiatus-tailor/tailor/proxy/internal/limiter"
	"github.com/hiatus-tailor/tailor/proxy/internal/proxyproto"
)

// Catalog is what the proxy asks of the privileged side.
type Catalog interface {
	Snapshot() (*catalog.Snapshot, error)
	Position() catalog.Position
	Principal(ctx context.Context, name string) (*catalog.Principal, error)
	Release(ctx context.Context, r *catalog.Relation, p *catalog.Principal) (*catalog.Release, error)
	Show(ctx context.Context, r *catalog.Relation, p *catalog.Principal) (*catalog.Release, error)
	AssertReleasesCurrent(ctx context.Context, releases []*catalog.Release) error
	Owns(ctx context.Context, p *catalog.Principal, r *catalog.Relation) (bool, error)
	AdmissionToken(statement string, session string, releases []*catalog.Release) string
	Settle(ctx context.Context, which func(*catalog.Relation) bool) []catalog.Unsettled
}

// Audit is where records go: Append returns once the record is durable, the
// others at once.
type Audit interface {
	Append(ctx context.Context, r *audit.Record) error
	Finish(r *audit.Record, o audit.Outcome)
	SealPending() // when nobody waits
	RefusedLogin(r *audit.Record)
	Available() bool // whether the last records could be written
}

var (
	_ Catalog = (*catalog.Catalog)(nil)
	_ Audit   = (*audit.Log)(nil)
)

// Proxy serves clients. It is made by New and runs until Serve's context ends.
type Proxy struct {
	running         atomic.Pointer[running]
	catalog         Catalog
	audit           Audit
	log             *slog.Logger
	clock           func() time.Time
	secret          []byte // of mock verifiers, and of cancel keys where there are no peers
	seed            maphash.Seed
	cancels         cancels
	passing         chan struct{} // one for each cancel request on its way to a peer
	cancelLimiter   limiter.Guesses
	replays         replays
	registry        registry
	clientLimiter   *limiter.Connections
	upstreamLimiter *limiter.Connections // of connections to PostgreSQL
	idle            idlePool
	standbys        standbys
	metrics         *proxyMetrics
	sharedStats     sharedStats
	loops           []*loop
	next            atomic.Uint32 // of the loops
	// starting bounds the connections that have not come to a session yet.
	starting chan struct{}
	draining atomic.Bool

	assessments assessments
	plans       *planner.Cache
	principals  principals
}

// maxStarting is the number of connections at once that may be on their way to
// a session, queued ones included. They take no seat before they have proved who
// they are.
const maxStarting = 10000

// New makes a proxy and reads the files that the configuration names. clock is
// the time of audit records.
func New(
	config Config, catalog Catalog, audit Audit, log *slog.Logger, clock func() time.Time,
) (*Proxy, error) {
	secret := randomBytes(32)
	r, err := config.load(secret)
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		catalog: catalog, audit: audit, log: log, clock: clock, secret: secret, seed: maphash.MakeSeed(),
		cancels: newCancels(), passing: make(chan struct{}, maxDelivered),
		starting:        make(chan struct{}, maxStarting),
		clientLimiter:   limiter.New(config.MaxClients, config.MaxClientsOfPrincipal),
		plans:           planner.NewCache(),
		upstreamLimiter: limiter.New(config.upstreamLimit(), 0),
	}
	p.running.Store(r)
	p.metrics = newProxyMetrics(p)
	return p, nil
}

// Listen opens the listener that the configuration names.
func (p *Proxy) Listen(ctx context.Context) (net.Listener, error) {
	r := p.running.Load()
	config := net.ListenConfig{KeepAlive: -1} // it is set for each who comes
	return config.Listen(ctx, "tcp", r.Config.Listen)
}

// Serve accepts clients on the listener until the context ends. Then it closes
// the listener, ends sessions as they come out of their transactions, all of
// them after DrainTimeout, and returns when they are gone.
func (p *Proxy) Serve(ctx context.Context, listener net.Listener) error {
	hard, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	defer context.AfterFunc(ctx, func() {
		_ = listener.Close()
		p.drain(hard, cut)
	})()
	if err := p.startLoops(); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	defer p.stopLoops()
	upkeep, stop := context.WithCancel(hard)
	var keeper, sessions sync.WaitGroup
	keeper.Go(func() { p.maintain(upkeep) })
	defer keeper.Wait()
	defer stop()
	defer func() {
		sessions.Wait()
		p.noteRushes()
	}()
	err := p.letIn(listener, func(conn net.Conn) {
		sessions.Go(func() { p.serve(ctx, hard, conn) })
	})
	if ctx.Err() != nil {
		return nil
	}
	cut(errShutdown)
	return fmt.Errorf("accept: %w", err)
}

// pause is how long nobody is let in where that has just failed.
const pause = 10 * time.Millisecond

// letIn accepts clients until the listener is closed, and returns why it is.
func (p *Proxy) letIn(listener net.Listener, enter func(net.Conn)) error {
	for {
		conn, err := listener.Accept()
		switch {
		case err == nil:
			probe(conn, p.running.Load().KeepAlive)
			enter(conn)
		// the second, where another closed the socket
		case errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.EINVAL):
			return err
		default: // too many files, say
			p.log.Warn("cannot accept", "error", err)
			time.Sleep(pause)
		}
	}
}

// serve handles one connection from its first packet to its end. start ends
// where no new sessions are wanted, hard where none are.
func (p *Proxy) serve(start, hard context.Context, conn net.Conn) {
	defer func() { _ = conn.Close() }()
	defer func() {
		if fault := recover(); fault != nil {
			p.log.Error("session failed", "stack", string(debug.Stack()))
		}
	}()
	p.metrics.connections.Add(1)
	select {
	case p.starting <- struct{}{}:
	default:
		_, _ = conn.Write(errorFrame("FATAL", sqlstate.From(limiter.ErrFull())))
		return
	}
	s, err := p.start(start, conn)
	<-p.starting
	if err != nil {
		p.metrics.logins["refused"].Add(1)
		p.refuseLogin(conn, err)
		return
	}
	if s != nil {
		p.metrics.logins["accepted"].Add(1)
		defer p.clientLimiter.Release()
		defer p.clientLimiter.Exit(s.principal.Name)
		s.run(hard)
	}
}

// start takes a connection to a session, or delivers its cancel request. With a
// session come a seat and an entry of its principal.
func (p *Proxy) start(ctx context.Context, conn net.Conn) (*session, error) {
	r := p.running.Load()
	ctx, cancel := context.WithTimeout(ctx, r.StartupTimeout)
	defer cancel()
	_ = conn.SetDeadline(p.clock().Add(r.StartupTimeout))
	if r.ProxyProtocol {
		var err error
		if conn, err = proxyproto.Read(conn); err != nil {
			return nil, err
		}
	}
	g, err := greet(ctx, conn, r.tls, r.TLS.Required)
	if err != nil {
		return nil, on(g, err)
	}
	switch {
	case g.passed != nil:
		p.accept(ctx, r, g)
		return nil, nil
	case g.parameters == nil:
		p.deliver(ctx, r, g)
		return nil, nil
	}
	s, err := p.open(ctx, r, g)
	if err != nil {
		p.recordLogin(g, err)
		return nil, p.slowly(ctx, r, on(g, err))
	}
	_ = g.conn.SetDeadline(time.Time{})
	_ = s.server.conn.SetDeadline(time.Time{})
	return s, nil
}

// recordLogin records a login that failed for another reason than that the
// client went away.
func (p *Proxy) recordLogin(g *greeting, err error) {
	code := string(sqlstate.From(err).Code)
	var server *errorResponse
	switch {
	case errors.As(err, &server):
		code = codeOf(server.frame)
	case gone(err):
		return
	}
	p.audit.RefusedLogin(audit.NewLogin(p.clock(), g.parameters["user"], g.parameters["database"],
		g.conn.RemoteAddr().String(), code))
}

// slowly keeps back the answer to a wrong password.
func (p *Proxy) slowly(ctx context.Context, r *running, err error) error {
	var known *sqlstate.Error
	if errors.As(err, &known) && (known.Code == sqlstate.InvalidPassword ||
		known.Code == sqlstate.InvalidAuthorization) {
		select {
		case <-ctx.Done():
		case <-time.After(r.WrongPasswordPause):
		}
	}
	return err
}

// refusal is an error with the connection on which the client is to be told.
type refusal struct {
	conn net.Conn
	error
}

func (r refusal) Unwrap() error { return r.error }

// on names the connection, encrypted or not, on which an error is answered.
func on(g *greeting, err error) error {
	if g == nil {
		return err
	}
	return refusal{g.conn, err}
}

// refuseLogin tells a client why there is no session.
func (p *Proxy) refuseLogin(conn net.Conn, err error) {
	var answered refusal
	if errors.As(err, &answered) {
		conn = answered.conn
	}
	_ = conn.SetWriteDeadline(time.Now().Add(farewell))
	var server *errorResponse
	var handshake errHandshake
	switch {
	case errors.As(err, &server):
		_, _ = conn.Write(server.frame)
		return
	case gone(err):
		return
	case errors.As(err, &handshake):
		p.log.Info("login refused", "rule", "TLS handshake", "cause", err)
		return
	}
	known := sqlstate.From(err)
	p.log.Info("login refused", "sqlstate", string(known.Code), "cause", known.Cause)
	_, _ = conn.Write(errorFrame("FATAL", known))
}

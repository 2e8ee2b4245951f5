package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/audit"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/planner"
)

// Catalog is what the proxy asks of the privileged side.
type Catalog interface {
	Snapshot() (*catalog.Snapshot, error)
	Principal(ctx context.Context, name string) (*catalog.Principal, error)
	Release(ctx context.Context, r *catalog.Relation, p *catalog.Principal, project string, assess catalog.Assess) (*catalog.Release, error)
	Peek(ctx context.Context, r *catalog.Relation, p *catalog.Principal) (catalog.Present, error)
	Fresh(ctx context.Context, r *catalog.Relation) (catalog.Present, error)
	Owns(ctx context.Context, p *catalog.Principal, r *catalog.Relation) (bool, error)
	Ticket(statement string, process uint32, releases []*catalog.Release) string
}

// Audit is where records go: Append returns once the record is durable, the
// others at once.
type Audit interface {
	Append(ctx context.Context, r *audit.Record) error
	Finish(r *audit.Record, o audit.Outcome)
	RefusedLogin(r *audit.Record)
}

var (
	_ Catalog = (*catalog.Catalog)(nil)
	_ Audit   = (*audit.Log)(nil)
)

// Proxy serves clients. It is made by New and runs until Serve's context ends.
type Proxy struct {
	config  Config
	catalog Catalog
	audit   Audit
	log     *slog.Logger
	clock   func() time.Time
	secret  []byte // of mock verifiers
	cancels cancels
	slots   chan struct{}

	assessments assessments
	plans       *planner.Cache
}

// New makes a proxy. clock is the time of audit records.
func New(config Config, catalog Catalog, audit Audit, log *slog.Logger, clock func() time.Time) (*Proxy, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	return &Proxy{
		config: config, catalog: catalog, audit: audit, log: log, clock: clock, secret: randomBytes(32),
		cancels: cancels{keys: make(map[cancelKey]cancelTarget)}, slots: make(chan struct{}, config.MaxClients),
		plans: planner.NewCache(),
	}, nil
}

// Serve accepts clients on the listener until the context ends, then closes
// it and every session, and returns when all are gone.
func (p *Proxy) Serve(ctx context.Context, listener net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	var sessions sync.WaitGroup
	defer sessions.Wait()
	for {
		conn, err := listener.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			var temporary interface{ Temporary() bool }
			if errors.As(err, &temporary) && temporary.Temporary() {
				p.log.Warn("cannot accept", "error", err)
				time.Sleep(10 * time.Millisecond)
				continue
			}
			return fmt.Errorf("accept: %w", err)
		}
		sessions.Go(func() { p.serve(ctx, conn) })
	}
}

// serve handles one connection from its first packet to its end.
func (p *Proxy) serve(ctx context.Context, conn net.Conn) {
	defer func() { _ = conn.Close() }()
	defer func() {
		if fault := recover(); fault != nil {
			p.log.Error("session failed", "fault", fault, "stack", string(debug.Stack()))
		}
	}()
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	default:
		_, _ = conn.Write(errorFrame("FATAL", sqlstate.New(sqlstate.TooManyConnections, "sorry, too many clients already")))
		return
	}
	s, err := p.start(ctx, conn)
	if err != nil {
		p.refuseLogin(conn, err)
		return
	}
	if s != nil {
		s.run(ctx)
	}
}

// start takes a connection to a session, or delivers its cancel request.
func (p *Proxy) start(ctx context.Context, conn net.Conn) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, p.config.StartupTimeout)
	defer cancel()
	_ = conn.SetDeadline(time.Now().Add(p.config.StartupTimeout))
	g, err := greet(conn)
	if err != nil {
		return nil, err
	}
	if g.parameters == nil {
		if target, ok := p.cancels.find(g.cancel); ok && !target.work.interrupt() {
			return nil, p.config.cancel(ctx, target.server)
		}
		return nil, nil
	}
	s, err := p.open(ctx, conn, g)
	if err != nil {
		p.recordLogin(conn, g, err)
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	_ = s.server.conn.SetDeadline(time.Time{})
	return s, nil
}

// recordLogin records a login that failed for another reason than that the
// client went away.
func (p *Proxy) recordLogin(conn net.Conn, g *greeting, err error) {
	code := string(sqlstate.From(err).Code)
	var server *errorResponse
	switch {
	case errors.As(err, &server):
		code = codeOf(server.frame)
	case gone(err):
		return
	}
	p.audit.RefusedLogin(audit.NewLogin(p.clock(), g.parameters["user"], g.parameters["database"], conn.RemoteAddr().String(), code))
}

// refuseLogin tells a client why there is no session.
func (p *Proxy) refuseLogin(conn net.Conn, err error) {
	var server *errorResponse
	if errors.As(err, &server) {
		_, _ = conn.Write(server.frame)
		return
	}
	if gone(err) {
		return
	}
	known := sqlstate.From(err)
	p.log.Info("login refused", "sqlstate", string(known.Code), "cause", known.Cause)
	_, _ = conn.Write(errorFrame("FATAL", known))
}

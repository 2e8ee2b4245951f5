package proxy

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/jackc/pgproto3/v2"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/audit"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// session is one logged-in client with its connection to the server.
type session struct {
	proxy     *Proxy
	id        string
	client    net.Conn
	server    *upstream
	principal *catalog.Principal
	database  string
	log       *slog.Logger

	in  *frames       // from the client
	out *bufio.Writer // to the client
	up  *bufio.Writer // to the server

	expect expectations
	work   interrupts
	status atomic.Uint32 // of the last ReadyForQuery: 'I', 'T' or 'E'

	// The rest belongs to the goroutine that forwards statements.
	names        names
	skipping     bool // to the next Sync, after a refusal
	pipelined    bool // messages of the extended protocol since the last Sync
	settings     settings
	unsettled    bool // the settings may have changed since they were read
	lastSnapshot *catalog.Snapshot
}

// open authenticates a client and logs in to the server as its role.
func (p *Proxy) open(ctx context.Context, conn net.Conn, g *greeting) (*session, error) {
	user := g.parameters["user"]
	principal, err := p.catalog.Principal(ctx, user)
	if err != nil {
		return nil, err
	}
	stored, err := parseVerifier(principal.Verifier)
	if err != nil {
		stored = mockVerifier(p.secret, user)
	}
	if err := negotiate(conn, g); err != nil {
		return nil, err
	}
	in := newFrames(conn)
	keys, err := authenticate(conn, in, stored)
	if err != nil {
		return nil, err
	}
	server, err := p.config.connect(ctx, g.parameters, keys)
	if err != nil {
		return nil, err
	}
	s := &session{
		proxy: p, id: newID(), client: conn, server: server, principal: principal,
		database: g.parameters["database"], in: in,
		out: bufio.NewWriterSize(conn, bufferBytes), up: bufio.NewWriterSize(server.conn, bufferBytes),
		names:    newNames(),
		settings: settings{notices: true},
	}
	s.log = p.log.With("session", s.id)
	s.status.Store('I')
	return s, nil
}

// run serves the session until one side ends it.
func (s *session) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer func() { _ = s.server.conn.Close() }()
	key := s.proxy.cancels.register(cancelTarget{&s.work, s.server.key})
	defer s.proxy.cancels.forget(key)
	if err := s.welcome(key); err != nil {
		return
	}
	s.expect.dropped = func(e *expected) { s.finish(e, audit.Failed, "") }
	ended := make(chan error, 2)
	go func() { ended <- s.guard(s.answers) }()
	go func() { ended <- s.guard(func() error { return s.statements(ctx) }) }()
	var err error
	running := 2
	select {
	case err = <-ended:
		running--
	case <-ctx.Done():
		err = sqlstate.New(sqlstate.CannotConnectNow, "the proxy is shutting down")
	}
	cancel()
	// Both goroutines end before anything else is written: each owns a buffer.
	_ = s.client.SetReadDeadline(time.Unix(1, 0))
	_ = s.client.SetWriteDeadline(time.Now().Add(farewell))
	_ = s.server.conn.Close()
	for range running {
		<-ended
	}
	s.part(err)
	s.expect.drain()
}

// farewell bounds how long the last bytes to a client may take.
const farewell = 5 * time.Second

// guard ends the session, and not the process, where an invariant is broken.
func (s *session) guard(run func() error) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			s.log.Error("session failed", "stack", string(debug.Stack()))
			err = sqlstate.New(sqlstate.InternalError, "internal error in session %s", s.id)
		}
	}()
	return run()
}

// welcome ends the login towards the client.
func (s *session) welcome(key cancelKey) error {
	if err := send(s.out, &pgproto3.AuthenticationOk{}); err != nil {
		return err
	}
	if _, err := s.out.Write(s.server.greeting); err != nil {
		return err
	}
	if err := send(s.out, &pgproto3.BackendKeyData{ProcessID: key.process, SecretKey: key.secret}); err != nil {
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
	var known *sqlstate.Error
	if errors.As(err, &known) {
		s.log.Info("session ended", "sqlstate", string(known.Code))
		_, _ = s.out.Write(errorFrame("FATAL", known))
	}
	_ = s.out.Flush()
	_ = s.client.Close()
}

// record starts the audit record of a statement of this session.
func (s *session) record(statement string) *audit.Record {
	r := audit.NewRecord(s.proxy.clock(), statement)
	r.Session, r.Principal, r.Database = s.id, s.principal.Name, s.database
	r.Client = s.client.RemoteAddr().String()
	return r
}

func (s *session) logRefusal(e *sqlstate.Error) {
	if e.Code == sqlstate.InternalError || e.Cause != nil {
		s.log.Error("statement refused", "sqlstate", string(e.Code), "cause", e.Cause)
		return
	}
	s.log.Info("statement refused", "sqlstate", string(e.Code), "rule", e.Message)
}

// newID is a random name for a session.
func newID() string { return hex.EncodeToString(randomBytes(8)) }

package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/jackc/pgproto3/v2"
	decode "github.com/jackc/pgx/v5/pgproto3"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/proxy/internal/scram"
)

// upstream is a connection to PostgreSQL, logged in as the client's role.
type upstream struct {
	conn    net.Conn
	frames  *frames
	address string
	// standby says that the server is one, and replayed up to where it is known to have replayed
	// the write-ahead log.
	standby  bool
	replayed catalog.Position
	// greeting are the messages from the login's end up to and without the
	// first ReadyForQuery: parameters and notices; then each parameter that has
	// changed since.
	greeting []byte
	told     bool   // something since the greeting was last made as short as can be
	key      []byte // process and secret key, for cancel requests
	ready    []byte // the first ReadyForQuery

	// What the settings were when the session began, and the question that the
	// server was asked then; nil where it is not known.
	atLogin *knowledge
	session string // what tells it from all others of the server; empty until it is known
	first   *internalQuery

	// For the next session that may use the connection: see idlePool.
	role, database string
	kind           string   // empty where it serves one only
	from           *running // the configuration by which it was made
	born           time.Time
	keptSince      time.Time
	keptUntil      time.Time
	served         bool // another session before
}

// leaveTimeout bounds how long PostgreSQL may take to end a session.
const leaveTimeout = time.Second

// close ends the connection and returns when PostgreSQL has ended its side, so
// that the next one in its place is not one too many there.
func (u *upstream) close() {
	_ = u.conn.SetDeadline(time.Now().Add(leaveTimeout))
	if send(u.conn, &pgproto3.Terminate{}) == nil {
		_, _ = io.Copy(io.Discard, u.conn)
	}
	_ = u.conn.Close()
}

// maxGreeting is how long a greeting may grow before what is out of date goes.
const maxGreeting = 8 << 10

// setParameter notes a ParameterStatus. One that is too long is not the next client's: the
// server tells another value when this one's settings are discarded.
func (u *upstream) setParameter(frame []byte) {
	if len(frame) > maxGreeting {
		return
	}
	u.greeting, u.told = append(u.greeting, frame...), true
	if len(u.greeting) > maxGreeting {
		u.shorten()
	}
}

// shorten leaves of the greeting what the next client is to be told.
func (u *upstream) shorten() { u.greeting, u.told = u.parameters(), false }

// parameters are the messages of the greeting that tell the parameters as they
// are now, in the order in which the server told them first.
func (u *upstream) parameters() []byte {
	var names []string
	last := make(map[string][]byte)
	for rest := u.greeting; len(rest) >= headerBytes; {
		n := min(len(rest), 1+int(binary.BigEndian.Uint32(rest[1:])))
		if rest[0] == 'S' {
			text, _, _ := bytes.Cut(rest[headerBytes:n], zero)
			name := string(text)
			if last[name] == nil {
				names = append(names, name)
			}
			last[name] = rest[:n]
		}
		rest = rest[n:]
	}
	var all []byte
	for _, name := range names {
		all = append(all, last[name]...)
	}
	return all
}

// errorResponse is an error that PostgreSQL sent during the login. It is
// forwarded as it is.
type errorResponse struct{ frame []byte }

func (e *errorResponse) Error() string { return "the server refused the login" }

// dial connects to PostgreSQL, encrypted where that is asked for.
func (r *running) dial(ctx context.Context, address string) (net.Conn, error) {
	dialer := net.Dialer{KeepAliveConfig: keepAlive(r.KeepAlive)}
	conn, err := dialer.DialContext(ctx, network(address), address)
	if err != nil || r.upstreamTLS == nil {
		return conn, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	config := r.upstreamTLS.Clone()
	config.ServerName, _, _ = net.SplitHostPort(address)
	secure, err := encrypt(ctx, conn, config)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secure, nil
}

// encrypt asks PostgreSQL for TLS (PostgreSQL, chapter "SSL Session Encryption").
func encrypt(ctx context.Context, conn net.Conn, config *tls.Config) (net.Conn, error) {
	if err := send(conn, &pgproto3.SSLRequest{}); err != nil {
		return nil, err
	}
	var answer [1]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return nil, err
	}
	if answer[0] != 'S' {
		return nil, errors.New("the server does not offer TLS")
	}
	secure := tls.Client(conn, config)
	return secure, secure.HandshakeContext(ctx)
}

// connect dials PostgreSQL and logs in with the keys taken from the client's
// proof; nil for none.
func (r *running) connect(
	ctx context.Context, address string, parameters map[string]string, keys *scram.Keys,
) (*upstream, error) {
	conn, err := r.dial(ctx, address)
	if err != nil {
		return nil, sqlstate.New(sqlstate.CannotConnectNow, "the database server is unavailable").
			Wrap(err)
	}
	u := &upstream{conn: conn, frames: newFrames(conn), address: address}
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if err := u.login(parameters, keys); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return u, nil
}

func (u *upstream) login(parameters map[string]string, keys *scram.Keys) error {
	start := &pgproto3.StartupMessage{
		ProtocolVersion: pgproto3.ProtocolVersionNumber,
		Parameters:      parameters,
	}
	if err := send(u.conn, start); err != nil {
		return err
	}
	var client *scram.Client
	if keys != nil {
		client = scram.NewClient(keys)
	}
	for {
		frame, err := u.frames.next()
		if err != nil {
			return fmt.Errorf("log in: %w", err)
		}
		switch frame[0] {
		case 'R':
			if err := u.authenticate(frame[headerBytes:], client); err != nil {
				return err
			}
		case 'K':
			u.key = slices.Clone(frame[headerBytes:])
		case 'E':
			return &errorResponse{slices.Clone(frame)}
		case 'Z':
			u.ready = slices.Clone(frame)
			return nil
		default:
			u.greeting, u.told = append(u.greeting, frame...), true
		}
	}
}

// authenticate answers one authentication request.
func (u *upstream) authenticate(body []byte, client *scram.Client) error {
	if len(body) < 4 {
		return errors.New("malformed authentication request")
	}
	code := binary.BigEndian.Uint32(body)
	if code == decode.AuthTypeOk {
		return nil
	}
	if client == nil {
		return sqlstate.New(sqlstate.InvalidAuthorization,
			"the server asks for a password, which the client did not show").
			WithHint("Let PostgreSQL trust the proxy, or set authentication to scram.")
	}
	switch code {
	case decode.AuthTypeSASL:
		return send(u.conn, &pgproto3.SASLInitialResponse{
			AuthMechanism: scram.Mechanism,
			Data:          []byte(client.Initial()),
		})
	case decode.AuthTypeSASLContinue:
		proof, err := client.Prove(string(body[4:]))
		if err != nil {
			return err
		}
		return send(u.conn, &pgproto3.SASLResponse{Data: []byte(proof)})
	case decode.AuthTypeSASLFinal:
		return client.Verify(string(body[4:]))
	default:
		return sqlstate.New(sqlstate.InvalidAuthorization,
			"the server asks for an authentication method other than SCRAM-SHA-256").
			WithHint("Set scram-sha-256 for this role in pg_hba.conf.")
	}
}

// cancel asks PostgreSQL to cancel what a connection runs.
func (r *running) cancel(ctx context.Context, u *upstream) error {
	conn, err := r.dial(ctx, u.address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	message := binary.BigEndian.AppendUint32(nil, uint32(8+len(u.key)))
	message = binary.BigEndian.AppendUint32(message, codeCancel)
	if _, err := conn.Write(append(message, u.key...)); err != nil {
		return err
	}
	// The server closes once it has delivered the signal.
	_, _ = conn.Read(make([]byte, 1))
	return nil
}

package proxy

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/jackc/pgproto3/v2"
	decode "github.com/jackc/pgx/v5/pgproto3"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// upstream is a connection to PostgreSQL, logged in as the client's role.
type upstream struct {
	conn   net.Conn
	frames *frames
	// greeting are the messages from the login's end up to and without the
	// first ReadyForQuery: parameters and notices.
	greeting []byte
	key      []byte // process and secret key, for cancel requests
	ready    []byte // the first ReadyForQuery
}

// process is the number of the server's process for this connection.
func (u *upstream) process() uint32 {
	if len(u.key) < 4 {
		return 0
	}
	return binary.BigEndian.Uint32(u.key)
}

// errorResponse is an error that PostgreSQL sent during the login. It is
// forwarded as it is.
type errorResponse struct{ frame []byte }

func (e *errorResponse) Error() string { return "the server refused the login" }

// connect dials PostgreSQL and logs in with the keys taken from the client's
// proof.
func (c Config) connect(ctx context.Context, parameters map[string]string, keys *scramKeys) (*upstream, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, c.network(), c.Upstream)
	if err != nil {
		return nil, sqlstate.New(sqlstate.CannotConnectNow, "the database server is unavailable").Wrap(err)
	}
	u := &upstream{conn: conn, frames: newFrames(conn)}
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if err := u.login(parameters, keys); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return u, nil
}

func (u *upstream) login(parameters map[string]string, keys *scramKeys) error {
	start := &pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersionNumber, Parameters: parameters}
	if err := send(u.conn, start); err != nil {
		return err
	}
	client := newSCRAMClient(keys)
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
			u.greeting = append(u.greeting, frame...)
		}
	}
}

// authenticate answers one authentication request.
func (u *upstream) authenticate(body []byte, client *scramClient) error {
	if len(body) < 4 {
		return errors.New("malformed authentication request")
	}
	switch code := binary.BigEndian.Uint32(body); code {
	case decode.AuthTypeOk:
		return nil
	case decode.AuthTypeSASL:
		return send(u.conn, &pgproto3.SASLInitialResponse{AuthMechanism: scramMechanism, Data: []byte(client.initial())})
	case decode.AuthTypeSASLContinue:
		proof, err := client.prove(string(body[4:]))
		if err != nil {
			return err
		}
		return send(u.conn, &pgproto3.SASLResponse{Data: []byte(proof)})
	case decode.AuthTypeSASLFinal:
		return client.verify(string(body[4:]))
	default:
		return sqlstate.New(sqlstate.InvalidAuthorization, "the server asks for an authentication method other than SCRAM-SHA-256").
			WithHint("Set scram-sha-256 for this role in pg_hba.conf.")
	}
}

// cancel asks PostgreSQL to cancel what the connection with the key runs.
func (c Config) cancel(ctx context.Context, key []byte) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, c.network(), c.Upstream)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	message := binary.BigEndian.AppendUint32(nil, uint32(8+len(key)))
	message = binary.BigEndian.AppendUint32(message, codeCancel)
	if _, err := conn.Write(append(message, key...)); err != nil {
		return err
	}
	// The server closes once it has delivered the signal.
	_, _ = conn.Read(make([]byte, 1))
	return nil
}

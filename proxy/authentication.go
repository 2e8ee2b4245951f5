package proxy

import (
	"errors"
	"fmt"
	"net"

	"github.com/jackc/pgproto3/v2"
	decode "github.com/jackc/pgx/v5/pgproto3"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// Authentication is how clients prove who they are.
type Authentication string

// The methods. Only SCRAM gives the keys to log in to PostgreSQL with; with the
// others PostgreSQL has to let the proxy in as any role, by trust or by the
// proxy's own certificate.
const (
	SCRAM       Authentication = "scram"
	Certificate Authentication = "cert"  // a certificate in the role's name
	Trust       Authentication = "trust" // none; only for clients on this machine
)

func (a Authentication) validate(c Config) error {
	switch a {
	case SCRAM:
	case Certificate:
		if c.TLS.ClientCA == "" || !c.TLS.Required {
			return fmt.Errorf("authentication: cert needs tls-client-ca and tls-required")
		}
	case Trust:
		host, _, _ := net.SplitHostPort(c.Listen)
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return fmt.Errorf("authentication: trust is for a loopback address in listen only")
		}
	default:
		return fmt.Errorf("authentication: %q is none of scram, cert, trust", a)
	}
	return nil
}

// prove lets a client prove that it is a role, and returns the keys that its
// proof gave away; nil where the method gives none. last is what the client is
// yet to be told before the session begins.
func (a Authentication) prove(conn net.Conn, in *frames, user string, stored verifier) (keys *scramKeys, last []byte, err error) {
	switch a {
	case Certificate:
		secure, ok := conn.(*secured)
		if !ok || len(secure.ConnectionState().VerifiedChains) == 0 || secure.ConnectionState().PeerCertificates[0].Subject.CommonName != user {
			return nil, nil, sqlstate.New(sqlstate.InvalidAuthorization, "certificate authentication failed").
				WithHint("Connect with a client certificate in the name of the role.")
		}
		return nil, nil, nil
	case Trust:
		// A balancer on this machine may listen for others.
		if from, ok := conn.RemoteAddr().(*net.TCPAddr); !ok || !from.IP.IsLoopback() {
			return nil, nil, sqlstate.New(sqlstate.InvalidAuthorization, "clients of other machines are not trusted").
				WithHint("Set authentication to scram or cert.")
		}
		return nil, nil, nil
	}
	keys, last, err = authenticate(conn, in, stored)
	var refused *sqlstate.Error
	if errors.As(err, &refused) && refused.Code == sqlstate.InvalidPassword {
		refused.Message = fmt.Sprintf("password authentication failed for user \"%s\"", user) // as PostgreSQL says it
	}
	return keys, last, err
}

// authenticate runs SCRAM-SHA-256 with a client (PostgreSQL, chapter "SASL
// Authentication") and returns the keys that its proof gave away, with the last
// message of the exchange.
func authenticate(conn net.Conn, in *frames, stored verifier) (*scramKeys, []byte, error) {
	binding := channelBinding(conn)
	mechanisms := []string{scramMechanism}
	if binding != nil {
		mechanisms = []string{scramPlusMechanism, scramMechanism}
	}
	if err := send(conn, &pgproto3.AuthenticationSASL{AuthMechanisms: mechanisms}); err != nil {
		return nil, nil, err
	}
	frame, err := passwordFrame(in)
	if err != nil {
		return nil, nil, err
	}
	var initial decode.SASLInitialResponse
	if err := initial.Decode(frame[headerBytes:]); err != nil {
		return nil, nil, sqlstate.New(sqlstate.ProtocolViolation, "malformed SASL response")
	}
	switch {
	case initial.AuthMechanism == scramPlusMechanism && binding != nil:
	case initial.AuthMechanism == scramMechanism:
	default:
		return nil, nil, sqlstate.New(sqlstate.ProtocolViolation, "client selected an invalid SASL authentication mechanism")
	}
	exchange, challenge, err := stored.begin(string(initial.Data), initial.AuthMechanism == scramPlusMechanism, binding)
	if err != nil {
		return nil, nil, err
	}
	if err := send(conn, &pgproto3.AuthenticationSASLContinue{Data: []byte(challenge)}); err != nil {
		return nil, nil, err
	}
	if frame, err = passwordFrame(in); err != nil {
		return nil, nil, err
	}
	keys, signature, err := exchange.finish(string(frame[headerBytes:]))
	if err != nil {
		return nil, nil, err
	}
	last, err := encode(&pgproto3.AuthenticationSASLFinal{Data: []byte(signature)})
	return keys, last, err
}

// passwordFrame reads a message of the kind that carries authentication data.
func passwordFrame(in *frames) ([]byte, error) {
	frame, err := in.next()
	if err != nil {
		return nil, err
	}
	if frame[0] != 'p' {
		return nil, sqlstate.New(sqlstate.ProtocolViolation, "expected an authentication response")
	}
	return frame, nil
}

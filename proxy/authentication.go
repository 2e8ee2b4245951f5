package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/jackc/pgproto3/v2"
	decode "github.com/jackc/pgx/v5/pgproto3"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/proxy/internal/scram"
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

// admitted is a client that has proved who it is.
type admitted struct {
	principal *catalog.Principal
	asked     time.Time   // before the catalog was asked for it
	keys      *scram.Keys // that its proof gave away; nil where the method gives none
	last      []byte      // what it is yet to be told before its session begins
}

// admit lets a client prove that it is a role.
func (p *Proxy) admit(
	ctx context.Context, method Authentication, conn net.Conn, in *frames, user string,
) (*admitted, error) {
	if method == SCRAM {
		return p.admitByPassword(ctx, conn, in, user)
	}
	if err := method.vouch(conn, user); err != nil {
		return nil, err
	}
	asked := time.Now()
	principal, err := p.principals.find(ctx, p.catalog, user)
	return &admitted{principal: principal, asked: asked}, err
}

// confirm asks the catalog again about a client that took long to prove who it is,
// or had to wait in line: with a connection that was kept, PostgreSQL does not
// look at the role.
func (p *Proxy) confirm(ctx context.Context, client *admitted) (err error) {
	if now := time.Now(); now.Sub(client.asked) >= recentAge {
		client.asked = now
		client.principal, err = p.principals.find(ctx, p.catalog, client.principal.Name)
	}
	return err
}

// vouch checks what a client shows without being asked.
func (a Authentication) vouch(conn net.Conn, user string) error {
	if a == Certificate {
		secure, ok := conn.(*secured)
		if !ok || len(secure.ConnectionState().VerifiedChains) == 0 ||
			secure.ConnectionState().PeerCertificates[0].Subject.CommonName != user {
			return sqlstate.New(sqlstate.InvalidAuthorization, "certificate authentication failed").
				WithHint("Connect with a client certificate in the name of the role.")
		}
		return nil
	}
	// A balancer on this machine may listen for others.
	if from, ok := conn.RemoteAddr().(*net.TCPAddr); !ok || !from.IP.IsLoopback() {
		return sqlstate.New(sqlstate.InvalidAuthorization, "clients of other machines are not trusted").
			WithHint("Set authentication to scram or cert.")
	}
	return nil
}

// admitByPassword runs SCRAM-SHA-256 with a client (PostgreSQL, chapter "SASL
// Authentication").
func (p *Proxy) admitByPassword(
	ctx context.Context, conn net.Conn, in *frames, user string,
) (*admitted, error) {
	binding := channelBinding(conn)
	if err := offerSCRAM(conn, binding); err != nil {
		return nil, err
	}
	asked := time.Now()
	principal, err := p.principals.find(ctx, p.catalog, user)
	if err != nil {
		return nil, err
	}
	stored, err := scram.ParseVerifier(principal.Verifier)
	if err != nil {
		stored = scram.MockVerifier(p.secret, user)
	}
	exchange, err := challenge(conn, in, stored, binding)
	if err != nil {
		return nil, err
	}
	proof, err := passwordFrame(in)
	if err != nil {
		return nil, err
	}
	keys, last, err := conclude(proof, exchange)
	var refused *sqlstate.Error
	if errors.As(err, &refused) && refused.Code == sqlstate.InvalidPassword {
		// as PostgreSQL says it
		refused.Message = fmt.Sprintf("password authentication failed for user \"%s\"", user)
	}
	return &admitted{principal, asked, keys, last}, err
}

// offerSCRAM names the mechanisms.
func offerSCRAM(conn net.Conn, binding []byte) error {
	mechanisms := []string{scram.Mechanism}
	if binding != nil {
		mechanisms = []string{scram.MechanismPlus, scram.Mechanism}
	}
	return send(conn, &pgproto3.AuthenticationSASL{AuthMechanisms: mechanisms})
}

// challenge answers the client's choice of a mechanism.
func challenge(
	conn net.Conn, in *frames, stored scram.Verifier, binding []byte,
) (*scram.Exchange, error) {
	frame, err := passwordFrame(in)
	if err != nil {
		return nil, err
	}
	var initial decode.SASLInitialResponse
	if err := initial.Decode(frame[headerBytes:]); err != nil {
		return nil, sqlstate.New(sqlstate.ProtocolViolation, "malformed SASL response")
	}
	switch {
	case initial.AuthMechanism == scram.MechanismPlus && binding != nil:
	case initial.AuthMechanism == scram.Mechanism:
	default:
		return nil, sqlstate.New(sqlstate.ProtocolViolation,
			"client selected an invalid SASL authentication mechanism")
	}
	exchange, text, err := stored.Begin(string(initial.Data),
		initial.AuthMechanism == scram.MechanismPlus, binding)
	if err != nil {
		return nil, err
	}
	if err := send(conn, &pgproto3.AuthenticationSASLContinue{Data: []byte(text)}); err != nil {
		return nil, err
	}
	return exchange, nil
}

// conclude checks the client's proof and returns the keys that it gave away,
// with the last message of the exchange.
func conclude(proof []byte, exchange *scram.Exchange) (keys *scram.Keys, last []byte, err error) {
	keys, signature, err := exchange.Finish(string(proof[headerBytes:]))
	if err != nil {
		return nil, nil, err
	}
	last, err = encode(&pgproto3.AuthenticationSASLFinal{Data: []byte(signature)})
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

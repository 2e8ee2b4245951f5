package proxy

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// Codes of the first packet (PostgreSQL, chapter "Message Formats").
const (
	codeCancel   = 80877102
	codeSSL      = 80877103
	codeGSS      = 80877104
	codePeer     = 80877123 // not PostgreSQL's: a peer passes a cancel request on
	majorVersion = 3
)

// maxStartup is the longest first packet that PostgreSQL accepts.
const maxStartup = 10000

// greeting is what a client's first packets come to: a session to start, or a
// query to cancel.
type greeting struct {
	conn       net.Conn // encrypted where the client asked for it
	parameters map[string]string
	minor      int    // of the protocol version asked for
	cancel     []byte // process and secret key of a cancel request
	passed     []byte // a cancel request that a peer passed on, sealed
}

// greet reads the first packets of a connection. A client may ask for each kind
// of encryption once, or begin with a TLS handshake.
func greet(
	ctx context.Context, conn net.Conn, offered *tls.Config, required bool,
) (*greeting, error) {
	head := make([]byte, 1)
	if _, err := io.ReadFull(conn, head); err != nil {
		return nil, err
	}
	plain := &begun{Conn: conn, head: head}
	if head[0] == tlsHandshake {
		return greetDirectly(ctx, plain, offered)
	}
	asked := make(map[uint32]bool)
	for {
		code, body, err := readStartup(plain)
		if err != nil {
			return nil, err
		}
		switch {
		case (code == codeSSL || code == codeGSS) && asked[code]:
			return nil, sqlstate.New(sqlstate.ProtocolViolation, "encryption was requested twice")
		case code == codeSSL && offered != nil:
			if _, err := conn.Write([]byte{'S'}); err != nil {
				return nil, err
			}
			// What a client sends ahead of the handshake is taken for the
			// handshake: nothing that came unencrypted is ever used.
			return greetSecurely(ctx, conn, offered)
		case code == codeSSL || code == codeGSS:
			asked[code] = true
			if _, err := conn.Write([]byte{'N'}); err != nil {
				return nil, err
			}
			continue
		}
		if required && code != codeCancel && code != codePeer {
			return nil, sqlstate.New(sqlstate.InvalidAuthorization,
				"connections without TLS are not allowed").
				WithHint("Connect with sslmode=require or above.")
		}
		return introduced(conn, code, body)
	}
}

// tlsHandshake is the first byte of a TLS client.
const tlsHandshake = 0x16

// begun is a connection of which the first bytes have been read.
type begun struct {
	net.Conn
	head []byte
}

func (b *begun) Read(p []byte) (int, error) {
	if len(b.head) == 0 {
		return b.Conn.Read(p)
	}
	n := copy(p, b.head)
	b.head = b.head[n:]
	return n, nil
}

// greetDirectly serves a client that begins with the handshake. It has to name
// the protocol, so that no other kind of client is led to believe it is
// talking to a server of its own kind.
func greetDirectly(ctx context.Context, conn net.Conn, offered *tls.Config) (*greeting, error) {
	if offered == nil {
		return nil, sqlstate.New(sqlstate.ProtocolViolation, "TLS is not available")
	}
	g, err := greetSecurely(ctx, conn, offered)
	if err != nil {
		return nil, err
	}
	if g.conn.(*secured).ConnectionState().NegotiatedProtocol != alpn {
		return nil, sqlstate.New(sqlstate.ProtocolViolation, "direct TLS without the protocol %q", alpn)
	}
	return g, nil
}

// greetSecurely runs the handshake and reads the first packet behind it.
func greetSecurely(ctx context.Context, conn net.Conn, offered *tls.Config) (*greeting, error) {
	secure := tls.Server(conn, offered)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errHandshake{err}
	}
	code, body, err := readStartup(secure)
	if err != nil {
		return nil, err
	}
	return introduced(&secured{secure, offered.Certificates[0].Leaf}, code, body)
}

// errHandshake is a failed handshake, about which nothing can be told to the
// client.
type errHandshake struct{ error }

// introduced reads the packet that says what a connection is for.
func introduced(conn net.Conn, code uint32, body []byte) (*greeting, error) {
	g := &greeting{conn: conn, minor: int(code & 0xffff)}
	switch code {
	case codeCancel:
		g.cancel = body
		return g, nil
	case codePeer:
		g.passed = body
		return g, nil
	}
	if code>>16 != majorVersion {
		return g, sqlstate.New(sqlstate.FeatureNotSupported, "unsupported frontend protocol")
	}
	var err error
	g.parameters, err = startupParameters(body)
	return g, err
}

// readStartup reads one packet without a type: its code and what follows.
func readStartup(conn io.Reader) (uint32, []byte, error) {
	var head [8]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return 0, nil, err
	}
	length := binary.BigEndian.Uint32(head[:4])
	if length < 8 || length > maxStartup {
		return 0, nil, sqlstate.New(sqlstate.ProtocolViolation, "invalid length of startup packet")
	}
	body := make([]byte, length-8)
	if _, err := io.ReadFull(conn, body); err != nil {
		return 0, nil, err
	}
	return binary.BigEndian.Uint32(head[4:]), body, nil
}

// longestName is how many bytes of a role's or a database's name count.
const longestName = 63

// startupParameters reads pairs of zero-terminated strings. As PostgreSQL does,
// it cuts names to the length that one can have: a role has one name here, or it
// would have a chain for each.
func startupParameters(body []byte) (map[string]string, error) {
	malformed := sqlstate.New(sqlstate.ProtocolViolation,
		"invalid startup packet layout: expected terminator as last byte")
	if len(body) == 0 || body[len(body)-1] != 0 {
		return nil, malformed
	}
	parameters := make(map[string]string)
	if text := string(body[:len(body)-1]); text != "" {
		fields := strings.Split(text, "\x00")
		if len(fields)%2 != 1 || fields[len(fields)-1] != "" {
			return nil, malformed
		}
		for i := 0; i+1 < len(fields); i += 2 {
			parameters[fields[i]] = fields[i+1]
		}
	}
	if parameters["user"] == "" {
		return nil, sqlstate.New(sqlstate.InvalidAuthorization,
			"no PostgreSQL user name specified in startup packet")
	}
	if parameters["database"] == "" {
		parameters["database"] = parameters["user"]
	}
	for _, name := range []string{"user", "database"} {
		parameters[name] = parameters[name][:min(len(parameters[name]), longestName)]
	}
	if r := parameters["replication"]; r != "" && r != "false" && r != "off" && r != "0" && r != "no" {
		return nil, sqlstate.New(sqlstate.FeatureNotSupported,
			"replication is not available through the proxy")
	}
	return parameters, nil
}

// newestMinor is the newest version 3.x of the protocol that is spoken: the
// server's own, which clients may infer from the server's version. 3.2 differs
// from 3.0, which all speak, in the length of cancel keys only.
func (p *Proxy) newestMinor() int {
	snapshot, err := p.catalog.Snapshot()
	if err != nil {
		return 0
	}
	return min(snapshot.Protocol, 2)
}

// negotiate answers a client that asked for more than is spoken.
func negotiate(w io.Writer, g *greeting, newest int) error {
	var unknown []string
	for name := range g.parameters {
		if strings.HasPrefix(name, "_pq_.") {
			unknown = append(unknown, name)
			delete(g.parameters, name)
		}
	}
	if g.minor <= newest && unknown == nil {
		return nil
	}
	g.minor = min(g.minor, newest)
	body := binary.BigEndian.AppendUint32(nil, uint32(majorVersion<<16|g.minor))
	body = binary.BigEndian.AppendUint32(body, uint32(len(unknown)))
	for _, name := range unknown {
		body = append(append(body, name...), 0)
	}
	message := binary.BigEndian.AppendUint32([]byte{'v'}, uint32(len(body)+4))
	_, err := w.Write(append(message, body...))
	return err
}

// gone says whether a connection ended rather than failed.
func gone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

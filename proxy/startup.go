package proxy

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgproto3/v2"
	decode "github.com/jackc/pgx/v5/pgproto3"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// Codes of the first packet (PostgreSQL, chapter "Message Formats").
const (
	codeCancel   = 80877102
	codeSSL      = 80877103
	codeGSS      = 80877104
	majorVersion = 3
)

// maxStartup is the longest first packet that PostgreSQL accepts.
const maxStartup = 10000

// greeting is what a client's first packets come to: a session to start, or a
// query to cancel.
type greeting struct {
	parameters map[string]string
	minor      int    // of the protocol version asked for
	cancel     []byte // process and secret key of a cancel request
}

// greet reads the first packets of a connection. Encryption is declined; a
// client may ask for each kind once.
func greet(conn net.Conn) (*greeting, error) {
	asked := make(map[uint32]bool)
	for {
		code, body, err := readStartup(conn)
		if err != nil {
			return nil, err
		}
		switch code {
		case codeSSL, codeGSS:
			if asked[code] {
				return nil, sqlstate.New(sqlstate.ProtocolViolation, "encryption was requested twice")
			}
			asked[code] = true
			if _, err := conn.Write([]byte{'N'}); err != nil {
				return nil, err
			}
			continue
		case codeCancel:
			return &greeting{cancel: body}, nil
		}
		if code>>16 != majorVersion {
			return nil, sqlstate.New(sqlstate.FeatureNotSupported, "unsupported frontend protocol")
		}
		parameters, err := startupParameters(body)
		if err != nil {
			return nil, err
		}
		return &greeting{parameters: parameters, minor: int(code & 0xffff)}, nil
	}
}

// readStartup reads one packet without a type: its code and what follows.
func readStartup(conn net.Conn) (uint32, []byte, error) {
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

// startupParameters reads pairs of zero-terminated strings.
func startupParameters(body []byte) (map[string]string, error) {
	malformed := sqlstate.New(sqlstate.ProtocolViolation, "invalid startup packet layout: expected terminator as last byte")
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
		return nil, sqlstate.New(sqlstate.InvalidAuthorization, "no PostgreSQL user name specified in startup packet")
	}
	if parameters["database"] == "" {
		parameters["database"] = parameters["user"]
	}
	if r := parameters["replication"]; r != "" && r != "false" && r != "off" && r != "0" && r != "no" {
		return nil, sqlstate.New(sqlstate.FeatureNotSupported, "replication is not available through the proxy")
	}
	return parameters, nil
}

// negotiate answers a client that asked for more than protocol 3.0.
func negotiate(w io.Writer, g *greeting) error {
	var unknown []string
	for name := range g.parameters {
		if strings.HasPrefix(name, "_pq_.") {
			unknown = append(unknown, name)
			delete(g.parameters, name)
		}
	}
	if g.minor == 0 && unknown == nil {
		return nil
	}
	body := binary.BigEndian.AppendUint32(nil, majorVersion<<16)
	body = binary.BigEndian.AppendUint32(body, uint32(len(unknown)))
	for _, name := range unknown {
		body = append(append(body, name...), 0)
	}
	message := binary.BigEndian.AppendUint32([]byte{'v'}, uint32(len(body)+4))
	_, err := w.Write(append(message, body...))
	return err
}

// authenticate runs SCRAM-SHA-256 with a client (PostgreSQL, chapter "SASL
// Authentication") and returns the keys that its proof gave away.
func authenticate(conn net.Conn, in *frames, stored verifier) (*scramKeys, error) {
	if err := send(conn, &pgproto3.AuthenticationSASL{AuthMechanisms: []string{scramMechanism}}); err != nil {
		return nil, err
	}
	frame, err := passwordFrame(in)
	if err != nil {
		return nil, err
	}
	var initial decode.SASLInitialResponse
	if err := initial.Decode(frame[headerBytes:]); err != nil {
		return nil, sqlstate.New(sqlstate.ProtocolViolation, "malformed SASL response")
	}
	if initial.AuthMechanism != scramMechanism {
		return nil, sqlstate.New(sqlstate.ProtocolViolation, "client selected an invalid SASL authentication mechanism")
	}
	exchange, challenge, err := stored.begin(string(initial.Data))
	if err != nil {
		return nil, err
	}
	if err := send(conn, &pgproto3.AuthenticationSASLContinue{Data: []byte(challenge)}); err != nil {
		return nil, err
	}
	if frame, err = passwordFrame(in); err != nil {
		return nil, err
	}
	keys, signature, err := exchange.finish(string(frame[headerBytes:]))
	if err != nil {
		return nil, err
	}
	return keys, send(conn, &pgproto3.AuthenticationSASLFinal{Data: []byte(signature)})
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
	if len(frame) > maxStartup {
		return nil, sqlstate.New(sqlstate.ProtocolViolation, "authentication response is too long")
	}
	return frame, nil
}

// gone says whether a connection ended rather than failed.
func gone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

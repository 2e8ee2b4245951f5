package proxy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/proxy/internal/scram"
)

// noPolicies is a catalog in which nothing is protected.
type noPolicies struct{ Catalog }

func (noPolicies) Snapshot() (*catalog.Snapshot, error) {
	return catalog.NewSnapshot(1, nil, nil), nil
}

// fuzzMessage sends one message of a type with any body, after a statement, a
// portal and a begun transaction, and before a Sync. Nothing panics; what is
// forwarded are whole messages of types that clients send; a session that ends
// does so because the protocol is broken.
func fuzzMessage(f *testing.F, kind byte, bodies ...string) {
	for _, body := range append(bodies, "", "\x00", "\x00\x00", "\xff\xff\xff\xff", "name",
		"name\x00") {
		f.Add([]byte(body))
	}
	before := append(framed('Q', []byte("BEGIN\x00")), framed('P', []byte("name\x00SELECT "+
		"1\x00\x00\x00"))...)
	before = append(before, framed('B', []byte("p\x00name\x00\x00\x00\x00\x00\x00\x00"))...)
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, reader := range []bool{false, true} {
			stream := append(bytes.Clone(before), framed(kind, body)...)
			stream = append(stream, framed('S', nil)...)
			s, toServer, _ := bareSession(bytes.NewReader(stream), nil)
			s.proxy.catalog, s.principal.Reader = noPolicies{}, reader
			var known *sqlstate.Error
			if err := func() error {
				for {
					frame, err := s.in.next()
					if err != nil {
						return err
					}
					if err := s.statement(t.Context(), frame); err != nil {
						return err
					}
				}
			}(); err != io.EOF && (!errors.As(err, &known) || known.Code != sqlstate.ProtocolViolation) {
				t.Errorf("the session ended with %v", err)
			}
			_ = s.up.Flush()
			for rest := toServer.Bytes(); len(rest) > 0; {
				if bytes.IndexByte([]byte(messagesOfClients), rest[0]) < 0 || len(rest) < headerBytes {
					t.Fatalf("forwarded %q", rest)
				}
				length := int(binary.BigEndian.Uint32(rest[1:])) + 1
				if length < headerBytes || length > len(rest) {
					t.Fatalf("forwarded a message of %d bytes where %d are left", length, len(rest))
				}
				rest = rest[length:]
			}
			s.expect.drain()
		}
	})
}

func FuzzQuery(f *testing.F) {
	fuzzMessage(f, 'Q', "SELECT 1\x00", "BEGIN; SELECT 1; COMMIT\x00", "DEALLOCATE ALL\x00",
		"FETCH 3 IN c\x00", "CLOSE c\x00", "SELECT '\x00'\x00", "COPY t FROM STDIN\x00", ";;\x00",
		"DISCARD ALL\x00")
}

func FuzzParse(f *testing.F) {
	fuzzMessage(f, 'P', "\x00SELECT $1\x00\x00\x01\x00\x00\x00\x17", "name\x00SELECT 1\x00\x00\x00",
		"tailor_own_1\x00SELECT 1\x00\x00\x00", "\x00SELECT 1\x00\x7f\xff",
		"\x00DEALLOCATE name\x00\x00\x00")
}

func FuzzBind(f *testing.F) {
	fuzzMessage(f, 'B', "\x00name\x00\x00\x00\x00\x00\x00\x00",
		"p\x00name\x00\x00\x01\x00\x01\x00\x01\x00\x00\x00\x01x\x00\x01\x00\x01",
		"\x00tailor_own_1\x00\x00\x00\x00\x00\x00\x00", "\x00\x00\xff\xff",
		"\x00name\x00\x00\x00\x00\x01\x7f\xff\xff\xff")
}

func FuzzDescribe(f *testing.F) {
	fuzzMessage(f, 'D', "Sname\x00", "Pp\x00", "S\x00", "Xname\x00", "Stailor_own_1\x00",
		"Sa\x00b\x00")
}

func FuzzExecute(f *testing.F) {
	fuzzMessage(f, 'E', "p\x00\x00\x00\x00\x00", "p\x00\xff\xff\xff\xff", "\x00\x00\x00\x00\x01",
		"tailor_own_1\x00\x00\x00\x00\x00")
}

func FuzzClose(f *testing.F) {
	fuzzMessage(f, 'C', "Sname\x00", "Pp\x00", "S\x00", "Xname\x00", "Ptailor_own_1\x00",
		"Sa\x00b\x00")
}

func FuzzFunctionCall(f *testing.F) {
	fuzzMessage(f, 'F',
		"\x00\x00\x03\xbb\x00\x01\x00\x01\x00\x01\x00\x00\x00\x04\x00\x00\x00\x01\x00\x01",
		"\x00\x00\x00\x00\xff\xff")
}

func FuzzSync(f *testing.F)     { fuzzMessage(f, 'S') }
func FuzzFlush(f *testing.F)    { fuzzMessage(f, 'H') }
func FuzzCopyData(f *testing.F) { fuzzMessage(f, 'd', "1\tx\n", "PGCOPY\n\xff\r\n\x00", "\\.\n") }
func FuzzCopyDone(f *testing.F) { fuzzMessage(f, 'c') }
func FuzzCopyFail(f *testing.F) { fuzzMessage(f, 'f', "given up\x00") }

// FuzzPassword sends anything in the place of either SASL message.
func FuzzPassword(f *testing.F) {
	f.Add([]byte("SCRAM-SHA-256\x00\x00\x00\x00\x20n,,n=,r=rOprNGfwEbeRWgbNEkqO"),
		[]byte("c=biws,r=rOprNGfwEbeRWgbNEkqO,p=AA=="))
	f.Add([]byte("SCRAM-SHA-256-PLUS\x00\xff\xff\xff\xff"), []byte(""))
	f.Add([]byte("SCRAM-SHA-256\x00\x7f\xff\xff\xffn,,"), []byte("\x00"))
	f.Fuzz(func(t *testing.T, initial, last []byte) {
		client, server := net.Pipe()
		go func() {
			_, _ = client.Write(append(framed('p', initial), framed('p', last)...))
			_ = client.Close()
		}()
		go func() { _, _ = io.Copy(io.Discard, client) }()
		_ = server.SetDeadline(time.Now().Add(10 * time.Second))
		in := newFrames(server)
		in.limit = maxStartup
		exchange, err := challenge(server, in, scram.MockVerifier([]byte("secret"), "somebody"), nil)
		if err == nil {
			var proof []byte
			if proof, err = passwordFrame(in); err == nil {
				var keys *scram.Keys
				if keys, _, err = conclude(proof, exchange); err == nil {
					t.Errorf("%q and %q were let in with %v", initial, last, keys)
				}
			}
		}
		_ = server.Close()
	})
}

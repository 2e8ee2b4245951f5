package proxy

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"
	"time"
)

// messagesOfClients and messagesOfServers are the types that either side sends.
const (
	messagesOfClients = "QPBEDCSHdcfFpX"
	messagesOfServers = "RSKZTDCIEnst123GHWdcANVv"
)

func seedMessages(f *testing.F, kinds string) {
	for i := range len(kinds) {
		for _, body := range []string{
			"", "\x00", "name\x00", "a\x00SELECT 1\x00\x00\x00", "S\x00",
			"SELECT 2\x00", "SERROR\x00C22012\x00Mx\x00\x00", "I",
		} {
			f.Add(framed(kinds[i], []byte(body)))
			f.Add(append(framed('P', []byte("\x00SELECT 1\x00\x00\x00")), framed(kinds[i], []byte(body))...))
		}
		f.Add([]byte{kinds[i], 0, 0, 0, 0})
		f.Add([]byte{kinds[i], 0x7f, 0xff, 0xff, 0xff, 1})
		f.Add([]byte{kinds[i], 0, 0, 1, 0, 1})
	}
}

// FuzzStatements sends anything from the client's side: nothing panics, and
// what is forwarded are whole messages that the client sent, or less.
func FuzzStatements(f *testing.F) {
	seedMessages(f, messagesOfClients)
	f.Fuzz(func(t *testing.T, stream []byte) {
		s, toServer, _ := bareSession(bytes.NewReader(stream), nil)
		_ = s.statements(t.Context())
		if toServer.Len() > len(stream) {
			t.Errorf("%d bytes came, %d were forwarded", len(stream), toServer.Len())
		}
		s.expect.drain()
	})
}

// FuzzAnswers sends anything from the server's side to a client that has asked
// something: nothing panics.
func FuzzAnswers(f *testing.F) {
	seedMessages(f, messagesOfServers)
	f.Fuzz(func(_ *testing.T, stream []byte) {
		s, _, _ := bareSession(nil, bytes.NewReader(stream))
		for _, kind := range []byte("QPBDESQ") {
			s.expect.add(&pendingReply{
				kind: kind, started: time.Now(), record: s.record("SELECT 1"),
				released: kind == 'Q',
			})
		}
		_ = s.answers(context.Background())
		s.expect.drain()
	})
}

func FuzzStartup(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x10\x00\x03\x00\x00user\x00x\x00\x00"))
	f.Add([]byte("\x00\x00\x00\x08\x04\xd2\x16\x2f\x00\x00\x00\x08\x04\xd2\x16\x30"))
	f.Add([]byte("\x16\x03\x01"))
	f.Fuzz(func(_ *testing.T, stream []byte) {
		client, server := net.Pipe()
		go func() {
			_, _ = client.Write(stream)
			_ = client.Close()
		}()
		go func() { _, _ = io.Copy(io.Discard, client) }()
		_, _ = greet(context.Background(), server, nil, false)
		_ = server.Close()
	})
}

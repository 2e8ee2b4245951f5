package proxy

import (
	"bytes"
	"context"
	"hash/maphash"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/audit"
)

// silence takes records and keeps none.
type silence struct{}

func (silence) Append(context.Context, *audit.Record) error { return nil }
func (silence) Finish(*audit.Record, audit.Outcome)         {}
func (silence) RefusedLogin(*audit.Record)                  {}

// someone is a client without a connection.
type someone struct{ net.Conn }

func (someone) RemoteAddr() net.Addr { return &net.TCPAddr{} }

// bareSession is a session of an administrator that reads from the sources.
// What it forwards is kept.
func bareSession(client, server io.Reader) (s *session, toServer, toClient *bytes.Buffer) {
	p := &Proxy{audit: silence{}, log: slog.New(slog.DiscardHandler), clock: time.Now, seed: maphash.MakeSeed()}
	p.seats = newSeats(1, 0)
	p.meters = newMeters(p)
	toServer, toClient = &bytes.Buffer{}, &bytes.Buffer{}
	s = &session{
		proxy: p, client: someone{}, principal: &catalog.Principal{Name: "dba"}, log: p.log,
		server: &upstream{frames: newFrames(server)}, in: newFrames(client),
		out: &sink{to: toClient, meter: p.meters.toClients}, up: &sink{to: toServer, meter: p.meters.toServer},
		tally: tally{seed: p.seed},
		names: names{statements: make(map[string]*prepared), portals: make(map[string]*portal)},
	}
	s.in.streamed, s.server.frames.streamed = 'd', 'D'
	s.expect.dropped = func(e *expected) { s.finish(e, audit.Failed, "") }
	return s, toServer, toClient
}

// messagesOfClients and messagesOfServers are the types that either side sends.
const (
	messagesOfClients = "QPBEDCSHdcfFpX"
	messagesOfServers = "RSKZTDCIEnst123GHWdcANVv"
)

func seedMessages(f *testing.F, kinds string) {
	for i := range len(kinds) {
		for _, body := range []string{"", "\x00", "name\x00", "a\x00SELECT 1\x00\x00\x00", "S\x00", "SELECT 2\x00", "SERROR\x00C22012\x00Mx\x00\x00", "I"} {
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
			s.expect.add(&expected{kind: kind, started: time.Now(), record: s.record("SELECT 1"), released: kind == 'Q'})
		}
		_ = s.answers()
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

func TestUntouchedMessagesAreOneWrite(t *testing.T) {
	var stream []byte
	for range 5 {
		stream = append(stream, framed('D', []byte("row"))...)
	}
	writes := &countedWrites{}
	s, _, _ := bareSession(nil, bytes.NewReader(stream))
	s.out.to = writes
	_ = s.answers()
	if writes.n != 1 || !bytes.Equal(writes.all, stream) {
		t.Errorf("%d writes of %q", writes.n, writes.all)
	}
}

type countedWrites struct {
	n   int
	all []byte
}

func (w *countedWrites) Write(p []byte) (int, error) {
	w.n++
	w.all = append(w.all, p...)
	return len(p), nil
}

func TestALongRowIsPassedOnInPieces(t *testing.T) {
	row := framed('D', bytes.Repeat([]byte("x"), 10*bufferBytes))
	stream := append(append(framed('T', []byte("\x00\x00")), row...), framed('Z', []byte("I"))...)
	s, _, toClient := bareSession(nil, bytes.NewReader(stream))
	_ = s.answers()
	if !bytes.Equal(toClient.Bytes(), stream) {
		t.Errorf("%d bytes of %d", toClient.Len(), len(stream))
	}
	if n := len(s.server.frames.buffer); n > bufferBytes {
		t.Errorf("%d bytes were set aside", n)
	}
}

func TestASinkKeepsTheOrderOfWhatPassesAndWhatIsWritten(t *testing.T) {
	var out bytes.Buffer
	w := &sink{to: &out, meter: newMeters(&Proxy{seats: newSeats(1, 0)}).toClients}
	source := []byte("aabbccdd")
	_ = w.pass(source[0:2])
	_ = w.pass(source[2:4])
	_, _ = w.Write([]byte("XX"))
	_ = w.pass(source[6:8]) // not behind the run
	_ = w.pass(source[4:6])
	if err := w.Flush(); err != nil || out.String() != "aabbXXddcc" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestRunsBeyondTheFirstAreCountedByShape(t *testing.T) {
	tl := tally{seed: maphash.MakeSeed()}
	now := time.Now()
	texts := []string{"SELECT  1", "SELECT 22", "SELECT\n3.5"}
	var counted *shape
	for i := range recordsOfAShape + 7 {
		s := tl.counts(texts[i%3], now)
		if (s != nil) != (i >= recordsOfAShape) {
			t.Fatalf("run %d: counted %t", i, s != nil)
		}
		if s != nil {
			counted = s
			tl.ended(s, i != recordsOfAShape, 2, time.Millisecond)
		}
	}
	if counted == nil || tl.counts("SELECT a1", now) != nil || tl.counts("SELECT 'it''s', 1", now) != nil {
		t.Error("statements of another shape are counted with it")
	}
	records := tl.take(now, func(at time.Time, text string) *audit.Record { return audit.NewRecord(at, text) })
	if len(records) != 1 || records[0].record.Runs != 6 || records[0].outcome.Rows != 12 || records[0].outcome.Duration != 6*time.Millisecond {
		t.Errorf("%d records, the first %+v", len(records), records[0])
	}
	if records := tl.take(now, nil); len(records) != 0 {
		t.Error("counted twice")
	}
}

func TestShapesDifferInAllButLiterals(t *testing.T) {
	tl := tally{seed: maphash.MakeSeed()}
	cases := []struct {
		a, b string
		same bool
	}{
		{"SELECT * FROM t WHERE n = 1", "SELECT * FROM t WHERE n =  2", true},
		{"SELECT 'a'", "SELECT 'bcd'", true},
		{"SELECT t1", "SELECT t2", false},
		{`SELECT "1"`, `SELECT "2"`, false},
		{`SELECT E'\'', x`, `SELECT E'\'', y`, false},
		{"SELECT $$'$$, a, $$'$$", "SELECT $$'$$, b, $$'$$", false},
		{"SELECT 1 -- '\n, a -- '", "SELECT 1 -- '\n, b -- '", false},
		{"SELECT 1 /* ' */, a /* ' */", "SELECT 1 /* ' */, b /* ' */", false},
		{"SELECT 'open", "SELECT 'other", false},
	}
	for _, c := range cases {
		if got := tl.key(c.a) == tl.key(c.b); got != c.same {
			t.Errorf("%q and %q: the same %t", c.a, c.b, got)
		}
	}
}

func TestOnlyPlainQueriesLeaveSettingsBeyondDoubt(t *testing.T) {
	for text, want := range map[string]bool{
		"SELECT 1": true, " select n from t where a = 'x'; ": true, "TABLE t": true, "": false, "SELECT f(1)": false,
		"SELECT 1; SELECT 2": false, "BEGIN": false, "WITH x AS (SELECT 1) TABLE x": false, "EXECUTE s": false, "selection 1": false,
	} {
		if plain(text) != want {
			t.Errorf("%q: %t", text, !want)
		}
	}
}

func TestSeatsAreGivenInTheOrderOfArrival(t *testing.T) {
	s := newSeats(1, 1)
	if err := s.take(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := s.take(t.Context(), time.Millisecond); err == nil {
		t.Error("a second seat")
	}
	order := make(chan int, 2)
	for i := range 2 {
		go func() {
			if s.take(context.Background(), time.Minute) == nil {
				order <- i
			}
		}()
		for s.queued() != i+1 {
			time.Sleep(time.Millisecond)
		}
	}
	s.leave()
	if first := <-order; first != 0 {
		t.Error("the second was served first")
	}
	s.resize(2, 1)
	if <-order != 1 {
		t.Error("more seats, and nobody was let in")
	}
	if s.enter("a") != nil || s.enter("a") == nil || s.enter("b") != nil {
		t.Error("the limit of a principal is not kept")
	}
}

func TestProxyHeadersThatLieAreRefused(t *testing.T) {
	for header, want := range map[string]string{
		"PROXY TCP4 192.0.2.7 192.0.2.1 5555 5432\r\n":     "192.0.2.7:5555",
		"PROXY TCP6 2001:db8::7 2001:db8::1 5555 5432\r\n": "[2001:db8::7]:5555",
		"PROXY UNKNOWN what ever\r\n":                      "pipe",
		"PROXY TCP4 192.0.2.7 192.0.2.1 x 5432\r\n":        "",
		"PROXY TCP4 nowhere 192.0.2.1 5555 5432\r\n":       "",
		"GET / HTTP/1.1\r\n\r\n":                           "",
		"PROXY TCP4 " + string(make([]byte, 200)):          "",
		proxySignature + "\x20\x00\x00\x00":                "pipe",
		proxySignature + "\x21\x11\x00\x02ab":              "",
		proxySignature + "\x31\x11\x00\x00":                "",
	} {
		client, server := net.Pipe()
		go func() {
			_, _ = io.WriteString(client, header)
			_ = client.Close()
		}()
		conn, err := readProxyHeader(server)
		got := ""
		if err == nil {
			got = conn.RemoteAddr().String()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", header, got, want)
		}
		_ = server.Close()
	}
}

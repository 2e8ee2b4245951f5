package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"
)

// onLoop is a session on a loop, with the ends that its client and its server
// have.
type onLoop struct {
	*session
	client, server net.Conn
	left           chan bool // gets whether the session is over when the loop is done with it
	err            error     // why it is over
	departures     atomic.Int32
	ctx            context.Context
}

// takesTurns puts a session of an administrator on a loop.
func takesTurns(t *testing.T) *onLoop {
	t.Helper()
	s, _, _ := bareSession(nil, nil)
	o := &onLoop{session: s, left: make(chan bool, 1)}
	var client net.Conn
	o.client, client = sockets(t)
	o.server, s.server.conn = sockets(t)
	s.client, s.loop = client, testLoop(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	s.stop, o.ctx = cancel, ctx
	context.AfterFunc(ctx, func() { s.interrupt(context.Cause(ctx)) })
	go func() {
		over, err := s.takeTurns(ctx)
		o.err = err
		o.left <- over
	}()
	t.Cleanup(func() { _, _ = o.client.Close(), o.server.Close() })
	return o
}

// testLoop is a loop until the test ends.
func testLoop(t *testing.T) *loop {
	t.Helper()
	l, err := newLoop()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	return l
}

// sockets are both ends of a connection.
func sockets(t *testing.T) (far, near net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	if far, err = net.Dial("tcp", listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if near, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	_ = far.SetDeadline(time.Now().Add(30 * time.Second))
	return far, near
}

func wantBytes(t *testing.T, from io.Reader, want []byte) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(from, got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d, %v: %.60q", n, len(want), err, got[:n])
	}
}

func TestSessionsOnALoopForwardBothWays(t *testing.T) {
	o := takesTurns(t)
	query := framed('Q', []byte("SELECT 1\x00"))
	answer := append(framed('C', []byte("SELECT 1\x00")), framed('Z', []byte("I"))...)
	for range 3 {
		_, _ = o.client.Write(query[:7]) // a message may come in pieces
		time.Sleep(time.Millisecond)
		_, _ = o.client.Write(query[7:])
		wantBytes(t, o.server, query)
		_, _ = o.server.Write(answer)
		wantBytes(t, o.client, answer)
	}
	_, _ = o.client.Write(framed('X', nil))
	if over := <-o.left; !over || o.err != errLeft {
		t.Errorf("over: %v, %v", over, o.err)
	}
}

func TestASlowReceiverTakesASessionOffTheLoopAndLosesNothing(t *testing.T) {
	o := takesTurns(t)
	row := framed('D', bytes.Repeat([]byte("x"), 3000))
	long := framed('D', bytes.Repeat([]byte("y"), 3*bufferBytes))
	var stream []byte
	for range 5000 {
		stream = append(stream, row...)
	}
	stream = append(append(stream, long...), framed('C', []byte("SELECT 5001\x00"))...)
	stream = append(stream, framed('Z', []byte("I"))...)
	o.expect.add(&pendingReply{kind: 'Q'})
	go func() { _, _ = o.server.Write(stream) }()
	if over := <-o.left; over { // nobody has read anything yet
		t.Fatalf("the session is over: %v", o.err)
	}
	go func() { _ = o.answers(t.Context()) }()
	wantBytes(t, o.client, stream)
}

func TestALongStatementTakesASessionOffTheLoopBeforeItIsLookedAt(t *testing.T) {
	o := takesTurns(t)
	short := framed('P', []byte("\x00SELECT 1\x00\x00\x00"))
	long := framed('Q', append(bytes.Repeat([]byte(" "), maxStatement), 0))
	_, _ = o.client.Write(append(bytes.Clone(short), long...))
	if over := <-o.left; over {
		t.Fatalf("the session is over: %v", o.err)
	}
	if e := o.expect.head(); e == nil || e.kind != 'P' {
		t.Errorf("%+v is to be answered, want the first message", e)
	}
	go func() { _ = o.statements(t.Context()) }()
	wantBytes(t, o.server, append(short, long...))
}

func TestALoopSeesTheEndOfEitherSide(t *testing.T) {
	for claim, end := range map[string]func(*onLoop){
		"the client":          func(o *onLoop) { _ = o.client.Close() },
		"the server":          func(o *onLoop) { _ = o.server.Close() },
		"the client half way": func(o *onLoop) { _ = o.client.(*net.TCPConn).CloseWrite() },
		"the client in a message": func(o *onLoop) {
			_, _ = o.client.Write([]byte("Q\x00"))
			_ = o.client.Close()
		},
	} {
		t.Run(claim, func(t *testing.T) {
			o := takesTurns(t)
			end(o)
			if over := <-o.left; !over || !gone(o.err) {
				t.Errorf("over: %v, %v", over, o.err)
			}
		})
	}
}

func TestASessionThatIsEndedLeavesTheLoop(t *testing.T) {
	o := takesTurns(t)
	flush := framed('H', nil)
	_, _ = o.client.Write(flush)
	wantBytes(t, o.server, flush) // it is on the loop
	o.stop(errShutdown)
	if over := <-o.left; !over {
		t.Error("the session goes on")
	}
	_ = o.session.client.SetDeadline(time.Now().Add(time.Second))
	if _, err := o.session.client.Write([]byte("farewell")); err != nil {
		t.Errorf("its client cannot be told: %v", err)
	}
	wantBytes(t, o.client, []byte("farewell"))
}

func TestWhatIsAtHandKeepsASessionOffTheLoop(t *testing.T) {
	s, _, _ := bareSession(nil, nil)
	client, near := sockets(t)
	_, s.server.conn = sockets(t)
	_, _ = client.Write(append(framed('p', []byte("proof")), framed('Q', []byte("SELECT 1\x00"))...))
	s.loop, s.client, s.in = testLoop(t), near, newFrames(near)
	if _, err := s.in.next(); err != nil {
		t.Error(err)
	}
	if over, err := s.takeTurns(t.Context()); over || err != nil {
		t.Errorf("over: %v, %v", over, err)
	}
	if frame, err := s.in.next(); err != nil || frame[0] != 'Q' {
		t.Errorf("then came %q, %v", frame, err)
	}
}

// TestNothingIsWatchedThatHasLeft has sessions that leave the loop as soon as they
// are on it.
func TestNothingIsWatchedThatHasLeft(t *testing.T) {
	l := testLoop(t)
	long := framed('Q', append(bytes.Repeat([]byte(" "), maxStatement), 0))
	for range 300 {
		s, _, _ := bareSession(nil, nil)
		var client net.Conn
		client, s.client = sockets(t)
		_, s.server.conn = sockets(t)
		s.loop = l
		_, _ = client.Write(long)
		if over, _ := s.takeTurns(t.Context()); over {
			t.Error("the session is over")
		}
	}
	watched, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", l.poll))
	if n := bytes.Count(watched, []byte("tfd:")); err != nil || n != 1 {
		t.Errorf("%d descriptors are watched, want the pipe's, %v", n, err)
	}
}

func TestManyMessagesAtOnceTakeASessionOffTheLoop(t *testing.T) {
	o := takesTurns(t)
	all := bytes.Repeat(framed('H', nil), maxMessages+5)
	_, _ = o.client.Write(all)
	if over := <-o.left; over {
		t.Fatalf("the session is over: %v", o.err)
	}
	go func() { _ = o.statements(t.Context()) }()
	wantBytes(t, o.server, all)
}

// TestALongMessageThatHasToWaitStaysWhole: what is inside of a message that is handed out in
// pieces must not be taken for messages, where the session leaves the loop before the first.
func TestALongMessageThatHasToWaitStaysWhole(t *testing.T) {
	o := takesTurns(t)
	data := framed('d', bytes.Repeat(framed('Q', []byte("SELECT 1\x00")), bufferBytes/4))
	after := framed('S', nil)
	o.expect.owed.crowded.Store(true)
	go func() { _, _ = o.client.Write(append(data, after...)) }()
	if over := <-o.left; over {
		t.Fatal(o.err)
	}
	var got []byte
	for len(got) < len(data) {
		piece, err := o.in.next()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, piece...)
	}
	if !bytes.Equal(got, data) || o.in.inside() {
		t.Errorf("%d bytes of %d, inside: %t", len(got), len(data), o.in.inside())
	}
	if next, err := o.in.next(); err != nil || !bytes.Equal(next, after) {
		t.Errorf("behind it comes %q, %v", next, err)
	}
}

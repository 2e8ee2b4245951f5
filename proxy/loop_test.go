package proxy

import (
	"context"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"time"
)

// TestASessionThatWasAskedIsNotTaken ends one between its way to the loop and its
// first turn.
func TestASessionThatWasAskedIsNotTaken(t *testing.T) {
	s, _, _ := bareSession(nil, nil)
	_, s.client = sockets(t)
	_, s.server.conn = sockets(t)
	l := testLoop(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	turn := &loopSession{session: s, loop: l, ctx: ctx, over: make(chan struct{})}
	if !s.board(turn) {
		t.Fatal("the session does not come to the loop")
	}
	cancel(errShutdown)
	s.interrupt(errShutdown)
	l.post(func() { l.add(turn) })
	<-turn.over
	if turn.end != errAsked || turn.taken {
		t.Errorf("taken: %v, %v", turn.taken, turn.end)
	}
	if err := s.alight(turn); err != nil {
		t.Error(err)
	}
	_, _ = s.client.Close(), s.server.conn.Close()
}

// TestConnectionsThatCannotBeGivenBackEndTheSession has one become no connection.
func TestConnectionsThatCannotBeGivenBackEndTheSession(t *testing.T) {
	s, _, _ := bareSession(nil, nil)
	far, near := sockets(t)
	s.client = near
	_, s.server.conn = sockets(t)
	turn := &loopSession{session: s, loop: testLoop(t), ctx: t.Context()}
	if !s.board(turn) {
		t.Fatal("the session does not come to the loop")
	}
	other, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	if err := syscall.Dup3(int(other.Fd()), int(turn.server), syscall.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	if err := s.alight(turn); err == nil {
		t.Error("the session goes on with one connection")
	}
	if _, err := far.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the client's connection is open, %v", err)
	}
	if _, err := s.client.Write([]byte("x")); err == nil {
		t.Error("what is lost can be written to")
	}
}

// answersQueries plays the server.
func (o *onLoop) answersQueries() {
	frames := newFrames(o.server)
	for {
		frame, err := frames.next()
		if err != nil {
			return
		}
		if frame[0] == 'Q' {
			_, _ = o.server.Write(plainAnswer)
		}
	}
}

// TestALoopHoldsNobodyUp collects garbage, for which every goroutine has to stop,
// while a loop waits at the ready. Where another program has the processor a
// collection waits for that one, too, so the quarter that waits least is what
// tells: a loop that holds it up does so each time, for the whole of its attention.
func TestALoopHoldsNobodyUp(t *testing.T) {
	o := takesTurns(t)
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(attention / 5):
				_, _ = o.client.Write(plainQuery)
			}
		}
	}()
	go o.answersQueries()
	go func() { _, _ = io.Copy(io.Discard, o.client) }()
	for range len(runtime.MemStats{}.PauseNs) { // as many as are remembered
		runtime.GC()
	}
	collections := debug.GCStats{PauseQuantiles: make([]time.Duration, 5)}
	debug.ReadGCStats(&collections)
	if pause := collections.PauseQuantiles[1]; pause > attention/2 {
		t.Errorf("three of four collections stop the world for %v or more", pause)
	}
}

// TestALoopFallsAsleep has a session whose client says nothing.
func TestALoopFallsAsleep(t *testing.T) {
	o := takesTurns(t)
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	const silence = 300 * time.Millisecond
	for range 2 {
		before := used()
		time.Sleep(silence)
		if spent := used() - before; spent > silence/3 {
			t.Errorf("%v of %v were spent on waiting", spent, silence)
		}
		_, _ = o.client.Write(plainQuery)
		wantBytes(t, o.server, plainQuery)
		_, _ = o.server.Write(plainAnswer)
		wantBytes(t, o.client, plainAnswer)
	}
}

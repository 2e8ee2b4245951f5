package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"time"
)

// TestACourseReadsOnWhereverItIs has one echo on its loop, beside it, and back
// on it.
func TestACourseReadsOnWhereverItIs(t *testing.T) {
	far, near := sockets(t)
	ended := make(chan error, 1)
	begin(t, testLoop(t), near, func(c *course, s *socket) {
		buffer := make([]byte, 5)
		for _, move := range []func(){func() {}, c.leave, func() {}, func() { s.toDescriptor(); c.join() }, func() {}, c.leave} {
			move()
			if _, err := io.ReadFull(s, buffer); err != nil {
				ended <- err
				return
			}
			if _, err := s.Write(buffer); err != nil {
				ended <- err
				return
			}
		}
		ended <- s.Close()
	})
	for range 6 {
		for _, part := range []string{"he", "llo"} { // in pieces
			_, _ = far.Write([]byte(part))
			time.Sleep(time.Millisecond)
		}
		wantBytes(t, far, []byte("hello"))
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := far.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the connection is open, %v", err)
	}
}

func TestADeadlineEndsReadingOnALoop(t *testing.T) {
	_, near := sockets(t)
	l := testLoop(t)
	ended := make(chan error, 2)
	begin(t, l, near, func(_ *course, s *socket) {
		for range 2 { // it holds until it is set anew
			_ = s.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
			_, err := s.Read(make([]byte, 1))
			ended <- err
		}
		_ = s.Close()
	})
	for range 2 {
		select {
		case err := <-ended:
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("reading ended with %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("it reads on")
		}
	}
}

// TestAClosedSocketIsNeverAnothers has the number of a closed one taken by another
// before it is used once more.
func TestAClosedSocketIsNeverAnothers(t *testing.T) {
	_, near := sockets(t)
	done := make(chan struct{})
	begin(t, testLoop(t), near, func(c *course, s *socket) {
		defer close(done)
		_ = s.Close()
		other, err := os.Open(os.DevNull)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = other.Close() }()
		taken := int(s.descriptor)
		if err := syscall.Dup3(int(other.Fd()), taken, syscall.O_CLOEXEC); err != nil {
			t.Error(err)
			return
		}
		use := func() {
			if _, err := s.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
				t.Errorf("reading: %v", err)
			}
			if _, err := s.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
				t.Errorf("writing: %v", err)
			}
		}
		use()
		_ = s.Close()
		c.leave()
		use()
		_ = s.Close()
		if err := syscall.Close(taken); err != nil {
			t.Errorf("the other one was closed: %v", err)
		}
	})
	<-done
}

// TestWhatACourseDoesNotWantDoesNotWakeItsLoop has bytes come while the course
// waits for something else.
func TestWhatACourseDoesNotWantDoesNotWakeItsLoop(t *testing.T) {
	far, near := sockets(t)
	wanted := make(chan struct{})
	done := make(chan struct{})
	var before, after syscall.Rusage
	begin(t, testLoop(t), near, func(c *course, s *socket) {
		defer close(done)
		_, _ = s.Read(make([]byte, 1)) // from now on it is watched
		c.elsewhere(func() { <-wanted })
		if _, err := io.ReadFull(s, make([]byte, 3)); err != nil {
			t.Error(err)
		}
	})
	_, _ = far.Write([]byte("1234"))
	time.Sleep(20 * time.Millisecond)
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	time.Sleep(300 * time.Millisecond)
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	close(wanted)
	<-done
	if spent := time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()); spent > 100*time.Millisecond {
		t.Errorf("%v of 300 ms were spent on waiting", spent)
	}
}

// TestWhatLeftTheLoopComesBackAsItself has a session leave while it has its
// server's side already, and the number of that taken by another before it is back.
func TestWhatLeftTheLoopComesBackAsItself(t *testing.T) {
	s, _, _ := bareSession(nil, nil)
	_, client := sockets(t)
	far, near := sockets(t)
	s.server.conn = near
	done := make(chan struct{})
	begin(t, testLoop(t), client, func(c *course, client *socket) {
		defer close(done)
		s.course, s.client = c, client
		s.server.use(c.adopt(s.server.conn))
		before := s.server.conn.(*socket).descriptor
		c.leave()
		other, err := os.Open(os.DevNull)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = other.Close() }()
		if before != descriptor(other.Fd()) {
			_ = syscall.Dup3(int(other.Fd()), int(before), syscall.O_CLOEXEC)
			defer before.close()
		}
		turn := &turn{session: s, ctx: t.Context()}
		if !s.board(turn) {
			t.Error("the session does not come back")
			return
		}
		if turn.server.descriptor == before || turn.server.plain != nil {
			t.Errorf("the server's side is the number %d, which is another's", before)
		}
		if _, err := turn.server.descriptor.Write([]byte("hello")); err != nil {
			t.Error(err)
		}
		if n := len(c.sockets); n != 2 {
			t.Errorf("the course has %d sockets", n)
		}
		c.leave()
		_, _ = s.client.Close(), s.server.conn.Close()
	})
	<-done
	wantBytes(t, far, []byte("hello"))
}

// TestASessionThatWasAskedIsNotTaken ends one between its way to the loop and its
// first turn.
func TestASessionThatWasAskedIsNotTaken(t *testing.T) {
	s, _, _ := bareSession(nil, nil)
	_, client := sockets(t)
	_, s.server.conn = sockets(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	s.stop = cancel
	done := make(chan struct{})
	begin(t, testLoop(t), client, func(c *course, client *socket) {
		defer close(done)
		s.course, s.client = c, client
		turn := &turn{session: s, ctx: ctx}
		if !s.board(turn) {
			t.Error("the session does not come to the loop")
		}
		cancel(errShutdown)
		s.interrupt(errShutdown)
		if reason := c.takeTurns(turn); reason != errAsked || turn.taken {
			t.Errorf("taken: %v, %v", turn.taken, reason)
		}
		s.resume()
		c.leave()
		_, _ = s.client.Close(), s.server.conn.Close()
	})
	<-done
}

func TestAFaultElsewhereIsTheCoursesOwn(t *testing.T) {
	_, near := sockets(t)
	faults := make(chan any, 1)
	begin(t, testLoop(t), near, func(c *course, s *socket) {
		defer func() { faults <- recover(); _ = s.Close() }()
		c.elsewhere(func() { panic("a broken invariant") })
	})
	if fault := <-faults; fault != "a broken invariant" {
		t.Errorf("the course met with %v", fault)
	}
}

// TestALoopHoldsNobodyUp collects garbage, for which every goroutine has to stop,
// while a loop waits at the ready. Where another program has the processor a
// collection waits for that one, too, so the quarter that waits least is what
// tells: a loop that holds it up does so each time, for the whole of its attention.
func TestALoopHoldsNobodyUp(t *testing.T) {
	far, near := sockets(t)
	begin(t, testLoop(t), near, func(_ *course, s *socket) { _, _ = io.Copy(s, s) })
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop); _ = far.Close() })
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(attention / 5):
				_, _ = far.Write([]byte("x"))
			}
		}
	}()
	go func() { _, _ = io.Copy(io.Discard, far) }()
	for range len(runtime.MemStats{}.PauseNs) { // as many as are remembered
		runtime.GC()
	}
	collections := debug.GCStats{PauseQuantiles: make([]time.Duration, 5)}
	debug.ReadGCStats(&collections)
	if pause := collections.PauseQuantiles[1]; pause > attention/2 {
		t.Errorf("three of four collections stop the world for %v or more", pause)
	}
}

// TestALoopFallsAsleep lets a course wait for a client that says nothing.
func TestALoopFallsAsleep(t *testing.T) {
	far, near := sockets(t)
	begin(t, testLoop(t), near, func(_ *course, s *socket) { _, _ = io.Copy(s, s) })
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
		if _, err := far.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		wantBytes(t, far, []byte("x"))
	}
}

// TestADoorOpensAgain has no descriptors left for a while.
func TestADoorOpensAgain(t *testing.T) {
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := testLoop(t)
	came := make(chan net.Addr, 1)
	d, err := openDoor(l, listener, slog.New(slog.DiscardHandler), func(d descriptor, from net.Addr) { d.close(); came <- from })
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	probe, err := syscall.Open("/dev/null", syscall.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_ = syscall.Close(probe)
	client, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(client) }()
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: uint64(probe) + 1, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	restore := func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old) }
	defer restore()
	at := listener.Addr().(*net.TCPAddr)
	if err := syscall.Connect(client, &syscall.SockaddrInet4{Port: at.Port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-came:
		t.Error("somebody came in without a descriptor")
	case <-time.After(5 * pause):
	}
	restore()
	select {
	case from := <-came:
		if host := from.(*net.TCPAddr).IP; !bytes.Equal(host.To4(), []byte{127, 0, 0, 1}) {
			t.Errorf("somebody came from %v", from)
		}
	case <-time.After(10 * time.Second):
		t.Error("the door stays closed")
	}
}

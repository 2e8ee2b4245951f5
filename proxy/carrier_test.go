package proxy

import (
	"net"
	"runtime"
	"testing"
	"time"
)

// onTheLoop has a loop's goroutine do something.
func onTheLoop(l *loop, do func()) {
	done := make(chan struct{})
	l.post(func() {
		defer close(done)
		do()
	})
	<-done
}

// TestACarrierTakesTheNextCourse has courses end on the loop and beside it, and
// steps of one that has ended come late, when another is on its carrier.
func TestACarrierTakesTheNextCourse(t *testing.T) {
	l := testLoop(t)
	idle := func() (carriers []*carrier) {
		onTheLoop(l, func() { carriers = append(carriers, l.idle...) })
		return carriers
	}
	run := func(do func(*course)) (c *course) {
		_, near := sockets(t)
		ended := make(chan struct{})
		begin(t, l, near, func(own *course, s *socket) {
			defer close(ended)
			c = own
			do(own)
			_ = s.Close()
		})
		<-ended
		return c
	}
	if run(func(c *course) { c.leave() }); len(idle()) != 0 {
		t.Fatal("a carrier is kept that ended beside the loop")
	}
	first := run(func(*course) {})
	kept := idle()
	if len(kept) != 1 {
		t.Fatalf("%d carriers are kept, want 1", len(kept))
	}
	release, done := make(chan struct{}), false
	ended := make(chan struct{})
	_, near := sockets(t)
	begin(t, l, near, func(own *course, s *socket) {
		defer close(ended)
		if own.carrier != kept[0] {
			t.Error("a course has a new carrier")
		}
		own.elsewhere(func() {
			<-release
			done = true
		})
		if !done {
			t.Error("a course was resumed by a step of the one before")
		}
		_ = s.Close()
	})
	onTheLoop(l, first.step)
	close(release)
	<-ended
}

// TestALoopEndsItsCarriers counts goroutines before and after.
func TestALoopEndsItsCarriers(t *testing.T) {
	before := runtime.NumGoroutine()
	l, err := newLoop(func() net.KeepAliveConfig { return keepAlive(time.Minute) })
	if err != nil {
		t.Fatal(err)
	}
	const courses = maxIdle + 4
	farEnds := make([]net.Conn, courses)
	for i := range farEnds {
		far, near := sockets(t)
		farEnds[i] = far
		begin(t, l, near, func(_ *course, s *socket) {
			_, _ = s.Read(make([]byte, 1))
			_ = s.Close()
		})
	}
	onTheLoop(l, func() {}) // all wait
	for _, far := range farEnds {
		_ = far.Close()
	}
	kept := 0
	for start := time.Now(); kept < maxIdle && time.Since(start) < 10*time.Second; {
		onTheLoop(l, func() { kept = len(l.idle) })
	}
	time.Sleep(5 * time.Millisecond) // the last ones
	onTheLoop(l, func() { kept = len(l.idle) })
	if kept != maxIdle {
		t.Errorf("%d carriers are kept of %d courses, want %d", kept, courses, maxIdle)
	}
	l.close()
	for start := time.Now(); runtime.NumGoroutine() > before && time.Since(start) < 10*time.Second; {
		time.Sleep(time.Millisecond)
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines are left", after-before)
	}
}

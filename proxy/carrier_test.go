package proxy

import (
	"net"
	"runtime"
	"sync/atomic"
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

// TestACarrierTakesTheNextCourse has a course end, and a step of it come late, when
// another is on its carrier.
func TestACarrierTakesTheNextCourse(t *testing.T) {
	l := testLoop(t)
	_, one := sockets(t)
	_, two := sockets(t)
	sides := []*socket{socketOf(t, l, one), socketOf(t, l, two)}
	release, ended, done := make(chan struct{}), make(chan struct{}), false
	onTheLoop(l, func() {
		l.begin(sides[0], func(_ *course, s *socket) { _ = s.Close() })
		if len(l.idle) != 1 {
			t.Errorf("%d carriers are kept, want 1", len(l.idle))
			close(ended)
			return
		}
		kept := l.idle[0]
		l.begin(sides[1], func(c *course, s *socket) {
			defer close(ended)
			if c.carrier != kept {
				t.Error("a course has a new carrier")
			}
			c.elsewhere(func() {
				<-release
				done = true
			})
			if !done {
				t.Error("a course was resumed by a step of the one before")
			}
			_ = s.Close()
		})
		sides[0].course.step()
	})
	close(release)
	<-ended
}

func TestACarrierThatEndsBesideTheLoopIsNotKept(t *testing.T) {
	l := testLoop(t)
	_, near := sockets(t)
	ended := make(chan struct{})
	begin(t, l, near, func(c *course, s *socket) {
		c.leave()
		_ = s.Close()
		l.post(func() { close(ended) })
	})
	<-ended
	onTheLoop(l, func() {
		if len(l.idle) > 0 {
			t.Errorf("%d carriers are kept", len(l.idle))
		}
	})
}

// TestALoopKeepsFewCarriersAndNotForLong counts them, and goroutines before and after.
func TestALoopKeepsFewCarriersAndNotForLong(t *testing.T) {
	before := runtime.NumGoroutine()
	l, err := newLoop(func() net.KeepAliveConfig { return keepAlive(time.Minute) })
	if err != nil {
		t.Fatal(err)
	}
	const courses = maxIdle + 4
	var far [courses]net.Conn
	var sides [courses]*socket
	for i := range far {
		var near net.Conn
		far[i], near = sockets(t)
		sides[i] = socketOf(t, l, near)
	}
	var over atomic.Int64
	onTheLoop(l, func() {
		for _, s := range sides {
			l.begin(s, func(_ *course, s *socket) {
				_, _ = s.Read(make([]byte, 1))
				_ = s.Close()
				over.Add(1)
			})
		}
	})
	for _, conn := range far {
		_ = conn.Close()
	}
	kept := 0
	for over.Load() < courses {
		onTheLoop(l, func() { kept = len(l.idle) }) // which leaves it no time to rest
	}
	onTheLoop(l, func() { kept = len(l.idle) })
	if kept != maxIdle {
		t.Errorf("%d carriers are kept of %d courses, want %d", kept, courses, maxIdle)
	}
	time.Sleep(10 * attention)
	onTheLoop(l, func() { kept = len(l.idle) })
	if kept > 0 {
		t.Errorf("%d carriers are kept by a loop that rests", kept)
	}
	_, near := sockets(t)
	begin(t, l, near, func(_ *course, s *socket) { _ = s.Close() })
	l.close()
	for start := time.Now(); runtime.NumGoroutine() > before && time.Since(start) < 10*time.Second; {
		time.Sleep(time.Millisecond)
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines are left", after-before)
	}
}

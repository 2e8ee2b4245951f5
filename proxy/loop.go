package proxy

import (
	"cmp"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// loop serves sessions on one goroutine, by turns, for as long as none of them
// makes it wait. For a short statement the two goroutines that a session has
// otherwise cost more than all else that is done for it.
type loop struct {
	poll poller
	ring int           // end of a pipe that wakes the loop
	bell int           // its other end
	done chan struct{} // closed when the loop has ended

	// The loop's goroutine alone looks at these.
	turns  map[descriptor]*loopSession // by either side
	events []syscall.EpollEvent        // that have come
	ceded  time.Time                   // when it was last Go's scheduler's turn

	mu      sync.Mutex
	posted  []func() // to be done by the loop's goroutine
	closing bool
	closed  bool // its descriptors may be others'
}

// newLoop makes a loop and lets it run until close.
func newLoop() (*loop, error) {
	poll, err := newPoller()
	if err != nil {
		return nil, err
	}
	var pipe [2]int
	if err := syscall.Pipe2(pipe[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK); err != nil {
		poll.close()
		return nil, err
	}
	l := &loop{
		poll: poll, ring: pipe[0], bell: pipe[1], done: make(chan struct{}),
		turns:  make(map[descriptor]*loopSession),
		events: make([]syscall.EpollEvent, 128),
	}
	if err := poll.add(descriptor(l.ring)); err != nil {
		l.release()
		return nil, err
	}
	go l.run()
	return l, nil
}

// close ends the loop. Nobody may be on it any more.
func (l *loop) close() {
	l.mu.Lock()
	l.closing = true
	l.wake()
	l.mu.Unlock()
	<-l.done
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.release()
}

func (l *loop) release() {
	l.poll.close()
	for _, fd := range []int{l.ring, l.bell} {
		_ = syscall.Close(fd)
	}
}

// wake makes the loop look at what it is asked.
func (l *loop) wake() {
	_, _ = syscall.Write(l.bell, []byte{0}) // where the pipe is full it is awake
}

// post has the loop's goroutine do something, unless the loop has ended.
func (l *loop) post(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.posted = append(l.posted, do)
	l.wake()
}

// What follows, up to run, is for the loop's goroutine.

// add gives a session its turns, unless it was asked to leave on its way.
func (l *loop) add(t *loopSession) {
	t.taken = true
	err := t.ctx.Err()
	for _, side := range []descriptor{t.client, t.server} {
		l.turns[side] = t
		err = cmp.Or(err, l.poll.add(side))
	}
	if err != nil {
		l.dismiss(t, errAsked)
	}
}

// dismiss ends a session's turns, if it has them, for a reason.
func (l *loop) dismiss(t *loopSession, reason error) {
	if !t.taken {
		return
	}
	t.taken, t.end = false, reason
	for _, side := range []descriptor{t.client, t.server} {
		delete(l.turns, side)
		_ = l.poll.remove(side) // where it was not added, there is nothing to remove
	}
	close(t.over)
}

// run serves until close.
func (l *loop) run() {
	defer close(l.done)
	for {
		n, err := l.wait(l.events)
		if err != nil { // a fault of the program: nobody here could be served any more
			panic(fmt.Errorf("cannot poll: %w", err))
		}
		for _, event := range l.events[:n] {
			if event.Fd == int32(l.ring) {
				if l.answerBell() {
					return
				}
				continue
			}
			t := l.turns[descriptor(event.Fd)]
			if t == nil { // it has left in this round
				continue
			}
			if stays, reason := t.take(descriptor(event.Fd) == t.client); !stays {
				l.dismiss(t, reason)
			}
		}
	}
}

const (
	// attention is how long the loop waits at the ready for the next event.
	attention = 5 * time.Millisecond
	// stint is how long the loop goes on without Go's scheduler. After 10 ms the
	// runtime's monitor would preempt it, and then look every 20 µs for some
	// milliseconds whether there is more to preempt.
	stint = 8 * time.Millisecond
)

// wait returns the events that have come; none where Go's runtime wants the processor.
func (l *loop) wait(events []syscall.EpollEvent) (came int, err error) {
	if now := time.Now(); now.Sub(l.ceded) > stint {
		l.ceded = now
		runtime.Gosched()
	}
	came, interrupted, err := l.poll.ready(events)
	if came > 0 || interrupted || err != nil {
		return came, err
	}
	defer func() { l.ceded = time.Now() }()
	return l.poll.rest(events)
}

// answerBell does what was posted, and says whether the loop ends.
func (l *loop) answerBell() (ends bool) {
	var rings [64]byte
	_, _ = syscall.Read(l.ring, rings[:])
	l.mu.Lock()
	posted := l.posted
	l.posted = nil
	ends = l.closing
	l.mu.Unlock()
	for _, do := range posted {
		do()
	}
	return ends
}

// startLoops makes a loop for every two processors: the others are PostgreSQL's,
// and those of sessions with goroutines of their own. As a loop keeps a processor
// of Go's while it waits for a moment, each brings one.
func (p *Proxy) startLoops() error {
	for range max(1, runtime.GOMAXPROCS(0)/2) {
		l, err := newLoop()
		if err != nil {
			for _, made := range p.loops {
				made.close()
			}
			p.loops = nil
			return err
		}
		p.loops = append(p.loops, l)
	}
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + len(p.loops))
	return nil
}

func (p *Proxy) stopLoops() {
	for _, l := range p.loops {
		l.close()
	}
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) - len(p.loops))
	p.loops = nil
}

// loopOf is the loop on which the next session may have its turns.
func (p *Proxy) loopOf() *loop { return p.loops[p.next.Add(1)%uint32(len(p.loops))] }

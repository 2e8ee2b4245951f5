package proxy

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
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
	turns  map[descriptor]member // by either side
	events []syscall.EpollEvent  // that have come
	latest member                // who was taken
	change time.Time             // when it became the latest
	ceded  time.Time             // when it was last Go's scheduler's turn

	lingering atomic.Pointer[turn] // which the loop waits with; nil for none
	stirred   atomic.Int64         // when somebody last had a turn, in Unix nanoseconds

	mu      sync.Mutex
	posted  []func() // to be done by the loop's goroutine
	closing bool
	closed  bool // its descriptors may be others'
}

// member is a turn. Were it not an interface, the compiler would take the loop and what
// a session does on it for one recursion, and allocate all that is passed in it.
type member interface {
	// readable serves what can be read from. It may hand the loop over and go on beside
	// it; then it says so.
	readable(descriptor) (beside bool)
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
		poll: poll, ring: pipe[0], bell: pipe[1], done: make(chan struct{}), turns: make(map[descriptor]member),
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

// watch makes the loop see when a side of a session can be read from.
func (l *loop) watch(t *turn, from *side) error {
	if from.watched {
		return nil
	}
	if err := l.poll.add(from.descriptor); err != nil {
		return err
	}
	from.watched, l.turns[from.descriptor] = true, t
	return nil
}

// unwatch ends what watch began.
func (l *loop) unwatch(from *side) {
	if from.watched {
		from.watched = false
		delete(l.turns, from.descriptor)
		_ = l.poll.remove(from.descriptor)
	}
}

// add gives a session its turns, unless it was asked to leave on its way.
func (l *loop) add(t *turn) {
	t.taken = true
	if err := errors.Join(l.watch(t, &t.client), l.watch(t, &t.server)); err != nil || t.ctx.Err() != nil {
		l.dismiss(t, errAsked)
		return
	}
	if now := time.Now(); l.quiet(now) {
		l.latest, l.change = t, now.Add(-solitude)
	}
}

// resume goes on with a session of which something was handled beside the loop. It
// stays if it is alone; else what comes next may well take it beside the loop, too,
// which goroutines of its own make cheaper.
func (l *loop) resume(t *turn, from *side) {
	switch reason := t.left(from); {
	case !t.taken:
	case reason != nil:
		l.dismiss(t, reason)
	case !l.alone(t):
		l.dismiss(t, errWaits)
	default:
		if err := l.watch(t, from); err != nil {
			l.dismiss(t, err)
		}
	}
}

// dismiss ends a session's turns, if it has them, for a reason: once what is
// handled beside the loop has been.
func (l *loop) dismiss(t *turn, reason error) {
	if !t.taken || !t.ends(reason) {
		return
	}
	t.taken = false
	l.unwatch(&t.client)
	l.unwatch(&t.server)
	close(t.over)
}

// handOver has another goroutine serve from now on: the present one, which is the
// loop's no more, may wait. What has come and is not served yet will be reported
// again.
func (l *loop) handOver() { go l.run() }

// run serves until close, or until it hands over.
func (l *loop) run() {
	for {
		n, err := l.wait(l.events)
		if err != nil { // a fault of the program: nobody here could be served any more
			panic(fmt.Errorf("cannot poll: %w", err))
		}
		now := time.Now()
		for _, event := range l.events[:n] {
			if event.Fd == int32(l.ring) {
				if l.answerBell() {
					close(l.done)
					return
				}
				continue
			}
			m := l.turns[descriptor(event.Fd)]
			if m == nil { // it has left in this round
				continue
			}
			l.stirred.Store(now.UnixNano())
			if m != l.latest {
				l.latest, l.change = m, now
			}
			if m.readable(descriptor(event.Fd)) {
				return
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

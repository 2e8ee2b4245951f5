package proxy

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// loop serves connections on one goroutine, by turns, for as long as none of them
// makes it wait. For a short statement the two goroutines that a session has
// otherwise cost more than all else that is done for it, and for a login waking
// them does.
type loop struct {
	poll       poller
	ring       int // end of a pipe that wakes the loop
	bell       int // its other end
	processors processors
	keepAlive  func() net.KeepAliveConfig
	done       chan struct{} // closed when the loop has ended

	// The loop's goroutine alone looks at these.
	inquirer *inquirer // nil for none
	members  map[descriptor]member
	idle     []*carrier
	patient  []*course // which wait until nobody else has anything to do
	since    time.Time // when the first of them began to
	// awakeUntil is the end of the time in which the next message of a course is
	// likely to come.
	awakeUntil time.Time
	events     []syscall.EpollEvent // that have come
	latest     member               // who had a turn
	change     time.Time            // when it became the latest
	ceded      time.Time            // when it was last Go's scheduler's turn

	lingering atomic.Pointer[turn] // which the loop waits with; nil for none
	stirred   atomic.Int64         // when somebody last had a turn, in Unix nanoseconds

	mu      sync.Mutex
	posted  []func() // to be done by the loop's goroutine
	closing bool
	closed  bool // its descriptors may be others'
}

// member is who has something to do where a descriptor can be read from. It may
// hand the loop over and go on beside it; then it says so.
type member interface {
	readable(descriptor) (beside bool)
}

// newLoop makes a loop and lets it run until close.
func newLoop(keepAlive func() net.KeepAliveConfig) (*loop, error) {
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
		processors: openProcessors(), poll: poll, ring: pipe[0], bell: pipe[1], keepAlive: keepAlive, done: make(chan struct{}), members: make(map[descriptor]member),
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
	l.processors.close()
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

// watch makes the loop see when a course's socket can be read from.
func (l *loop) watch(s *socket) error {
	if s.plain != nil || s.closed { // the number is another's
		return net.ErrClosed
	}
	if s.watched {
		return nil
	}
	if err := l.poll.add(s.descriptor); err != nil {
		return err
	}
	s.watched, l.members[s.descriptor] = true, s
	return nil
}

// unwatch ends what watch began.
func (l *loop) unwatch(s *socket) {
	s.watched = false
	delete(l.members, s.descriptor)
	_ = l.poll.remove(s.descriptor)
}

// stayAwake makes the loop look for what comes next, which is likely to come soon.
func (l *loop) stayAwake() { l.awakeUntil = time.Now().Add(wakefulness) }

// add gives a session its turns.
func (l *loop) add(t *turn) error {
	if err := errors.Join(l.watch(t.client.socket), l.watch(t.server.socket)); err != nil {
		return err
	}
	l.members[t.client.descriptor], l.members[t.server.descriptor] = t, t
	t.taken = true
	if now := time.Now(); l.quiet(now) {
		l.latest, l.change = t, now.Add(-solitude)
	}
	return nil
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
		if err := l.watch(from.socket); err != nil {
			l.dismiss(t, err)
			return
		}
		l.members[from.descriptor] = t
	}
}

// dismiss ends a session's turns, if it has them, for a reason: once what is
// handled beside the loop has been.
func (l *loop) dismiss(t *turn, reason error) {
	if !t.taken || !t.ends(reason) {
		return
	}
	t.taken = false
	for _, from := range []*side{&t.client, &t.server} {
		if from.watched {
			l.members[from.descriptor] = from.socket
		}
	}
	t.session.course.step()
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
					l.inquirer.end()
					l.retire()
					close(l.done)
					return
				}
				continue
			}
			m := l.members[descriptor(event.Fd)]
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
		if len(l.patient) > 0 && (n == 0 || time.Since(l.since) > patience) {
			ready := l.patient
			l.patient = nil
			for _, c := range ready {
				c.step()
			}
		}
	}
}

const (
	// attention is how long the loop waits at the ready for the next event, and lull
	// where somebody lets others go first, which they then have done.
	attention = 5 * time.Millisecond
	lull      = time.Millisecond
	// wakefulness is how long the loop looks for what a course waits for without
	// sleeping: a client's next step in a login takes little longer than the loop would
	// to fall asleep and be woken, which adds up over the steps. It sleeps where that
	// would take a processor from others.
	wakefulness = 40 * time.Microsecond
	// stint is how long the loop goes on without Go's scheduler. After 10 ms the
	// runtime's monitor would preempt it, and then look every 20 µs for some
	// milliseconds whether there is more to preempt: 1,500 wakes a second in all, on
	// processors that others want.
	stint = 8 * time.Millisecond
	// patience is how long a course waits at most that lets others go first.
	patience = 10 * time.Millisecond
)

// wait returns the events that have come; none where those may go on who let
// others go first, or Go's runtime wants the processor.
func (l *loop) wait(events []syscall.EpollEvent) (came int, err error) {
	now := time.Now()
	if now.Sub(l.ceded) > stint {
		l.ceded = now
		runtime.Gosched()
	}
	if now.Before(l.awakeUntil) && !l.processors.spare() {
		l.awakeUntil = now
	}
	var interrupted bool
	for ; now.Before(l.awakeUntil); now = time.Now() {
		if came, interrupted, err = l.poll.ready(events, 0); came > 0 || interrupted || err != nil {
			return came, err
		}
	}
	if len(l.patient) > 0 {
		came, _, err = l.poll.ready(events, lull)
		return came, err
	}
	came, interrupted, err = l.poll.ready(events, attention)
	if came > 0 || interrupted || err != nil {
		return came, err
	}
	l.retire()
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
		l, err := newLoop(func() net.KeepAliveConfig { return keepAlive(p.running.Load().KeepAlive) })
		if err != nil {
			for _, made := range p.loops {
				made.close()
			}
			p.loops = nil
			return err
		}
		l.post(func() { l.inquirer = p.inquirer(l) })
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

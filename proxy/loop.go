package proxy

import (
	"log/slog"
	"runtime"
	"sync"
	"syscall"
)

// loop serves sessions on one goroutine, by turns, for as long as none of them
// makes it wait. For a short statement the two goroutines that a session has
// otherwise cost more than all else that is done for it.
type loop struct {
	poll int // descriptor of epoll
	ring int // end of a pipe that wakes the loop
	bell int // its other end
	log  *slog.Logger
	done chan struct{} // closed when the loop has ended

	mu      sync.Mutex
	turns   map[int32]*turn // by either descriptor
	asked   []*turn         // to leave
	closing bool
}

// newLoop makes a loop and lets it run until close.
func newLoop(log *slog.Logger) (*loop, error) {
	poll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	var pipe [2]int
	if err := syscall.Pipe2(pipe[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK); err != nil {
		_ = syscall.Close(poll)
		return nil, err
	}
	l := &loop{poll: poll, ring: pipe[0], bell: pipe[1], log: log, done: make(chan struct{}), turns: make(map[int32]*turn)}
	if err := l.watch(l.ring); err != nil {
		l.release()
		return nil, err
	}
	go l.run()
	return l, nil
}

// close ends the loop. No session may be on it any more.
func (l *loop) close() {
	l.mu.Lock()
	l.closing = true
	l.mu.Unlock()
	l.wake()
	<-l.done
	l.release()
}

func (l *loop) release() {
	for _, fd := range []int{l.poll, l.ring, l.bell} {
		_ = syscall.Close(fd)
	}
}

func (l *loop) watch(fd int) error {
	return syscall.EpollCtl(l.poll, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)})
}

// wake makes the loop look at what it is asked.
func (l *loop) wake() {
	_, _ = syscall.Write(l.bell, []byte{0}) // where the pipe is full it is awake
}

// add gives a session its turns. Until both of its sides are watched it is not
// dismissed: what is watched afterwards would stay so for good.
func (l *loop) add(t *turn) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turns[int32(t.client)], l.turns[int32(t.server)] = t, t
	err := l.watch(int(t.client))
	if err == nil {
		err = l.watch(int(t.server))
	}
	return err
}

// leave asks a session to leave.
func (l *loop) leave(t *turn) {
	l.mu.Lock()
	l.asked = append(l.asked, t)
	l.mu.Unlock()
	l.wake()
}

// turnover is after how many polls the loop lets Go's scheduler look at it: more
// often than every 10 ms, where there is much to do. Who does not, and spends
// most of the time in system calls, has the processor taken away by the runtime's
// monitor, which then looks again every 20 µs: a tenth of what a statement costs.
const turnover = 32

// run serves until close.
func (l *loop) run() {
	defer close(l.done)
	events := make([]syscall.EpollEvent, 128)
	for polls := 0; ; polls++ {
		if polls%turnover == 0 {
			runtime.Gosched()
		}
		n, err := syscall.EpollWait(l.poll, events, -1)
		if err != nil && err != syscall.EINTR {
			l.log.Error("cannot poll", "error", err)
			return
		}
		for _, event := range events[:max(0, n)] {
			if event.Fd == int32(l.ring) {
				if l.answerBell() {
					return
				}
				continue
			}
			l.mu.Lock()
			t := l.turns[event.Fd]
			l.mu.Unlock()
			if t != nil { // it may have left in this round
				if stays, err := t.take(event.Fd == int32(t.client)); !stays {
					l.dismiss(t, err)
				}
			}
		}
	}
}

// answerBell lets go of who has asked, and says whether the loop ends.
func (l *loop) answerBell() (ends bool) {
	var rings [64]byte
	_, _ = syscall.Read(l.ring, rings[:])
	l.mu.Lock()
	asked := l.asked
	l.asked = nil
	ends = l.closing
	l.mu.Unlock()
	for _, t := range asked {
		l.dismiss(t, errAsked)
	}
	return ends
}

// dismiss takes a session from the loop, if it is there, for a reason.
func (l *loop) dismiss(t *turn, reason error) {
	l.mu.Lock()
	here := l.turns[int32(t.client)] == t
	if here {
		for _, d := range []descriptor{t.client, t.server} {
			delete(l.turns, int32(d))
			_ = syscall.EpollCtl(l.poll, syscall.EPOLL_CTL_DEL, int(d), nil)
		}
	}
	l.mu.Unlock()
	if here {
		t.left <- reason
	}
}

// startLoops makes a loop for every two processors: the others are PostgreSQL's,
// and those of sessions with goroutines of their own.
func (p *Proxy) startLoops() {
	for range max(1, runtime.GOMAXPROCS(0)/2) {
		l, err := newLoop(p.log)
		if err != nil {
			p.log.Warn("sessions have goroutines of their own", "cause", err)
			return
		}
		p.loops = append(p.loops, l)
	}
}

func (p *Proxy) stopLoops() {
	for _, l := range p.loops {
		l.close()
	}
}

// loopOf returns the loop of the next session, nil for none.
func (p *Proxy) loopOf() *loop {
	if len(p.loops) == 0 {
		return nil
	}
	return p.loops[p.next.Add(1)%uint32(len(p.loops))]
}

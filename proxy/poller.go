package proxy

import (
	"syscall"
	"time"
	"unsafe"
)

// poller is a descriptor of epoll.
type poller int

func newPoller() (poller, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	return poller(fd), err
}

// attention is how long a poller waits at the ready.
const attention = 5 * time.Millisecond

// wait returns the events that have come, as soon as there is one; where it is
// brief, none if there is none within a millisecond.
//
// At first it does not tell Go's scheduler that it waits: the goroutine keeps its
// processor and its thread as if it computed. Told, the scheduler's monitor takes
// the processor away, looks again every 20 µs whether there is another to take,
// and the goroutine goes on wherever one is free. What wants the processor in the meantime, as
// the garbage collector does, gets it at once, by the signal that preempts
// goroutines: epoll_wait never goes on after one; without signals it waits no
// longer than attention. Who calls this adds a processor for it (see startLoops).
func (p poller) wait(events []syscall.EpollEvent, brief bool) (int, error) {
	patience := attention
	if brief {
		patience = time.Millisecond
	}
	// Whom the loop has just woken goes first: what they say then comes together, and
	// wakes the loop once.
	_, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
	n, _, failure := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(p), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)),
		uintptr(patience.Milliseconds()), 0, 0)
	switch {
	case failure == syscall.EINTR:
		return 0, nil
	case failure != 0:
		return 0, failure
	case n > 0 || brief:
		return int(n), nil
	}
	came, err := syscall.EpollWait(int(p), events, -1)
	if err == syscall.EINTR {
		return 0, nil
	}
	return came, err
}

func (p poller) control(operation int, d descriptor) error {
	return syscall.EpollCtl(int(p), operation, int(d), &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(d)})
}

func (p poller) add(d descriptor) error    { return p.control(syscall.EPOLL_CTL_ADD, d) }
func (p poller) remove(d descriptor) error { return p.control(syscall.EPOLL_CTL_DEL, d) }

func (p poller) close() { _ = syscall.Close(int(p)) }

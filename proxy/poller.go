package proxy

import (
	"syscall"
	"unsafe"
)

// poller is a descriptor of epoll.
type poller int

func newPoller() (poller, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	return poller(fd), err
}

// ready returns the events that have come, as soon as there is one; none if there
// is none for as long as the attention lasts, or if it is interrupted before.
//
// It does not tell Go's scheduler that it waits: the goroutine keeps its
// processor and its thread as if it computed. Told, the scheduler's monitor takes
// the processor away, looks again every 20 µs whether there is another to take,
// and the goroutine goes on wherever one is free. What wants the processor in the meantime, as
// the garbage collector does, gets it at once, by the signal that preempts
// goroutines: epoll_wait never goes on after one; without signals it waits no
// longer than the attention. Who calls this adds a processor for it (see startLoops).
func (p poller) ready(events []syscall.EpollEvent) (came int, interrupted bool, err error) {
	// Whom the loop has just woken goes first: what they say then comes together, and
	// wakes the loop once.
	_, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
	n, _, failure := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(p),
		uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)),
		uintptr(attention.Milliseconds()), 0, 0)
	switch failure {
	case 0:
		return int(n), false, nil
	case syscall.EINTR:
		return 0, true, nil
	}
	return 0, false, failure
}

// rest waits for events as everybody else does; it returns none if it is
// interrupted.
func (p poller) rest(events []syscall.EpollEvent) (came int, err error) {
	came, err = syscall.EpollWait(int(p), events, -1)
	if err == syscall.EINTR {
		return 0, nil
	}
	return came, err
}

func (p poller) control(operation int, d descriptor) error {
	return syscall.EpollCtl(int(p), operation, int(d),
		&syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(d)})
}

func (p poller) add(d descriptor) error    { return p.control(syscall.EPOLL_CTL_ADD, d) }
func (p poller) remove(d descriptor) error { return p.control(syscall.EPOLL_CTL_DEL, d) }

func (p poller) close() { _ = syscall.Close(int(p)) }

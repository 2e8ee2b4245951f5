package proxy

import (
	"errors"
	"log/slog"
	"net"
	"strconv"
	"syscall"
	"time"
)

// door is a listener on a loop.
type door struct {
	descriptor
	loop   *loop
	log    *slog.Logger
	enter  func(descriptor, net.Addr) // who came, on the loop's goroutine
	failed chan error                 // gets why nobody can come any more; has room for one
	kept   net.KeepAliveConfig        // of the listener's socket, which those whom it accepts inherit
	shut   bool
}

// pause is how long nobody is let in where that has just failed.
const pause = 10 * time.Millisecond

// openDoor takes a listener over from Go.
func openDoor(l *loop, listener net.Listener, log *slog.Logger, enter func(descriptor, net.Addr)) (*door, error) {
	own, ok := copyOf(listener)
	if !ok {
		return nil, errors.New("the listener has no socket")
	}
	_ = listener.Close()
	d := &door{descriptor: own, loop: l, log: log, enter: enter, failed: make(chan error, 1)}
	l.post(d.watch)
	return d, nil
}

// close returns when nobody comes in any more.
func (d *door) close() {
	closed := make(chan struct{})
	d.loop.post(func() {
		defer close(closed)
		d.shut = true
		d.unwatch()
		d.descriptor.close()
	})
	<-closed
}

func (d *door) watch() {
	if d.shut {
		return
	}
	if err := d.loop.poll.add(d.descriptor); err != nil {
		d.failed <- err
		return
	}
	d.loop.members[d.descriptor] = d
}

func (d *door) unwatch() {
	if d.loop.members[d.descriptor] == d {
		delete(d.loop.members, d.descriptor)
		_ = d.loop.poll.remove(d.descriptor)
	}
}

// readable lets one in: the others have their turns in between.
func (d *door) readable(descriptor) {
	fd, from, err := syscall.Accept4(int(d.descriptor), syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC)
	switch err {
	case nil:
		if now := d.loop.keepAlive(); now != d.kept { // the configuration was reloaded
			d.kept = now
			d.descriptor.keepAlive(now)
			descriptor(fd).keepAlive(now)
		}
		d.enter(descriptor(fd), addressOf(from))
	case syscall.EAGAIN, syscall.EINTR, syscall.ECONNABORTED:
	case syscall.EBADF, syscall.EINVAL, syscall.ENOTSOCK, syscall.EOPNOTSUPP:
		d.unwatch()
		d.failed <- err
	default: // too many files, say
		d.log.Warn("cannot accept", "error", err)
		d.unwatch()
		time.AfterFunc(pause, func() { d.loop.post(d.watch) })
	}
}

// addressOf is a socket's address as Go's own connections tell it.
func addressOf(a syscall.Sockaddr) net.Addr {
	switch a := a.(type) {
	case *syscall.SockaddrInet4:
		return &net.TCPAddr{IP: a.Addr[:], Port: a.Port}
	case *syscall.SockaddrInet6:
		known := &net.TCPAddr{IP: a.Addr[:], Port: a.Port}
		if a.ZoneId != 0 {
			known.Zone = strconv.Itoa(int(a.ZoneId))
			if zone, err := net.InterfaceByIndex(int(a.ZoneId)); err == nil {
				known.Zone = zone.Name
			}
		}
		return known
	}
	return &net.UnixAddr{Net: "unix"}
}

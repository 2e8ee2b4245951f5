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
	kept   net.KeepAliveConfig        // of the listener's socket, and of all who come through it
	shut   bool
}

// pause is how long nobody is let in where that has just failed.
const pause = 10 * time.Millisecond

// maxArrivals is how many are let in at once who have not inherited their options.
const maxArrivals = 64

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

// readable lets one in: the others have their turns in between. Whoever arrives has
// inherited the options of the listener's socket. Who had arrived before those were
// set, at the beginning and where the configuration was reloaded, is let in first.
func (d *door) readable(descriptor) (beside bool) {
	now := d.loop.keepAlive()
	if now == d.kept {
		_ = d.admit(nil)
		return false
	}
	d.descriptor.keepAlive(now)
	for range maxArrivals {
		if !d.admit(&now) {
			break
		}
	}
	return false
}

// admit lets one in, and says whether it did. It sets options; nil for those that
// are inherited.
func (d *door) admit(wanted *net.KeepAliveConfig) bool {
	fd, from, err := syscall.Accept4(int(d.descriptor), syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC)
	switch err {
	case nil:
		if wanted != nil {
			descriptor(fd).keepAlive(*wanted)
		}
		d.enter(descriptor(fd), addressOf(from))
		return true
	case syscall.EAGAIN:
		if wanted != nil {
			d.kept = *wanted
		}
	case syscall.EINTR, syscall.ECONNABORTED:
	case syscall.EBADF, syscall.EINVAL, syscall.ENOTSOCK, syscall.EOPNOTSUPP:
		d.unwatch()
		d.failed <- err
	default: // too many files, say
		d.log.Warn("cannot accept", "error", err)
		d.unwatch()
		time.AfterFunc(pause, func() { d.loop.post(d.watch) })
	}
	return false
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

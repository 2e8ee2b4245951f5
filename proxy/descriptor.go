package proxy

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

var (
	// errAgain says that nothing more can be read now.
	errAgain = errors.New("nothing to read")
	// errFull says that the receiver takes no more now.
	errFull = errors.New("the receiver is slow")
)

// descriptor is a socket that does not block, outside of what Go's own poller
// looks at.
type descriptor int

// descriptorOf takes a connection over from Go: who has the descriptor closes
// the connection. ok is false for any but a plain socket.
func descriptorOf(conn net.Conn) (d descriptor, ok bool) {
	if !hasSocket(conn) {
		return 0, false
	}
	return copyOf(conn)
}

// copyOf is another descriptor of what has one, ok whether that could be had.
func copyOf(owner any) (d descriptor, ok bool) {
	plain, ok := owner.(syscall.Conn)
	if !ok {
		return 0, false
	}
	raw, err := plain.SyscallConn()
	if err != nil {
		return 0, false
	}
	failed := raw.Control(func(fd uintptr) {
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
		var copied int
		if copied, err = syscall.Dup(int(fd)); err == nil {
			syscall.CloseOnExec(copied)
			d = descriptor(copied)
		}
	})
	return d, failed == nil && err == nil
}

// conn gives the connection back to Go, and closes the descriptor.
func (d descriptor) conn() (net.Conn, error) {
	file := os.NewFile(uintptr(d), "")
	defer func() { _ = file.Close() }()
	return net.FileConn(file)
}

// Read fails with errAgain where it would block.
func (d descriptor) Read(p []byte) (int, error) {
	for {
		n, err := syscall.Read(int(d), p)
		switch {
		case err == syscall.EINTR:
		case err == syscall.EAGAIN:
			return 0, errAgain
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// Write fails with errFull where it would block.
func (d descriptor) Write(p []byte) (written int, err error) {
	for written < len(p) {
		n, err := syscall.Write(int(d), p[written:])
		switch {
		case err == syscall.EINTR:
		case err == syscall.EAGAIN:
			return written, errFull
		case err != nil:
			return written, err
		default:
			written += n
		}
	}
	return written, nil
}

// option is one of a socket.
type option struct{ level, name, value int }

// options are those that net.TCPConn sets where it accepts a connection.
func options(c net.KeepAliveConfig) []option {
	return []option{
		{syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1},
		{syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 1},
		{syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE, seconds(c.Idle)},
		{syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL, seconds(c.Interval)},
		{syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT, c.Count},
	}
}

// keepAlive sets them, and those of all whom a listener is going to accept.
func (d descriptor) keepAlive(c net.KeepAliveConfig) {
	for _, o := range options(c) {
		_ = syscall.SetsockoptInt(int(d), o.level, o.name, o.value)
	}
}

// seconds rounds up, as a time of less than one is none.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

// silent says that a connection is open and that nothing has come.
func (d descriptor) silent() bool {
	_, _, err := syscall.Recvfrom(int(d), make([]byte, 1), syscall.MSG_PEEK)
	return err == syscall.EAGAIN
}

func (d descriptor) close() { _ = syscall.Close(int(d)) }

package proxy

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
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
	var plain syscall.Conn
	switch c := conn.(type) {
	case *net.TCPConn:
		plain = c
	case *net.UnixConn:
		plain = c
	default:
		return 0, false
	}
	raw, err := plain.SyscallConn()
	if err != nil {
		return 0, false
	}
	err = raw.Control(func(fd uintptr) {
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
		var copied int
		if copied, err = syscall.Dup(int(fd)); err == nil {
			syscall.CloseOnExec(copied)
			d, ok = descriptor(copied), true
		}
	})
	return d, ok && err == nil
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

func (d descriptor) close() { _ = syscall.Close(int(d)) }

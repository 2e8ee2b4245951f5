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

// hasSocket says whether a connection has a socket with nothing in between.
func hasSocket(conn net.Conn) bool {
	switch conn.(type) {
	case *net.TCPConn, *net.UnixConn:
		return true
	}
	return false
}

// descriptorOf is another descriptor of a connection, which Go's poller still looks
// at until the connection is closed. ok is false for any but a plain socket.
func descriptorOf(conn net.Conn) (d descriptor, ok bool) {
	if !hasSocket(conn) {
		return 0, false
	}
	raw, err := conn.(syscall.Conn).SyscallConn()
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

// conn gives the connection back to Go, and closes the descriptor. A peer that says
// nothing for so long is probed.
func (d descriptor) conn(silence time.Duration) (net.Conn, error) {
	file := os.NewFile(uintptr(d), "")
	defer func() { _ = file.Close() }()
	conn, err := net.FileConn(file)
	if err == nil {
		probe(conn, silence)
	}
	return conn, err
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

// silent says that a connection is open and that nothing has come.
func (d descriptor) silent() bool {
	_, _, err := syscall.Recvfrom(int(d), make([]byte, 1), syscall.MSG_PEEK)
	return err == syscall.EAGAIN
}

func (d descriptor) close() { _ = syscall.Close(int(d)) }

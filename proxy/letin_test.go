package proxy

import (
	"errors"
	"log/slog"
	"net"
	"syscall"
	"testing"
	"time"
)

// TestWhoIsLetInIsProbedAsConfigured reads what the socket has been set to.
func TestWhoIsLetInIsProbedAsConfigured(t *testing.T) {
	p := &Proxy{log: slog.New(slog.DiscardHandler)}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	came, over := make(chan net.Conn), make(chan error, 1)
	for i, silence := range []time.Duration{time.Minute, time.Minute, 4 * time.Minute} {
		config := DefaultConfig()
		config.KeepAlive = silence
		p.running.Store(&running{Config: config})
		if i == 0 {
			go func() { over <- p.letIn(listener, func(conn net.Conn) { came <- conn }) }()
		}
		far, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		near := <-came
		d, ok := descriptorOf(near)
		if !ok {
			t.Fatal("no plain connection")
		}
		for option, want := range map[int]int{
			syscall.TCP_NODELAY: 1, syscall.TCP_KEEPIDLE: int(silence.Seconds()),
			syscall.TCP_KEEPINTVL: int(silence.Seconds()) / 4, syscall.TCP_KEEPCNT: 4,
		} {
			if got, err := syscall.GetsockoptInt(int(d), syscall.IPPROTO_TCP, option); err != nil ||
				got != want {
				t.Errorf("option %d is %d, %v, want %d", option, got, err, want)
			}
		}
		if on, err := syscall.GetsockoptInt(int(d), syscall.SOL_SOCKET,
			syscall.SO_KEEPALIVE); err != nil || on != 1 {
			t.Errorf("it is not probed, %v", err)
		}
		d.close()
		_, _ = near.Close(), far.Close()
	}
	_ = listener.Close()
	if err := <-over; !errors.Is(err, net.ErrClosed) {
		t.Errorf("it ended with %v", err)
	}
}

// failing is a listener that has no descriptors left, or no network, for a while.
type failing struct {
	net.Listener
	faults []error
}

func (f *failing) Accept() (net.Conn, error) {
	if len(f.faults) == 0 {
		return f.Listener.Accept()
	}
	fault := f.faults[0]
	f.faults = f.faults[1:]
	return nil, &net.OpError{Op: "accept", Err: fault}
}

func TestClientsAreLetInAgainAfterAFault(t *testing.T) {
	p := &Proxy{log: slog.New(slog.DiscardHandler)}
	p.running.Store(&running{Config: DefaultConfig()})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	far, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = far.Close() }()
	entered := 0
	over := p.letIn(&failing{listener, []error{
		syscall.EMFILE, syscall.ENETDOWN,
		syscall.ECONNABORTED,
	}}, func(conn net.Conn) {
		entered++
		_, _ = conn.Close(), listener.Close()
	})
	if entered != 1 || !errors.Is(over, net.ErrClosed) {
		t.Errorf("%d came in, then %v", entered, over)
	}
}

package proxy

import (
	"net"
	"syscall"
	"testing"
	"time"
)

// TestWhoIsAcceptedHasTheListenersOptions reads what a socket has without being set.
func TestWhoIsAcceptedHasTheListenersOptions(t *testing.T) {
	wanted := keepAlive(time.Minute)
	l, err := newLoop(func() net.KeepAliveConfig { return wanted })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	early := make([]net.Conn, 3) // arrive before the door is open
	for i := range early {
		if early[i], err = net.Dial("tcp", listener.Addr().String()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = early[i].Close() })
	}
	came := make(chan descriptor, len(early))
	entrance, err := openDoor(l, listener, nil, func(d descriptor, _ net.Addr) { came <- d })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(entrance.close)
	has := func(d descriptor, silence time.Duration) {
		t.Helper()
		for _, o := range options(keepAlive(silence)) {
			if got, err := syscall.GetsockoptInt(int(d), o.level, o.name); err != nil || got != o.value {
				t.Errorf("option %d of level %d is %d, %v, want %d", o.name, o.level, got, err, o.value)
			}
		}
		d.close()
	}
	for range early {
		has(<-came, time.Minute)
	}
	for _, silence := range []time.Duration{time.Minute, time.Minute, 4 * time.Minute, 4 * time.Minute} {
		onTheLoop(l, func() { wanted = keepAlive(silence) })
		far, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		has(<-came, silence)
		_ = far.Close()
	}
}

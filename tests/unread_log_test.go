package tests

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestALogThatNobodyReadsStopsNobody fills the pipe that the log goes to, as
// somebody without an account can.
func TestALogThatNobodyReadsStopsNobody(t *testing.T) {
	user := shared.reader(t)
	pipe := filepath.Join(t.TempDir(), "log")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	unread, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unread.Close() })
	script := filepath.Join(t.TempDir(), "tailor")
	if err := os.WriteFile(script, fmt.Appendf(nil, "#!/bin/sh\nexec '%s' \"$@\" 2>'%s'\n", binary,
		pipe), 0o755); err != nil {
		t.Fatal(err)
	}
	p := shared.serveBinary(t, script)
	session := connect(t, p.dsn(user))
	for range 1500 { // some hundred lines fill the pipe
		stranger, err := net.Dial("tcp", p.address)
		if err != nil {
			t.Fatal(err)
		}
		_ = stranger.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = io.WriteString(stranger, "GET / HTTP/1.1\r\n\r\n")
		_, err = io.Copy(io.Discard, stranger)
		_ = stranger.Close()
		if late, ok := err.(net.Error); ok && late.Timeout() {
			t.Fatal("strangers are answered no more")
		}
	}
	if got := one[int](t, session, "SELECT 1"); got != 1 {
		t.Errorf("the session is answered %d", got)
	}
	if got := one[int](t, connect(t, p.dsn(user)), "SELECT 1"); got != 1 {
		t.Errorf("a new one is answered %d", got)
	}
}

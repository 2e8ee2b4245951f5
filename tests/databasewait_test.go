package tests

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestAProxyWaitsForItsDatabaseToStart: it says so once, serves when the database does, and ends
// at SIGTERM meanwhile.
func TestAProxyWaitsForItsDatabaseToStart(t *testing.T) {
	s, err := newStand(filepath.Join(stands, "databasewait"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.cluster.Stop() })
	s.cluster.Stop()
	start := func() (*exec.Cmd, *bufio.Reader, *safeBuffer) {
		command := exec.Command(binary, "serve", "--database-wait", "2m", "--listen", "127.0.0.1:0",
			"--upstream", s.cluster.Address(), "--service-dsn", s.cluster.ServiceDSN("hospital"))
		log := &safeBuffer{}
		command.Stderr = log
		stdout, err := command.StdoutPipe()
		if err == nil {
			err = command.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = command.Process.Kill() })
		waitFor(t, func() bool { return strings.Contains(log.String(), "waiting for the database") })
		return command, bufio.NewReader(stdout), log
	}
	ended, _, log := start()
	_ = ended.Process.Signal(syscall.SIGTERM)
	if err := ended.Wait(); err != nil {
		t.Errorf("told to end while it waits: %v\n%s", err, log)
	}
	served, stdout, log := start()
	time.Sleep(1500 * time.Millisecond) // another attempt
	if err := s.cluster.Launch(t.Context(), "fsync=off"); err != nil {
		t.Fatal(err)
	}
	if line, err := stdout.ReadString('\n'); err != nil || !strings.HasPrefix(line, "listening on ") {
		t.Fatalf("%q, %v\n%s", line, err, log)
	}
	if n := strings.Count(log.String(), "waiting for the database"); n != 1 {
		t.Errorf("it said %d times that it waits", n)
	}
	_ = served.Process.Signal(syscall.SIGTERM)
	if err := served.Wait(); err != nil {
		t.Errorf("%v\n%s", err, log)
	}
}

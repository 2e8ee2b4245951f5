package tests

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestDemoServesAndEndsCleanly(t *testing.T) {
	dir, err := os.MkdirTemp("", "tailor-demo-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	pgPort, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	consolePort, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	log := &safeBuffer{}
	demo := exec.Command(binary, "demo", "--dir", filepath.Join(dir, "d"), "--patients", "2000",
		"--port", fmt.Sprint(port), "--pg-port", fmt.Sprint(pgPort), "--console-port",
		fmt.Sprint(consolePort))
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	stdout, err := demo.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	demo.Stderr = log
	if err := demo.Start(); err != nil {
		t.Fatal(err)
	}
	printed := make(chan string)
	go func() {
		var all strings.Builder
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			fmt.Fprintln(&all, lines.Text())
			if strings.Contains(lines.Text(), "Ctrl-C") {
				printed <- all.String()
			}
		}
		close(printed)
	}()
	var invitation string
	select {
	case invitation = <-printed:
	case <-time.After(2 * time.Minute):
	}
	if !strings.Contains(invitation, fmt.Sprintf("psql -h 127.0.0.1 -p %d -U researcher hospital",
		port)) {
		_ = demo.Process.Kill()
		t.Fatalf("no line for psql:\n%s\n%s", invitation, log)
	}
	p := &testProxy{address: net.JoinHostPort("127.0.0.1", fmt.Sprint(port)), database: "hospital"}
	out, stderr, ok := p.psql(t, "researcher", "-At", "-c", "SELECT count(*) FROM patients")
	if !ok || strings.TrimSpace(out) != "2000" {
		t.Errorf("the demo counts %q: %s", out, stderr)
	}
	if out, _, _ := p.psql(t, "dba", "-At", "-c",
		"SELECT count(*) FROM tailor.audit"); strings.TrimSpace(out) != "1" {
		t.Errorf("the demo's audit holds %q records, want 1", out)
	}
	_ = demo.Process.Signal(syscall.SIGINT)
	if err := demo.Wait(); err != nil {
		t.Errorf("the demo ended with %v\n%s", err, log)
	}
	processes, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range processes {
		line, _ := os.ReadFile(path)
		if strings.Contains(string(line), dir) {
			t.Errorf("a process is left: %s", strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
}

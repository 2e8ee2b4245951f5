package tests

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hiatus-tailor/tailor/internal/demodata"
)

// watcher relays connections and looks for planted values in every byte that
// goes to the client.
type watcher struct {
	net.Listener
	mu    sync.Mutex
	found []string
	bytes int
}

func watch(t *testing.T, upstream string) *watcher {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &watcher{Listener: l}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go w.relay(client, upstream)
		}
	}()
	return w
}

func (w *watcher) relay(client net.Conn, upstream string) {
	server, err := net.Dial("tcp", upstream)
	if err != nil {
		_ = client.Close()
		return
	}
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	var window []byte
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		window = append(window[max(0, len(window)-64):], buffer[:n]...)
		w.mu.Lock()
		w.bytes += n
		for _, planted := range []string{demodata.CanaryName, demodata.CanarySSN} {
			if bytes.Contains(window, []byte(planted)) {
				w.found = append(w.found, planted)
			}
		}
		w.mu.Unlock()
		if _, werr := client.Write(buffer[:n]); err != nil || werr != nil {
			_ = client.Close()
			return
		}
	}
}

// TestRandomStatementsBreakNothingAndShowNothing lets sqlsmith write statements
// over everything that a reader sees, system catalogs left out.
func TestRandomStatementsBreakNothingAndShowNothing(t *testing.T) {
	if _, err := exec.LookPath("sqlsmith"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("sqlsmith is not installed")
		}
		t.Skip("sqlsmith is not installed")
	}
	statements, seed := 2000, "20260101"
	if os.Getenv("TAILOR_SOAK") != "" {
		statements = 20_000
	}
	s, _ := ownStand(t, "sqlsmith") // what other tests have made would be asked for as well
	p := s.serve(t)
	user := s.reader(t)
	bystander := connect(t, p.dsn(user))
	w := watch(t, p.address)
	host, port, _ := net.SplitHostPort(w.Addr().String())
	smith := exec.CommandContext(t.Context(), "sqlsmith", "--seed="+seed, "--exclude-catalog",
		fmt.Sprintf("--max-queries=%d", statements),
		fmt.Sprintf("--target=host=%s port=%s user=%s password=%[3]s dbname=hospital sslmode=disable "+
			"options='-c statement_timeout=300'", host, port, user))
	var output safeBuffer
	smith.Stdout, smith.Stderr = &output, &output
	started := time.Now()
	if err := smith.Run(); err != nil {
		t.Errorf("sqlsmith ended with %v\n%.2000s", err, output.String())
	}
	if n := one[int](t, bystander, "SELECT count(*) FROM patients"); n != patients {
		t.Errorf("another session counts %d", n)
	}
	outcomes := make(map[string]int)
	for _, r := range p.records(t) {
		outcomes[fmt.Sprint(r["verdict"])]++
		// PostgreSQL itself fails so at some that are passed to it as they are, as it does at
		// unknownin(cast('x' as cstring)).
		if relations, _ := r["relations"].([]any); r["sqlstate"] == "XX000" &&
			(r["verdict"] != "failed" || len(relations) > 0) {
			t.Errorf("an internal error: %.300v", r["sql"])
		}
	}
	t.Logf("%d statements in %v: %v; %d bytes to the client", statements, time.Since(started).
		Round(time.Second), outcomes, w.bytes)
	if outcomes["released"] < statements/200 || outcomes["refused"] < statements/200 {
		t.Errorf("too few were released or refused: %v", outcomes)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if refused := regexp.MustCompile(`level=ERROR .*sqlstate=XX000.*`).
		FindString(p.log.String()); refused != "" {
		t.Errorf("the proxy has an internal error: %s", refused)
	}
	if len(w.found) > 0 {
		t.Errorf("planted values reached the client: %q", w.found)
	}
	for _, text := range []string{p.log.String(), output.String()} {
		if strings.Contains(text, demodata.CanaryName) || strings.Contains(text, demodata.CanarySSN) {
			t.Error("a log holds a planted value")
		}
	}
}

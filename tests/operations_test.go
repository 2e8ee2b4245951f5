package tests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func TestConfigurationFaultsAreReportedTogether(t *testing.T) {
	config := filepath.Join(t.TempDir(), "tailor.yaml")
	text := "listen: nowhere\nmax_clients: many\nupstream: {tls: perhaps}\nunheard_of: 1\ntls: " +
		"{key: k}\nservice-dsn: x\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(binary, "serve", "--config", config)
	command.Env = append(os.Environ(), "TAILOR_QUEUE_TIMEOUT=soon")
	output, err := command.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 {
		t.Errorf("%v, want exit code 2", err)
	}
	for _, fault := range []string{
		"listen", "max-clients", "upstream-tls", `unknown key "unheard-of"`,
		"tls-certificate", "TAILOR_QUEUE_TIMEOUT",
	} {
		if !strings.Contains(string(output), fault) {
			t.Errorf("%q is not in %s", fault, output)
		}
	}
	if strings.Count(string(output), "\n") != 1 {
		t.Errorf("more than one line: %s", output)
	}
}

func TestTheCommandLineWinsOverTheEnvironmentOverTheFile(t *testing.T) {
	config := filepath.Join(t.TempDir(), "tailor.yaml")
	if err := os.WriteFile(config, []byte("upstream: file:1\nlisten: 127.0.0.1:0\nmax-clients: 7\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TAILOR_UPSTREAM", "environment:1")
	p := shared.serve(t, "--config", config, "--max-clients", "3")
	if n := one[int](t, connect(t, p.dsn(shared.reader(t))),
		"SELECT count(*) FROM patients"); n != patients {
		t.Errorf("%d patients", n)
	}
}

// operations is where a proxy answers its operators.
func (p *testProxy) operations(t *testing.T) string {
	t.Helper()
	line := regexp.MustCompile(`msg=operations address=(\S+)`)
	waitFor(t, func() bool { return line.MatchString(p.log.String()) })
	return "http://" + line.FindStringSubmatch(p.log.String())[1]
}

// get returns the status and the body of a page.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func TestOperatorsSeeWhatTheProxyDoes(t *testing.T) {
	p := shared.serve(t, "--metrics", "127.0.0.1:0")
	base := p.operations(t)
	conn := connect(t, p.dsn(shared.reader(t)))
	for _, sql := range []string{
		"SELECT 1", "SELECT age FROM patients", "SELECT name FROM patients",
		"SELECT 1 / 0",
	} {
		_, _ = conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
	}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/debug/pprof/": 404} {
		if status, _ := get(t, base+path); status != want {
			t.Errorf("%s: %d, want %d", path, status, want)
		}
	}
	_, text := get(t, base+"/metrics")
	for _, want := range []string{
		`tailor_build_info{version="`, "tailor_ready 1\n", "tailor_audit_available 1\n",
		"tailor_max_clients 1000\n",
		"tailor_sessions 1", `tailor_logins_total{outcome="accepted"} 1`,
		`tailor_statements_total{verdict="passed"} 1`,
		`tailor_statements_total{verdict="released"} 1`, `tailor_statements_total{verdict="refused"} 1`,
		`tailor_statements_total{verdict="failed"} 1`,
		`tailor_statement_seconds_count{verdict="released"} 1`,
		"tailor_assessment_seconds_count 1", "tailor_chain_loss{chain=",
		`tailor_relayed_bytes_total{to="client"}`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the metrics", want)
		}
	}
}

func TestWhoFindsNoSeatWaitsAndIsThenRefused(t *testing.T) {
	p := shared.serve(t, "--max-clients", "2", "--max-clients-per-principal", "1", "--queue-timeout",
		"2s")
	user := shared.reader(t)
	first := connect(t, p.dsn(user))
	if _, err := pgconn.Connect(t.Context(), p.dsn(user)); codeIn(err) != "53300" {
		t.Errorf("a second session of the role: %v, want 53300", err)
	}
	second := connect(t, p.dsn("researcher"))
	started := time.Now()
	if _, err := pgconn.Connect(t.Context(), p.dsn("dba")); codeIn(err) != "53300" ||
		time.Since(started) < time.Second {
		t.Errorf("a third session: %v after %v, want 53300 after a wait", err, time.Since(started))
	}
	joined := make(chan error, 1)
	go func() {
		conn, err := pgconn.Connect(context.Background(), p.dsn("dba"))
		if err == nil {
			err = conn.Close(context.Background())
		}
		joined <- err
	}()
	time.Sleep(100 * time.Millisecond) // it may be in the queue by now; either way it is served
	_ = first.Close(t.Context())
	if err := <-joined; err != nil {
		t.Errorf("a seat became free: %v", err)
	}
	_ = second.Close(t.Context())
}

func TestTheProxyEndsWhenTransactionsHave(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	idle, busy := connect(t, p.dsn(user)), connect(t, p.dsn(user))
	tx, err := busy.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = p.command.Process.Signal(syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := idle.PgConn().ReceiveMessage(ctx); codeIn(err) != "57P01" &&
		!strings.Contains(fmt.Sprint(err), "57P01") {
		t.Errorf("the idle session: %v, want 57P01", err)
	}
	if n := one[int](t, busy, "SELECT count(*) FROM patients"); n != patients {
		t.Errorf("the open transaction counts %d", n)
	}
	if _, err := pgconn.Connect(t.Context(), p.dsn(user)); err == nil {
		t.Error("a new session is served")
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Errorf("commit: %v", err)
	}
	if err := p.command.Wait(); err != nil {
		t.Errorf("the proxy ended with %v", err)
	}
}

func TestIdleSessionsAreEnded(t *testing.T) {
	p := shared.serve(t, "--idle-timeout", "1s")
	conn := connect(t, p.dsn(shared.reader(t)))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := conn.PgConn().ReceiveMessage(ctx)
	if codeIn(err) != "57P05" && !strings.Contains(fmt.Sprint(err), "57P05") {
		t.Errorf("%v, want 57P05", err)
	}
}

func TestABalancerTellsWhoTheClientIs(t *testing.T) {
	p := shared.serve(t, "--proxy-protocol")
	user := shared.reader(t)
	config, err := pgx.ParseConfig(p.dsn(user))
	if err != nil {
		t.Fatal(err)
	}
	dial := config.DialFunc
	for _, header := range [][]byte{
		[]byte("PROXY TCP4 192.0.2.7 192.0.2.1 5555 5432\r\n"),
		append([]byte("\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c"), 192, 0, 2, 7, 192, 0, 2, 1, 0x15, 0xb3,
			0x15, 0x38),
	} {
		config.DialFunc = func(ctx context.Context, network, address string) (conn net.Conn, err error) {
			if conn, err = dial(ctx, network, address); err == nil {
				_, err = conn.Write(header)
			}
			return conn, err
		}
		conn, err := pgx.ConnectConfig(t.Context(), config)
		if err != nil {
			t.Fatalf("%q: %v", header, err)
		}
		_, _ = conn.Exec(t.Context(), "SELECT count(*) FROM patients")
		_ = conn.Close(t.Context())
	}
	for _, r := range p.records(t) {
		if r["client"] != "192.0.2.7:5555" && r["verdict"] == "released" {
			t.Errorf("recorded as %v", r["client"])
		}
	}
	if bytes.Contains([]byte(p.log.String()), []byte("session failed")) {
		t.Error(p.log.String())
	}
}

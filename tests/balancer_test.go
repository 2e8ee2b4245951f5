package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// balanced are two proxies behind HAProxy with the file that is shipped, but for addresses.
type balanced struct {
	*testProxy               // with the balancer's address
	proxies    [2]*testProxy // behind it
}

func newBalanced(t *testing.T) *balanced {
	t.Helper()
	program, err := exec.LookPath("haproxy")
	if err != nil {
		t.Skip(err)
	}
	text, err := os.ReadFile("../packaging/compose/haproxy.cfg")
	if err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(strings.Repeat("s", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	var ports [5]int // of clients, of the proxies, of their metrics
	for i := range ports {
		if ports[i], err = freePort(); err != nil {
			t.Fatal(err)
		}
	}
	peers := fmt.Sprintf("1=127.0.0.1:%d,2=127.0.0.1:%d", ports[1], ports[2])
	b := &balanced{}
	pairs := []string{"bind :6432", fmt.Sprintf("bind 127.0.0.1:%d", ports[0]), "check port 9432", ""}
	for i := range b.proxies {
		listen := fmt.Sprintf("127.0.0.1:%d", ports[1+i])
		pairs = append(pairs, fmt.Sprintf("proxy%d:6432", i+1),
			fmt.Sprintf("%s check port %d", listen, ports[3+i]))
		b.proxies[i] = shared.serve(t, "--listen", listen, "--proxy-protocol",
			"--metrics", fmt.Sprintf("127.0.0.1:%d", ports[3+i]),
			"--peer-number", fmt.Sprint(i+1), "--peer-addresses", peers, "--peer-secret", secret)
	}
	config := filepath.Join(t.TempDir(), "haproxy.cfg")
	here := strings.NewReplacer(pairs...).Replace(string(text))
	if err := os.WriteFile(config, []byte(here), 0o600); err != nil {
		t.Fatal(err)
	}
	front := *b.proxies[0]
	front.address = fmt.Sprintf("127.0.0.1:%d", ports[0])
	b.testProxy = &front
	command := exec.Command(program, "-db", "-f", config)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	return b
}

// sessions says how many each proxy has.
func (b *balanced) sessions(t *testing.T) (open [2]string) {
	t.Helper()
	for i, p := range b.proxies {
		_, text := get(t, p.operations(t)+"/metrics")
		_, text, _ = strings.Cut(text, "\ntailor_sessions ")
		open[i], _, _ = strings.Cut(text, "\n")
	}
	return open
}

// TestABalancerSharesClientsAndFollowsReadiness: as the example of packaging/compose has it.
func TestABalancerSharesClientsAndFollowsReadiness(t *testing.T) {
	b := newBalanced(t)
	user := shared.reader(t)
	waitFor(t, func() bool {
		conn, err := pgconn.Connect(t.Context(), b.dsn(user))
		if err != nil {
			return false
		}
		_ = conn.Close(t.Context())
		return true
	})
	waitFor(t, func() bool { return b.sessions(t) == [2]string{"0", "0"} })
	var conns [2]*pgx.Conn
	for i := range conns {
		conns[i] = connect(t, b.dsn(user))
		mustExec(t, conns[i], "SELECT count(age) FROM patients")
	}
	waitFor(t, func() bool { return b.sessions(t) == [2]string{"1", "1"} })
	for range 4 { // cancel requests come to either
		if cancelled(t, conns[0]) != "57014" {
			t.Error("a cancel request did not arrive")
		}
	}
	tx, err := conns[0].Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other, err := conns[1].Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = b.proxies[0].command.Process.Signal(syscall.SIGTERM)
	waitFor(t, func() bool { // the balancer has seen it
		conn, err := pgconn.Connect(t.Context(), b.dsn(user))
		if err == nil {
			_ = conn.Close(t.Context())
		}
		return err == nil
	})
	for range 4 {
		mustExec(t, connect(t, b.dsn(user)), "SELECT count(age) FROM patients")
	}
	for _, open := range []pgx.Tx{tx, other} {
		if err := open.Commit(t.Context()); err != nil {
			t.Errorf("a transaction that was open: %v", err)
		}
	}
}

// cancelled is the SQLSTATE with which a statement ends that its client cancels.
func cancelled(t *testing.T, conn *pgx.Conn) string {
	t.Helper()
	ended := make(chan error, 1)
	go func() {
		_, err := conn.Exec(t.Context(), "SELECT pg_sleep(60)")
		ended <- err
	}()
	for {
		if err := conn.PgConn().CancelRequest(t.Context()); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			return codeIn(err)
		default:
		}
	}
}

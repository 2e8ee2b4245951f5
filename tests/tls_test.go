package tests

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// secureDSN connects with the TLS settings of libpq that are given.
func (p *testProxy) secureDSN(user string, settings ...string) string {
	return fmt.Sprintf("postgres://%s:%s@%s/hospital?%s", user, user, p.address,
		strings.Join(settings, "&"))
}

func TestClientsEncrypt(t *testing.T) {
	a := newAuthority(t)
	certificate, key := a.sign(t, "proxy", false)
	p := shared.serve(t, "--tls-certificate", certificate, "--tls-key", key)
	user := shared.reader(t)
	for _, settings := range [][]string{
		{"sslmode=require"},
		{"sslmode=verify-full", "sslrootcert=" + a.path},
		{"sslmode=verify-full", "sslrootcert=" + a.path, "sslnegotiation=direct"},
		{"sslmode=require", "channel_binding=require"},
		{"sslmode=disable"},
	} {
		conn := connect(t, p.secureDSN(user, settings...))
		if n := one[int](t, conn, "SELECT count(*) FROM patients"); n != patients {
			t.Errorf("%v: %d patients", settings, n)
		}
	}
	psql := exec.Command("psql", "-X", "-At",
		p.secureDSN(user, "sslmode=verify-full", "sslrootcert="+a.path, "channel_binding=require"), "-c",
		"SELECT 1")
	if output, err := psql.CombinedOutput(); err != nil || string(output) != "1\n" {
		t.Errorf("psql: %v: %s", err, output)
	}
}

func TestACancelRequestMayBeEncrypted(t *testing.T) {
	a := newAuthority(t)
	certificate, key := a.sign(t, "proxy", false)
	p := shared.serve(t, "--tls-certificate", certificate, "--tls-key", key, "--tls-required")
	conn := connect(t, p.secureDSN(shared.reader(t), "sslmode=require"))
	ended := make(chan error, 1)
	go func() {
		_, err := conn.PgConn().Exec(context.Background(), "SELECT pg_sleep(50)").ReadAll()
		ended <- err
	}()
	direct := shared.superuser(t)
	waitFor(t, func() bool {
		return one[int](t, direct,
			"SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(50)' AND state = "+
				"'active'") == 1
	})
	if err := conn.PgConn().CancelRequest(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; codeIn(err) != "57014" {
		t.Errorf("%v, want 57014", err)
	}
}

// codeIn is the SQLSTATE of a server's answer, empty for other errors.
func codeIn(err error) string {
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		return answer.Code
	}
	return ""
}

func TestWhatIsNotAllowedDoesNotConnect(t *testing.T) {
	a := newAuthority(t)
	certificate, key := a.sign(t, "proxy", false)
	p := shared.serve(t, "--tls-certificate", certificate, "--tls-key", key, "--tls-required")
	if _, err := pgconn.Connect(t.Context(),
		p.secureDSN(shared.reader(t), "sslmode=disable")); codeIn(err) != "28000" {
		t.Errorf("a client without TLS: %v, want 28000", err)
	}
	old := &tls.Config{
		InsecureSkipVerify: true, MinVersion: tls.VersionTLS10,
		MaxVersion: tls.VersionTLS11, NextProtos: []string{"postgresql"},
	}
	if _, err := tls.Dial("tcp", p.address, old); err == nil {
		t.Error("TLS 1.1 is accepted")
	}
	other := &tls.Config{InsecureSkipVerify: true}
	if conn, err := tls.Dial("tcp", p.address, other); err == nil {
		_, _ = conn.Write([]byte{0, 0, 0, 8, 0, 3, 0, 0})
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		answer := make([]byte, 1)
		if n, _ := conn.Read(answer); n == 1 && answer[0] != 'E' {
			t.Errorf("direct TLS without a protocol is answered %q", answer)
		}
	}
	// What comes unencrypted together with the request must not be used.
	conn, err := net.Dial("tcp", p.address)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = conn.Write(append([]byte{0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f},
		[]byte("\x00\x00\x00\x11\x00\x03\x00\x00user\x00x\x00\x00")...))
	answer := make([]byte, 16)
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	n, _ := conn.Read(answer)
	if n == 0 || answer[0] != 'S' {
		t.Fatalf("answered %q", answer[:n])
	}
	if n, _ = conn.Read(answer); n > 0 && answer[0] == 'R' {
		t.Error("a start-up packet sent before the handshake is believed")
	}
}

func TestCertificatesAreReadAgainOnHangUp(t *testing.T) {
	a := newAuthority(t)
	certificate, key := a.sign(t, "proxy", false)
	config := filepath.Join(t.TempDir(), "tailor.yaml")
	save := func(text string) {
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	save(fmt.Sprintf("tls:\n  certificate: %s\n  key: %s\n", certificate, key))
	p := shared.serve(t, "--config", config)
	user := shared.reader(t)
	before := connect(t, p.secureDSN(user, "sslmode=verify-full", "sslrootcert="+a.path))
	hangUp := func(until string) {
		_ = p.command.Process.Signal(syscall.SIGHUP)
		waitFor(t, func() bool { return strings.Contains(p.log.String(), until) })
	}
	save("tls:\n  certificate: /nowhere\n  key: /nowhere\nmax-clients: 0\n")
	hangUp("configuration not reloaded")
	connect(t, p.secureDSN(user, "sslmode=verify-full", "sslrootcert="+a.path))
	b := newAuthority(t)
	certificate, key = b.sign(t, "proxy", false)
	save(fmt.Sprintf("tls_certificate: %s\ntls-key: %s\n", certificate, key))
	hangUp("configuration reloaded")
	connect(t, p.secureDSN(user, "sslmode=verify-full", "sslrootcert="+b.path))
	if _, err := pgconn.Connect(t.Context(),
		p.secureDSN(user, "sslmode=verify-full", "sslrootcert="+a.path)); err == nil {
		t.Error("the old certificate is still shown")
	}
	if n := one[int](t, before, "SELECT count(*) FROM patients"); n != patients {
		t.Errorf("the session from before counts %d", n)
	}
}

// encrypted switches the shared server's TLS on for a test.
func encrypted(t *testing.T, a *authority) {
	t.Helper()
	data := filepath.Join(shared.cluster.Dir, "data")
	owner, err := os.Stat(data)
	if err != nil {
		t.Fatal(err)
	}
	certificate, key := a.sign(t, "server", false)
	for from, to := range map[string]string{certificate: "server.crt", key: "server.key"} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(data, to)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if s, ok := owner.Sys().(*syscall.Stat_t); ok {
			_ = os.Chown(path, int(s.Uid), int(s.Gid))
		}
	}
	direct := shared.superuser(t)
	mustExec(t, direct, "ALTER SYSTEM SET ssl = on")
	mustExec(t, direct, "SELECT pg_reload_conf()")
	t.Cleanup(func() {
		_, _ = shared.superuser(t).Exec(context.Background(), "ALTER SYSTEM RESET ssl")
		_, _ = shared.superuser(t).Exec(context.Background(), "SELECT pg_reload_conf()")
	})
	waitFor(t, func() bool { return one[string](t, direct, "SHOW ssl") == "on" })
}

func TestTheServerIsReachedEncrypted(t *testing.T) {
	a, stranger := newAuthority(t), newAuthority(t)
	encrypted(t, a)
	user := shared.reader(t)
	cases := []struct {
		mode, ca string
		connects bool
	}{
		{"require", "", true},
		{"verify-ca", a.path, true},
		{"verify-full", a.path, true},
		{"verify-ca", stranger.path, false},
		{"verify-full", stranger.path, false},
	}
	for _, c := range cases {
		flags := []string{"--upstream-tls", c.mode}
		if c.ca != "" {
			flags = append(flags, "--upstream-ca", c.ca)
		}
		p := shared.serve(t, flags...)
		conn, err := pgconn.Connect(t.Context(), p.dsn(user))
		if !c.connects {
			if codeIn(err) != "57P03" {
				t.Errorf("%v with a stranger's authority: %v, want 57P03", c.mode, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.mode, err)
			continue
		}
		answer := conn.ExecParams(t.Context(), "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()",
			nil, nil, nil, nil).Read()
		if answer.Err == nil && (len(answer.Rows) != 1 || string(answer.Rows[0][0]) != "t") {
			t.Errorf("%s: not encrypted", c.mode)
		}
		_ = conn.Close(t.Context())
	}
}

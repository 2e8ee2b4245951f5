package tests

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// admitting puts lines before the shared server's access rules, and lines of
// the map "tailor", for a test.
func admitting(t *testing.T, rules, names string) {
	t.Helper()
	direct := shared.superuser(t)
	for file, added := range map[string]string{"pg_hba.conf": rules, "pg_ident.conf": names} {
		path := filepath.Join(shared.cluster.Dir, "data", file)
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append([]byte(added+"\n"), before...), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = os.WriteFile(path, before, 0o600)
			_, _ = shared.superuser(t).Exec(t.Context(), "SELECT pg_reload_conf()")
		})
	}
	mustExec(t, direct, "SELECT pg_reload_conf()")
	waitFor(t, func() bool {
		return one[bool](t, direct,
			"SELECT NOT EXISTS (SELECT FROM pg_hba_file_rules WHERE error IS NOT NULL)") &&
			one[bool](t, shared.superuser(t), "SELECT pg_conf_load_time() > now() - interval '5 seconds'")
	})
}

// served says whether a client with a DSN gets the answer of a role's session.
func served(t *testing.T, dsn, role string) error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(t.Context()) }()
	var n int
	var is string
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM patients").Scan(&n); err != nil ||
		n != patients {
		return fmt.Errorf("%d patients: %w", n, err)
	}
	if err := conn.QueryRow(t.Context(), "SELECT session_user").Scan(&is); err != nil || is != role {
		return fmt.Errorf("logged in as %q: %w", is, err)
	}
	return nil
}

// TestACertificateLogsInAsTheRoleItNames runs mutual TLS on both sides: the
// proxy knows clients by their certificates, PostgreSQL the proxy by its own.
func TestACertificateLogsInAsTheRoleItNames(t *testing.T) {
	a, stranger := newAuthority(t), newAuthority(t)
	user := shared.reader(t)
	encrypted(t, a)
	direct := shared.superuser(t)
	authorities := filepath.Join(shared.cluster.Dir, "authorities.pem")
	text, err := os.ReadFile(a.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(authorities, text, 0o644); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, fmt.Sprintf("ALTER SYSTEM SET ssl_ca_file = '%s'", authorities))
	t.Cleanup(func() {
		_, _ = shared.superuser(t).Exec(t.Context(), "ALTER SYSTEM RESET ssl_ca_file")
	})
	admitting(t, fmt.Sprintf("hostssl all %s 127.0.0.1/32 cert map=tailor", user),
		"tailor the-proxy "+user)

	certificate, key := a.sign(t, "proxy", false)
	own, ownKey := a.sign(t, "the-proxy", false)
	flags := []string{
		"--authentication", "cert", "--tls-certificate", certificate, "--tls-key", key, "--tls-client-ca",
		a.path, "--tls-required",
		"--upstream-tls", "verify-full", "--upstream-ca", a.path, "--wrong-password-pause", "10ms",
	}
	p := shared.serve(t, append(flags, "--upstream-certificate", own, "--upstream-key", ownKey)...)
	shows := func(p *testProxy, by *authority, name string) string {
		shown, its := by.sign(t, name, false)
		return fmt.Sprintf(
			"postgres://%s@%s/hospital?sslmode=verify-full&sslrootcert=%s&sslcert=%s&sslkey=%s", user,
			p.address, a.path, shown, its)
	}
	if err := served(t, shows(p, a, user), user); err != nil {
		t.Errorf("the role's certificate: %v", err)
	}
	for _, c := range []struct{ claim, dsn, code string }{
		{"another role's certificate", shows(p, a, "dba"), "28000"},
		{"no certificate", fmt.Sprintf("postgres://%s:%s@%s/hospital?sslmode=require", user, user,
			p.address), "28000"},
		{"no TLS", p.dsn(user), "28000"},
		{"a stranger's certificate", shows(p, stranger, user), ""},
	} {
		if err := served(t, c.dsn, user); err == nil || codeIn(err) != c.code {
			t.Errorf("%s: %v, want SQLSTATE %q", c.claim, err, c.code)
		}
	}
	bare := shared.serve(t, flags...)
	if err := served(t, shows(bare, a, user), user); codeIn(err) != "28000" {
		t.Errorf("a proxy that PostgreSQL does not know: %v, want 28000", err)
	}
	mustExec(t, direct, fmt.Sprintf("ALTER ROLE %s NOLOGIN", user))
	if err := served(t, shows(p, a, user), user); codeIn(err) != "28000" {
		t.Errorf("a role that may not log in: %v, want 28000", err)
	}
	// by another's certificate, by none, of a role without login, and through the bare proxy
	waitFor(t, func() bool {
		return one[int](t, direct, "SELECT count(*) FROM tailor.audit WHERE principal = $1 AND event = "+
			"'login' AND sqlstate = '28000'", user) >= 4
	})
}

func TestTrustIsForClientsOfThisMachineOnly(t *testing.T) {
	user := shared.reader(t)
	admitting(t, fmt.Sprintf("host all %s 127.0.0.1/32 trust", user), "")
	p := shared.serve(t, "--authentication", "trust")
	dsn := fmt.Sprintf("postgres://%s@%s/hospital?sslmode=disable", user, p.address)
	if err := served(t, dsn, user); err != nil {
		t.Errorf("a client of this machine: %v", err)
	}
	if err := served(t, fmt.Sprintf("postgres://dba@%s/hospital?sslmode=disable", p.address),
		"dba"); codeIn(err) != "28000" {
		t.Errorf("a role that PostgreSQL asks a password of: %v, want 28000", err)
	}
	balanced := shared.serve(t, "--authentication", "trust", "--proxy-protocol",
		"--wrong-password-pause", "10ms")
	for from, code := range map[string]string{"127.0.0.1": "", "192.0.2.7": "28000"} {
		config, err := pgconn.ParseConfig(fmt.Sprintf("postgres://%s@%s/hospital?sslmode=disable", user,
			balanced.address))
		if err != nil {
			t.Fatal(err)
		}
		config.AfterNetConnect = func(_ context.Context, _ *pgconn.Config, conn net.Conn) (net.Conn,
			error,
		) {
			_, err := io.WriteString(conn, "PROXY TCP4 "+from+" 127.0.0.1 5555 5432\r\n")
			return conn, err
		}
		conn, err := pgconn.ConnectConfig(t.Context(), config)
		if codeIn(err) != code || code == "" && err != nil {
			t.Errorf("from %s: %v, want SQLSTATE %q", from, err, code)
		}
		if err == nil {
			_ = conn.Close(t.Context())
		}
	}
	for _, listen := range []string{"0.0.0.0:0", "[::]:0", ":0"} {
		command := exec.Command(binary, "serve", "--authentication", "trust", "--listen", listen,
			"--upstream", "x:1", "--service-dsn", "x")
		output, err := command.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 2 ||
			!strings.Contains(string(output), "loopback") {
			t.Errorf("listening on %s: %v: %s", listen, err, output)
		}
	}
}

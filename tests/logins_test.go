package tests

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgproto3/v2"
	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/catalog"
)

func TestWhoDoesNotLogInTakesNoSeat(t *testing.T) {
	p := shared.serve(t, "--max-clients", "2", "--queue-timeout", "1s", "--startup-timeout", "30s")
	user := shared.reader(t)
	begun, err := (&pgproto3.StartupMessage{
		ProtocolVersion: pgproto3.ProtocolVersionNumber,
		Parameters:      map[string]string{"user": user, "database": "hospital"},
	}).Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		conn, err := net.Dial("tcp", p.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := conn.Write(begun); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		if _, err := conn.Read(make([]byte, 1)); err != nil { // it is asked for its proof
			t.Fatalf("a login is not begun: %v", err)
		}
	}
	for range 2 {
		if n := one[int](t, connect(t, p.dsn(user)), `SELECT count(*) FROM patients`); n != patients {
			t.Errorf("%d patients", n)
		}
	}
}

// TestARoleReadsHoweverLongItsNameIsWritten logs in by names that
// PostgreSQL cuts to the role's.
func TestARoleReadsHoweverLongItsNameIsWritten(t *testing.T) {
	p, direct := shared.serve(t), shared.superuser(t)
	name := strings.Repeat("l", 63)
	mustExec(t, direct, fmt.Sprintf(`CREATE ROLE %s LOGIN PASSWORD '%[1]s'`, name))
	mustExec(t, direct, `CALL tailor.grant_reader($1)`, name)
	for _, written := range []string{name, name + "o", name + "nger"} {
		reader := connect(t, strings.Replace(p.dsn(written), ":"+written, ":"+name, 1))
		if got := one[string](t, reader, `SELECT current_user::text FROM patients LIMIT 1`); got != name {
			t.Errorf("%s is %s", written, got)
		}
	}
}

// rushes logs in a number of times, many at once, each with one statement, and
// returns how many sessions got a connection that had served another.
func (p *testProxy) rushes(
	t *testing.T, user string, logins int, known map[int32]bool,
) (reused int) {
	t.Helper()
	var mu sync.Mutex
	inParallel(logins, 20, func(int) {
		conn, err := pgx.Connect(t.Context(), p.dsn(user)+"&default_query_exec_mode=simple_protocol")
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close(context.Background()) }()
		var process int32
		if err := conn.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&process); err != nil {
			t.Error(err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if known[process] {
			reused++
		}
		known[process] = true
	})
	return reused
}

// TestLoginsInARushTakeOverConnections is what makes them cheap, without any
// setting, for PostgreSQL starts no process for them.
func TestLoginsInARushTakeOverConnections(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	known := make(map[int32]bool)
	logins, reused := 0, 0
	waitFor(t, func() bool {
		logins += 40
		reused += p.rushes(t, user, 40, known)
		return t.Failed() || reused >= 300
	})
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.command.Wait(); err != nil {
		t.Errorf("the proxy ended with %v", err)
	}
	runs, together := 0, 0
	for _, r := range p.records(t) {
		if r["principal"] != user || r["sql"] != "SELECT pg_backend_pid()" {
			continue
		}
		counted, _ := r["runs"].(float64)
		runs += max(1, int(counted))
		if r["session"] == "" {
			together += int(counted)
			if r["client"] != "127.0.0.1" {
				t.Errorf("runs of several sessions are said to come from %q", r["client"])
			}
		}
	}
	if runs != logins {
		t.Errorf("%d runs are recorded of %d", runs, logins)
	}
	if together == 0 {
		t.Error("each session has a record of its own")
	}
}

// TestALoginInARushFindsTheRoleAsItIsNow changes a role while connections are
// kept that its sessions had before.
func TestALoginInARushFindsTheRoleAsItIsNow(t *testing.T) {
	p := shared.serve(t, "--upstream-reuse", "1m", "--wrong-password-pause", "0s")
	direct := shared.superuser(t)
	for _, c := range []struct{ claim, change, undo, code string }{
		{"another password", "PASSWORD 'another'", "PASSWORD '%s'", "28P01"},
		{"a password that has expired", "VALID UNTIL 'yesterday'", "VALID UNTIL 'infinity'", "28P01"},
		{"no right to log in", "NOLOGIN", "LOGIN", "28P01"},
		{"no connections", "CONNECTION LIMIT 0", "CONNECTION LIMIT -1", "53300"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			user := shared.reader(t)
			known := make(map[int32]bool)
			waitFor(t, func() bool { return t.Failed() || p.rushes(t, user, 40, known) > 0 })
			mustExec(t, direct, "ALTER ROLE "+user+" "+c.change)
			if conn, err := pgx.Connect(t.Context(), p.dsn(user)); codeIn(err) != c.code {
				t.Errorf("%v, want %s", err, c.code)
				if err == nil {
					_ = conn.Close(t.Context())
				}
			}
			if strings.Contains(c.undo, "%s") {
				c.undo = fmt.Sprintf(c.undo, user)
			}
			mustExec(t, direct, "ALTER ROLE "+user+" "+c.undo)
			waitFor(t, func() bool {
				conn, err := pgx.Connect(t.Context(), p.dsn(user))
				if err == nil {
					return conn.Close(t.Context()) == nil
				}
				if codeIn(err) != "57P03" { // challenged with the salt of a moment ago
					t.Fatal(err)
				}
				return false
			})
		})
	}
}

// TestMembershipsAreAmongWhatLoginsMustShare has PostgreSQL decide anew who may
// connect, which pg_hba.conf and databases say by role.
func TestMembershipsAreAmongWhatLoginsMustShare(t *testing.T) {
	user := shared.reader(t)
	direct := shared.superuser(t)
	policies, err := catalog.Open(t.Context(), shared.cluster.ServiceDSN("hospital"),
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(policies.Close)
	settings := func() string {
		principal, err := policies.Principal(t.Context(), user)
		if err != nil {
			t.Fatal(err)
		}
		if !principal.Reader || !principal.Inherits {
			t.Errorf("reader: %v, with its privileges: %v", principal.Reader, principal.Inherits)
		}
		return principal.Settings
	}
	mustExec(t, direct, "CREATE ROLE "+user+"_near; CREATE ROLE "+user+"_far",
		pgx.QueryExecModeSimpleProtocol)
	before := settings()
	mustExec(t, direct, "GRANT "+user+"_near TO "+user)
	near := settings()
	mustExec(t, direct, "GRANT "+user+"_far TO "+user+"_near")
	if far := settings(); near == before || far == near || settings() != far {
		t.Error("a membership changes nothing, or the same one does")
	}
}

package tests

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func TestPostgreSQLSeesNoMoreConnectionsThanAllowed(t *testing.T) {
	p := shared.serve(t, "--max-upstream", "3", "--queue-timeout", "30s", "--upstream-reuse", "5s",
		"--metrics", "127.0.0.1:0")
	user := shared.reader(t)
	// PostgreSQL itself refuses a fourth, at once and with its own words.
	mustExec(t, shared.superuser(t), fmt.Sprintf("ALTER ROLE %s CONNECTION LIMIT 3", user))
	var group sync.WaitGroup
	var served atomic.Int32
	for range 8 {
		group.Go(func() {
			for i := range 12 {
				// Two kinds of logins, so that what is kept of one is in the way of the other.
				conn, err := pgconn.Connect(t.Context(),
					fmt.Sprintf("%s&application_name=kind%d", p.dsn(user), i%2))
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := conn.Exec(t.Context(), "SELECT pg_sleep(0.01)").ReadAll(); err != nil {
					t.Error(err)
				}
				served.Add(1)
				_ = conn.Close(t.Context())
			}
		})
	}
	group.Wait()
	if served.Load() != 8*12 {
		t.Errorf("%d of %d sessions were served", served.Load(), 8*12)
	}
	if _, text := get(t, p.operations(t)+"/metrics"); !strings.Contains(text,
		"tailor_upstream_connections ") {
		t.Error("the connections are not in the metrics")
	}
}

func TestWhoFindsNoConnectionWaitsAndIsThenRefused(t *testing.T) {
	p := shared.serve(t, "--max-upstream", "1", "--queue-timeout", "1s")
	user := shared.reader(t)
	first := connect(t, p.dsn(user))
	started := time.Now()
	if _, err := pgconn.Connect(t.Context(), p.dsn("dba")); codeIn(err) != "53300" ||
		time.Since(started) < time.Second {
		t.Errorf("%v after %v, want 53300 after a wait", err, time.Since(started))
	}
	// A session that is ended from outside frees its place.
	mustExec(t, shared.superuser(t), "SELECT pg_terminate_backend($1)", int32(first.PgConn().PID()))
	if _, err := first.Exec(t.Context(), "SELECT 1"); codeIn(err) != "57P01" {
		t.Errorf("the ended session: %v, want 57P01", err)
	}
	second := connect(t, p.dsn("dba"))
	// One that cannot log in at PostgreSQL takes none.
	_ = second.Close(t.Context())
	for range 3 {
		if _, err := pgconn.Connect(t.Context(),
			strings.Replace(p.dsn(user), "/hospital", "/nowhere", 1)); codeIn(err) != "3D000" {
			t.Errorf("%v, want 3D000", err)
		}
	}
	connect(t, p.dsn(user))
}

func TestAKeptConnectionThatWasEndedIsNotGivenOut(t *testing.T) {
	p := shared.serve(t, "--upstream-reuse", "1m", "--max-upstream", "2")
	user := shared.reader(t)
	direct := shared.superuser(t)
	kept := "SELECT count(*) FROM pg_stat_activity WHERE usename = $1"
	waitFor(t, func() bool { // until a rush is noticed
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() {
				conn, err := pgconn.Connect(t.Context(), p.dsn(user))
				if err != nil {
					t.Error(err)
					return
				}
				_ = conn.Close(t.Context())
			})
		}
		group.Wait()
		return one[int](t, direct, kept, user) > 0
	})
	mustExec(t, direct, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1",
		user)
	waitFor(t, func() bool { return one[int](t, direct, kept, user) == 0 })
	for range 3 {
		conn, err := pgconn.Connect(t.Context(), p.dsn(user))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), "SELECT 1").ReadAll(); err != nil {
			t.Errorf("%v", err)
		}
		_ = conn.Close(t.Context())
	}
}

func TestWhoWaitsWhenTheProxyEndsIsToldSo(t *testing.T) {
	p := shared.serve(t, "--max-upstream", "1", "--queue-timeout", "1m", "--metrics", "127.0.0.1:0")
	user := shared.reader(t)
	busy := connect(t, p.dsn(user))
	tx, err := busy.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error, 1)
	go func() {
		_, err := pgconn.Connect(context.Background(), p.dsn(user))
		waiting <- err
	}()
	waitFor(t, func() bool {
		_, text := get(t, p.operations(t)+"/metrics")
		return strings.Contains(text, "tailor_queued_clients 1")
	})
	_ = p.command.Process.Signal(syscall.SIGTERM)
	if err := <-waiting; codeIn(err) != "57P03" {
		t.Errorf("who waits: %v, want 57P03", err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Errorf("commit: %v", err)
	}
	if err := p.command.Wait(); err != nil {
		t.Errorf("the proxy ended with %v", err)
	}
}

// TestNothingIsKeptBeyondAReload has a server without TLS be reached by TLS only:
// no login is served by a connection from before.
func TestNothingIsKeptBeyondAReload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tailor.yaml")
	mode := func(mode string) {
		t.Helper()
		if err := os.WriteFile(file, []byte("upstream_tls: "+mode+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mode("disable")
	p := shared.serve(t, "--config", file, "--upstream-reuse", "1m")
	user := shared.reader(t)
	known := make(map[int32]bool)
	waitFor(t, func() bool { return t.Failed() || p.rushes(t, user, 40, known) > 0 })
	mode("require")
	if err := p.command.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return strings.Contains(p.log.String(), "configuration reloaded") })
	for range 5 {
		conn, err := pgconn.Connect(t.Context(), p.dsn(user))
		if codeIn(err) != "57P03" {
			t.Errorf("%v, want 57P03", err)
		}
		if err == nil {
			_ = conn.Close(t.Context())
		}
	}
}

// TestWhatIsKeptIsInNobodysWay has logins meet limits while connections are kept.
func TestWhatIsKeptIsInNobodysWay(t *testing.T) {
	direct := shared.superuser(t)
	t.Run("of PostgreSQL", func(t *testing.T) {
		p := shared.serve(t, "--upstream-reuse", "5m")
		user := shared.reader(t)
		known := make(map[int32]bool)
		waitFor(t, func() bool { return t.Failed() || p.rushes(t, user, 40, known) > 0 })
		mustExec(t, direct, "ALTER ROLE "+user+" CONNECTION LIMIT 1")
		waitFor(t, func() bool { // sessions that end meanwhile count
			conn, err := pgconn.Connect(t.Context(), p.dsn(user))
			if err != nil && codeIn(err) != "53300" {
				t.Fatal(err)
			}
			return err == nil && conn.Close(t.Context()) == nil
		})
	})
	t.Run("of a role's clients", func(t *testing.T) {
		const limit = 4
		p := shared.serve(t, "--upstream-reuse", "5m", "--max-clients-per-principal", strconv.Itoa(limit))
		user := shared.reader(t)
		most := 0
		for kind := range 3 * limit {
			for logins := 0; logins < 12; {
				conn, err := pgx.Connect(t.Context(),
					fmt.Sprintf("%s&application_name=kind%d", p.dsn(user), kind))
				if codeIn(err) == "53300" { // sessions that end count
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				logins++
				mustExec(t, conn, "SELECT 1")
				_ = conn.Close(t.Context())
			}
			most = max(most, one[int](t, direct, "SELECT count(*) FROM pg_stat_activity WHERE usename = $1",
				user))
		}
		if most > limit {
			t.Errorf("PostgreSQL had %d sessions of the role, want at most %d", most, limit)
		}
	})
}

// TestAKeptConnectionHasNotBeenIdleForItsNextClient waits for less than PostgreSQL's
// patience with a connection that is kept, and again with the session that has it.
func TestAKeptConnectionHasNotBeenIdleForItsNextClient(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	mustExec(t, shared.superuser(t), "ALTER ROLE "+user+" SET idle_session_timeout = '3s'")
	known := make(map[int32]bool)
	waitFor(t, func() bool { return t.Failed() || p.rushes(t, user, 40, known) > 0 })
	time.Sleep(2 * time.Second)
	conn, err := pgconn.Connect(t.Context(), p.dsn(user))
	if err != nil {
		t.Fatal(err)
	}
	if !known[int32(conn.PID())] {
		t.Fatal("the session has a new connection")
	}
	time.Sleep(2 * time.Second)
	if _, err := conn.Exec(t.Context(), "SELECT 1").ReadAll(); err != nil {
		t.Error(err)
	}
	_ = conn.Close(t.Context())
}

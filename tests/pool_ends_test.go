package tests

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestARoleThatChangesGetsNoConnectionAnyMore(t *testing.T) {
	p := shares(t, 1)
	user := limited(t, 1)
	other := connect(t, p.dsn("dba"))
	conn := connect(t, p.dsn(user)) // takes the connection's place
	if one[int](t, conn, "SELECT 1") != 1 || one[int](t, other, "SELECT 1") != 1 {
		t.Fatal("not served")
	}
	mustExec(t, shared.superuser(t), fmt.Sprintf("ALTER ROLE %s PASSWORD 'another'", user))
	if _, err := conn.Exec(t.Context(), "SELECT 1"); codeIn(err) != "28000" {
		t.Errorf("a session from before the new password: %v, want 28000", err)
	}
	if one[int](t, other, "SELECT 1") != 1 {
		t.Error("the other session is not served")
	}
}

func TestAnEndedConnectionIsNotShared(t *testing.T) {
	p := shares(t, 1)
	user := limited(t, 1)
	a, b := connect(t, p.dsn(user)), connect(t, p.dsn(user))
	direct := shared.superuser(t)
	if one[int](t, a, "SELECT 1") != 1 || one[int](t, b, "SELECT 1") != 1 {
		t.Fatal("not served")
	}
	mustExec(t, direct, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1",
		user)
	if _, err := b.Exec(t.Context(), "SELECT 1"); codeIn(err) != "57P01" {
		t.Errorf("the session that had it: %v, want 57P01", err)
	}
	// PostgreSQL counts the connection until its process has gone.
	waitFor(t, func() bool {
		return one[int](t, direct, "SELECT count(*) FROM pg_stat_activity WHERE usename = $1", user) == 0
	})
	if one[int](t, a, "SELECT 1") != 1 {
		t.Error("the session that had none is not served")
	}
}

func TestPgbenchRunsOverSharedConnections(t *testing.T) {
	pgbench, err := exec.LookPath("pgbench")
	if err != nil {
		t.Fatal(err)
	}
	p := shares(t, 4)
	user := limited(t, 4)
	script := filepath.Join(t.TempDir(), "bench.sql")
	text := "\\set n random(1, 10000)\nBEGIN;\nSELECT square FROM numbers WHERE n = :n;\nSELECT " +
		"count(*) FROM patients;\nCOMMIT;\n"
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	host, port, _ := strings.Cut(p.address, ":")
	for _, mode := range []string{"simple", "extended", "prepared"} {
		// A thread for each client: pgbench prepares while its thread waits.
		command := exec.Command(pgbench, "-n", "-h", host, "-p", port, "-U", user, "-M", mode, "-f",
			script, "-c", "20", "-j", "20", "-t", "10", "hospital")
		command.Env = append(os.Environ(), "PGPASSWORD="+user, "PGSSLMODE=disable")
		output, err := command.CombinedOutput()
		var exit *exec.ExitError
		if errors.As(err, &exit) || err != nil || !strings.Contains(string(output),
			"number of transactions actually processed: 200/200") {
			t.Errorf("%s: %v\n%s", mode, err, output)
		}
	}
}

func TestWhoGetsNoConnectionMayTryAgain(t *testing.T) {
	p := shares(t, 1, "--queue-timeout", "1s")
	user := limited(t, 1)
	waiting, busy := connect(t, p.dsn(user)), connect(t, p.dsn(user))
	tx, err := busy.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range modes {
		var n int
		if err := waiting.QueryRow(t.Context(), "SELECT square FROM numbers WHERE n = $1", mode, 3).
			Scan(&n); codeIn(err) != "53300" {
			t.Errorf("%v: %v, want 53300", mode, err)
		}
	}
	ended := make(chan error, 1)
	go func() {
		_, err := waiting.PgConn().Exec(context.Background(), "SELECT pg_sleep(60)").ReadAll()
		ended <- err
	}()
	// it waits by now; were it later, the cancel would come too early
	time.Sleep(200 * time.Millisecond)
	if err := waiting.PgConn().CancelRequest(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; codeIn(err) != "57014" && codeIn(err) != "53300" {
		t.Errorf("cancelled while it waits: %v", err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := one[int](t, waiting, "SELECT square FROM numbers WHERE n = $1", 3); n != 9 {
		t.Errorf("afterwards: %d", n)
	}
}

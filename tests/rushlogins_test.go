package tests

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// TestALoginInARushFindsEveryChangeOfItsRole changes a role while connections are kept
// that its sessions had before.
func TestALoginInARushFindsEveryChangeOfItsRole(t *testing.T) {
	s, err := newStand(filepath.Join(stands, "rush"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	p := s.serve(t, "--upstream-reuse", "1m", "--max-upstream", "60", "--wrong-password-pause", "0s")
	direct := s.superuser(t)
	rules := filepath.Join(s.dir, "data", "pg_hba.conf")
	allowed, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	reload := func(text string) {
		if err := os.WriteFile(rules, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		before := one[time.Time](t, direct, "SELECT pg_conf_load_time()")
		mustExec(t, direct, "SELECT pg_reload_conf()")
		waitFor(t, func() bool {
			return one[time.Time](t, direct, "SELECT pg_conf_load_time()").After(before)
		})
		time.Sleep(100 * time.Millisecond) // until its other processes have noticed
	}
	for i, c := range []struct {
		claim, change, undo string
		ask, want           string // what a session of the role says afterwards
	}{
		{
			"another password", "ALTER ROLE USER PASSWORD 'another'", "ALTER ROLE USER PASSWORD 'USER'",
			"SELECT 1", "28P01",
		},
		{
			"a password that has expired", "ALTER ROLE USER VALID UNTIL 'yesterday'",
			"ALTER ROLE USER VALID UNTIL 'infinity'", "SELECT 1", "28P01",
		},
		{"no right to log in", "ALTER ROLE USER NOLOGIN", "ALTER ROLE USER LOGIN", "SELECT 1", "28P01"},
		{
			"another name", "ALTER ROLE USER RENAME TO USER_", "ALTER ROLE USER_ RENAME TO USER", "SELECT 1",
			"28P01",
		},
		{
			"no connections", "ALTER ROLE USER CONNECTION LIMIT 0", "ALTER ROLE USER CONNECTION LIMIT -1",
			"SELECT 1", "53300",
		},
		{
			"a setting", "ALTER ROLE USER SET work_mem = '5MB'", "ALTER ROLE USER RESET work_mem",
			"SHOW work_mem", "5MB",
		},
		{
			"a setting of the database", "ALTER DATABASE hospital SET work_mem = '6MB'",
			"ALTER DATABASE hospital RESET work_mem", "SHOW work_mem", "6MB",
		},
		{
			"a reader", "CALL tailor.grant_reader('USER')", "REVOKE tailor_reader FROM USER",
			"SELECT count(*) FROM patients", fmt.Sprint(patients),
		},
		{
			"a reader by a group", "GRANT doctors TO USER", "REVOKE doctors FROM USER",
			"SELECT count(*) FROM patients", fmt.Sprint(patients),
		},
		{
			"a reader no longer", "REVOKE doctors FROM USER", "GRANT doctors TO USER",
			"SELECT count(*) FROM patients", "42501",
		},
		{"who may connect", "", "", "SELECT 1", "28000"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			user := fmt.Sprintf("rushing%d", i)
			change, undo := strings.ReplaceAll(c.change, "USER", user),
				strings.ReplaceAll(c.undo, "USER", user)
			if c.claim == "a reader by a group" {
				mustExec(t, direct, "CREATE ROLE doctors; CALL tailor.grant_reader('doctors')",
					pgx.QueryExecModeSimpleProtocol)
			}
			mustExec(t, direct, fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%[1]s'", user))
			if c.want == "42501" {
				mustExec(t, direct, undo)
			}
			known := make(map[int32]bool)
			waitFor(t, func() bool { return t.Failed() || p.rushes(t, user, 40, known) > 0 })
			if c.change == "" {
				reload("host all " + user + " all reject\n" + string(allowed))
				defer reload(string(allowed))
			} else {
				mustExec(t, direct, change)
				defer mustExec(t, direct, undo)
			}
			if got := p.says(t, user, c.ask); got != c.want {
				t.Errorf("a session says %s, want %s", got, c.want)
			}
		})
	}
}

// says logs in and asks for one value; it is the SQLSTATE where that fails.
func (p *testProxy) says(t *testing.T, user, sql string) string {
	t.Helper()
	conn, err := pgconn.Connect(t.Context(), p.dsn(user))
	if err == nil {
		defer func() { _ = conn.Close(context.Background()) }()
		var results []*pgconn.Result
		if results, err = conn.Exec(t.Context(), sql).ReadAll(); err == nil {
			return string(results[0].Rows[0][0])
		}
	}
	if codeIn(err) == "" {
		return err.Error()
	}
	return codeIn(err)
}

// TestALoginThatTheCatalogDoesNotAnswerEndsInTime stops the server's processes that
// the proxy asks.
func TestALoginThatTheCatalogDoesNotAnswerEndsInTime(t *testing.T) {
	const timeout = 700 * time.Millisecond
	user, direct := shared.reader(t), shared.superuser(t)
	service := func() []int32 {
		rows, err := direct.Query(t.Context(),
			"SELECT pid FROM pg_stat_activity WHERE application_name = 'tailor'")
		if err != nil {
			t.Fatal(err)
		}
		all, err := pgx.CollectRows(rows, pgx.RowTo[int32])
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	others := make(map[int32]bool)
	for _, pid := range service() {
		others[pid] = true
	}
	p := shared.serve(t, "--startup-timeout", timeout.String())
	login := func() error {
		conn, err := pgconn.Connect(t.Context(), p.dsn(user))
		if err == nil {
			_ = conn.Close(context.Background())
		}
		return err
	}
	waitFor(t, func() bool {
		if err := login(); err != nil {
			t.Error(err)
		}
		for _, pid := range service() {
			if !others[pid] {
				if err := syscall.Kill(int(pid), syscall.SIGSTOP); err != nil {
					t.Error(err)
				}
				defer func() { _ = syscall.Kill(int(pid), syscall.SIGCONT) }()
			}
		}
		var late atomic.Int64
		inParallel(4, 4, func(int) {
			began := time.Now()
			err := login()
			switch took := time.Since(began); {
			case err == nil: // asked on a connection that was made meanwhile
			case codeIn(err) != "57P03" || took > 10*timeout:
				t.Errorf("after %v: %v", took, err)
			case took >= timeout:
				late.Add(1)
			}
		})
		return t.Failed() || late.Load() > 0
	})
}

func TestARushLeavesNothing(t *testing.T) {
	p, dsn := faulty(t)
	p.leaksNothing(t, func() {
		inParallel(400, 20, func(int) {
			conn, err := pgconn.Connect(t.Context(), dsn)
			if err != nil {
				t.Error(err)
				return
			}
			_ = conn.Close(context.Background())
		})
	})
}

func TestAProxyThatEndsInARushLeavesNothing(t *testing.T) {
	p := shared.serve(t)
	user, direct := shared.reader(t), shared.superuser(t)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	var logins atomic.Int64
	for range 8 {
		group.Go(func() {
			for ctx.Err() == nil {
				if conn, err := pgconn.Connect(ctx, p.dsn(user)); err == nil {
					logins.Add(1)
					_ = conn.Close(context.Background())
				}
			}
		})
	}
	waitFor(t, func() bool { return logins.Load() > 100 })
	p.stop(t)
	cancel()
	group.Wait()
	waitFor(t, func() bool {
		return one[int](t, direct, "SELECT count(*) FROM pg_stat_activity WHERE usename = $1", user) == 0
	})
}

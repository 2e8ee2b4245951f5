package tests

import (
	"context"
	"fmt"
	"maps"
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

// inquirers are the server's processes that loops of a proxy ask about logins,
// each with when it was asked last.
func inquirers(t *testing.T, direct *pgx.Conn) map[int]time.Time {
	t.Helper()
	rows, err := direct.Query(t.Context(), "SELECT pid, query_start FROM pg_stat_activity WHERE application_name = 'tailor logins' AND query_start IS NOT NULL")
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[int]time.Time)
	var pid int
	var asked time.Time
	if _, err := pgx.ForEachRow(rows, []any{&pid, &asked}, func() error {
		all[pid] = asked
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestALoginThatTheLoopAsksAboutFindsTheRoleAsItIsNow changes a role in a rush, and
// believes nothing but a login for which a loop has asked the catalog by itself.
func TestALoginThatTheLoopAsksAboutFindsTheRoleAsItIsNow(t *testing.T) {
	s, err := newStand(filepath.Join(stands, "inquiry"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	p := s.serve(t, "--upstream-reuse", "5s", "--max-upstream", "60", "--wrong-password-pause", "0s")
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
		exec1(t, direct, "SELECT pg_reload_conf()")
		time.Sleep(20 * time.Millisecond) // until the server's processes have noticed
	}
	for i, c := range []struct {
		claim, change, undo string
		ask, want           string // what a session of the role says afterwards
	}{
		{"another password", "ALTER ROLE USER PASSWORD 'another'", "ALTER ROLE USER PASSWORD 'USER'", "SELECT 1", "28P01"},
		{"a password that has expired", "ALTER ROLE USER VALID UNTIL 'yesterday'", "ALTER ROLE USER VALID UNTIL 'infinity'", "SELECT 1", "28P01"},
		{"no right to log in", "ALTER ROLE USER NOLOGIN", "ALTER ROLE USER LOGIN", "SELECT 1", "28P01"},
		{"another name", "ALTER ROLE USER RENAME TO USER_", "ALTER ROLE USER_ RENAME TO USER", "SELECT 1", "28P01"},
		{"no connections", "ALTER ROLE USER CONNECTION LIMIT 0", "ALTER ROLE USER CONNECTION LIMIT -1", "SELECT 1", "53300"},
		{"a setting", "ALTER ROLE USER SET work_mem = '5MB'", "ALTER ROLE USER RESET work_mem", "SHOW work_mem", "5MB"},
		{"a setting of the database", "ALTER DATABASE hospital SET work_mem = '6MB'", "ALTER DATABASE hospital RESET work_mem", "SHOW work_mem", "6MB"},
		{"a reader", "CALL tailor.grant_reader('USER')", "REVOKE tailor_reader FROM USER", "SELECT count(*) FROM patients", fmt.Sprint(patients)},
		{"a reader by a group", "GRANT doctors TO USER", "REVOKE doctors FROM USER", "SELECT count(*) FROM patients", fmt.Sprint(patients)},
		{"a reader no longer", "REVOKE doctors FROM USER", "GRANT doctors TO USER", "SELECT count(*) FROM patients", "42501"},
		{"who may connect", "", "", "SELECT 1", "28000"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			user := fmt.Sprintf("inquired%d", i)
			change, undo := strings.ReplaceAll(c.change, "USER", user), strings.ReplaceAll(c.undo, "USER", user)
			if c.claim == "a reader by a group" {
				exec1(t, direct, "CREATE ROLE doctors; CALL tailor.grant_reader('doctors')", pgx.QueryExecModeSimpleProtocol)
			}
			exec1(t, direct, fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%[1]s'", user))
			if c.want == "42501" {
				exec1(t, direct, undo)
			}
			known := make(map[int32]bool)
			onLoop := func() bool { // the next login is asked about by a loop
				p.rushes(t, user, 40, known)
				before := inquirers(t, direct)
				if c.change == "" {
					reload("host all " + user + " all reject\n" + string(allowed))
				} else {
					exec1(t, direct, change)
				}
				got := p.says(t, user, c.ask)
				if c.change == "" {
					reload(string(allowed))
				} else {
					exec1(t, direct, undo)
				}
				for pid, asked := range inquirers(t, direct) {
					if then, there := before[pid]; there && asked.After(then) {
						if got != c.want {
							t.Errorf("a session says %s, want %s", got, c.want)
						}
						return true
					}
				}
				return false
			}
			waitFor(t, func() bool {
				if onLoop() || t.Failed() {
					return true
				}
				time.Sleep(200 * time.Millisecond) // until nobody is challenged with what was changed
				return false
			})
		})
	}
}

// says logs in and asks for one value; it is the SQLSTATE where that fails.
func (p *proxied) says(t *testing.T, user, sql string) string {
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

// rushing logs in without a pause until it is told to stop; failures are errors.
func (p *proxied) rushing(t *testing.T, user string, atATime int) (stop func(), longest *atomic.Int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	longest = &atomic.Int64{}
	for range atATime {
		group.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				conn, err := pgconn.Connect(t.Context(), p.dsn(user))
				if err != nil {
					t.Errorf("login: %v", err)
					return
				}
				for took, most := int64(time.Since(began)), longest.Load(); took > most && !longest.CompareAndSwap(most, took); most = longest.Load() {
				}
				_ = conn.Close(context.Background())
			}
		})
	}
	stop = sync.OnceFunc(func() {
		cancel()
		group.Wait()
	})
	t.Cleanup(stop)
	return stop, longest
}

// TestLoginsGoOnWithoutTheLoopsConnection ends and stops the processes that loops
// ask, again and again, with two loops.
func TestLoginsGoOnWithoutTheLoopsConnection(t *testing.T) {
	t.Setenv("GOMAXPROCS", "4")
	p := shared.serve(t, "--metrics", "127.0.0.1:0", "--pprof")
	user, direct := shared.reader(t), shared.superuser(t)
	session := connect(t, p.dsn(user))
	stop, longest := p.rushing(t, user, 8)
	for range 3 {
		waitFor(t, func() bool { return t.Failed() || len(inquirers(t, direct)) == 2 })
		ended := inquirers(t, direct)
		for pid := range ended {
			exec1(t, direct, "SELECT pg_terminate_backend($1)", pid)
		}
		waitFor(t, func() bool { // another has come in the place of each
			now := inquirers(t, direct)
			maps.DeleteFunc(now, func(pid int, _ time.Time) bool { return !ended[pid].IsZero() })
			return t.Failed() || len(now) == 2
		})
	}
	var slow time.Duration
	stopped := inquirers(t, direct)
	for pid := range stopped {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	}
	for until := time.Now().Add(3 * time.Second); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		began := time.Now()
		if n := one[int](t, session, "SELECT 1"); n != 1 {
			t.Errorf("a session says %d", n)
		}
		slow = max(slow, time.Since(began))
	}
	if slow > 800*time.Millisecond {
		t.Errorf("a session waited %v for those who log in", slow)
	}
	if took := time.Duration(longest.Load()); took < time.Second || took > 10*time.Second {
		t.Errorf("the login that took longest took %v, want the time until the loop asks elsewhere", took)
	}
	stop()
	for pid := range stopped {
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, func() bool { return len(inquirers(t, direct)) == 0 }) // nobody logs in any more
}

// TestALoginThatTheCatalogDoesNotAnswerEndsInTime stops the process that the loop
// asks, where logins have less time than it is waited for.
func TestALoginThatTheCatalogDoesNotAnswerEndsInTime(t *testing.T) {
	const timeout = 700 * time.Millisecond
	p := shared.serve(t, "--startup-timeout", timeout.String())
	user, direct := shared.reader(t), shared.superuser(t)
	login := func() error {
		conn, err := pgconn.Connect(t.Context(), p.dsn(user))
		if err == nil {
			_ = conn.Close(context.Background())
		}
		return err
	}
	signal := func(all map[int]time.Time, s syscall.Signal) {
		for pid := range all {
			if err := syscall.Kill(pid, s); err != nil {
				t.Fatal(err)
			}
		}
	}
	waitFor(t, func() bool {
		var asked map[int]time.Time
		waitFor(t, func() bool {
			inParallel(40, 8, func(int) { _ = login() })
			asked = inquirers(t, direct)
			return len(asked) > 0
		})
		signal(asked, syscall.SIGSTOP)
		defer signal(asked, syscall.SIGCONT)
		var late atomic.Int64
		inParallel(4, 4, func(int) {
			began := time.Now()
			err := login()
			switch took := time.Since(began); {
			case err == nil: // asked about elsewhere
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
	direct := shared.superuser(t)
	p.leaksNothing(t, func() {
		waitFor(t, func() bool {
			inParallel(40, 20, func(int) {
				conn, err := pgconn.Connect(t.Context(), dsn)
				if err != nil {
					t.Error(err)
					return
				}
				_ = conn.Close(context.Background())
			})
			return t.Failed() || len(inquirers(t, direct)) > 0
		})
	})
	waitFor(t, func() bool { return len(inquirers(t, direct)) == 0 })
}

// TestAProxyThatEndsInARushLeavesNothing has two loops.
func TestAProxyThatEndsInARushLeavesNothing(t *testing.T) {
	t.Setenv("GOMAXPROCS", "4")
	p := shared.serve(t)
	user, direct := shared.reader(t), shared.superuser(t)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for ctx.Err() == nil {
				if conn, err := pgconn.Connect(ctx, p.dsn(user)); err == nil {
					_ = conn.Close(context.Background())
				}
			}
		})
	}
	waitFor(t, func() bool { return len(inquirers(t, direct)) == 2 })
	p.stop(t)
	cancel()
	group.Wait()
	waitFor(t, func() bool { return len(inquirers(t, direct)) == 0 })
}

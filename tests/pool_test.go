package tests

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// shares starts a proxy whose sessions share a number of connections.
func shares(t *testing.T, connections int, flags ...string) *testProxy {
	t.Helper()
	return shared.serve(t, append([]string{
		"--pool", "transaction", "--max-upstream",
		fmt.Sprint(connections), "--queue-timeout", "30s",
	}, flags...)...)
}

// limited makes a reader of whom PostgreSQL itself accepts no more connections.
func limited(t *testing.T, connections int) string {
	t.Helper()
	user := shared.reader(t)
	mustExec(t, shared.superuser(t), fmt.Sprintf("ALTER ROLE %s CONNECTION LIMIT %d", user,
		connections))
	return user
}

var modes = []pgx.QueryExecMode{
	pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
	pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
}

func TestManySessionsShareFewConnections(t *testing.T) {
	p := shares(t, 4)
	user := limited(t, 4)
	var group sync.WaitGroup
	for i := range 200 {
		group.Go(func() {
			config, err := pgx.ParseConfig(p.dsn(user))
			if err != nil {
				t.Error(err)
				return
			}
			config.DefaultQueryExecMode = modes[i%len(modes)]
			conn, err := pgx.ConnectConfig(t.Context(), config)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = conn.Close(context.Background()) }()
			for round := range 5 {
				var n int
				if err := conn.QueryRow(t.Context(), "SELECT square FROM numbers WHERE n = $1", i+1).
					Scan(&n); err != nil || n != (i+1)*(i+1) {
					t.Errorf("session %d, round %d: %d, %v", i, round, n, err)
					return
				}
				if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM patients WHERE age >= $1", 0).
					Scan(&n); err != nil || n != patients {
					t.Errorf("session %d, round %d: %d patients, %v", i, round, n, err)
					return
				}
			}
		})
	}
	group.Wait()
}

// inDemand keeps all connections of a proxy in demand until the returned function
// is called.
func inDemand(t *testing.T, p *testProxy, user string, sessions int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	var ran atomic.Int32
	for range sessions {
		conn, err := pgconn.Connect(t.Context(), p.dsn(user))
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			defer func() { _ = conn.Close(context.Background()) }()
			for ctx.Err() == nil {
				if _, err := conn.Exec(context.Background(), "SELECT pg_sleep(0.002)").ReadAll(); err != nil {
					t.Errorf("the crowd: %v", err)
					return
				}
				ran.Add(1)
			}
		})
	}
	return func() {
		cancel()
		group.Wait()
		if ran.Load() == 0 {
			t.Error("nobody was in the way")
		}
	}
}

func TestNoStateLeaksAndNoneIsLost(t *testing.T) {
	p := shares(t, 2)
	user := limited(t, 2)
	defer inDemand(t, p, user, 3)()
	a, b := connect(t, p.dsn(user)), connect(t, p.dsn(user))
	fresh := map[string]string{}
	for _, name := range []string{"work_mem", "search_path", "DateStyle"} {
		fresh[name] = one[string](t, b, "SELECT current_setting($1)", name)
	}
	for name, value := range map[string]string{
		"work_mem": "7MB", "search_path": "public, pg_temp",
		"DateStyle": "German, DMY",
	} {
		mustExec(t, a, fmt.Sprintf("SELECT set_config('%s', '%s', false)", name, value))
	}
	mustExec(t, a, "SET tailor.notices = off")
	for range 30 {
		if got := one[string](t, a,
			"SELECT current_setting('work_mem') || "+
				"current_setting('tailor.notices', true)"); got != "7MBoff" {
			t.Fatalf("the session's own settings: %s", got)
		}
		for name, value := range fresh {
			if got := one[string](t, b, "SELECT current_setting($1)", name); got != value {
				t.Fatalf("another session's %s: %s, want %s", name, got, value)
			}
		}
	}
}

// TestWhatCannotMoveKeepsItsConnection has state of each kind in one session, of
// which the others must see nothing.
func TestWhatCannotMoveKeepsItsConnection(t *testing.T) {
	for _, c := range []struct{ claim, make, is string }{
		{
			"a temporary table", "CREATE TEMP TABLE mine AS SELECT 1 AS x",
			"SELECT count(*) = 1 FROM pg_temp.mine",
		},
		{
			"an advisory lock", "SELECT pg_advisory_lock(4711)",
			"SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 4711 AND pid = " +
				"pg_backend_pid()",
		},
		{"a prepared statement of SQL", "PREPARE mine AS SELECT true", "EXECUTE mine"},
		{
			"a cursor with hold", "DECLARE mine CURSOR WITH HOLD FOR SELECT true",
			"SELECT count(*) = 1 FROM pg_cursors WHERE name = 'mine' AND is_holdable",
		},
		{"a variable", "SET my.variable = 'x'", "SELECT current_setting('my.variable') = 'x'"},
		{
			"a hidden call", "SELECT set_config('my.variable', 'x', false)",
			"SELECT current_setting('my.variable') = 'x'",
		},
		{"listening", "LISTEN mine", "SELECT count(*) = 1 FROM pg_listening_channels()"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			p := shares(t, 2)
			user := limited(t, 2)
			holder := connect(t, p.dsn(user))
			run := func(conn *pgx.Conn, sql string) (bool, error) {
				var yes bool
				err := conn.QueryRow(t.Context(), sql, pgx.QueryExecModeSimpleProtocol).Scan(&yes)
				return yes, err
			}
			if _, err := conn1(t, holder, c.make); err != nil {
				t.Fatal(err)
			}
			defer inDemand(t, p, user, 3)()
			other := connect(t, p.dsn(user))
			for range 10 {
				if yes, err := run(holder, c.is); err != nil || !yes {
					t.Fatalf("lost: %v, %v", yes, err)
				}
				if yes, err := run(other, c.is); err == nil && yes {
					t.Fatal("leaked")
				}
			}
		})
	}
}

// conn1 runs a text by the simple protocol.
func conn1(t *testing.T, conn *pgx.Conn, sql string) (pgconn.CommandTag, error) {
	t.Helper()
	return conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
}

func TestTransactionsStayWhole(t *testing.T) {
	p := shares(t, 2)
	user := limited(t, 2)
	defer inDemand(t, p, user, 3)()
	conn := connect(t, p.dsn(user))
	for range 10 {
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var first, second int
		if err := tx.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&first); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), "SAVEPOINT s"); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), "SELECT 1 / $1", 0); codeIn(err) != "22012" {
			t.Errorf("%v, want 22012", err)
		}
		if _, err := tx.Exec(t.Context(), "SELECT square FROM numbers WHERE n = $1",
			3); codeIn(err) != "25P02" {
			t.Errorf("%v, want 25P02", err)
		}
		if _, err := tx.Exec(t.Context(), "ROLLBACK TO s"); err != nil {
			t.Fatal(err)
		}
		var square int
		if err := tx.QueryRow(t.Context(), "SELECT square FROM numbers WHERE n = $1", 3).
			Scan(&square); err != nil || square != 9 {
			t.Fatalf("after the error: %d, %v", square, err)
		}
		if err := tx.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&second); err != nil ||
			first != second {
			t.Fatalf("%d and %d: %v", first, second, err)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPreparedStatementsFollowTheirSession(t *testing.T) {
	p := shares(t, 2)
	user := limited(t, 2)
	defer inDemand(t, p, user, 3)()
	conn := connect(t, p.dsn(user))
	for name, sql := range map[string]string{
		"plain": "SELECT square FROM numbers WHERE n = $1", "protected": "SELECT count(*) FROM " +
			"patients WHERE age >= $1",
	} {
		if _, err := conn.Prepare(t.Context(), name, sql); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.PgConn().Prepare(t.Context(), "plain", "SELECT 1", nil); codeIn(err) != "42P05" {
		t.Errorf("a name that is taken: %v, want 42P05", err)
	}
	if _, err := conn.PgConn().Prepare(t.Context(), "wrong", "SELECT nothing",
		nil); codeIn(err) != "42703" {
		t.Errorf("%v, want 42703", err)
	}
	if r := conn.PgConn().ExecPrepared(t.Context(), "wrong", nil, nil, nil).
		Read(); codeIn(r.Err) != "26000" {
		t.Errorf("what could not be prepared: %v, want 26000", r.Err)
	}
	processes := make(map[int]bool)
	for i := range 40 {
		if n := one[int](t, conn, "plain", i+1); n != (i+1)*(i+1) {
			t.Fatalf("plain: %d", n)
		}
		if n := one[int](t, conn, "protected", 0); n != patients {
			t.Fatalf("protected: %d", n)
		}
		processes[one[int](t, conn, "SELECT pg_backend_pid()")] = true
	}
	if len(processes) < 2 {
		t.Error("the session never changed its connection: nothing was tested")
	}
	if _, err := conn1(t, conn, "DEALLOCATE plain"); err != nil {
		t.Errorf("deallocate: %v", err)
	}
	if r := conn.PgConn().ExecPrepared(t.Context(), "plain", [][]byte{[]byte("1")}, nil, nil).
		Read(); codeIn(r.Err) != "26000" {
		t.Errorf("what was deallocated: %v, want 26000", r.Err)
	}
	if n := one[int](t, conn, "protected", 0); n != patients {
		t.Errorf("what was not deallocated: %d", n)
	}
	if _, err := conn.PgConn().Prepare(t.Context(), "plain", "SELECT 7", nil); err != nil {
		t.Errorf("the name is free again: %v", err)
	}
}

// TestSessionsThatShareConnectionsNeverMix runs random transactions of two roles
// and many sessions over few connections, in any order: each sees its own role,
// its own canary, its own chain's answers and nobody else's cancel request.
func TestSessionsThatShareConnectionsNeverMix(t *testing.T) {
	p := shares(t, 3)
	direct := shared.superuser(t)
	readers := []string{shared.reader(t), ""}
	readers[1] = readers[0] + "_two"
	mustExec(t, direct, fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", readers[1], readers[1]))
	mustExec(t, direct, "CALL tailor.grant_reader($1)", readers[1])
	for _, user := range readers {
		mustExec(t, direct, fmt.Sprintf("CREATE TABLE canary_%s AS SELECT '%s'::text AS whose", user,
			"canary of "+user))
		mustExec(t, direct, fmt.Sprintf("GRANT SELECT ON canary_%s TO %s", user, user))
	}
	const least = 100 // transactions, for which a busy machine takes longer
	deadline := time.Now().Add(8 * time.Second)
	var group sync.WaitGroup
	var transactions, cancelled atomic.Int32
	for i := range 24 {
		group.Go(func() {
			user, foreign := readers[i%2], readers[1-i%2]
			random := rand.New(rand.NewPCG(uint64(i), 11))
			config, err := pgx.ParseConfig(p.dsn(user))
			if err != nil {
				t.Error(err)
				return
			}
			config.DefaultQueryExecMode = modes[i%len(modes)]
			conn, err := pgx.ConnectConfig(t.Context(), config)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = conn.Close(context.Background()) }()
			mine := fmt.Sprintf("session_%d", i)
			text := func(sql string, want string) {
				var got string
				if err := conn.QueryRow(t.Context(), sql).Scan(&got); err != nil || got != want {
					t.Errorf("%s of %s: %q, want %q, %v", sql, mine, got, want, err)
				}
			}
			_, err = conn.Exec(t.Context(), "SET application_name = "+mine)
			for err == nil && (time.Now().Before(deadline) || transactions.Load() < least) && !t.Failed() {
				transactions.Add(1)
				switch random.IntN(9) {
				case 0:
					text("SELECT session_user::text", user)
				case 1:
					text("SELECT current_setting('application_name')", mine)
				case 2:
					text("SELECT whose FROM canary_"+user, "canary of "+user)
				case 3:
					if _, err := conn.Exec(t.Context(),
						"SELECT whose FROM canary_"+foreign); codeIn(err) != "42501" {
						t.Errorf("another role's canary: %v, want 42501", err)
					}
				case 4:
					var n int
					if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM patients").Scan(&n); err != nil ||
						n != patients {
						t.Errorf("%d patients: %v", n, err)
					}
				case 5:
					err = pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
						var before, after string
						if _, err := tx.Exec(t.Context(), "SELECT set_config('work_mem', $1, true)",
							fmt.Sprint(1000+i)); err != nil {
							return err
						}
						if err := tx.QueryRow(t.Context(), "SELECT current_setting('work_mem')").
							Scan(&before); err != nil {
							return err
						}
						err := tx.QueryRow(t.Context(), "SELECT session_user::text").Scan(&after)
						if want := fmt.Sprintf("%dkB", 1000+i); before != want || after != user {
							t.Errorf("%s: %s and %s", mine, before, after)
						}
						return err
					})
				case 6:
					// After SET, settings are asked for before a pipeline, not in it.
					text("SELECT count(*)::text FROM patients", fmt.Sprint(patients))
					var batch pgx.Batch
					batch.Queue("SELECT whose FROM canary_" + user)
					batch.Queue("SELECT count(*)::text FROM patients")
					batch.Queue("SELECT session_user::text")
					results := conn.SendBatch(t.Context(), &batch)
					for _, want := range []string{"canary of " + user, fmt.Sprint(patients), user} {
						var got string
						if err := results.QueryRow().Scan(&got); err != nil || got != want {
							t.Errorf("batch of %s: %q, want %q, %v", mine, got, want, err)
						}
					}
					err = results.Close()
				case 7:
					var copied strings.Builder
					_, err = conn.PgConn().CopyTo(t.Context(), &copied,
						"COPY (SELECT whose FROM canary_"+user+") TO STDOUT")
					if copied.String() != "canary of "+user+"\n" {
						t.Errorf("copy of %s: %q", mine, copied.String())
					}
				case 8:
					if random.IntN(4) > 0 {
						break
					}
					done := make(chan error, 1)
					go func() {
						_, err := conn.PgConn().Exec(context.Background(), "SELECT pg_sleep(0.3)").ReadAll()
						done <- err
					}()
					time.Sleep(time.Duration(random.IntN(30)) * time.Millisecond)
					if err := conn.PgConn().CancelRequest(t.Context()); err != nil {
						t.Error(err)
					}
					cancelErr := <-done
					if code := codeIn(cancelErr); cancelErr != nil && code != "57014" {
						t.Errorf("cancelled: %v", cancelErr)
					}
					cancelled.Add(1)
				}
			}
			if err != nil {
				t.Errorf("%s: %v", mine, err)
			}
		})
	}
	group.Wait()
	t.Logf("%d transactions, %d cancelled", transactions.Load(), cancelled.Load())
	if transactions.Load() < least {
		t.Errorf("%d transactions only", transactions.Load())
	}
}

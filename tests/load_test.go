package tests

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// deed is one thing that a client under load does on its session. It says what
// came out wrong.
type deed struct {
	claim string
	run   func(ctx context.Context, conn *pgx.Conn, n int) error
}

// counted checks the single number that a query returns.
func counted(sql string, want int, args ...any) func(context.Context, *pgx.Conn, int) error {
	return func(ctx context.Context, conn *pgx.Conn, _ int) error {
		var n int
		if err := conn.QueryRow(ctx, sql, args...).Scan(&n); err != nil {
			return err
		}
		if n != want {
			return fmt.Errorf("%d, want %d", n, want)
		}
		return nil
	}
}

// failing expects an error and that the session goes on.
func failing(sql, code string, args ...any) func(context.Context, *pgx.Conn, int) error {
	return func(ctx context.Context, conn *pgx.Conn, _ int) error {
		if _, err := conn.Exec(ctx, sql, args...); codeIn(err) != code {
			return fmt.Errorf("%w, want %s", err, code)
		}
		return nil
	}
}

var simple = pgx.QueryExecModeSimpleProtocol

// load is mixed traffic: half of it touches a protected table.
var load = []deed{
	{"a simple query", counted("SELECT square FROM numbers WHERE n = 7", 49, simple)},
	{"a prepared query", counted("SELECT square FROM numbers WHERE n = $1", 81, 9)},
	{"a long result", counted("SELECT count(*) FROM (SELECT * FROM numbers ORDER BY square DESC) n",
		10000)},
	{"a simple protected query", counted("SELECT count(*) FROM patients", patients, simple)},
	{"a prepared protected query", counted("SELECT count(age) FROM patients WHERE $1::int = 3",
		patients, 3)},
	{"protected rows", func(ctx context.Context, conn *pgx.Conn, _ int) error {
		rows, err := conn.Query(ctx, "SELECT age, zip, sex FROM patients LIMIT 500")
		if err != nil {
			return err
		}
		n := 0
		for rows.Next() {
			n++
		}
		if rows.Err() == nil && n != 500 {
			return fmt.Errorf("%d rows", n)
		}
		return rows.Err()
	}},
	{"an account of a protected query", func(ctx context.Context, conn *pgx.Conn, _ int) error {
		_, err := conn.Exec(ctx, "EXPLAIN (TAILOR) SELECT age FROM patients")
		return err
	}},
	{"an error", failing("SELECT 1 / 0", "22012")},
	{"a refusal", failing("SELECT name FROM patients", "42501")},
	{"a refusal in a transaction", func(ctx context.Context, conn *pgx.Conn, n int) error {
		tx, err := conn.Begin(ctx)
		if err != nil {
			return err
		}
		if err := failing("SELECT ctid FROM patients", "42501")(ctx, conn, n); err != nil {
			return err
		}
		if err := failing("SELECT 1", "25P02")(ctx, conn, n); err != nil {
			return err
		}
		return tx.Rollback(ctx)
	}},
	{"a pipeline with an error in it", func(ctx context.Context, conn *pgx.Conn, n int) error {
		var batch pgx.Batch
		for _, divisor := range []int{1, 2, 0, 3} {
			batch.Queue("SELECT 12 / $1::int", divisor)
		}
		if err := conn.SendBatch(ctx, &batch).Close(); codeIn(err) != "22012" {
			return fmt.Errorf("%w, want 22012", err)
		}
		return counted("SELECT count(*) FROM patients", patients)(ctx, conn, n)
	}},
	{"a copy out", func(ctx context.Context, conn *pgx.Conn, _ int) error {
		var b bytes.Buffer
		if _, err := conn.PgConn().CopyTo(ctx, &b, "COPY (SELECT * FROM numbers) TO STDOUT"); err != nil {
			return err
		}
		if n := bytes.Count(b.Bytes(), []byte("\n")); n != 10000 {
			return fmt.Errorf("%d lines", n)
		}
		return nil
	}},
	{"a copy in", func(ctx context.Context, conn *pgx.Conn, _ int) error {
		if _, err := conn.Exec(ctx, "CREATE TEMP TABLE IF NOT EXISTS copied (n int); TRUNCATE copied",
			simple); err != nil {
			return err
		}
		done, err := conn.PgConn().CopyFrom(ctx, strings.NewReader(strings.Repeat("1\n", 2000)),
			"COPY copied FROM STDIN")
		if err == nil && done.RowsAffected() != 2000 {
			return fmt.Errorf("%d rows", done.RowsAffected())
		}
		return err
	}},
	{"a cursor in a batch", func(ctx context.Context, conn *pgx.Conn, _ int) error {
		_, err := conn.Exec(ctx,
			"BEGIN; DECLARE c CURSOR FOR SELECT age FROM patients; FETCH 100 IN c; CLOSE c; COMMIT", simple)
		return err
	}},
	{"a notification", func(ctx context.Context, conn *pgx.Conn, n int) error {
		channel := fmt.Sprintf("load_%d", conn.PgConn().PID())
		if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, "SELECT pg_notify($1, $2)", channel, fmt.Sprint(n)); err != nil {
			return err
		}
		heard, err := conn.WaitForNotification(ctx)
		if err == nil && heard.Payload != fmt.Sprint(n) {
			return fmt.Errorf("heard %q, want %d", heard.Payload, n)
		}
		return err
	}},
	{"a cancelled query", func(ctx context.Context, conn *pgx.Conn, _ int) error {
		stopped := make(chan struct{})
		var group sync.WaitGroup
		group.Go(func() {
			for {
				select {
				case <-stopped:
					return
				case <-time.After(20 * time.Millisecond):
					_ = conn.PgConn().CancelRequest(ctx) // one that comes too early stops nothing
				}
			}
		})
		_, err := conn.PgConn().Exec(ctx, "SELECT pg_sleep(20)").ReadAll()
		close(stopped)
		group.Wait()
		if codeIn(err) != "57014" {
			return fmt.Errorf("%w, want 57014", err)
		}
		// A request that was sent while the query ended may stop the next.
		if _, err := conn.Exec(ctx, "SELECT pg_sleep(0.02)", simple); err != nil &&
			codeIn(err) != "57014" {
			return err
		}
		return nil
	}},
}

// loaded runs clients for so long, each of a role with sessions after another,
// and counts what they did.
func (p *testProxy) loaded(
	t *testing.T, users []string, clients int, duration time.Duration,
) map[string]int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), duration+2*time.Minute)
	defer cancel()
	end := time.Now().Add(duration)
	counts := make([]atomic.Int64, len(load))
	var group sync.WaitGroup
	for client := range clients {
		group.Go(func() {
			random := rand.New(rand.NewPCG(7, uint64(client)))
			// between them, the clients do everything once
			next := []int{2 * client % len(load), (2*client + 1) % len(load)}
			for len(next) > 0 || time.Now().Before(end) {
				conn, err := pgx.Connect(ctx, p.dsn(users[client%len(users)])+"&application_name=faults")
				if err != nil {
					t.Errorf("connect: %v", err)
					return
				}
				for range random.IntN(40) {
					next = append(next, random.IntN(len(load)))
				}
				for n, i := range next {
					if n >= 2 && time.Now().After(end) {
						break
					}
					if err := load[i].run(ctx, conn, n); err != nil {
						t.Errorf("%s: %v", load[i].claim, err)
						_ = conn.Close(ctx)
						return
					}
					counts[i].Add(1)
				}
				next = next[:0]
				if random.IntN(4) == 0 {
					h, err := conn.PgConn().Hijack() // leaves without a word
					if err == nil {
						_ = h.Conn.Close()
					}
					continue
				}
				_ = conn.Close(ctx)
			}
		})
	}
	group.Wait()
	did := make(map[string]int)
	for i := range load {
		did[load[i].claim] = int(counts[i].Load())
	}
	return did
}

// TestMixedLoadIsAnsweredRightWithoutRaces runs the proxy with the race
// detector; a race ends the test (see stop).
func TestMixedLoadIsAnsweredRightWithoutRaces(t *testing.T) {
	duration := 5 * time.Second
	if os.Getenv("TAILOR_SOAK") != "" {
		duration = 30 * time.Second
	}
	p, _ := faulty(t)
	var users []string
	for _, sub := range []string{"one", "two", "three"} {
		t.Run(sub, func(t *testing.T) { users = append(users, shared.reader(t)) })
	}
	p.leaksNothing(t, func() {
		reloading, stop := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() {
			for reloading.Err() == nil {
				_ = p.command.Process.Signal(syscall.SIGHUP)
				time.Sleep(100 * time.Millisecond)
			}
		})
		for claim, times := range p.loaded(t, users, 12, duration) {
			t.Logf("%6d times %s", times, claim)
			if times == 0 {
				t.Errorf("%s was never run", claim)
			}
		}
		stop()
		group.Wait()
	})
	if strings.Contains(p.log.String(), "session failed") {
		t.Error(p.log.String())
	}
}

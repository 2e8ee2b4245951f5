package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

var (
	processed = regexp.MustCompile(`number of transactions actually processed: (\d+)`)
	perSecond = regexp.MustCompile(`(?m)^tps = ([0-9.]+)`)
)

// measured does something by a way, and says how often and how often a second.
type measured func(context.Context, way) (count int, rate float64, err error)

// atOnce is a measure taken by several programs at once.
func atOnce(programs int, one measured) measured {
	return func(ctx context.Context, w way) (count int, rate float64, err error) {
		var group sync.WaitGroup
		var mu sync.Mutex
		for range programs {
			group.Go(func() {
				n, r, e := one(ctx, w)
				mu.Lock()
				defer mu.Unlock()
				count, rate, err = count+n, rate+r, errors.Join(err, e)
			})
		}
		group.Wait()
		return count, rate, err
	}
}

// pgbench is a measure: transactions a second, without the time of the first
// logins (with it where each transaction logs in).
func (s *stand) pgbench(clients int, duration time.Duration, flags ...string) measured {
	return func(ctx context.Context, w way) (int, float64, error) {
		args := append([]string{
			"-n", "-c", strconv.Itoa(clients), "-T", strconv.Itoa(max(1, int(duration.Seconds()))),
			"-h", "127.0.0.1", "-p", w.port, "-U", role,
		}, flags...)
		command := exec.CommandContext(ctx, "pgbench", append(args, "bench")...)
		command.Env = append(os.Environ(), "PGPASSWORD="+role, "PGSSLMODE=disable",
			"PGGSSENCMODE=disable")
		output, err := command.CombinedOutput()
		if err != nil {
			return 0, 0, fmt.Errorf("%w: %s", err, output)
		}
		n, rate := processed.FindSubmatch(output), perSecond.FindSubmatch(output)
		if n == nil || rate == nil {
			return 0, 0, fmt.Errorf("pgbench printed no figures: %s", output)
		}
		count, err := strconv.Atoi(string(n[1]))
		if err != nil {
			return 0, 0, err
		}
		tps, err := strconv.ParseFloat(string(rate[1]), 64)
		return count, tps, err
	}
}

// largeResult is a measure: rows a second of one large result, read and thrown
// away.
func (s *stand) largeResult(ctx context.Context, w way) (int, float64, error) {
	conn, err := pgconn.Connect(ctx, fmt.Sprintf(
		"postgres://%[1]s:%[1]s@127.0.0.1:%[2]s/bench?sslmode=disable", role, w.port))
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = conn.Close(ctx) }()
	started := time.Now()
	rows := 0
	answers := conn.Exec(ctx, "SELECT n, m, word FROM large")
	for answers.NextResult() {
		for r := answers.ResultReader(); r.NextRow(); {
			rows++
		}
	}
	if err := answers.Close(); err != nil {
		return 0, 0, err
	}
	if rows != s.rows {
		return 0, 0, fmt.Errorf("%d rows, want %d", rows, s.rows)
	}
	return rows, float64(rows) / time.Since(started).Seconds(), nil
}

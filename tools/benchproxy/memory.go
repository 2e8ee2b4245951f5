package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// idleClients is how many sessions lie idle while memory is measured.
const idleClients = 1000

// resident is the memory that the process of a way holds, in bytes.
func (w way) resident() int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.process))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kilobytes, _ := strconv.Atoi(strings.Fields(rest)[0])
	return kilobytes << 10
}

// idle prints what each way holds with idle clients that have each run one
// statement.
func (s *stand) idle(ctx context.Context) error {
	for _, w := range s.ways {
		if w.process == 0 {
			continue
		}
		before := w.resident()
		var open []*pgconn.PgConn
		for range idleClients {
			conn, err := pgconn.Connect(ctx, fmt.Sprintf(
				"postgres://%[1]s:%[1]s@127.0.0.1:%[2]s/bench?sslmode=disable", role, w.port))
			if err != nil {
				return fmt.Errorf("idle client %d of %s: %w", len(open), w.name, err)
			}
			open = append(open, conn)
			if _, err := conn.Exec(ctx, "SELECT 1").ReadAll(); err != nil {
				return err
			}
		}
		time.Sleep(3 * time.Second)
		fmt.Printf("idle      %-10s %7.1f MB with %d clients, %.1f MB before\n", w.name,
			float64(w.resident())/1e6, idleClients, float64(before)/1e6)
		for _, c := range open {
			_ = c.Close(ctx)
		}
	}
	return nil
}

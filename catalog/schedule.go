package catalog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// How often a proxy looks whether a refresh is due.
const schedulePace = 10 * time.Second

// KeepSchedules refreshes tables as tailor.schedule says, until the context
// ends. Of several proxies the one that holds an advisory lock does so, one
// table at a time; when it is gone, the next takes over. What fails is written
// to tailor.schedules, where tailor doctor finds it, and tried again.
func (c *Catalog) KeepSchedules(ctx context.Context) {
	ticker := time.NewTicker(schedulePace)
	defer ticker.Stop()
	for {
		if err := c.refreshDue(ctx); err != nil && ctx.Err() == nil {
			c.log.Warn("cannot keep schedules", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (c *Catalog) refreshDue(ctx context.Context) error {
	due, err := dueSchedules(ctx, c.pool)
	if err != nil || len(due) == 0 {
		return err
	}
	// A connection of its own: the lock is the session's, and a refresh takes long.
	conn, err := pgx.ConnectConfig(ctx, c.listener)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	// Whoever holds a table for long does not keep the others waiting.
	if _, err := conn.Exec(ctx, `SET lock_timeout = '1min'`); err != nil {
		return err
	}
	var alone bool
	if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock('tailor.schedule'::regclass::oid::int, 0)`).Scan(&alone); err != nil || !alone {
		return err
	}
	for _, relation := range due {
		_, err := conn.Exec(ctx, `CALL tailor.refresh_scheduled($1::oid::regclass)`, relation)
		var refused *pgconn.PgError
		if err != nil && !errors.As(err, &refused) {
			return err
		}
		if refused == nil {
			c.log.Info("refreshed as scheduled", "relation", relation)
			continue
		}
		c.log.Warn("scheduled refresh failed", "relation", relation, "sqlstate", refused.Code)
		if _, err := conn.Exec(ctx, `CALL tailor.note_failure($1::oid::regclass, $2)`, relation, failure(refused)); err != nil {
			return err
		}
	}
	return nil
}

func dueSchedules(ctx context.Context, db querier) ([]uint32, error) {
	rows, err := db.Query(ctx, `SELECT d::oid FROM tailor.due_schedules() d`)
	if err != nil {
		return nil, fmt.Errorf("read schedules: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[uint32])
}

// failure keeps what Tailor's own procedures say, which quotes no data; of other
// errors it keeps the SQLSTATE.
func failure(err *pgconn.PgError) string {
	if err.Routine != "exec_stmt_raise" {
		return "the server says SQLSTATE " + err.Code
	}
	if err.Hint == "" {
		return err.Message
	}
	return err.Message + "; " + strings.TrimSuffix(err.Hint, ".")
}

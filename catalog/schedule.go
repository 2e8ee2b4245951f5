package catalog

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// How often a proxy looks whether a refresh is due.
const schedulePace = 10 * time.Second

// A refresh that is late by so much is told of in the log, and again so much
// later: somebody else keeps the schedules and does not get on.
const overdueAfter = 10 * time.Minute

// KeepSchedules refreshes tables as tailor.schedule says, until the context
// ends. Of several proxies the one that has locked tailor.lock_schedules does so,
// one table at a time; when it is gone, the next takes over. What fails is
// written to tailor.schedules, where tailor doctor finds it, and tried again.
func (c *Catalog) KeepSchedules(ctx context.Context) {
	ticker := time.NewTicker(schedulePace)
	defer ticker.Stop()
	told := make(map[uint32]time.Time)
	for {
		if err := c.refreshDue(ctx, told); err != nil && ctx.Err() == nil {
			c.log.Warn("cannot keep schedules", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// refreshDue refreshes what is due. told has when it was last said of a table
// that it is overdue.
func (c *Catalog) refreshDue(ctx context.Context, told map[uint32]time.Time) error {
	due, err := dueSchedules(ctx, c.pool)
	if err != nil || len(due) == 0 {
		return err
	}
	for _, d := range due {
		if d.overdue && time.Since(told[d.relation]) > overdueAfter {
			told[d.relation] = time.Now()
			c.log.Warn("scheduled refresh overdue", "relation", d.relation)
		}
	}
	// A connection of its own: a refresh takes long.
	conn, err := pgx.ConnectConfig(ctx, c.listener)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	// Whoever holds a table for long does not keep the others waiting.
	if _, err := conn.Exec(ctx, `SET lock_timeout = '1min'`); err != nil {
		return err
	}
	for _, d := range due {
		refused, err := refreshAlone(ctx, conn, d.relation)
		switch {
		case errors.Is(err, errNotAlone):
			return nil
		case err != nil:
			return err
		case refused == nil:
			c.log.Info("refreshed as scheduled", "relation", d.relation)
			continue
		}
		c.log.Warn("scheduled refresh failed", "relation", d.relation, "sqlstate", refused.Code)
		if _, err := conn.Exec(ctx, `CALL tailor.note_failure($1::oid::regclass, $2)`, d.relation,
			failure(refused)); err != nil {
			return err
		}
	}
	return nil
}

// errNotAlone says that another proxy makes the scheduled refreshes.
var errNotAlone = errors.New("another proxy makes scheduled refreshes")

// refreshAlone refreshes a table if no other proxy is refreshing any, and says
// why the server would not.
func refreshAlone(
	ctx context.Context, conn *pgx.Conn, relation uint32,
) (refused *pgconn.PgError, err error) {
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var other *pgconn.PgError
		_, err := tx.Exec(ctx, `LOCK TABLE tailor.lock_schedules IN EXCLUSIVE MODE NOWAIT`)
		if errors.As(err, &other) && other.Code == "55P03" {
			return errNotAlone
		}
		if err != nil {
			return fmt.Errorf("lock the schedules: %s", err) // not by %w: it is no refusal of the table's
		}
		_, err = tx.Exec(ctx, `CALL tailor.refresh_scheduled($1::oid::regclass)`, relation)
		return err
	})
	if errors.As(err, &refused) {
		return refused, nil
	}
	return nil, err
}

// dueTable is one that is to be refreshed; overdue where that should have been
// done overdueAfter ago.
type dueTable struct {
	relation uint32
	overdue  bool
}

func dueSchedules(ctx context.Context, db querier) ([]dueTable, error) {
	rows, err := db.Query(ctx, `SELECT d.relation::oid, 
			NOT s.on_change AND s.due < now() - make_interval(secs => $1)
		FROM tailor.due_schedules() WITH ORDINALITY d(relation, place) JOIN tailor.schedule s
			USING (relation) ORDER BY d.place`, overdueAfter.Seconds())
	if err != nil {
		return nil, fmt.Errorf("read schedules: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (d dueTable, err error) {
		return d, row.Scan(&d.relation, &d.overdue)
	})
}

// ownRoutine is how the place of an error begins that a routine of Tailor's
// raised. PostgreSQL quotes any other name that looks like one.
var ownRoutine = regexp.MustCompile(`^[^"(\n]* tailor\.[a-z_]+\(`)

// failure keeps what Tailor's own procedures say, which quotes no data. Of other
// errors it keeps the SQLSTATE: what a function in a table's policy or default
// raises may hold values.
func failure(err *pgconn.PgError) string {
	if err.Routine != "exec_stmt_raise" || !ownRoutine.MatchString(err.Where) {
		return "the server says SQLSTATE " + err.Code
	}
	if err.Hint == "" {
		return err.Message
	}
	return err.Message + "; " + strings.TrimSuffix(err.Hint, ".")
}

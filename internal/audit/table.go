package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// table is the sink in the database. Beside a file, which makes records
// durable, PostgreSQL need not wait for its own disk: what a crash of the
// server takes is written again from the file.
type table struct{ pool *pgxpool.Pool }

// openTable connects as tailor_owner. The connections are the log's own, so
// that a record never waits for the work that it is about.
func openTable(ctx context.Context, dsn string, besideFile bool) (*table, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	config.MaxConns = 2
	config.ConnConfig.RuntimeParams["application_name"] = "tailor audit"
	config.ConnConfig.RuntimeParams["search_path"] = "pg_catalog, pg_temp"
	config.ConnConfig.RuntimeParams["jit"] = "off"
	// The log has a deadline of its own for each batch.
	for _, timeout := range []string{
		"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout",
		"idle_session_timeout",
	} {
		config.ConnConfig.RuntimeParams[timeout] = "0"
	}
	// A batch is a few lines, of which PostgreSQL knows nothing, and so are the
	// tables when it first plans for them: it would read them whole.
	for _, whole := range []string{"enable_seqscan", "enable_hashjoin", "enable_mergejoin"} {
		config.ConnConfig.RuntimeParams[whole] = "off"
	}
	config.ConnConfig.RuntimeParams["synchronous_commit"] = "on"
	if besideFile {
		config.ConnConfig.RuntimeParams["synchronous_commit"] = "off"
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return &table{pool}, nil
}

// insert writes lines in the transaction that together decides on; lines that
// are there already stay as they are.
func (t *table) insert(ctx context.Context, lines [][]byte, together func() error) error {
	texts := make([]string, len(lines))
	for i, l := range lines {
		texts[i] = string(l)
	}
	conn, err := t.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release() // which closes a connection that is left in a transaction
	batch := &pgx.Batch{}
	batch.Queue(`BEGIN`)
	batch.Queue(`SELECT tailor.record($1)`, texts)
	if err := conn.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	if err := together(); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, `COMMIT`)
	return err
}

// noteLoss says whether lines tell of chains that had come further than those of the
// database have, which it then notes as a restore. Recent lines are the next ones for
// the table.
func (t *table) noteLoss(ctx context.Context, lines [][]byte, recent bool) (lost bool, err error) {
	texts := make([]string, len(lines))
	for i, l := range lines {
		texts[i] = string(l)
	}
	if err := t.pool.QueryRow(ctx, `SELECT tailor.note_loss($1, $2)`, texts, recent).
		Scan(&lost); err != nil {
		return false, fmt.Errorf("compare the audit log with the chains: %w", err)
	}
	return lost, nil
}

// head is the last line of a chain that the table has, the zero head for none.
func (t *table) head(ctx context.Context, log string) (head, error) {
	h := head{Log: log}
	err := t.pool.QueryRow(ctx, `SELECT sequence, hash FROM tailor.audit_head WHERE log = $1`, log).
		Scan(&h.Sequence, &h.Hash)
	if errors.Is(err, pgx.ErrNoRows) {
		return head{}, nil
	}
	if err != nil {
		return head{}, fmt.Errorf("read the head of the audit log: %w", err)
	}
	return h, nil
}

func (t *table) close() { t.pool.Close() }

package main

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
)

// errRehearsed rolls a rehearsal back.
var errRehearsed = errors.New("rehearsed")

// tryOut does what applying the file does, but for copies and what they say of rows, and takes
// it back. It returns nil where the server is read-only.
func tryOut(ctx context.Context, o *policyOptions, a *application) (*application, error) {
	conn, err := connectTo(ctx, o.dsn, func(message string) {
		if strings.Contains(message, "taking direct privileges") {
			a.taken = append(a.taken, message)
		}
	})
	if err != nil {
		return nil, err
	}
	defer closeQuietly(conn)
	var readOnly bool
	if err := conn.QueryRow(ctx,
		`SELECT pg_catalog.current_setting('transaction_read_only')::boolean`).
		Scan(&readOnly); err != nil || readOnly {
		return nil, databaseFault(ctx, "ask the server", err)
	}
	a.refused = make(map[string]*policyError)
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if err := a.run(ctx, tx); err != nil {
			return err
		}
		return errRehearsed
	})
	if !errors.Is(err, errRehearsed) {
		return nil, refusal(ctx, "plan", err)
	}
	return a, nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

func runRefresh(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	flags := newFlags("refresh",
		"copy protected tables as they are now, and bring what readers are shown up to date", stderr)
	dsn := flags.String("dsn", fromEnvironment("dsn", ""), "`connection` string of the tables' owner")
	var tables []string
	flags.Func("table", "`TABLE` as in SQL; may be repeated", func(name string) error {
		tables = append(tables, name)
		return nil
	})
	timeout := flags.Duration("timeout", 30*time.Minute,
		"how `LONG` to wait for a proxy that brings the releases up to date")
	describe(flags, "\nWho may act as tailor_owner needs no proxy.\n")
	if code, ok := parseFlags(flags, args, stdout, stderr); !ok {
		return code
	}
	switch {
	case *dsn == "":
		return complainUsage(flags, stderr, "--dsn is missing")
	case len(tables) == 0:
		return complainUsage(flags, stderr, "--table is missing")
	}
	return complainPolicy("refresh", "", stderr, refresh(ctx, *dsn, tables, *timeout, stdout, stderr))
}

// refresh makes a copy of each table, and waits until all releases are up to date with
// them.
func refresh(
	ctx context.Context, dsn string, tables []string, timeout time.Duration, stdout, notices io.Writer,
) error {
	conn, err := connectTo(ctx, dsn, func(message string) { fmt.Fprintln(notices, message) })
	if err != nil {
		return err
	}
	defer closeQuietly(conn)
	for _, table := range tables {
		if _, err := conn.Exec(ctx, `CALL tailor.refresh($1::text::regclass)`, table); err != nil {
			return refusal(ctx, table, err)
		}
	}
	if err := bringUpToDate(ctx, conn, dsn, tables); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for _, table := range tables {
		if err := awaitUpToDate(ctx, conn, table, stdout); err != nil {
			return err
		}
	}
	return nil
}

// bringUpToDate makes releases, and takes copies in, where the connection may; else a
// proxy does.
func bringUpToDate(ctx context.Context, conn *pgx.Conn, dsn string, tables []string) error {
	var may bool
	if err := conn.QueryRow(ctx,
		`SELECT pg_catalog.pg_has_role(SESSION_USER, 'tailor_owner', 'USAGE')`).Scan(&may); err != nil {
		return databaseFault(ctx, "ask for rights", err)
	}
	if !may || len(tables) == 0 {
		return nil
	}
	c, err := catalog.Open(ctx, dsn, slog.New(slog.DiscardHandler))
	if err != nil {
		return databaseFault(ctx, "open the catalog", err)
	}
	defer c.Close()
	for _, table := range tables {
		var number uint32
		if err := conn.QueryRow(ctx, `SELECT $1::text::regclass::oid`, table).Scan(&number); err != nil {
			return refusal(ctx, table, err)
		}
		var refused *sqlstate.Error
		if err := c.BringUpToDate(ctx, number); errors.As(err, &refused) {
			return notShown(table, refused.Message, refused.Hint)
		} else if err != nil {
			return databaseFault(ctx, "bring the release of "+table+" up to date", err)
		}
	}
	return nil
}

func notShown(table, reason, hint string) error {
	return &policyError{table + " is copied, and not shown: " + reason, strings.TrimSuffix(hint, ".")}
}

// awaitUpToDate waits until all releases of a table are up to date, and says what is
// shown, or until a proxy says why they cannot be.
func awaitUpToDate(ctx context.Context, conn *pgx.Conn, table string, stdout io.Writer) error {
	for {
		var behind bool
		var shown, arrivals, departures, changes int64
		err := conn.QueryRow(ctx,
			`SELECT coalesce(bool_or(e.behind), true), coalesce(min(e.subjects), 0),
				coalesce(max(e.arrivals), 0),
				coalesce(max(e.departures), 0), coalesce(max(e.changes), 0)
			FROM tailor.epochs e WHERE e.relation = $1::text::regclass`, table).
			Scan(&behind, &shown, &arrivals, &departures, &changes)
		if ctx.Err() != nil {
			return &policyError{
				fmt.Sprintf("%s is copied, and no proxy has brought its release up to date in time", table),
				"run tailor serve, whose log says what is in the way, or connect as a role that may act as " +
					"tailor_owner",
			}
		}
		var reason, hint string
		if err == nil && behind {
			err = conn.QueryRow(ctx, `SELECT coalesce(max(reason), ''), coalesce(max(hint), '')
				FROM tailor.failures WHERE relation = $1::text::regclass`, table).Scan(&reason, &hint)
		}
		if err != nil {
			return databaseFault(ctx, "look at "+table, err)
		}
		if reason != "" {
			return notShown(table, reason, hint)
		}
		if !behind {
			_, err := fmt.Fprintf(stdout, "%s: %d subjects are shown; waiting: %d to be shown, %d to go, "+
				"%d to be shown as they are now\n",
				table, shown, arrivals, departures, changes)
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

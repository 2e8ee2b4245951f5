package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/catalog"
)

// emptyText stands for an empty text, as the empty cell of a sheet is NULL. No
// text of PostgreSQL holds a zero byte.
const emptyText = "\x00"

// databaseError says what went wrong with a database, and what would mend it.
// Of an error of the server it keeps the SQLSTATE alone, as its text may quote
// data.
type databaseError struct {
	what, remedy string
}

func (e *databaseError) Error() string { return e.what }

// readTable reads columns of a table, a view or the like as text, in the order
// given. name is read as in SQL: folded to lower case where it is not quoted,
// found along the search path where it has no schema. Columns are named as
// they are stored. It reads one snapshot and fails with a *[databaseError], or
// with a *[anonymize.ProblemError] on a malformed DSN and unknown columns.
func readTable(ctx context.Context, dsn, name string, columns []string) (*anonymize.Sheet, error) {
	var sheet *anonymize.Sheet
	err := inSnapshot(ctx, dsn, func(tx pgx.Tx) error {
		relation, err := findRelation(ctx, tx, name, columns)
		if err != nil {
			return err
		}
		sheet, err = readRelation(ctx, tx, relation, columns)
		return err
	})
	return sheet, err
}

// inSnapshot connects and runs what reads one snapshot, read-only.
func inSnapshot(ctx context.Context, dsn string, read func(tx pgx.Tx) error) error {
	conn, err := connectTo(ctx, dsn, nil)
	if err != nil {
		return err
	}
	defer closeQuietly(conn)
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	printed := func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, catalog.PrintValues); err != nil {
			return err
		}
		return read(tx)
	}
	return databaseFault(ctx, "read the table", pgx.BeginTxFunc(ctx, conn, snapshot, printed))
}

// connectTo opens a connection whose notices go to a function, nil for nowhere.
// Its errors hold no password.
func connectTo(ctx context.Context, dsn string, notices func(message string)) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil { // its text may hold the password
		return nil, &anonymize.ProblemError{
			What: "the DSN cannot be read", Remedy: "give postgres://USER@HOST/DATABASE or pairs such as " +
				"host=HOST",
		}
	}
	if notices != nil {
		config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { notices(n.Message) }
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err == nil { // the SQL side decides under locks, and refuses anything else
		_, err = conn.Exec(ctx, "SET default_transaction_isolation = 'read committed'")
	}
	return conn, databaseFault(ctx, "connect", err)
}

// findRelation looks up a relation, asserts that it has the columns and
// returns its full name.
func findRelation(
	ctx context.Context, tx pgx.Tx, name string, columns []string,
) (pgx.Identifier, error) {
	relation := make(pgx.Identifier, 2)
	var has []string
	err := tx.QueryRow(ctx, `
		SELECT n.nspname::text, c.relname::text, array(
			SELECT a.attname::text FROM pg_catalog.pg_attribute a
			WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped)
		FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE c.oid = pg_catalog.to_regclass($1) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')`, name,
	).Scan(&relation[0], &relation[1], &has)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, &databaseError{
			"there is no such table",
			"give --table as SCHEMA.TABLE, quoted as in SQL",
		}
	}
	if err != nil {
		return nil, err
	}
	for _, c := range columns {
		if !slices.Contains(has, c) {
			return nil, &anonymize.ProblemError{
				What: fmt.Sprintf("the table has no column %q", c), Remedy: "name a column as PostgreSQL " +
					"stores it",
			}
		}
	}
	return relation, nil
}

// readRelation reads the columns of all rows. NULL is an empty cell.
func readRelation(
	ctx context.Context, tx pgx.Tx, relation pgx.Identifier, columns []string,
) (*anonymize.Sheet, error) {
	casts := make([]string, len(columns))
	for i, c := range columns {
		casts[i] = pgx.Identifier{c}.Sanitize() + "::pg_catalog.text"
	}
	rows, err := tx.Query(ctx, "SELECT "+strings.Join(casts, ", ")+" FROM "+relation.Sanitize())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	cells := make([]string, len(columns))
	sheet, err := anonymize.CollectSheet(columns, func(yield func([]string) bool) {
		for rows.Next() {
			for c, raw := range rows.RawValues() {
				cells[c] = string(raw)
				if raw != nil && len(raw) == 0 {
					cells[c] = emptyText
				}
			}
			if !yield(cells) {
				return
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return sheet, rows.Err()
}

// databaseFault turns an error of the driver into one that may be shown; nil
// stays nil.
func databaseFault(ctx context.Context, operation string, err error) error {
	var (
		server  *pgconn.PgError
		connect *pgconn.ConnectError
		problem *anonymize.ProblemError
		known   *databaseError
		refused *policyError
	)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &problem), errors.As(err, &known), errors.As(err, &refused):
		return err
	case errors.As(err, &server):
		return &databaseError{
			fmt.Sprintf("%s: the server says SQLSTATE %s", operation, server.Code),
			remedyFor(server.Code),
		}
	}
	said := strings.Join(strings.Fields(err.Error()), " ")
	if errors.As(err, &connect) { // names user, database and host, no password
		return &databaseError{operation + ": " + said, "check --dsn, and that the server runs"}
	}
	return &databaseError{
		operation + ": the connection failed: " + said, "try again, and look at the server's log",
	}
}

// remedyFor is what to do about an SQLSTATE.
func remedyFor(code string) string {
	switch {
	case code == "42501":
		return "grant the role of --dsn USAGE on the schema and SELECT on the table"
	case code == "42601" || code == "42602" || code == "0A000":
		return "give --table as SCHEMA.TABLE, quoted as in SQL"
	case strings.HasPrefix(code, "28") || code == "3D000":
		return "check user, password and database of --dsn"
	}
	return "the server's log has the reason"
}

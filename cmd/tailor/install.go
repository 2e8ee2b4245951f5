package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/extension"
)

func runInstall(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	flags := newFlags("install", "install or upgrade the SQL side in a database", stderr)
	dsn := flags.String("dsn", fromEnvironment("dsn", ""), "`connection` string of a superuser or a role that may create roles and schemas")
	if code, ok := parseFlags(flags, args, stdout, stderr); !ok {
		return code
	}
	if *dsn == "" {
		return complainUsage(flags, stderr, "--dsn is missing")
	}
	if err := install(ctx, *dsn); err != nil {
		return complain("install", stderr, err)
	}
	fmt.Fprintln(stdout, "installed: schemas tailor, tailor_store, tailor_release, research; roles tailor_owner, tailor_reader, tailor_admin")
	return exitSuccess
}

// install runs the script in one transaction: all of it or nothing.
func install(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer closeQuietly(conn)
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, extension.Script())
		return err
	})
}

// closeQuietly ends a connection whose work is done.
func closeQuietly(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

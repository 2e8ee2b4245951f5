package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hiatus-tailor/tailor/extension"
	"github.com/hiatus-tailor/tailor/internal/atomicfile"
)

func runInstall(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	flags := newFlags("install", "install or upgrade the SQL side in a database", stderr)
	dsn := flags.String("dsn", fromEnvironment("dsn", ""),
		"`connection` string of a superuser or a role that may create roles and schemas")
	files := flags.String("files", "", "`DIR` of PostgreSQL's extensions (pg_config --sharedir, "+
		"then extension) to write the extension to, in place of installing")
	untested := flags.Bool(untestedFlag, false, untestedUsage)
	if code, ok := parseFlags(flags, args, stdout, stderr); !ok {
		return code
	}
	if *files != "" {
		if err := writeExtension(*files); err != nil {
			return complain("install", stderr, err)
		}
		fmt.Fprintf(stdout, "written: version %s of the extension; CREATE EXTENSION tailor installs it\n",
			extension.Version)
		return exitSuccess
	}
	if *dsn == "" {
		return complainUsage(flags, stderr, "--dsn is missing")
	}
	if err := install(ctx, *dsn, *untested); err != nil {
		return complain("install", stderr, err)
	}
	fmt.Fprintln(stdout, "installed: schemas tailor, tailor_store, tailor_release, research; roles "+
		"tailor_owner, tailor_reader, tailor_admin")
	return exitSuccess
}

// installAttempts bounds how often the script is run where a proxy at work on what
// it changes holds locks in another order.
const installAttempts = 5

// install runs the script in one transaction: all of it or nothing.
func install(ctx context.Context, dsn string, untested bool) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer closeQuietly(conn)
	var version int
	err = conn.QueryRow(ctx, "SELECT current_setting('server_version_num')::integer").Scan(&version)
	if err != nil {
		return err
	}
	if err := assertTested(version, untested); err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		err := installOnce(ctx, conn)
		var said *pgconn.PgError
		if attempt == installAttempts || !errors.As(err, &said) || said.Code != "40P01" {
			return err
		}
		select {
		case <-time.After(time.Duration(attempt) * 200 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// letOthersYield has a deadlock found by others first, who then try again: whoever finds it
// gives up. It is for superusers to set.
const letOthersYield = `SELECT pg_catalog.set_config('deadlock_timeout', '4s', true)
FROM pg_catalog.pg_roles WHERE rolname = current_user AND rolsuper`

func installOnce(ctx context.Context, conn *pgx.Conn) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		// What the script would make anew would be no part of the extension.
		var owned bool
		if err := tx.QueryRow(ctx,
			`SELECT EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'tailor')`).
			Scan(&owned); err != nil {
			return err
		}
		if owned {
			return errors.New("the SQL side is installed as an extension; upgrade it with ALTER EXTENSION " +
				"tailor UPDATE, its files with tailor install --files DIR")
		}
		if _, err := tx.Exec(ctx, letOthersYield); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, extension.Script())
		return err
	})
}

// writeExtension writes the control file and the scripts.
func writeExtension(dir string) error {
	for name, text := range extension.Files() {
		write := func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
		if err := atomicfile.Write(filepath.Join(dir, name), 0o644, write); err != nil {
			return err
		}
	}
	return nil
}

// closeQuietly ends a connection whose work is done.
func closeQuietly(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

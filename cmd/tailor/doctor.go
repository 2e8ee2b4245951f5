package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hiatus-tailor/tailor/extension"
)

// finding is something that tailor doctor has to say.
type finding struct {
	Check    string `json:"check"`
	Severity string `json:"severity"` // serious, warning, unknown
	Object   string `json:"object"`
	Message  string `json:"message"`
	Mend     string `json:"mend"` // a statement, or what to do
}

// The severities: a serious finding lets readers past the releases, or keeps
// the proxy from serving; unknown is a check that the role may not make.
const (
	serious = "serious"
	warning = "warning"
	unknown = "unknown"
)

func runDoctor(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	flags := newFlags("doctor", "find ways round the proxy, and what else is wrong with an installation", stderr)
	dsn := flags.String("dsn", fromEnvironment("dsn", ""), "`DSN` of the database, as a superuser to see everything")
	format := flags.String("format", "text", "`FORMAT` of the report: text or json")
	accept := flags.Bool("accept-restore", false, "let the proxy serve chains that came from a dump, and report then")
	if code, ok := parseFlags(flags, args, stdout, stderr); !ok {
		return code
	}
	switch {
	case *dsn == "":
		return complainUsage(flags, stderr, "--dsn is missing")
	case *format != "text" && *format != "json":
		return complainUsage(flags, stderr, fmt.Sprintf("unknown format %q", *format))
	}
	findings, err := examine(ctx, *dsn, *accept)
	if err == nil {
		err = writeFindings(stdout, *format, findings)
	}
	if code := complainPolicy("doctor", "", stderr, err); code != exitSuccess {
		return code
	}
	for _, f := range findings {
		if f.Severity == serious {
			return exitFailure
		}
	}
	return exitSuccess
}

// examine makes all checks on one connection. It changes nothing but what
// accept asks for.
func examine(ctx context.Context, dsn string, accept bool) ([]finding, error) {
	conn, err := connectTo(ctx, dsn, nil)
	if err != nil {
		return nil, err
	}
	defer closeQuietly(conn)
	var there bool
	if err := conn.QueryRow(ctx, `SELECT pg_catalog.to_regclass('tailor.installation') IS NOT NULL`).Scan(&there); err != nil {
		return nil, databaseFault(ctx, "ask the database", err)
	}
	if !there {
		return nil, &policyError{"the database has no SQL side of this version", "run tailor install --dsn DSN first"}
	}
	if accept {
		if _, err := conn.Exec(ctx, `CALL tailor.accept_restore()`); err != nil {
			return nil, refusal(ctx, "accept the restore", err)
		}
	}
	findings := []finding{}
	for _, c := range doctorChecks {
		found, err := c.make(ctx, conn)
		if err != nil {
			return nil, err
		}
		findings = append(findings, found...)
	}
	return findings, nil
}

// make runs a check. A check that the role may not make is a finding itself.
func (c *doctorCheck) make(ctx context.Context, conn *pgx.Conn) ([]finding, error) {
	query := strings.ReplaceAll(c.query, "@VERSION@", extension.Version)
	var found []finding
	err := pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL search_path = pg_catalog, pg_temp`); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, query)
		if err != nil {
			return err
		}
		f := finding{Check: c.name}
		_, err = pgx.ForEachRow(rows, []any{&f.Severity, &f.Object, &f.Message, &f.Mend}, func() error {
			found = append(found, f)
			return nil
		})
		return err
	})
	var server *pgconn.PgError
	if errors.As(err, &server) && (server.Code == "42501" || server.Code == "0A000") {
		return []finding{{c.name, unknown, "-", "the role of --dsn may not make this check", "Run tailor doctor as a superuser."}}, nil
	}
	return found, databaseFault(ctx, "check "+c.name, err)
}

func writeFindings(w io.Writer, format string, findings []finding) error {
	if format == "json" {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(map[string]any{"findings": findings})
	}
	count := make(map[string]int)
	for _, f := range findings {
		count[f.Severity]++
		if _, err := fmt.Fprintf(w, "%s: %s: %s (%s)\n    %s\n", f.Severity, f.Object, f.Message, f.Check, f.Mend); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%d checks: %d serious findings, %d warnings, %d checks not made\n",
		len(doctorChecks), count[serious], count[warning], count[unknown])
	return err
}

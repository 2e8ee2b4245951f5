package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/hiatus-tailor/tailor/internal/doctor"
)

func runDoctor(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	flags := newFlags("doctor",
		"find ways round the proxy, and what else is wrong with an installation", stderr)
	dsn := flags.String("dsn", fromEnvironment("dsn", ""),
		"`DSN` of the database, as a superuser to see everything")
	format := flags.String("format", "text", "`FORMAT` of the report: text or json")
	accept := flags.Bool("accept-restore", false,
		"let the proxy serve chains that came from a dump, and report then")
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
		if f.Severity == doctor.Serious {
			return exitFailure
		}
	}
	return exitSuccess
}

// examine makes all checks on one connection. It changes nothing but what
// accept asks for.
func examine(ctx context.Context, dsn string, accept bool) ([]doctor.Finding, error) {
	conn, err := connectTo(ctx, dsn, nil)
	if err != nil {
		return nil, err
	}
	defer closeQuietly(conn)
	var there bool
	if err := conn.QueryRow(ctx, `SELECT pg_catalog.to_regclass('tailor.installation') IS NOT NULL`).
		Scan(&there); err != nil {
		return nil, databaseFault(ctx, "ask the database", err)
	}
	if !there {
		return nil, &policyError{
			"the database has no SQL side of this version",
			"run tailor install --dsn DSN first",
		}
	}
	if accept {
		if _, err := conn.Exec(ctx, `CALL tailor.accept_restore()`); err != nil {
			return nil, refusal(ctx, "accept the restore", err)
		}
	}
	findings, err := doctor.Examine(ctx, conn)
	return findings, databaseFault(ctx, "examine the database", err)
}

func writeFindings(w io.Writer, format string, findings []doctor.Finding) error {
	if format == "json" {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(map[string]any{"findings": findings})
	}
	count := make(map[string]int)
	for _, f := range findings {
		count[f.Severity]++
		if _, err := fmt.Fprintf(w, "%s: %s: %s (%s)\n    %s\n", f.Severity, f.Object, f.Message, f.Check,
			f.Mend); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%d checks: %d serious findings, %d warnings, %d checks not made\n",
		doctor.Checks(), count[doctor.Serious], count[doctor.Warning], count[doctor.Unknown])
	return err
}

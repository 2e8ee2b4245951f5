package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/internal/export"
)

func runExport(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	flags := newFlags("export", "write what a reader is shown of tables as files", stderr)
	dsn := flags.String("dsn", fromEnvironment("dsn", ""),
		"`connection` string of the reader, through the proxy")
	var job export.Job
	flags.Func("table", "`TABLE` as in SQL; may be repeated; without it all that the reader is shown",
		func(name string) error {
			job.Tables = append(job.Tables, name)
			return nil
		})
	flags.StringVar(&job.Format, "format", "csv", "`FORMAT` of the files: csv, sql or parquet")
	flags.StringVar(&job.Dir, "out", "", "`DIR` for the files; nothing that is there is written over")
	flags.StringVar(&job.Recipient, "recipient", "",
		"`NAME` of whom the files are for, for the audit log; without it the reader's")
	flags.BoolVar(&job.Labels, "labels", false,
		"a column more for each quasi-identifier, with its label")
	describe(flags, "\nEach table is a file; dictionary.csv has the columns, manifest.json what was\n"+
		"released of when, SHA256SUMS the checksums.\n")
	if code, ok := parseFlags(flags, args, stdout, stderr); !ok {
		return code
	}
	switch {
	case *dsn == "":
		return complainUsage(flags, stderr, "--dsn is missing")
	case job.Dir == "":
		return complainUsage(flags, stderr, "--out is missing")
	case !slices.Contains(export.Formats, job.Format):
		return complainUsage(flags, stderr, "--format is csv, sql or parquet")
	}
	return complainPolicy("export", job.Dir, stderr, exportTables(ctx, *dsn, job, stdout, stderr))
}

// exportTables runs an export and says what was written.
func exportTables(ctx context.Context, dsn string, job export.Job, stdout, stderr io.Writer) error {
	if err := export.AssertEmpty(job.Dir); err != nil {
		return exportFault(ctx, err)
	}
	config, err := pgx.ParseConfig(dsn)
	if err != nil { // its text may hold the password
		return &anonymize.ProblemError{
			What:   "the DSN cannot be read",
			Remedy: "give postgres://USER@HOST/DATABASE or pairs such as host=HOST",
		}
	}
	var detail string
	config.RuntimeParams["application_name"] = "tailor export" // a program, which gets details
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { detail = n.Detail }
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return databaseFault(ctx, "connect", err)
	}
	defer closeQuietly(conn)
	progress, done := exportProgress(stderr)
	job.Progress = progress
	manifest, refused, err := export.Run(ctx, conn, job, func() string { return detail })
	done()
	if err != nil {
		return exportFault(ctx, err)
	}
	for _, t := range manifest.Tables {
		fmt.Fprintf(stdout, "%s: %d rows in %s\n", t.Name, t.Rows, t.File)
		for _, c := range t.Columns {
			if c.Null > 0 {
				fmt.Fprintf(stderr, "tailor export: %s: %d values of column %s are NULL, since Parquet "+
					"cannot hold them; CSV and SQL can\n",
					t.Name, c.Null, c.Name)
			}
		}
	}
	for _, r := range refused {
		fmt.Fprintf(stderr, "tailor export: %s is not exported: %s; %s\n",
			r.Table, r.Message, strings.TrimSuffix(r.Hint, "."))
	}
	switch {
	case len(manifest.Tables) == 0:
		return &policyError{"nothing was exported", "ask for tables that are shown in rows"}
	case len(refused) > 0 && len(job.Tables) > 0:
		return &policyError{"not all tables were exported", "leave the others out"}
	}
	return nil
}

// exportFault is an error of an export, which has then written nothing.
func exportFault(ctx context.Context, err error) error {
	var (
		fault *export.Fault
		file  *fs.PathError
		names *os.LinkError
	)
	switch {
	case errors.As(err, &fault):
		return &policyError{fault.What, fault.Remedy}
	case ctx.Err() != nil:
		return fmt.Errorf("nothing was written: %w", context.Cause(ctx))
	case errors.As(err, &file):
		return &policyError{file.Error(), "nothing was written; name another folder, or make room"}
	case errors.As(err, &names):
		return &policyError{names.Error(), "nothing was written; name another folder"}
	}
	return refusal(ctx, "nothing was written", err)
}

// exportProgress keeps one line on a terminal up to date; done clears it.
func exportProgress(stderr io.Writer) (progress func(table string, rows int64), done func()) {
	f, ok := terminal(stderr)
	if !ok {
		return nil, func() {}
	}
	var next time.Time
	shown := false
	return func(table string, rows int64) {
			if now := time.Now(); now.After(next) {
				next, shown = now.Add(100*time.Millisecond), true
				fmt.Fprintf(f, "\r\x1b[K%s: %d rows", table, rows)
			}
		}, func() {
			if shown {
				fmt.Fprint(f, "\r\x1b[K")
			}
		}
}

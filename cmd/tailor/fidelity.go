package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hiatus-tailor/tailor/internal/atomicfile"
	"github.com/hiatus-tailor/tailor/internal/fidelity"
)

// fidelityOptions are the flags of tailor fidelity.
type fidelityOptions struct {
	dsn, proxy, workload, format, out string
	atLeast                           int
	timeout                           time.Duration
}

const fidelityHelp = `
Runs each query of the file on the protected tables, as their owner, and through a running proxy,
as a reader, and compares the answers: relative errors, groups that are missing, refusals, and the
columns that cost most. A comment above a query is its name. Queries that group count(*) beside
other aggregates tell large cells from small ones. Each statement reaches the proxy's audit log.
The keys of --format json are documented in docs/policies.md.

Before a policy goes live: activate it in a copy of the database, or with a reader of your own as
the only one.
`

func runFidelity(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	o := fidelityOptions{format: "text"}
	flags := newFlags(
		"fidelity",
		"compare the answers of releases with those of the tables, for a file of queries",
		stderr,
	)
	flags.StringVar(
		&o.dsn,
		"dsn",
		fromEnvironment("dsn", ""),
		"`connection` string of the tables' owner, at PostgreSQL",
	)
	flags.StringVar(
		&o.proxy,
		"proxy",
		fromEnvironment("proxy", ""),
		"`connection` string of a reader, at a running proxy of the same database",
	)
	flags.StringVar(&o.workload, "workload", "", "`FILE` of queries in SQL, separated by semicolons")
	flags.IntVar(
		&o.atLeast,
		"at-least",
		50,
		"`PEOPLE` in a group that is not reported as small, by a count column of the query",
	)
	flags.DurationVar(
		&o.timeout,
		"statement-timeout",
		time.Minute,
		"`TIME` that a query may take, on each side",
	)
	flags.Func("format", "`text`, json or html (default text)", func(s string) error {
		if s != "text" && s != "json" && s != "html" {
			return errors.New("is none of text, json, html")
		}
		o.format = s
		return nil
	})
	flags.StringVar(
		&o.out,
		"out",
		"",
		"`FILE` to write, readable for you only; standard output if not given",
	)
	describe(flags, fidelityHelp)
	if code, ok := parseFlags(flags, args, stdout, stderr); !ok {
		return code
	}
	if fault := o.fault(); fault != "" {
		return complainUsage(flags, stderr, fault)
	}
	return complainPolicy("fidelity", "", stderr, o.execute(ctx, stdout, stderr))
}

// fault is what is wrong with the flags, empty for nothing.
func (o *fidelityOptions) fault() string {
	switch {
	case o.dsn == "":
		return "--dsn is missing"
	case o.proxy == "":
		return "--proxy is missing"
	case o.workload == "":
		return "--workload is missing"
	case o.atLeast < 1:
		return "--at-least must be at least 1"
	case o.timeout < time.Millisecond:
		return "--statement-timeout must be at least 1ms"
	}
	return ""
}

// execute runs the workload and writes the report.
func (o *fidelityOptions) execute(ctx context.Context, stdout, stderr io.Writer) error {
	queries, err := o.queries()
	if err != nil {
		return err
	}
	progress, done := fidelityProgress(stderr)
	runner := &fidelity.Runner{Timeout: o.timeout, AtLeast: float64(o.atLeast), Progress: progress}
	defer runner.Close()
	var database, reader string
	tables := func(ctx context.Context) (*pgx.Conn, error) { return connectTo(ctx, o.dsn, nil) }
	releases := func(ctx context.Context) (*pgx.Conn, error) {
		conn, err := connectTo(ctx, o.proxy, nil)
		if err == nil {
			database, reader = conn.Config().Database, conn.Config().User
		}
		return conn, proxyFault(err)
	}
	if err := runner.Open(ctx, tables, releases); err != nil {
		return fidelityFault(ctx, err)
	}
	report, err := runner.Run(ctx, queries)
	done()
	if err != nil {
		return fidelityFault(ctx, err)
	}
	report.Made, report.Database, report.Reader = time.Now().UTC().Truncate(
		time.Second,
	), database, reader
	write := func(w io.Writer) error { return writeFidelity(w, report, o.format) }
	if o.out != "" {
		return atomicfile.Write(o.out, 0o600, write)
	}
	return write(stdout)
}

func writeFidelity(w io.Writer, report *fidelity.Report, format string) error {
	switch format {
	case "json":
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(report)
	case "html":
		return report.WriteHTML(w)
	}
	return report.WriteText(w)
}

// workloadLimit is the most of a file of queries that is read, in bytes.
const workloadLimit = 4 << 20

// queries reads the file of queries.
func (o *fidelityOptions) queries() ([]fidelity.Query, error) {
	f, err := os.Open(o.workload)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, workloadLimit+1))
	if err != nil {
		return nil, err
	}
	if len(text) > workloadLimit {
		return nil, &policyError{
			fmt.Sprintf("%s is larger than %d MB", o.workload, workloadLimit>>20),
			"give a file of SQL queries",
		}
	}
	queries := fidelity.ReadWorkload(string(text))
	if len(queries) == 0 {
		return nil, &policyError{
			o.workload + " holds no query",
			"write SELECT statements, separated by semicolons",
		}
	}
	return queries, nil
}

// proxyFault says of an error about a connection that it is the proxy's.
func proxyFault(err error) error {
	var known *databaseError
	if !errors.As(err, &known) {
		return err
	}
	return &databaseError{
		"the proxy: " + known.what,
		strings.ReplaceAll(known.remedy, "--dsn", "--proxy"),
	}
}

// fidelityFault words an error that ends the command.
func fidelityFault(ctx context.Context, err error) error {
	var fault *fidelity.Fault
	var server *pgconn.PgError
	switch {
	case ctx.Err() != nil:
		return &policyError{"interrupted", "nothing was written"}
	case errors.As(err, &fault):
		return &policyError{fault.What, fault.Remedy}
	case errors.As(err, &server):
		return &databaseError{
			fmt.Sprintf("prepare the connections: the server says SQLSTATE %s", server.Code),
			"the server's log has the reason",
		}
	}
	return databaseFault(ctx, "run the queries", err)
}

// fidelityProgress keeps one line on a terminal up to date; done clears it. The callback is nil
// if stderr is no terminal.
func fidelityProgress(stderr io.Writer) (progress func(q fidelity.Query, of int), done func()) {
	f, ok := stderr.(*os.File)
	if !ok {
		return nil, func() {}
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil, func() {}
	}
	return func(q fidelity.Query, of int) {
		fmt.Fprintf(f, "\r\x1b[Kquery %d of %d: %.60s", q.Number, of, printable(q.Name))
	}, func() { fmt.Fprint(f, "\r\x1b[K") }
}

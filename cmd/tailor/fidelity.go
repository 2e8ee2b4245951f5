package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/atomicfile"
	"github.com/hiatus-tailor/tailor/internal/fidelity"
)

// fidelityOptions are the flags of tailor fidelity.
type fidelityOptions struct {
	dsn, proxy, workload, format, out string
	atLeast                           int
	ks                                []int
	timeout                           time.Duration
	keep                              bool
}

const fidelityHelp = `
Runs each query of the file on the protected tables, as their owner, and through a running proxy,
as a reader, and compares the answers: relative errors, groups that are missing, refusals, and the
columns that cost most. A comment above a query is its name. Queries that group count(*) beside
other aggregates tell large cells from small ones. Each statement reaches the proxy's audit log.
The keys of --format json are documented in docs/policies.md.

--k 2,5,10,25,50 tells how far off the answers would be with another k. The owner's session makes
roots and values anew from the tables as they are, in temporary tables, which nobody else sees:
of tables of yours with a root of their own, for queries that read one table by its plain name.
A superuser's session leaves out tables of others.

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
	flags.Func("k",
		"also with each other `K`, comma-separated: of tables that are rehearsed, see above",
		func(s string) error {
			for text := range strings.SplitSeq(s, ",") {
				k, err := strconv.Atoi(strings.TrimSpace(text))
				if err != nil || k < 2 || k > mostK || len(o.ks) == mostKs {
					return fmt.Errorf("takes up to %d numbers from 2 to %d", mostKs, mostK)
				}
				o.ks = append(o.ks, k)
			}
			slices.Sort(o.ks)
			return nil
		})
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
	flags.BoolVar(
		&o.keep,
		"keep",
		false,
		"keep a summary in the database, for the console: of tables of yours, without a true figure",
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

// mostK and mostKs bound --k.
const mostK, mostKs = 10000, 20

// selectMine says whether a table is read with no rights that its owner lacks: what the owner
// has made of it runs with those.
const selectMine = `
SELECT tailor.owns(c.oid) AND (o.rolsuper OR NOT me.rolsuper)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_roles o ON o.oid = c.relowner
JOIN pg_catalog.pg_roles me ON me.rolname = session_user WHERE c.oid = $1`

// rehearse makes temporary tables, in the session of a connection, of what releases would show
// with another k.
func rehearse(
	ctx context.Context, conn *pgx.Conn, k int,
) (tables []string, reason string, err error) {
	var failed error // of one table; others may be rehearsed
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL statement_timeout = 0"); err != nil {
			return err
		}
		relations, err := catalog.LoadPolicies(ctx, tx)
		if err != nil {
			return err
		}
		for _, r := range relations {
			var rows int
			var mine bool
			name := pgx.Identifier{r.Schema, r.Name}.Sanitize()
			if err := tx.QueryRow(ctx, selectMine, r.OID).Scan(&mine); err != nil {
				return err
			}
			if !mine {
				continue
			}
			if err := tx.QueryRow(ctx, "SELECT count(*) FROM "+name).Scan(&rows); err != nil {
				return err
			}
			if !r.Rehearsable(rows) {
				continue
			}
			err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return catalog.Rehearse(ctx, tx, r, k) })
			switch {
			case err == nil:
				tables = append(tables, r.Schema+"."+r.Name)
			case ctx.Err() != nil || conn.IsClosed():
				return err
			default:
				failed = fmt.Errorf("table %s.%s: %w", r.Schema, r.Name, err)
			}
		}
		return nil
	})
	var unmet *anonymize.UnmetError
	switch {
	case err != nil || len(tables) > 0 || failed == nil:
		return tables, "", err
	case errors.As(failed, &unmet):
		return nil, "not even everybody together meets " + unmet.Requirement, nil
	}
	return nil, failed.Error(), nil
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
	if err == nil {
		err = runner.AtOtherK(ctx, report, o.ks, rehearse)
	}
	done()
	if err != nil {
		return fidelityFault(ctx, err)
	}
	if o.keep {
		if err := o.keepSummaries(ctx, report.Tables()); err != nil {
			return err
		}
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

// keepSummaries keeps what is told of tables that the owner's role owns.
func (o *fidelityOptions) keepSummaries(
	ctx context.Context, summaries map[string]*fidelity.TableSummary,
) error {
	conn, err := connectTo(ctx, o.dsn, nil)
	if err != nil {
		return err
	}
	defer closeQuietly(conn)
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		relations, err := catalog.LoadPolicies(ctx, tx)
		if err != nil {
			return err
		}
		for _, r := range relations {
			summary, measured := summaries[r.Schema+"."+r.Name]
			if !measured {
				continue
			}
			var mine bool
			if err := tx.QueryRow(ctx, "SELECT tailor.owns($1)", r.OID).Scan(&mine); err != nil {
				return err
			}
			if !mine {
				continue
			}
			_, err := tx.Exec(ctx, "CALL tailor.keep_fidelity($1, $2)", r.OID, summary)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return refusal(ctx, "keep the summary", err)
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

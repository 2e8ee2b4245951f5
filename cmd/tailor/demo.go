package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/internal/demodata"
	"github.com/hiatus-tailor/tailor/internal/pgcluster"
)

// demoOptions are the flags of the demo.
type demoOptions struct {
	port, pgPort, consolePort int
	dir                       string
	patients                  int
}

func runDemo(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	var o demoOptions
	flags := newFlags("demo", "a private PostgreSQL with a synthetic hospital behind the proxy",
		stderr)
	flags.IntVar(&o.port, "port", 6432, "`PORT` of the proxy")
	flags.IntVar(&o.pgPort, "pg-port", 6433, "`PORT` of the private PostgreSQL")
	flags.IntVar(&o.consolePort, "console-port", 6480, "`PORT` of the console")
	flags.StringVar(&o.dir, "dir", "",
		"`DIR` that keeps the cluster; a temporary one that is removed at the end if not given")
	flags.IntVar(&o.patients, "patients", demodata.DefaultPatients, "`NUMBER` of patients")
	if code, ok := parseFlags(flags, args, stdout, stderr); !ok {
		return code
	}
	if o.patients < demodata.MinPatients {
		return complainUsage(flags, stderr, fmt.Sprintf("--patients must be at least %d",
			demodata.MinPatients))
	}
	if err := demo(ctx, o, stdout, stderr); err != nil && ctx.Err() == nil {
		return complain("demo", stderr, err)
	}
	return exitSuccess
}

func demo(ctx context.Context, o demoOptions, stdout, stderr io.Writer) error {
	if o.dir == "" {
		dir, err := os.MkdirTemp("", "tailor-demo-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		o.dir = dir
	}
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return err
	}
	step := func(format string, args ...any) { fmt.Fprintf(stdout, "… "+format+"\n", args...) }

	step("starting a private PostgreSQL on port %d in %s", o.pgPort, dir)
	cluster, err := pgcluster.Start(ctx, dir, o.pgPort)
	if err != nil {
		return err
	}
	defer cluster.Stop()
	if err := prepareHospital(ctx, cluster, o.patients, step); err != nil {
		return err
	}

	_, serving := serveFlags(stderr)
	serving.untested = true
	serving.proxy.Listen = fmt.Sprintf("127.0.0.1:%d", o.port)
	serving.proxy.Upstream = cluster.Address()
	serving.dsn, serving.audit.File = cluster.ServiceDSN("hospital"), filepath.Join(dir, "audit.jsonl")
	serving.console = fmt.Sprintf("127.0.0.1:%d", o.consolePort)
	serving.logLevel.Set(slog.LevelWarn)
	log, closeLog := serving.logger(stderr)
	defer closeLog()
	return serve(ctx, serving, log, func(address string) {
		fmt.Fprint(stdout, invitation(o.port, o.consolePort, dir))
	}, nil)
}

// prepareHospital fills a new cluster; one that was filled before is taken as
// it is.
func prepareHospital(
	ctx context.Context, cluster *pgcluster.Cluster, patients int, step func(string, ...any),
) error {
	admin, err := pgx.Connect(ctx, cluster.SuperuserDSN("postgres"))
	if err != nil {
		return err
	}
	defer closeQuietly(admin)
	var exists bool
	if err := admin.QueryRow(ctx,
		`SELECT EXISTS (SELECT FROM pg_database WHERE datname = 'hospital')`).Scan(&exists); err != nil {
		return err
	}
	if exists {
		step("the hospital is there already; bringing the SQL side up to date")
		return install(ctx, cluster.SuperuserDSN("hospital"), true)
	}
	step("filling a synthetic hospital with %d patients", patients)
	for _, statement := range []string{
		`CREATE ROLE dba LOGIN PASSWORD 'dba'`,
		`CREATE ROLE researcher LOGIN PASSWORD 'researcher'`,
		`CREATE DATABASE hospital_being_made OWNER dba`,
	} {
		if _, err := admin.Exec(ctx, statement); err != nil {
			return err
		}
	}
	step("installing the SQL side and attaching the policy")
	if err := install(ctx, cluster.SuperuserDSN("hospital_being_made"), true); err != nil {
		return err
	}
	started := time.Now()
	if err := asDBA(ctx, cluster, patients); err != nil {
		return err
	}
	// Else the first questions wait for what the load has left to be written.
	if _, err := admin.Exec(ctx, `CHECKPOINT`); err != nil {
		return err
	}
	// The name says that the database is whole.
	if _, err := admin.Exec(ctx, `ALTER DATABASE hospital_being_made RENAME TO hospital`); err != nil {
		return err
	}
	step("ready after %.1f s", time.Since(started).Seconds())
	return nil
}

// asDBA does what a database administrator would: tables, data, policy.
func asDBA(ctx context.Context, cluster *pgcluster.Cluster, patients int) error {
	conn, err := pgx.Connect(ctx, cluster.SuperuserDSN("hospital_being_made"))
	if err != nil {
		return err
	}
	defer closeQuietly(conn)
	if _, err := conn.Exec(ctx,
		`GRANT tailor_admin TO dba; SET SESSION AUTHORIZATION dba`); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, demodata.Schema); err != nil {
		return err
	}
	if err := demodata.Fill(ctx, conn, patients); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, demodata.Policy+demodata.Study); err != nil {
		return fmt.Errorf("attach policy: %w", err)
	}
	_, err = conn.Exec(ctx, `GRANT SELECT ON zip_city, icd9 TO researcher`)
	return err
}

func invitation(port, consolePort int, dir string) string {
	line := func(user, query string) string {
		return fmt.Sprintf("  PGPASSWORD=%[1]s psql -h 127.0.0.1 -p %[2]d -U %[1]s hospital -c '%[3]s'\n",
			user, port, query)
	}
	return "\nA researcher gets every patient, de-identified:\n" +
		line("researcher", "SELECT age, zip, sex, diagnosis FROM patients LIMIT 10") +
		line("researcher", "SELECT sex, avg(age), count(*) FROM patients WHERE age >= 30 GROUP BY sex") +
		line("researcher", "SELECT name FROM patients") +
		"\nThe database administrator sees the table itself, through the same port:\n" +
		line("dba", "SELECT * FROM patients LIMIT 10") +
		line("dba", "SELECT time, principal, verdict, sql, min_block, aggregate_loss FROM tailor.audit "+
			"ORDER BY time") +
		fmt.Sprintf("\nThe console, for dba with the password dba: http://127.0.0.1:%d/\n", consolePort) +
		"The audit log is also in " + filepath.Join(dir, "audit.jsonl") + ". Ctrl-C ends everything.\n"
}

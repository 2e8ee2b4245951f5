package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hiatus-tailor/tailor/internal/demodata"
)

// question is a protected query. Its time through tailor is compared with that
// of the same text that PostgreSQL runs directly over a table made by hand of what the
// release shows, or over the raw table.
type question struct {
	name, text string
	raw        bool
	times      int
}

var questions = []question{
	{"one row", "SELECT age, zip, diagnosis FROM patients WHERE ward = 'none' LIMIT 1", false, 300},
	{"a constant", "SELECT 1 FROM patients LIMIT 1", false, 2000},
	{
		"groups", "SELECT age, sex, count(*), avg(cost) FROM patients GROUP BY age, sex ORDER BY age",
		false, 15,
	},
	{"filter", "SELECT count(*), avg(cost) FROM patients WHERE zip LIKE '1%' AND age > 60", false, 15},
	{"rows", "SELECT age, zip, sex, diagnosis, cost FROM patients", false, 7},
	{"scan, no QID", "SELECT count(*), avg(cost) FROM patients", true, 15},
	{"scan, QIDs", "SELECT count(*), avg(cost), avg(age), count(zip) FROM patients", true, 15},
	{"rows", "SELECT age, zip, sex, diagnosis, cost FROM patients", true, 7},
}

// protected compares protected queries with what PostgreSQL would do itself, and
// with what another tailor makes of them on the same releases.
func (s *stand) protected(ctx context.Context) error {
	tailors, err := s.startHospital(ctx)
	if err != nil {
		return fmt.Errorf("hospital: %w", err)
	}
	if err := s.makeByHand(ctx); err != nil {
		return fmt.Errorf("table by hand: %w", err)
	}
	var conns []*pgconn.PgConn
	for _, w := range tailors {
		through, err := s.reader(ctx, w.port)
		if err != nil {
			return err
		}
		defer func() { _ = through.Close(ctx) }()
		conns = append(conns, through)
		for _, q := range questions { // twice: the first plans
			for range 2 {
				if err := through.Exec(ctx, q.text).Close(); err != nil {
					return fmt.Errorf("%s: %w", q.name, err)
				}
			}
		}
	}
	direct, err := s.reader(ctx, s.ways[0].port)
	if err != nil {
		return err
	}
	defer func() { _ = direct.Close(ctx) }()
	conns = append(conns, direct)
	fmt.Printf("\n%-14s %-10s %-8s %12s %12s %8s %10s   %d patients, the audit in a file\n",
		"protected", "against", "through", "direct ms", "ms", "ratio", "added ms", s.rows)
	for _, q := range questions {
		against := "hand-made"
		schema := "by_hand"
		if q.raw {
			against, schema = "table", "public"
		}
		if err := direct.Exec(ctx, "SET search_path = "+schema).Close(); err != nil {
			return err
		}
		times := make([][]float64, len(conns))
		for round := range q.times {
			for n := range conns {
				i := (n + round) % len(conns) // nobody always comes after the same
				started := time.Now()
				if err := read(ctx, conns[i], q.text); err != nil {
					return fmt.Errorf("%s: %w", q.name, err)
				}
				times[i] = append(times[i], time.Since(started).Seconds()*1000)
			}
		}
		alone := median(times[len(tailors)])
		for i, w := range tailors {
			tailored := median(times[i])
			fmt.Printf("%-14s %-10s %-8s %12.3f %12.3f %8.2f %10.3f\n", q.name, against, w.name, alone,
				tailored, tailored/alone, tailored-alone)
		}
	}
	return nil
}

// read reads an answer and throws it away.
func read(ctx context.Context, conn *pgconn.PgConn, text string) error {
	answers := conn.Exec(ctx, text)
	for answers.NextResult() {
		for r := answers.ResultReader(); r.NextRow(); {
			continue
		}
	}
	return answers.Close()
}

func (s *stand) reader(ctx context.Context, port string) (*pgconn.PgConn, error) {
	return pgconn.Connect(ctx, fmt.Sprintf(
		"postgres://%[1]s:%[1]s@127.0.0.1:%[2]s/hospital?sslmode=disable", role, port))
}

// startHospital fills a protected hospital and starts the tailors for it.
func (s *stand) startHospital(ctx context.Context) ([]way, error) {
	admin, err := pgx.Connect(ctx, s.cluster.SuperuserDSN("postgres"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = admin.Close(ctx) }()
	if _, err := admin.Exec(ctx, "CREATE DATABASE hospital"); err != nil {
		return nil, err
	}
	install := exec.CommandContext(ctx, s.binary, "install", "--dsn",
		s.cluster.SuperuserDSN("hospital"))
	if output, err := install.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("install: %w: %s", err, output)
	}
	conn, err := pgx.Connect(ctx, s.cluster.SuperuserDSN("hospital"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, demodata.Schema); err != nil {
		return nil, err
	}
	if err := demodata.Fill(ctx, conn, s.rows); err != nil {
		return nil, err
	}
	for _, statement := range []string{strings.ReplaceAll(demodata.Policy, "'researcher'",
		"'"+role+"'"), "VACUUM ANALYZE", "CHECKPOINT"} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return nil, err
		}
	}
	// without fsync a checkpoint leaves the table to the kernel, whose writing delays each flush of
	// the audit
	syscall.Sync()
	others := len(s.ways)
	for name, binary := range s.binaries() {
		if err := s.startTailor(ctx, name, binary, "hospital", "--audit-table=false", "--audit-log",
			filepath.Join(s.dir, name+".jsonl")); err != nil {
			return nil, err
		}
	}
	tailors := slices.Clone(s.ways[others:])
	s.ways = slices.Delete(s.ways, others, len(s.ways))
	return tailors, nil
}

// makeByHand waits for the releases, makes the table that a database administrator could have
// made of what the reader is shown, and lets the reader read the original as well.
func (s *stand) makeByHand(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.cluster.SuperuserDSN("hospital"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	for made := false; !made; time.Sleep(time.Second) { // making the others takes processors
		if err := conn.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM tailor.protection p
			WHERE NOT EXISTS (SELECT FROM tailor.chain c WHERE c.relation = p.relation
				AND c.epoch = p.epoch))`).
			Scan(&made); err != nil {
			return err
		}
	}
	var release, columns string
	if err := conn.QueryRow(ctx, `SELECT format('tailor_release.chain_%s', chain),
			(SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute
				WHERE attrelid = 'research.patients'::regclass AND attnum > 0)
		FROM tailor.chain WHERE relation = 'public.patients'::regclass`).
		Scan(&release, &columns); err != nil {
		return err
	}
	for _, statement := range []string{
		"CREATE SCHEMA by_hand",
		fmt.Sprintf("CREATE TABLE by_hand.patients AS SELECT %s FROM %s", columns, release),
		"VACUUM ANALYZE by_hand.patients",
		fmt.Sprintf("GRANT USAGE ON SCHEMA by_hand TO %[1]s; GRANT SELECT ON by_hand.patients, "+
			"public.patients TO %[1]s", role),
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

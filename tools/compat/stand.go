package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/internal/pgcluster"
)

// role runs the suites, under the name that lib/pq's expects; its password is
// its name.
const role = "pqgo"

// owner owns the system catalogs, as PostgreSQL's own tests expect of their
// role; its password is its name.
const owner = "postgres"

// stand is a PostgreSQL with tailor before it.
type stand struct {
	dir             string
	binary          string // the tailor under test
	cluster         *pgcluster.Cluster
	tailor          *exec.Cmd
	direct, proxied string // ports
	database        string
}

func newStand(ctx context.Context, binary string) (*stand, error) {
	dir, err := os.MkdirTemp("", "tailor-compat-")
	if err != nil {
		return nil, err
	}
	s := &stand{dir: dir, binary: binary}
	if err := s.start(ctx); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *stand) start(ctx context.Context) error {
	if err := os.Chmod(s.dir, 0o755); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	s.direct = strconv.Itoa(port)
	if s.cluster, err = pgcluster.Start(ctx, filepath.Join(s.dir, "pg"), port, "fsync=off",
		"max_connections=200", "max_prepared_transactions=10"); err != nil {
		return err
	}
	if err := s.execute(ctx, "postgres", "CREATE ROLE "+role+" SUPERUSER LOGIN PASSWORD '"+role+"'",
		"CREATE DATABASE service",
		"ALTER ROLE "+owner+" PASSWORD '"+owner+"'",
		`CREATE USER " tricky, ' } "" \ test user " SUPERUSER PASSWORD 'secret'`); err != nil {
		return err
	}
	if err := s.install(ctx, "service"); err != nil {
		return err
	}
	s.tailor, s.proxied, err = s.serve("service")
	return err
}

// install makes tailor's schemas in a database.
func (s *stand) install(ctx context.Context, database string) error {
	output, err := exec.CommandContext(ctx, s.binary, "install", "--dsn",
		s.cluster.SuperuserDSN(database)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("install: %w: %s", err, output)
	}
	return nil
}

// serve starts a proxy for a database.
func (s *stand) serve(database string) (serving *exec.Cmd, port string, err error) {
	serving = exec.Command(s.binary, "serve", "--listen", "127.0.0.1:0", "--upstream",
		s.cluster.Address(),
		"--service-dsn", s.cluster.ServiceDSN(database), "--log-level", "error")
	serving.Stderr = os.Stderr
	stdout, err := serving.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := serving.Start(); err != nil {
		return nil, "", err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		end(serving)
		return nil, "", fmt.Errorf("tailor did not start: %w", err)
	}
	_, port, err = net.SplitHostPort(strings.TrimSpace(strings.TrimPrefix(line, "listening on ")))
	return serving, port, err
}

// end has a proxy end, if it was started.
func end(serving *exec.Cmd) {
	if serving != nil && serving.Process != nil {
		_ = serving.Process.Signal(syscall.SIGTERM)
		_ = serving.Wait()
	}
}

// protect makes a database with the protected tables that SQL makes, and starts a proxy
// for it.
func (s *stand) protect(
	ctx context.Context, database, setup string,
) (serving *exec.Cmd, port string, err error) {
	if err := s.reset(ctx, database, ""); err != nil {
		return nil, "", err
	}
	if err := s.install(ctx, database); err != nil {
		return nil, "", err
	}
	if err := s.execute(ctx, database, setup); err != nil {
		return nil, "", err
	}
	return s.serve(database)
}

// execute runs statements as the superuser.
func (s *stand) execute(ctx context.Context, database string, statements ...string) error {
	conn, err := pgx.Connect(ctx, s.cluster.SuperuserDSN(database))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// reset makes a database anew.
func (s *stand) reset(ctx context.Context, database, setup string) error {
	s.database = database
	if err := s.execute(ctx, "postgres", "DROP DATABASE IF EXISTS "+database+" (FORCE)",
		"CREATE DATABASE "+database); err != nil {
		return err
	}
	return s.execute(ctx, database, setup)
}

func (s *stand) stop() {
	end(s.tailor)
	if s.cluster != nil {
		s.cluster.Stop()
	}
	_ = os.RemoveAll(s.dir)
}

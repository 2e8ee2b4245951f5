package main

import (
	"bufio"
	"context"
	"fmt"
	"iter"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/internal/pgcluster"
)

// role logs in with its own name as password. It is a reader, so that each of
// its statements is looked at.
const role = "bench"

// way is how the clients reach PostgreSQL.
type way struct {
	name    string
	port    string
	process int // of what stands between; 0 for nothing
}

// cpu is what the process has used so far.
func (w way) cpu() time.Duration {
	if w.process == 0 {
		return 0
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.process))
	if err != nil {
		return 0
	}
	// Behind the command's name, which may hold blanks: utime and stime are
	// the twelfth and the thirteenth field, in hundredths of a second.
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// stand is a PostgreSQL with both ways to it.
type stand struct {
	options
	dir     string
	one     string // a script of one short statement
	cluster *pgcluster.Cluster
	running []*exec.Cmd
	ways    []way
}

func newStand(ctx context.Context, dir string, o options) (*stand, error) {
	s := &stand{options: o, dir: dir, one: filepath.Join(dir, "one.sql")}
	if err := s.start(ctx); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *stand) start(ctx context.Context) error {
	ports := make([]int, 2)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		ports[i] = l.Addr().(*net.TCPAddr).Port
		_ = l.Close()
	}
	var err error
	s.cluster, err = pgcluster.Start(ctx, filepath.Join(s.dir, "pg"), ports[0], "fsync=off",
		"shared_buffers=256MB", "max_connections=2300")
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.one, []byte("SELECT 1;\n"), 0o644); err != nil {
		return err
	}
	if err := s.fill(ctx); err != nil {
		return err
	}
	s.ways = []way{{name: "direct", port: strconv.Itoa(ports[0])}}
	if err := s.startPgBouncer(ctx, ports[1]); err != nil {
		return err
	}
	for name, binary := range s.binaries() {
		if err := s.startTailor(ctx, name, binary, "bench"); err != nil {
			return err
		}
	}
	return nil
}

// binaries are the tailors to compare, by name, in order.
func (s *stand) binaries() iter.Seq2[string, string] {
	return func(yield func(name, binary string) bool) {
		if yield("tailor", s.binary) && s.other != "" {
			yield("other", s.other)
		}
	}
}

func (s *stand) fill(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.cluster.SuperuserDSN("postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, statement := range []string{
		"CREATE ROLE " + role + " LOGIN PASSWORD '" + role + "'", "CREATE DATABASE bench",
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	for _, command := range [][]string{
		{
			"pgbench", "-i", "-q", "-s", "10", "-h", s.cluster.Dir, "-p", strconv.Itoa(s.cluster.Port), "-U",
			"postgres", "bench",
		},
		{s.binary, "install", "--dsn", s.cluster.SuperuserDSN("bench")},
	} {
		if output, err := exec.CommandContext(ctx, command[0], command[1:]...).
			CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", command[0], err, output)
		}
	}
	bench, err := pgx.Connect(ctx, s.cluster.SuperuserDSN("bench"))
	if err != nil {
		return err
	}
	defer func() { _ = bench.Close(ctx) }()
	for _, statements := range []string{
		fmt.Sprintf(`GRANT SELECT ON ALL TABLES IN SCHEMA public TO %[1]s;
			CALL tailor.grant_reader('%[1]s');
CREATE TABLE large AS SELECT n, n * 7 AS m, 'row ' || n AS word FROM generate_series(1, %[2]d) n;
GRANT SELECT ON large TO %[1]s`, role, s.rows),
		"VACUUM ANALYZE", "CHECKPOINT",
	} {
		if _, err := bench.Exec(ctx, statements); err != nil {
			return err
		}
	}
	return nil
}

// startPgBouncer gives it the verifier, as PostgreSQL stores it.
func (s *stand) startPgBouncer(ctx context.Context, port int) error {
	conn, err := pgx.Connect(ctx, s.cluster.SuperuserDSN("bench"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	var verifier string
	if err := conn.QueryRow(ctx, "SELECT rolpassword FROM pg_authid WHERE rolname = $1", role).
		Scan(&verifier); err != nil {
		return err
	}
	settings := fmt.Sprintf(`[databases]
bench = host=127.0.0.1 port=%d
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = scram-sha-256
auth_file = %s
pool_mode = session
default_pool_size = 1100
max_client_conn = 5000
ignore_startup_parameters = extra_float_digits
log_connections = 0
log_disconnections = 0
`, s.cluster.Port, port, filepath.Join(s.dir, "users"))
	path := filepath.Join(s.dir, "pgbouncer.ini")
	if err := os.WriteFile(path, []byte(settings), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.dir, "users"), fmt.Appendf(nil, "%q %q\n", role, verifier),
		0o644); err != nil {
		return err
	}
	command := exec.Command("/usr/sbin/pgbouncer", "-q", path)
	if os.Geteuid() == 0 { // it refuses to run as root
		u, err := user.Lookup("postgres")
		if err != nil {
			return err
		}
		uid, _ := strconv.ParseUint(u.Uid, 10, 32)
		gid, _ := strconv.ParseUint(u.Gid, 10, 32)
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{
			Uid: uint32(uid),
			Gid: uint32(gid),
		}}
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("%w (Debian: apt-get install pgbouncer)", err)
	}
	s.running = append(s.running, command)
	s.ways = append(s.ways, way{"pgbouncer", strconv.Itoa(port), command.Process.Pid})
	return s.answers(ctx, port, "bench")
}

// answers waits until a port does.
func (s *stand) answers(ctx context.Context, port int, database string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, fmt.Sprintf(
			"postgres://%[1]s:%[1]s@127.0.0.1:%[2]d/%[3]s?sslmode=disable"+
				"&default_query_exec_mode=simple_protocol", role, port, database))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (s *stand) startTailor(
	ctx context.Context, name, binary, database string, flags ...string,
) error {
	command := exec.Command(binary, append([]string{
		"serve", "--listen", "127.0.0.1:0",
		"--upstream", s.cluster.Address(), "--service-dsn", s.cluster.ServiceDSN(database),
		"--max-clients", "1100", "--log-level", "error",
	}, flags...)...)
	command.Stderr = os.Stderr
	stdout, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	s.running = append(s.running, command)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return fmt.Errorf("tailor did not start: %w", err)
	}
	_, port, err := net.SplitHostPort(strings.TrimSpace(strings.TrimPrefix(line, "listening on ")))
	if err != nil {
		return err
	}
	s.ways = append(s.ways, way{name, port, command.Process.Pid})
	number, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	return s.answers(ctx, number, database)
}

// stop ends everything that was started.
func (s *stand) stop() {
	for _, c := range s.running {
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait()
	}
	if s.cluster != nil {
		s.cluster.Stop()
	}
}

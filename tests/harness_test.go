package tests

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/internal/demodata"
	"github.com/hiatus-tailor/tailor/internal/pgcluster"
)

// patients is the size of the test hospital.
const patients = 4000

// binary is the tailor under test, and raced the same built with the race detector, which
// makes a proxy start and answer several times more slowly.
var binary, raced string

// sessionsMeet are the tests whose proxies run with the race detector: those of many
// sessions at once, of what they share and of how they end. With TAILOR_SOAK=1 all do.
var sessionsMeet = regexp.MustCompile(
	`Pool|Shar|Cancel|Kill|Load|Rush|AtOnce|InARow|Pipeline|Session|Clients|Connection|Login|` +
		`Reload|HangUp|Wait|Peer|Overt|Record|Copy|Leave|Many`)

// proxyFor is the tailor that a test's proxy runs.
func proxyFor(t *testing.T) string {
	if soaks() || sessionsMeet.MatchString(t.Name()) {
		return raced
	}
	return binary
}

// testCluster is a test testCluster: a PostgreSQL with the hospital, ready to be served.
type testCluster struct {
	dir     string
	cluster *pgcluster.Cluster
}

// stands is the folder of all test stands.
var stands string

// shared is the stand of tests that change nothing but chains of their own
// readers.
var shared *testCluster

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "tests:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "tailor-test-")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.Chmod(dir, 0o755); err != nil { // the server's account passes through
		return 1, err
	}
	stands = dir
	// A tailor with the race detector reports what it finds when it finds it,
	// and would then sleep for a second each time it ends.
	if err := os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+
		" atexit_sleep_ms=0")); err != nil {
		return 1, err
	}
	if err := findBinaries(dir); err != nil {
		return 1, err
	}
	if err := prepareStands(); err != nil {
		return 1, err
	}
	if shared, err = newStand(filepath.Join(dir, "shared")); err != nil {
		return 1, err
	}
	defer shared.cluster.Stop()
	return m.Run(), nil
}

// findBinaries finds the two tailors that are tested, or builds them in a folder.
func findBinaries(dir string) error {
	built, found := os.LookupEnv("TAILOR_TEST_BINARIES") // by make, for several processes
	if found {
		dir = built
	}
	binary, raced = filepath.Join(dir, "tailor"), filepath.Join(dir, "raced", "tailor")
	if found {
		return nil
	}
	build := exec.Command("make", "--no-print-directory", "BINARIES="+dir, "binaries")
	build.Dir = ".."
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w: %s", err, output)
	}
	return nil
}

// prepareStands makes the cluster with the hospital that all stands are copies
// of: preparing one takes much longer than copying it.
func prepareStands() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	s, err := startStand(ctx, filepath.Join(stands, "prepared"))
	if err != nil {
		return err
	}
	defer s.cluster.Stop()
	return s.prepare(ctx)
}

// newStand starts a cluster with the hospital in it.
func newStand(dir string) (*testCluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	data := filepath.Join(stands, "prepared", "data")
	if output, err := exec.CommandContext(ctx, "cp", "-a", data, dir).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("copy: %w: %s", err, output)
	}
	return startStand(ctx, dir)
}

// startStand starts the cluster of a folder, an empty one where there is none.
func startStand(ctx context.Context, dir string) (*testCluster, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	settings := []string{"fsync=off", "max_connections=200"}
	if !soaks() {
		settings = append(settings, "jit=off") // it takes longer than queries of tables this small
	}
	cluster, err := pgcluster.Start(ctx, dir, port, settings...)
	if err != nil {
		return nil, err
	}
	return &testCluster{dir: dir, cluster: cluster}, nil
}

// freePort is a port that nobody listens at. It is below those that the kernel gives to whoever
// asks for any: what starts a moment later would find it taken.
func freePort() (port int, err error) {
	for range 20 {
		port = 15000 + rand.IntN(17000)
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, err
}

// prepare does what the demo does, and adds the token: a column of unique
// values that a policy shows. It is the attacker's perfect knowledge of a
// payload, by which the checker finds the same person in two answers.
func (s *testCluster) prepare(ctx context.Context) error {
	admin, err := pgx.Connect(ctx, s.cluster.SuperuserDSN("postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = admin.Close(ctx) }()
	for _, statement := range []string{
		`CREATE ROLE dba LOGIN PASSWORD 'dba'`,
		`CREATE ROLE researcher LOGIN PASSWORD 'researcher'`,
		`CREATE DATABASE hospital OWNER dba`,
	} {
		if _, err := admin.Exec(ctx, statement); err != nil {
			return err
		}
	}
	// Twice: installing is idempotent.
	for range 2 {
		if err := s.install(ctx, "hospital"); err != nil {
			return err
		}
	}
	conn, err := pgx.Connect(ctx, s.cluster.SuperuserDSN("hospital"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	// PostgreSQL 14 lets everybody make functions in the schema public, as later ones do not.
	if _, err := conn.Exec(ctx, `REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT CREATE ON SCHEMA public TO dba; GRANT tailor_admin TO dba;
    SET SESSION AUTHORIZATION dba`); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, demodata.Schema); err != nil {
		return err
	}
	if err := demodata.Fill(ctx, conn, patients); err != nil {
		return err
	}
	policy := strings.Replace(demodata.Policy, `CALL tailor.grant_reader(`,
		`CALL tailor.classify('public.patients', 'token', 'non_sensitive');
CALL tailor.grant_reader(`, 1)
	_, err = conn.Exec(ctx, `ALTER TABLE patients ADD token uuid NOT NULL DEFAULT gen_random_uuid();
GRANT SELECT ON zip_city TO PUBLIC;
CREATE TABLE numbers AS SELECT n, n * n AS square FROM generate_series(1, 10000) n;
GRANT SELECT ON numbers TO PUBLIC;`+policy)
	return err
}

// install installs Tailor's SQL side in a database.
func (s *testCluster) install(ctx context.Context, database string) error {
	command := exec.CommandContext(ctx, binary, "install", "--dsn", s.cluster.SuperuserDSN(database))
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("install: %w: %s", err, output)
	}
	return nil
}

// reader makes a role of the test's own, once, and returns its name, which is also
// its password.
func (s *testCluster) reader(t *testing.T) string {
	t.Helper()
	name := strings.ToLower(t.Name())
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
	if len(name) > 60 {
		name = name[len(name)-60:]
	}
	conn := s.superuser(t)
	if !one[bool](t, conn, `SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)`, name) {
		mustExec(t, conn, fmt.Sprintf(`CREATE ROLE %s LOGIN PASSWORD '%s'`,
			pgx.Identifier{name}.Sanitize(), name))
		mustExec(t, conn, `CALL tailor.grant_reader($1)`, name)
	}
	return name
}

// superuser is a direct connection.
func (s *testCluster) superuser(t *testing.T) *pgx.Conn {
	t.Helper()
	return connect(t, s.cluster.SuperuserDSN("hospital"))
}

// testProxy is a running proxy.
type testProxy struct {
	*testCluster
	address string
	command *exec.Cmd
	log     *safeBuffer
	auditTo string
	// database is the one that clients connect to.
	database string
}

// serve starts a proxy that ends with the test. flags are added to its own.
func (s *testCluster) serve(t *testing.T, flags ...string) *testProxy {
	t.Helper()
	return s.serveBinary(t, proxyFor(t), flags...)
}

// serveBinary is serve with a tailor of the caller's.
func (s *testCluster) serveBinary(t *testing.T, binary string, flags ...string) *testProxy {
	t.Helper()
	p := &testProxy{testCluster: s, log: &safeBuffer{}, auditTo: filepath.Join(t.TempDir(),
		"audit.jsonl"), database: "hospital"}
	args := append([]string{
		"serve", "--listen", "127.0.0.1:0", "--upstream", s.cluster.Address(),
		"--service-dsn", s.cluster.ServiceDSN("hospital"), "--audit-log", p.auditTo,
	}, flags...)
	p.command = exec.Command(binary, args...)
	stdout, err := p.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.command.Stderr = p.log
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.stop(t) })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the proxy did not start: %v\n%s", err, p.log)
	}
	p.address = strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
	return p
}

// stop ends the proxy as an operator would, unless it was killed, and fails on
// a data race.
func (p *testProxy) stop(t *testing.T) {
	if p.command.ProcessState == nil {
		_ = p.command.Process.Signal(syscall.SIGTERM)
		if err := p.command.Wait(); err != nil {
			t.Errorf("the proxy ended with %v\n%s", err, p.log)
		}
	}
	if strings.Contains(p.log.String(), "DATA RACE") {
		t.Errorf("data race in the proxy:\n%s", p.log)
	}
}

// kill ends the proxy without a chance to clean up.
func (p *testProxy) kill() {
	_ = p.command.Process.Kill()
	_ = p.command.Wait()
}

func (p *testProxy) dsn(user string) string {
	return fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=disable&application_name=psql", user, user,
		p.address, p.database)
}

// psql runs one command line of psql and returns what it printed.
func (p *testProxy) psql(
	t *testing.T, user string, args ...string,
) (stdout, stderr string, ok bool) {
	t.Helper()
	host, port, _ := net.SplitHostPort(p.address)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "psql",
		append([]string{"-X", "-h", host, "-p", port, "-U", user, p.database}, args...)...)
	cmd.Env = append(os.Environ(), "PGPASSWORD="+user, "PGSSLMODE=disable")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	return out.String(), errs.String(), err == nil
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func mustExec(t *testing.T, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// one returns the single value of a query.
func one[T any](t *testing.T, conn *pgx.Conn, sql string, args ...any) T {
	t.Helper()
	var v T
	if err := conn.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// safeBuffer collects what a process prints while a test reads it.
type safeBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

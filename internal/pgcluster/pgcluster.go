// Package pgcluster runs a private PostgreSQL: made by initdb in a folder of
// its own, reachable by its superuser over a socket in that folder and by
// everybody else over a loopback port with SCRAM. Where the caller is root,
// which PostgreSQL refuses, the server runs as the user "postgres" or "nobody".
package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Cluster is a running server.
type Cluster struct {
	Dir  string // holds data, the socket and the log
	Port int

	bin        string
	credential *syscall.Credential // nil: the caller's own
	postmaster *exec.Cmd
	exited     chan error
}

// BinariesVariable is the environment variable that names the folder of the server's
// binaries, for another version of PostgreSQL than the machine's own. The account that
// runs the server must be able to read it.
const BinariesVariable = "TAILOR_PG_BIN"

// Binaries finds the folder of initdb and postgres: the one that BinariesVariable
// names, else the newest version that is installed.
func Binaries() (string, error) {
	if named := os.Getenv(BinariesVariable); named != "" {
		if _, err := os.Stat(filepath.Join(named, "initdb")); err != nil {
			return "", fmt.Errorf("%s: %w", BinariesVariable, err)
		}
		return filepath.Abs(named)
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	slices.SortFunc(found, func(a, b string) int { return version(b) - version(a) })
	if len(found) > 0 {
		return filepath.Dir(found[0]), nil
	}
	path, err := exec.LookPath("initdb")
	if err != nil {
		return "", errors.New("PostgreSQL's server binaries are not installed (Debian: apt-get install " +
			"postgresql)")
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", err
	}
	return filepath.Dir(path), nil
}

// version is the number in /usr/lib/postgresql/NUMBER/bin/initdb.
func version(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	return n
}

// unprivileged is the account that runs the server for root.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, err
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New(
		"no unprivileged account to run PostgreSQL: neither postgres nor nobody exists")
}

// Start makes a cluster in dir, or takes up the one that is there, and starts
// it on a loopback port. settings are added to its configuration. The socket's
// path must stay below the system's limit of about 100 bytes.
func Start(ctx context.Context, dir string, port int, settings ...string) (*Cluster, error) {
	bin, err := Binaries()
	if err != nil {
		return nil, err
	}
	return StartFrom(ctx, bin, dir, port, settings...)
}

// StartFrom is Start with the server binaries of a folder.
func StartFrom(
	ctx context.Context, bin, dir string, port int, settings ...string,
) (*Cluster, error) {
	credential, err := unprivileged()
	if err != nil {
		return nil, err
	}
	c := &Cluster{Dir: dir, Port: port, bin: bin, credential: credential}
	if err := c.create(ctx); err != nil {
		return nil, err
	}
	return c, c.Launch(ctx, settings...)
}

func (c *Cluster) data() string { return filepath.Join(c.Dir, "data") }

// create runs initdb where there is no cluster yet, and writes the access rules:
// the socket lies in a private folder and asks for no password.
func (c *Cluster) create(ctx context.Context) error {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return err
	}
	if c.credential != nil {
		if err := os.Chown(c.Dir, int(c.credential.Uid), int(c.credential.Gid)); err != nil {
			return err
		}
	}
	if _, err := os.Stat(filepath.Join(c.data(), "PG_VERSION")); err == nil {
		return nil
	}
	initdb := c.command(ctx, "initdb", "-D", c.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8",
		"--locale=C.UTF-8", "--no-sync")
	if output, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, strings.TrimSpace(string(output)))
	}
	const rules = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
	return os.WriteFile(filepath.Join(c.data(), "pg_hba.conf"), []byte(rules), 0o600)
}

// command readies a server binary to run as the unprivileged account, in a
// process group of its own so that a Ctrl-C reaches it through us only.
func (c *Cluster) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, name), args...)
	cmd.Dir = c.Dir
	cmd.Env = []string{"PATH=" + c.bin + ":/usr/bin:/bin", "LC_ALL=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.credential, Setpgid: true}
	return cmd
}

// Launch starts the server of a cluster that is not running and waits until it
// accepts connections.
func (c *Cluster) Launch(ctx context.Context, settings ...string) error {
	// A socket of a server that was killed would keep the new one from starting
	// only if its process number were taken again; PostgreSQL checks that.
	args := []string{
		"-D", c.data(), "-k", c.Dir, "-p", strconv.Itoa(c.Port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_permissions=0700",
	}
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	logFile, err := os.OpenFile(filepath.Join(c.Dir, "postgresql.log"),
		os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = logFile.Close() }()
	c.postmaster = c.command(context.WithoutCancel(ctx), "postgres", args...)
	c.postmaster.Stdout, c.postmaster.Stderr = logFile, logFile
	// Should this process be killed, the server ends too.
	c.postmaster.SysProcAttr.Pdeathsig = syscall.SIGINT
	if err := c.postmaster.Start(); err != nil {
		return fmt.Errorf("start postgres: %w", err)
	}
	c.exited = make(chan error, 1)
	go func() { c.exited <- c.postmaster.Wait() }()
	if err := c.waitReady(ctx); err != nil {
		c.Stop()
		return err
	}
	return nil
}

func (c *Cluster) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		conn, err := pgx.Connect(ctx, c.SuperuserDSN("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case exit := <-c.exited:
			c.exited <- exit
			return fmt.Errorf("postgres ended at once (see %s): %w",
				filepath.Join(c.Dir, "postgresql.log"), exit)
		case <-ctx.Done():
			return fmt.Errorf("postgres does not answer: %w", err)
		case <-ticker.C:
		}
	}
}

// SuperuserDSN connects over the private socket.
func (c *Cluster) SuperuserDSN(database string) string {
	return fmt.Sprintf("host=%s port=%d user=postgres dbname=%s", c.Dir, c.Port, database)
}

// ServiceDSN connects over the private socket as tailor_owner.
func (c *Cluster) ServiceDSN(database string) string {
	return fmt.Sprintf("host=%s port=%d user=tailor_owner dbname=%s", c.Dir, c.Port, database)
}

// Address is where the server accepts clients.
func (c *Cluster) Address() string { return fmt.Sprintf("127.0.0.1:%d", c.Port) }

// Stop ends the server: connections are cut, data is written.
func (c *Cluster) Stop() { c.signal(syscall.SIGINT) }

// Crash ends the server as a power cut would (immediate shutdown).
func (c *Cluster) Crash() { c.signal(syscall.SIGQUIT) }

// signal sends a signal and waits for the end, by force after a while.
func (c *Cluster) signal(s syscall.Signal) {
	if c.postmaster == nil || c.postmaster.Process == nil {
		return
	}
	_ = c.postmaster.Process.Signal(s)
	select {
	case <-c.exited:
	case <-time.After(20 * time.Second):
		_ = syscall.Kill(-c.postmaster.Process.Pid, syscall.SIGKILL)
		<-c.exited
	}
	c.postmaster = nil
}

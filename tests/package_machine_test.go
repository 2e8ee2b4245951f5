package tests

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/hiatus-tailor/tailor/internal/pgcluster"
)

// operated is a machine with the package: this one, with what is written to it kept apart, where
// the caller is root; else a folder with the package's files.
type operated struct {
	t     *testing.T
	root  string   // of a folder
	enter []string // what brings a command to the machine
	as    []string // what makes it one of the service's account
	deb   string
	db    *testCluster
}

// newOperated makes the package and the machine, on which it is not installed yet.
func newOperated(t *testing.T) *operated {
	t.Helper()
	for _, needed := range []string{"dpkg-deb", "sha256sum"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Skip(err)
		}
	}
	o, out := &operated{t: t, root: t.TempDir()}, t.TempDir()
	t.Setenv("DIST", out)
	t.Setenv("ARCHS", runtime.GOARCH)
	o.run("", 0, "sh", "-ec", `cd .. && scripts/dist && cd "$DIST" &&
		sha256sum --check --ignore-missing SHA256SUMS`)
	made, _ := filepath.Glob(filepath.Join(out, "*.deb"))
	o.deb = filepath.Join("/tmp", "tailor.deb")
	if os.Geteuid() != 0 {
		o.deb = made[0]
		return o
	}
	const overlay = `mount -t tmpfs none "$0" && cd "$0" && mkdir upper work root &&
		mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work root &&
		mount --rbind /dev root/dev && mount --rbind /proc root/proc &&
		cp "$1" root/tmp/tailor.deb && echo made && exec chroot root cat`
	holder := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-ec", overlay,
		o.root, made[0])
	stdin, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = stdin.Close(), holder.Wait() })
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatalf("no file system of its own: %v, %s", err, line)
	}
	o.root = ""
	o.enter = []string{"nsenter", "--mount", "--root", "--target", fmt.Sprint(holder.Process.Pid)}
	o.as = []string{"setpriv", "--reuid", "tailor", "--regid", "tailor", "--init-groups"}
	return o
}

// command readies one on the machine; a name that begins with / is a file there.
func (o *operated) command(words ...string) *exec.Cmd {
	words = slices.Concat(o.enter, words)
	for i, word := range words {
		if o.root != "" && strings.HasPrefix(word, "/") && word != "/dev/stdin" && word != o.deb {
			words[i] = o.root + word
		}
	}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8",
		"PATH=/usr/sbin:/sbin:"+os.Getenv("PATH"))
	return cmd
}

// run runs a command on the machine to its end, which is to be with an exit code.
func (o *operated) run(stdin string, code int, words ...string) string {
	o.t.Helper()
	cmd := o.command(words...)
	cmd.Stdin = strings.NewReader(stdin)
	output, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || cmd.ProcessState.ExitCode() != code {
		o.t.Fatalf("%s: %v, want exit code %d: %s", strings.Join(words, " "), err, code, output)
	}
	return string(output)
}

// install installs the package, or installs it again.
func (o *operated) install() {
	o.t.Helper()
	if o.root != "" {
		o.run("", 0, "dpkg-deb", "--extract", o.deb, "/")
		return
	}
	o.run("", 0, "dpkg", "--install", o.deb)
}

// put writes a file that the service's account may read.
func (o *operated) put(path, text string) {
	o.t.Helper()
	words := []string{"install", "-m", "0640", "-g", "tailor", "/dev/stdin", path}
	if o.root != "" {
		words = slices.Delete(words, 3, 5)
	}
	o.run(text, 0, words...)
}

// configure writes the files of two proxies, by the package's own, for the database as it is now.
func (o *operated) configure(shipped string, ports []int) {
	o.t.Helper()
	for i := range 2 {
		text := strings.NewReplacer("127.0.0.1:6432", fmt.Sprint("127.0.0.1:", ports[2*i]),
			"127.0.0.1:9432", fmt.Sprint("127.0.0.1:", ports[2*i+1]),
			"127.0.0.1:5432", o.db.cluster.Address(), "user=tailor_owner",
			fmt.Sprintf("port=%d user=tailor_owner", o.db.cluster.Port), "dbname=postgres",
			"dbname=hospital", "audit.jsonl", fmt.Sprintf("audit%d.jsonl", i+1),
			"/etc/tailor/", o.root+"/etc/tailor/", "/var/lib/", o.root+"/var/lib/").Replace(shipped)
		o.put(fmt.Sprintf("/etc/tailor/proxy%d.yaml", i+1), text+fmt.Sprintf("peer: {number: %d, "+
			"addresses: \"1=127.0.0.1:%d,2=127.0.0.1:%d\", secret: %s/etc/tailor/peer.secret}\n",
			i+1, ports[0], ports[2], o.root))
	}
}

// serve starts a proxy as the unit does.
func (o *operated) serve(number int) *testProxy {
	o.t.Helper()
	p := &testProxy{testCluster: o.db, log: &safeBuffer{}, database: "hospital"}
	p.command = o.command(slices.Concat(o.as, []string{
		"/usr/bin/tailor", "serve", "--config",
		fmt.Sprintf("/etc/tailor/proxy%d.yaml", number),
	})...)
	stdout, err := p.command.StdoutPipe()
	if err != nil {
		o.t.Fatal(err)
	}
	p.command.Stderr = p.log
	if err := p.command.Start(); err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { p.stop(o.t) })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		o.t.Fatalf("the proxy did not start: %v\n%s", err, p.log)
	}
	p.address = strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
	return p
}

// tailor runs a command of the package's tailor against the database.
func (o *operated) tailor(code int, command, stdin string, rest ...string) string {
	o.t.Helper()
	words := slices.Concat([]string{"env", "PGPASSWORD=postgres", "/usr/bin/tailor"},
		strings.Fields(command), []string{
			"--dsn", fmt.Sprintf("host=127.0.0.1 port=%d user=postgres dbname=hospital", o.db.cluster.Port),
		}, rest)
	return o.run(stdin, code, words...)
}

// folder makes the folder of the audit log, as systemd does.
func (o *operated) folder(path string) {
	o.t.Helper()
	words := []string{"install", "-d", "-m", "0700", "-o", "tailor", "-g", "tailor", path}
	if o.root != "" {
		words = slices.Delete(words, 4, 8)
	}
	o.run("", 0, words...)
}

// ready is the exit code of tailor health.
func (o *operated) ready(number int) int {
	cmd := o.command("/usr/bin/tailor", "health", "--config", fmt.Sprintf("/etc/tailor/proxy%d.yaml",
		number))
	_ = cmd.Run()
	return cmd.ProcessState.ExitCode()
}

// removed removes the package, and then what it leaves.
func (o *operated) removed() {
	o.t.Helper()
	if o.root != "" {
		return
	}
	o.run("", 0, "dpkg", "--remove", "tailor")
	o.run("", 1, "test", "-e", "/usr/bin/tailor")
	o.run("", 0, "test", "-e", "/var/lib/tailor/audit1.jsonl")
	o.run("", 0, "test", "-e", "/etc/tailor/tailor.yaml")
	o.run("", 0, "dpkg", "--purge", "tailor")
	o.run("", 1, "test", "-e", "/var/lib/tailor")
	o.run("", 1, "test", "-e", "/etc/tailor/tailor.yaml")
	if left := o.run("", 0, "ls", "/etc/tailor"); left != "peer.secret\npgpass\npolicy.yaml\n"+
		"proxy1.yaml\nproxy2.yaml\n" {
		o.t.Errorf("left of the package: %s", left)
	}
	o.run("", 1, "sh", "-c", "dpkg --listfiles tailor 2>/dev/null")
}

// upgraded brings the server to the newest version whose pg_upgrade is here: its own where there
// is no newer one, and none where there is no pg_upgrade.
func (o *operated) upgraded() *testCluster {
	t := o.t
	t.Helper()
	old, err := pgcluster.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pg_upgrade")
	slices.Sort(found)
	if len(found) == 0 || filepath.Dir(found[0]) != old {
		t.Logf("pg_upgrade is left out: none for %s", old)
		return nil
	}
	bin, dir := filepath.Dir(found[len(found)-1]), filepath.Join(stands, "operatednext")
	t.Logf("pg_upgrade from %s to %s", old, bin)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	from, to := filepath.Join(o.db.dir, "data"), filepath.Join(dir, "data")
	server := func(program string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, program), args...)
		cmd.Dir = dir
		if info, err := os.Stat(from); err == nil && os.Geteuid() == 0 {
			owner := info.Sys().(*syscall.Stat_t)
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{
				Uid: owner.Uid, Gid: owner.Gid,
			}}
		}
		if output, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", program, err, output)
		}
	}
	f := &losing{}
	f.run(t, "chown", "--reference", from, dir)
	o.db.cluster.Stop()
	sums := []string{"--no-data-checksums"}
	if version := filepath.Base(filepath.Dir(bin)); version < "18" {
		sums = nil
	}
	server("initdb", append(sums, "-D", to, "-U", "postgres", "-A", "trust", "-E", "UTF8",
		"--locale=C.UTF-8", "--no-sync")...)
	server("pg_upgrade", "--old-bindir", old, "--new-bindir", bin, "--old-datadir", from,
		"--new-datadir", to, "--username", "postgres", "--socketdir", dir)
	f.run(t, "cp", "-a", filepath.Join(from, "pg_hba.conf"), to)
	cluster, err := pgcluster.StartFrom(t.Context(), bin, dir, o.db.cluster.Port, "fsync=off",
		"max_connections=200")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	server("vacuumdb", "--host", dir, "--port", fmt.Sprint(cluster.Port), "--username", "postgres",
		"--all", "--analyze-in-stages")
	return &testCluster{dir: dir, cluster: cluster}
}

package tests

import (
	"bufio"
	"context"
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
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/internal/demodata"
	"github.com/hiatus-tailor/tailor/internal/pgcluster"
)

// operatedPolicy is what an operator puts in force.
const operatedPolicy = `version: 1
hierarchies:
  age: {type: interval, widths: [5, 10, 20, 40], lower: 0, upper: 119}
  zip: {type: prefix, keep: [4, 3, 2, 1]}
  sex: {type: prefix, keep: []}
tables:
  public.patients:
    subject: id
    k: 5
    require: [{model: l_diversity, column: diagnosis, parameter: 2}]
    recoding: auto
    chain: {scope: table}
    readers: [ann]
    columns:
      id: {class: direct_identifier}
      name: {class: direct_identifier}
      ssn: {class: direct_identifier}
      birth_date: {class: direct_identifier}
      race: {class: direct_identifier}
      ward: {class: non_sensitive}
      age: {class: quasi_identifier, hierarchy: age}
      zip: {class: quasi_identifier, hierarchy: zip}
      sex: {class: quasi_identifier, hierarchy: sex}
      diagnosis: {class: sensitive}
      cost: {class: non_sensitive}
`

// operatedQueries are what the reader asks again and again.
var operatedQueries = []string{
	"SELECT age, zip, sex, diagnosis, cost FROM patients ORDER BY 1, 2, 3, 4, 5",
	"SET tailor.representation = 'label'",
	"SELECT age, zip, sex, diagnosis, cost FROM patients ORDER BY 1, 2, 3, 4, 5",
	"SELECT sex, count(*), round(avg(cost), 2) FROM patients WHERE age >= 30 GROUP BY sex ORDER BY sex",
}

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
		o.run("", 0, "dpkg-deb", "--extract", o.deb, o.root)
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

// healthy asserts that tailor doctor finds one thing at most, besides how the test's own server
// lets the test in.
func (o *operated) healthy(when, but string) {
	o.t.Helper()
	for line := range strings.Lines(o.tailor(1, "doctor", "")) {
		found := strings.HasPrefix(line, "serious: ") || strings.HasPrefix(line, "warning: ")
		if found && !strings.Contains(line, "(connections)") {
			if but == "" || !strings.Contains(line, but) {
				o.t.Errorf("%s: %s", when, line)
			}
			but = ""
		}
	}
	if but != "" {
		o.t.Errorf("%s: nothing is found %s", when, but)
	}
}

// same asserts that a new session of the reader gets the answers that are known.
func (o *operated) same(p *testProxy, want []string, when string) []string {
	o.t.Helper()
	soon, cancel := context.WithTimeout(o.t.Context(), 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(soon, p.dsn("ann"))
	if err != nil {
		o.t.Fatalf("%s: %v\n%s", when, err, p.log)
	}
	defer func() { _ = conn.Close(soon) }()
	got := rowsOf(o.t, conn, operatedQueries...)
	if len(got) < 2*patients || want != nil && !slices.Equal(got, want) {
		o.t.Errorf("%s: %d rows, not those of before", when, len(got))
	}
	return got
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
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
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
	cluster, err := pgcluster.StartFrom(t.Context(), bin, dir, port, "fsync=off",
		"max_connections=200")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	server("vacuumdb", "--host", dir, "--port", fmt.Sprint(port), "--username", "postgres", "--all",
		"--analyze-in-stages")
	return &testCluster{dir: dir, cluster: cluster}
}

// database starts a server with an empty database, and its synchronous standby.
func (o *operated) database() (primary, standby *testCluster) {
	t := o.t
	t.Helper()
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pg_upgrade"); len(found) > 0 &&
		os.Getenv(pgcluster.BinariesVariable) == "" {
		t.Setenv(pgcluster.BinariesVariable, filepath.Dir(slices.Min(found)))
	}
	primary, err := startStand(t.Context(), filepath.Join(stands, "operated"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(primary.cluster.Stop)
	primary.cluster.Stop()
	base := filepath.Join(stands, "operated", "base")
	(&losing{}).run(t, "cp", "-a", filepath.Join(primary.dir, "data"), base)
	if err := primary.cluster.Launch(t.Context(), "fsync=off", "max_connections=200"); err != nil {
		t.Fatal(err)
	}
	standby = primary.standbyFrom(t, "operatedstandby", base)
	super := connect(t, primary.cluster.SuperuserDSN("postgres"))
	mustExec(t, super, `ALTER SYSTEM SET synchronous_standby_names = 'walreceiver'`)
	mustExec(t, super, `SELECT pg_reload_conf()`)
	waitFor(t, func() bool {
		return one[bool](t, super, `SELECT EXISTS (SELECT FROM pg_stat_replication
			WHERE sync_state = 'sync')`)
	})
	mustExec(t, super, `ALTER ROLE postgres PASSWORD 'postgres'`)
	mustExec(t, super, `CREATE DATABASE hospital`)
	conn := primary.superuser(t)
	mustExec(t, conn, demodata.Schema)
	if err := demodata.Fill(t.Context(), conn, patients); err != nil {
		t.Fatal(err)
	}
	return primary, standby
}

func TestFromThePackageToItsRemoval(t *testing.T) {
	soakOnly(t)
	o := newOperated(t)
	primary, standby := o.database()
	o.db = primary

	// Install from a package.
	o.install()
	o.tailor(0, "install", "")
	o.tailor(0, "password", "from the package\n", "tailor_owner")
	o.put("/etc/tailor/pgpass", "127.0.0.1:*:*:tailor_owner:from the package\n")
	o.put("/etc/tailor/peer.secret", o.run("", 0, "openssl", "rand", "-base64", "32"))
	o.put("/etc/tailor/policy.yaml", operatedPolicy)
	mustExec(t, primary.superuser(t), `CREATE ROLE ann LOGIN PASSWORD 'ann'`)
	if plan := o.tailor(0, "policy plan", "", "/etc/tailor/policy.yaml"); !strings.Contains(plan,
		"Plan: 1 tables to protect") {
		t.Errorf("%s", plan)
	}
	o.tailor(0, "policy apply", "", "/etc/tailor/policy.yaml")
	o.folder("/var/lib/tailor")
	shipped := o.run("", 0, "cat", "/etc/tailor/tailor.yaml")
	var ports []int
	for range 4 {
		port, err := freePort()
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, port)
	}
	o.configure(shipped, ports)
	first, second := o.serve(1), o.serve(2)
	if o.ready(1) != 0 || o.ready(2) != 0 {
		t.Error("tailor health says that proxies are not ready")
	}
	want := o.same(first, nil, "the first proxy")
	o.same(second, want, "the second proxy")
	_, err := connect(t, first.dsn("ann")).Exec(t.Context(), "SELECT name FROM patients")
	assertState(t, err, "42501", "name")

	// A proxy is gone.
	first.kill()
	o.same(second, want, "beside a proxy that was killed")
	first = o.serve(1)
	o.same(first, want, "after it was killed")
	o.healthy("of the primary", "")

	// The primary is gone.
	primary.cluster.Crash()
	waitFor(t, func() bool { return o.ready(1) == 1 && o.ready(2) == 1 })
	if !one[bool](t, standby.superuser(t), `SELECT pg_promote()`) {
		t.Fatal("not promoted")
	}
	o.db = standby
	first.stop(t)
	second.stop(t)
	o.configure(shipped, ports)
	t.Log(o.run("", 1, slices.Concat(o.as, []string{
		"/usr/bin/tailor", "serve", "--config",
		"/etc/tailor/proxy1.yaml",
	})...))
	o.healthy("of the promoted standby", "(restore)")
	o.tailor(1, "doctor --accept-restore", "")
	o.healthy("once it is accepted", "")
	first, second = o.serve(1), o.serve(2)
	o.same(first, want, "at the promoted standby")
	o.same(second, want, "at the promoted standby, by the other proxy")

	// A new version.
	busy := connect(t, first.dsn("ann"))
	mustExec(t, busy, "BEGIN")
	if got := rowsOf(t, busy, operatedQueries...); !slices.Equal(got, want) {
		t.Error("a transaction has other answers")
	}
	if err := first.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return o.ready(1) == 1 })
	if got := rowsOf(t, busy, operatedQueries...); !slices.Equal(got, want) {
		t.Error("a transaction has other answers once its proxy is to end")
	}
	if tag, err := busy.Exec(t.Context(), "COMMIT"); err != nil || tag.String() != "COMMIT" {
		t.Errorf("the end of a transaction: %v, %v", tag, err)
	}
	if _, err := busy.Exec(t.Context(), "SELECT 1"); codeIn(err) != "57P01" {
		t.Errorf("after the transaction: %v, want 57P01", err)
	}
	if err := first.command.Wait(); err != nil {
		t.Errorf("the proxy ended with %v: %s", err, first.log)
	}
	second.stop(t)
	o.install()
	o.tailor(0, "install", "")
	first, second = o.serve(1), o.serve(2)
	o.same(first, want, "after a new version was installed")
	o.same(second, want, "after a new version was installed, by the other proxy")

	// A new major version of the server.
	if next := o.upgraded(); next != nil {
		first.stop(t)
		second.stop(t)
		o.db = next
		o.configure(shipped, ports)
		first, second = o.serve(1), o.serve(2)
		o.same(first, want, "after pg_upgrade")
		o.same(second, want, "after pg_upgrade, by the other proxy")
	}

	// Taking it away.
	if refused := o.tailor(1, "uninstall", "", "--yes"); !strings.Contains(refused,
		"end the proxies first") {
		t.Errorf("beside proxies: %s", refused)
	}
	first.stop(t)
	second.stop(t)
	o.tailor(0, "uninstall", "")
	if done := o.tailor(0, "uninstall", "", "--yes"); !strings.Contains(done,
		"nothing of Tailor's is left") {
		t.Errorf("%s", done)
	}
	super := o.db.superuser(t)
	if left := one[string](t, super, leftovers); left != "" {
		t.Errorf("left behind: %s", left)
	}
	if n := one[int](t, super, `SELECT count(*) FROM patients`); n != patients {
		t.Errorf("%d rows of %d are left", n, patients)
	}
	o.removed()
}

package tests

import (
	"context"
	"os"
	"path/filepath"
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
	"SELECT sex, count(*), round(avg(cost), 2) FROM patients WHERE age >= 30 GROUP BY 1 ORDER BY 1",
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

// accepted asserts that no proxy serves the database until somebody has accepted it, and does.
func (o *operated) accepted(which string) {
	o.t.Helper()
	if refused := o.run("", 1, slices.Concat(o.as, []string{
		"/usr/bin/tailor", "serve", "--config",
		"/etc/tailor/proxy1.yaml",
	})...); !strings.Contains(refused, "has lost commits (57P03)") {
		o.t.Errorf("%s: the proxy says %s", which, refused)
	}
	o.healthy(which, "(restore)")
	o.tailor(1, "doctor --accept-restore", "")
	o.healthy(which+", once it is accepted", "")
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
	o.accepted("of the promoted standby")
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
	waitFor(t, func() bool {
		_, err := busy.Exec(t.Context(), "SELECT 1")
		return codeIn(err) == "57P01"
	})
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
	first.stop(t)
	if next := o.upgraded(); next != nil {
		o.db = next
		waitFor(t, func() bool { return strings.Contains(second.log.String(), "lost commits") })
		_, err := connect(t, second.dsn("ann")).Exec(t.Context(), operatedQueries[0])
		assertState(t, err, "57P03", "unavailable")
		o.accepted("of the upgraded server")
		waitFor(t, func() bool { return o.ready(2) == 0 })
		o.same(second, want, "after pg_upgrade, by a proxy that has waited")
	}

	first = o.serve(1)
	o.same(first, want, "after pg_upgrade")

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

package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hiatus-tailor/tailor/internal/pgcluster"
)

// losing is a stand that may lose what it has committed: a copy of its files, made
// when one query had been asked, takes their place.
type losing struct {
	*testCluster
	user, copied string
}

// newLosing makes a stand, a reader and the copy, and asks the queries of the ladder up to
// a step through a proxy with the flags. The copy has the first.
func newLosing(t *testing.T, name string, steps int, flags ...string) *losing {
	t.Helper()
	s, err := newStand(filepath.Join(stands, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.cluster.Stop() })
	f := &losing{testCluster: s, user: s.reader(t), copied: filepath.Join(stands, name+"-copy")}
	p := s.serve(t, flags...)
	mustExec(t, connect(t, p.dsn(f.user)), ladder[0])
	s.cluster.Stop()
	f.run(t, "cp", "-a", filepath.Join(s.dir, "data"), f.copied)
	if err := s.cluster.Launch(t.Context(), "fsync=off"); err != nil {
		t.Fatal(err)
	}
	p.stop(t)
	p = s.serve(t, flags...)
	for _, sql := range ladder[1:steps] {
		f.moves(t, p, sql)
	}
	p.stop(t)
	return f
}

// moves brings what is released to a new epoch, and shows it.
func (f *losing) moves(t *testing.T, p *testProxy, sql string) {
	t.Helper()
	mustExec(t, f.superuser(t), `CALL tailor.refresh('patients')`)
	waitFor(t, func() bool {
		conn, err := pgconn.Connect(t.Context(), p.dsn(f.user))
		if err != nil {
			return false
		}
		defer func() { _ = conn.Close(t.Context()) }()
		if _, err := conn.Exec(t.Context(), sql).ReadAll(); err != nil {
			return false
		}
		return one[bool](t, f.superuser(t),
			`SELECT c.epoch = p.epoch FROM tailor.chain c JOIN tailor.protection p USING (relation) `+
				`WHERE relation = 'patients'::regclass`)
	})
}

func (f *losing) run(t *testing.T, name string, args ...string) {
	t.Helper()
	if output, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, output)
	}
}

// fail puts the copy in the place of the stand's files: promoted, as a standby that
// has not received everything, or as it is, like a disk that was set back.
func (f *losing) fail(t *testing.T, promoted bool) {
	t.Helper()
	f.cluster.Stop()
	data := filepath.Join(f.dir, "data")
	if err := os.RemoveAll(data); err != nil {
		t.Fatal(err)
	}
	f.run(t, "mv", f.copied, data)
	if promoted {
		signal := filepath.Join(data, "standby.signal")
		if err := os.WriteFile(signal, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		f.run(t, "chown", "--reference", data, signal)
	}
	if err := f.cluster.Launch(t.Context(), "fsync=off", "max_connections=200"); err != nil {
		t.Fatal(err)
	}
	if promoted && !one[bool](t, f.superuser(t), `SELECT pg_promote()`) {
		t.Fatal("not promoted")
	}
}

// assertRefused wants a new proxy, with the audit file of the old one, to serve
// nothing before somebody has decided.
func (f *losing) assertRefused(t *testing.T, flags ...string) {
	t.Helper()
	serve := exec.CommandContext(t.Context(), binary, append([]string{
		"serve", "--listen", "127.0.0.1:0", "--upstream", f.cluster.Address(), "--service-dsn",
		f.cluster.ServiceDSN("hospital"),
	}, flags...)...)
	kill := time.AfterFunc(20*time.Second, func() { _ = serve.Process.Kill() })
	defer kill.Stop()
	output, err := serve.CombinedOutput()
	if err == nil || !strings.Contains(string(output), "lost commits") {
		t.Errorf("a proxy serves a database that has lost commits: %v, %s", err, output)
	}
	if code, stdout, _ := tool(t, "doctor", "--dsn", f.cluster.SuperuserDSN("hospital")); code != 1 ||
		!strings.Contains(stdout, "CALL tailor.accept_restore()") {
		t.Errorf("exit %d, %s", code, stdout)
	}
	if _, stdout, stderr := tool(t, "doctor", "--accept-restore", "--dsn",
		f.cluster.SuperuserDSN("hospital")); strings.Contains(stdout, "(restore)") || stderr != "" {
		t.Fatalf("%s %s", stdout, stderr)
	}
	mustExec(t, connect(t, f.serve(t, flags...).dsn(f.user)), ladder[0])
}

func TestAPromotedStandbyCountsAsARestore(t *testing.T) {
	f := newLosing(t, "promoted", 3)
	f.fail(t, true)
	if !one[bool](t, f.superuser(t), `SELECT tailor.restored()`) {
		t.Error("a promoted standby is taken for the primary")
	}
	f.assertRefused(t)
}

func TestAnAuditFileAheadOfTheDatabaseCountsAsARestore(t *testing.T) {
	for name, flags := range map[string][]string{
		"setback":     nil,
		"setbackfile": {"--audit-table=false"},
	} {
		t.Run(name, func(t *testing.T) {
			if flags != nil {
				soakOnly(t)
			}
			flags := append(flags, "--audit-log", filepath.Join(t.TempDir(), "audit.jsonl"))
			f := newLosing(t, name, 3, flags...)
			f.fail(t, false)
			f.assertRefused(t, flags...)
		})
	}
}

// TestAProxyThatOutlivesAFailoverShowsNothingFiner has one that stays while the
// database comes back without what it had committed.
func TestAProxyThatOutlivesAFailoverShowsNothingFiner(t *testing.T) {
	for _, promoted := range []bool{true, false} {
		t.Run(fmt.Sprint("promoted ", promoted), func(t *testing.T) {
			f := newLosing(t, fmt.Sprint("outlived", promoted), 1)
			p := f.serve(t)
			f.moves(t, p, ladder[1])
			f.fail(t, promoted)
			waitFor(t, func() bool {
				conn, err := pgconn.Connect(t.Context(), p.dsn(f.user))
				if err != nil {
					return false
				}
				defer func() { _ = conn.Close(t.Context()) }()
				_, err = conn.Exec(t.Context(), ladder[3]).ReadAll()
				switch code := codeIn(err); {
				case err == nil:
					t.Fatal("a query is answered")
				case code == "57P03":
					return one[bool](t, f.superuser(t), `SELECT tailor.restored()`)
				}
				return false
			})
		})
	}
}

// TestACrashLosesNothingThatWasShown has a server that does not wait for its disk
// unless it is told to.
func TestACrashLosesNothingThatWasShown(t *testing.T) {
	s, err := newStand(filepath.Join(stands, "lazy"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.cluster.Stop() })
	user := s.reader(t)
	s.cluster.Stop()
	lazy := []string{"synchronous_commit=off", "wal_writer_delay=10s", "wal_writer_flush_after=1GB"}
	if err := s.cluster.Launch(t.Context(), lazy...); err != nil {
		t.Fatal(err)
	}
	mustExec(t, s.superuser(t), `ALTER ROLE tailor_owner SET synchronous_commit = off;
CREATE TABLE noted (setting text);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
    INSERT INTO public.noted VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;
CREATE TRIGGER note AFTER INSERT OR UPDATE ON tailor.chain FOR EACH ROW EXECUTE FUNCTION note();
CALL tailor.forget_chains('patients')`)
	audit := filepath.Join(t.TempDir(), "audit.jsonl")
	p := s.serve(t, "--audit-log", audit)
	mustExec(t, connect(t, p.dsn(user)), ladder[0])
	if noted := one[[]string](t, s.superuser(t),
		`SELECT array_agg(DISTINCT setting) FROM noted`); !slices.Equal(noted, []string{"on"}) {
		t.Errorf("chains are committed with synchronous_commit = %v", noted)
	}
	s.cluster.Crash()
	p.kill()
	if err := s.cluster.Launch(t.Context(), lazy...); err != nil {
		t.Fatal(err)
	}
	if n := one[int](t, s.superuser(t),
		`SELECT count(*) FROM tailor.chain WHERE relation = 'patients'::regclass`); n != 1 {
		t.Errorf("%d chains are left of what was shown", n)
	}
	// What the audit table lacks is no loss.
	mustExec(t, connect(t, s.serve(t, "--audit-log", audit).dsn(user)), ladder[1])
}

func TestDoctorWarnsOfStandbysThatLagBehind(t *testing.T) {
	s, _ := ownStand(t, "primary")
	lagging := func() (found bool) {
		_, findings := doctor(t, s)
		for _, f := range findings {
			found = found || f.Check == "standbys" && f.Severity == "warning" && f.Object == "walreceiver"
		}
		return found
	}
	if lagging() {
		t.Error("found before it was there")
	}
	s.standby(t, "standby")
	waitFor(t, lagging)
	mustExec(t, s.superuser(t), `ALTER SYSTEM SET synchronous_standby_names = 'walreceiver'`)
	mustExec(t, s.superuser(t), `SELECT pg_reload_conf()`)
	waitFor(t, func() bool { return !lagging() })
}

// following are the settings of a standby. Without the feedback an old snapshot at the standby
// holds up what it has to replay.
func (s *testCluster) following() []string {
	return []string{
		"fsync=off", "max_connections=200", "hot_standby_feedback=on", "wal_receiver_status_interval=1s",
		fmt.Sprintf("primary_conninfo=host=%s port=%d user=postgres", s.dir, s.cluster.Port),
	}
}

// standby starts a hot standby of a stand. It has what the stand has begun with, and
// receives the rest.
func (s *testCluster) standby(t *testing.T, name string) *testCluster {
	t.Helper()
	return s.standbyFrom(t, name, filepath.Join(stands, "prepared", "data"))
}

// standbyFrom is standby with a copy of the files that the server has begun with.
func (s *testCluster) standbyFrom(t *testing.T, name, base string) *testCluster {
	t.Helper()
	rules, err := os.OpenFile(filepath.Join(s.dir, "data", "pg_hba.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rules.WriteString("local replication all trust\n"); err != nil ||
		rules.Close() != nil {
		t.Fatal(err)
	}
	mustExec(t, connect(t, s.cluster.SuperuserDSN("postgres")), `SELECT pg_reload_conf()`)
	dir := filepath.Join(stands, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f := &losing{}
	data := filepath.Join(dir, "data")
	f.run(t, "cp", "-a", base, data)
	f.run(t, "cp", "-a", filepath.Join(data, "PG_VERSION"), filepath.Join(data, "standby.signal"))
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := pgcluster.Start(t.Context(), dir, port, s.following()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	return &testCluster{dir: dir, cluster: cluster}
}

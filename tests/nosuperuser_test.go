package tests

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/internal/pgcluster"
)

// TestNobodyNeedsToBeASuperuser installs as a role that may make roles and owns the database,
// with nothing else, attaches a policy, and serves readers.
func TestNobodyNeedsToBeASuperuser(t *testing.T) {
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(stands, "nosuperuser")
	cluster, err := pgcluster.Start(t.Context(), dir, port, "fsync=off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	s := &testCluster{dir: dir, cluster: cluster}
	super := connect(t, cluster.SuperuserDSN("postgres"))
	mustExec(t, super, `CREATE ROLE admin LOGIN CREATEROLE PASSWORD 'of the admin'`)
	mustExec(t, super, `CREATE DATABASE clinic OWNER admin`)
	dsn := func(role, password string) string {
		return fmt.Sprintf("host=127.0.0.1 port=%d dbname=clinic user=%s password='%s' sslmode=disable",
			port, role, password)
	}
	run := func(stdin string, args ...string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), binary, args...)
		command.Stdin = strings.NewReader(stdin)
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("tailor %v: %v\n%s", args, err, output)
		}
	}
	for range 2 { // idempotent
		run("", "install", "--dsn", dsn("admin", "of the admin"))
	}
	admin := connect(t, dsn("admin", "of the admin"))
	mustExec(t, admin, `CREATE ROLE ann LOGIN`)
	run("of the proxy\n", "password", "--dsn", dsn("admin", "of the admin"), "tailor_owner")
	run("pässword ann", "password", "--dsn", dsn("admin", "of the admin"), "ann")
	mustExec(t, admin, `CREATE TABLE people (id int PRIMARY KEY, age int, illness text);
		INSERT INTO people SELECT g, 20 + g % 50, 'd' || g % 7 FROM generate_series(1, 400) g;
		CALL tailor.define_hierarchy('age', 'interval',
			'{"widths": [5, 10, 20], "lower": 0, "upper": 119}');
		CALL tailor.protect('public.people', subject => 'id', k => 5);
		CALL tailor.classify('public.people', 'id', 'direct_identifier');
		CALL tailor.classify('public.people', 'age', 'quasi_identifier', hierarchy => 'age');
		CALL tailor.classify('public.people', 'illness', 'sensitive');
		CALL tailor.grant_reader('ann');
		CALL tailor.activate('public.people')`)
	p := s.serve(t, "--service-dsn", dsn("tailor_owner", "of the proxy"))
	login := func(role, password string) (*pgx.Conn, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		return pgx.Connect(ctx, fmt.Sprintf("postgres://%s:%s@%s/clinic?sslmode=disable", role,
			strings.ReplaceAll(password, " ", "%20"), p.address))
	}
	ann, err := login("ann", "pässword ann")
	if err != nil {
		t.Fatalf("%v\n%s", err, p.log)
	}
	t.Cleanup(func() { _ = ann.Close(context.Background()) })
	untilAnswered(t, ann, `SELECT age, count(*) FROM people GROUP BY age`)
	if n := one[int](t, ann, `SELECT count(*) FROM people`); n != 400 {
		t.Errorf("%d people are shown", n)
	}
	refusedWith(t, ann, "42501", `SELECT id FROM people`)
	if _, err := login("ann", "another"); err == nil {
		t.Error("a wrong password is let in")
	}
	mustExec(t, admin, `CREATE ROLE bob LOGIN PASSWORD 'bob'`) // the proxy knows no verifier of his
	if _, err := login("bob", "bob"); err == nil || !strings.Contains(err.Error(), "28P01") {
		t.Errorf("a role without a verifier: %v", err)
	}
	// Refreshes, erasures and the doctor need no superuser either.
	mustExec(t, admin, `INSERT INTO people SELECT g, 20 + g % 50, 'd' || g % 7 `+
		`FROM generate_series(1001, 1200) g; CALL tailor.refresh('people')`)
	waitFor(t, func() bool { return one[int](t, ann, `SELECT count(*) FROM people`) == 600 })
	mustExec(t, admin, `CALL tailor.erase('people', '7')`)
	if output, err := exec.CommandContext(t.Context(), binary, "doctor", "--dsn", dsn("admin",
		"of the admin")).CombinedOutput(); err != nil && !strings.Contains(string(output), "finding") {
		t.Errorf("doctor: %v\n%s", err, output)
	}
	// Verifiers are the owner's alone, and nobody sets another's.
	refusedWith(t, ann, "42501", `SELECT * FROM tailor.login`)
	text := one[string](t, connect(t, cluster.SuperuserDSN("clinic")),
		`SELECT verifier FROM tailor.login LIMIT 1`)
	refusedWith(t, ann, "42501", `CALL tailor.let_in('admin', '`+text+`')`)
	mustExec(t, admin, `CREATE ROLE steward LOGIN CREATEROLE PASSWORD 'steward'; `+
		`GRANT tailor_admin TO steward`)
	steward := connect(t, dsn("steward", "steward"))
	refusedWith(t, steward, "42501", `CALL tailor.let_in('ann', '`+text+`')`)
	refusedWith(t, admin, "22023", `CALL tailor.let_in('ann', 'md5abc')`)
	_ = ann.Close(t.Context())
	p.stop(t)
	watching := connect(t, cluster.SuperuserDSN("clinic"))
	waitFor(t, func() bool { // PostgreSQL ends its side a moment later
		return !one[bool](t, watching,
			`SELECT EXISTS (SELECT FROM pg_stat_activity WHERE usename = 'tailor_owner')`)
	})
	_ = watching.Close(t.Context())
	run("", "uninstall", "--yes", "--dsn", dsn("admin", "of the admin"))
}

// TestPasswordsThatProgramsReadDifferentlyAreRefused looks at passwords before anything is set.
func TestPasswordsThatProgramsReadDifferentlyAreRefused(t *testing.T) {
	for password, fault := range map[string]string{
		"\ufb01sh":                "different ones", // psql sends the verifier of "fish"
		"soft\u00adhyphen":        "different ones",
		"\uff46ull":               "different ones",
		strings.Repeat("x", 2000): "more than 1000 bytes", // the rest was left out in silence
		"p\u00e4ssword":           "failed to connect",
		"pa\u0308ssword":          "failed to connect",
		"plain":                   "failed to connect",
	} {
		command := exec.CommandContext(t.Context(), binary, "password", "--dsn",
			"host=/nowhere dbname=none", "ann")
		command.Stdin = strings.NewReader(password + "\n")
		output, err := command.CombinedOutput()
		if err == nil || !strings.Contains(string(output), fault) {
			t.Errorf("%q: %v %s, want %q", password, err, output, fault)
		}
	}
}

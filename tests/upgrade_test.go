package tests

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/extension"
	"github.com/hiatus-tailor/tailor/internal/pgcluster"
)

// shared03 names what version 0.3 has one root for.
var shared03 = strings.NewReplacer(`"scope": "principal"`, `"scope": "table"`, `"everyone"`,
	`"table"`)

// earlierPolicy is a policy as version 0.1.0 knows it.
const earlierPolicy = `CREATE TABLE public.old (id integer PRIMARY KEY, age integer, secret text);
INSERT INTO old SELECT n, n % 90, 's' || n % 5 FROM generate_series(1, 300) n;
CALL tailor.define_hierarchy('age', 'interval', '{"widths": [5, 10], "lower": 0, "upper": 119}');
CALL tailor.protect('public.old', 'id', 5);
CALL tailor.classify('public.old', 'age', 'quasi_identifier', hierarchy => 'age');
CALL tailor.classify('public.old', 'secret', 'sensitive');
CALL tailor.activate('public.old')`

// earlierChain is what version 0.1.0 shows by it, and 0.2.0 by another call of admit.
const earlierChain = `INSERT INTO tailor.chain (relation, audience, epoch, partition,
	blocks, min_block) SELECT 'public.old', 'everyone', epoch, '\x01', 1, 300 FROM tailor.epoch;
CREATE VIEW tailor_release.chain_1 AS SELECT e.* FROM tailor_store.epoch_1 e
    WHERE (SELECT tailor.admit(1, true));
ALTER VIEW tailor_release.chain_1 OWNER TO tailor_owner;
GRANT SELECT ON tailor_release.chain_1 TO tailor_reader`

// admits is how a view of an earlier version asks for admission.
var admits = map[string]string{
	"0.1.0.sql": "tailor.admit(1, true)",
	"0.2.0.sql": "tailor.admit(1, 1, 5)",
}

// presentChain is one of this version.
const presentChain = `INSERT INTO tailor.chain (relation, audience, epoch, version, blocks,
	min_block, layout) SELECT 'public.old', 'table', epoch, 1, 1, 300, 8 FROM tailor.epoch`

// keptPolicy is what must be the same after an upgrade.
const keptPolicy = `SELECT jsonb_build_object('version', p.active, 'epoch', p.epoch, 'k', p.k,
	'policies', (SELECT jsonb_agg(jsonb_build_array(v.version, v.policy))
	FROM tailor.policy_version v),
	'chains', (SELECT jsonb_agg(jsonb_build_array(c.chain, c.audience, c.epoch, c.generation,
	c.blocks, c.min_block)) FROM tailor.chain c))::text
	FROM tailor.protection p`

func TestAnInstallationOfEachEarlierVersionIsUpgraded(t *testing.T) {
	fixtures, err := filepath.Glob("testdata/upgrade/*.sql")
	if err != nil || len(fixtures) == 0 {
		t.Fatal("no earlier versions", err)
	}
	for i, fixture := range fixtures {
		t.Run(filepath.Base(fixture), func(t *testing.T) {
			script, err := os.ReadFile(fixture)
			if err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprintf("upgrade_%d", i)
			mustExec(t, shared.superuser(t), `CREATE DATABASE `+name)
			conn := connect(t, shared.cluster.SuperuserDSN(name))
			mustExec(t, conn, string(script))
			mustExec(t, conn, earlierPolicy)
			admit, known := admits[filepath.Base(fixture)]
			if !known {
				t.Fatal("it is not said how its views ask for admission")
			}
			mustExec(t, conn, strings.Replace(earlierChain, "tailor.admit(1, true)", admit, 1))
			before := one[string](t, conn, keptPolicy)
			if _, err := catalog.Open(t.Context(), shared.cluster.ServiceDSN(name),
				slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "tailor install") {
				t.Errorf("before the upgrade the proxy says %v", err)
			}
			for range 2 {
				if code, _, stderr := tool(t, "install", "--dsn",
					shared.cluster.SuperuserDSN(name)); code != 0 {
					t.Fatal(stderr)
				}
			}
			if after := one[string](t, conn, keptPolicy); after != shared03.Replace(before) {
				t.Errorf("after the upgrade\n%s\nbefore\n%s", after, before)
			}
			if v := one[string](t, conn, `SELECT version FROM tailor.installation`); v != extension.Version {
				t.Errorf("version %s", v)
			}
			if one[bool](t, conn, `SELECT tailor.restored()`) {
				t.Error("an upgrade is taken for a restore")
			}
			// What it has shown is shown no more: that followed nobody to another copy.
			if one[bool](t, conn,
				`SELECT EXISTS (SELECT FROM pg_class WHERE relnamespace = 'tailor_release'::regnamespace)
				OR EXISTS (SELECT FROM pg_proc WHERE pronamespace = 'tailor'::regnamespace
				AND proname = 'admit' AND NOT 'edition' = ANY (proargnames))`) {
				t.Error("a view of the earlier version is left, or what it asks")
			}
			reader := connect(t, serveDatabase(t, name).dsn(shared.reader(t)))
			for _, call := range []string{
				``, `CALL tailor.refresh('public.old')`,
				`CALL tailor.activate('public.old')`,
			} {
				mustExec(t, conn, call)
				if hint := refusedSoon(t, reader, `SELECT age, secret FROM old`, "KA004").
					Hint; !strings.Contains(hint, "tailor.forget_chains('public.old')") {
					t.Errorf("after %q: %s", call, hint)
				}
			}
			mustExec(t, conn, `CALL tailor.forget_chains('public.old')`)
			answeredSoon(t, reader, `SELECT age, secret FROM old`)
			if left := one[string](t, conn,
				`SELECT coalesce(string_agg(o::text, ', '), '') FROM tailor.orphans() o`); left != "" {
				t.Errorf("left behind: %s", left)
			}
		})
	}
}

// needsDump skips a test where the server's binaries come without pg_dump, which
// packages of binaries leave out.
func needsDump(t *testing.T) {
	t.Helper()
	bin, err := pgcluster.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(bin, "pg_dump")); err != nil {
		t.Skip(err)
	}
}

// client runs a client program of PostgreSQL.
func client(t *testing.T, stdin []byte, name string, args ...string) []byte {
	t.Helper()
	bin, err := pgcluster.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, name), args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, &errs)
	}
	return out.Bytes()
}

// releasesAndChains is what a dump must keep. Numbers of tables differ.
const releasesAndChains = `SELECT jsonb_build_object(
	'policies', (SELECT jsonb_agg(jsonb_build_array(relation::text, version, policy)
	ORDER BY relation::text) FROM tailor.policies),
	'chains', (SELECT jsonb_agg(to_jsonb(c) ORDER BY chain) FROM (SELECT chain, relation::text
	AS relation, audience, epoch, generation, edition, version, rows, subjects, blocks, min_block
	FROM tailor.chain) c),
	'stored', (SELECT jsonb_agg(relname ORDER BY relname) FROM pg_class
	WHERE relnamespace IN ('tailor_store'::regnamespace, 'tailor_release'::regnamespace)
		AND relkind IN ('r', 'v')),
	'readers', (SELECT jsonb_agg(DISTINCT relacl::text) FROM pg_class
	WHERE relnamespace = 'tailor_release'::regnamespace),
	'records', (SELECT count(*) FROM tailor.audit))::text`

func TestAnOlderDumpIsServedOnlyOnceItIsAccepted(t *testing.T) {
	needsDump(t)
	s, err := newStand(filepath.Join(stands, "restore"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	name := s.reader(t)
	p := s.serve(t)
	answer := one[int](t, connect(t, p.dsn(name)), `SELECT count(*) FROM patients WHERE age >= 30`)
	// A dump has types by other numbers, and no column that was dropped.
	mustExec(t, s.superuser(t), `CREATE TYPE blood AS ENUM ('a', 'b');
		CREATE TABLE donors (gone int, id int PRIMARY KEY, kind blood);
		ALTER TABLE donors DROP COLUMN gone;
		INSERT INTO donors SELECT n, CASE n % 2 WHEN 0 THEN 'a' ELSE 'b' END::blood
			FROM generate_series(1, 100) n;
		CALL tailor.protect('donors', subject => 'id', k => 5);
		CALL tailor.classify('donors', 'id', 'direct_identifier');
		CALL tailor.classify('donors', 'kind', 'sensitive'); CALL tailor.activate('donors')`)
	answeredSoon(t, connect(t, p.dsn(name)), "SELECT count(*) FROM donors")
	p.stop(t)
	before := one[string](t, s.superuser(t), releasesAndChains)
	dump := client(t, nil, "pg_dump", "-h", s.dir, "-p", fmt.Sprint(s.cluster.Port), "-U", "postgres",
		"hospital")

	admin := connect(t, s.cluster.SuperuserDSN("postgres"))
	mustExec(t, admin, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity `+
		`WHERE datname = 'hospital'`)
	mustExec(t, admin, `ALTER DATABASE hospital RENAME TO hospital_as_it_was`)
	mustExec(t, admin, `CREATE DATABASE hospital OWNER dba`)
	client(t, dump, "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", s.dir, "-p",
		fmt.Sprint(s.cluster.Port), "-U", "postgres", "-f", "-", "hospital")
	super := s.superuser(t)
	if after := one[string](t, super, releasesAndChains); after != before {
		t.Errorf("restored\n%s\ndumped\n%s", after, before)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	serve := exec.CommandContext(ctx, binary, "serve", "--listen", "127.0.0.1:0", "--upstream",
		s.cluster.Address(), "--service-dsn", s.cluster.ServiceDSN("hospital"))
	output, err := serve.CombinedOutput()
	if err == nil || !strings.Contains(string(output), "restored from a dump") {
		t.Errorf("the proxy serves a restored database: %v, %s", err, output)
	}
	// Installing again does not make it the latest state.
	if code, _, stderr := tool(t, "install", "--dsn", s.cluster.SuperuserDSN("hospital")); code != 0 {
		t.Fatal(stderr)
	}
	if code, stdout, _ := tool(t, "doctor", "--dsn", s.cluster.SuperuserDSN("hospital")); code != 1 ||
		!strings.Contains(stdout, "CALL tailor.accept_restore()") {
		t.Errorf("exit %d, %s", code, stdout)
	}
	if _, stdout, stderr := tool(t, "doctor", "--accept-restore", "--dsn",
		s.cluster.SuperuserDSN("hospital")); strings.Contains(stdout, "(restore)") || stderr != "" {
		t.Fatalf("%s %s", stdout, stderr)
	}
	p = s.serve(t)
	if again := one[int](t, connect(t, p.dsn(name)),
		`SELECT count(*) FROM patients WHERE age >= 30`); again != answer {
		t.Errorf("the chain that was restored answers %d, before %d", again, answer)
	}
	if n := one[int](t, connect(t, p.dsn(name)),
		`SELECT count(*) FROM donors WHERE kind = 'a'`); n != 50 {
		t.Errorf("%d donors of 50", n)
	}
}

// relocated copies PostgreSQL's binaries, so that the folder of extensions, which
// it finds beside them, is ours.
func relocated(t *testing.T) (bin, extensions string) {
	t.Helper()
	original, err := pgcluster.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	version := filepath.Base(filepath.Dir(original))
	root, err := os.MkdirTemp(stands, "postgresql-")
	if err != nil {
		t.Fatal(err)
	}
	bin = filepath.Join(root, "lib/postgresql", version, "bin")
	share := filepath.Join(root, "share/postgresql", version)
	extensions = filepath.Join(share, "extension")
	script := `set -e
chmod 755 "$1"; mkdir -p "$(dirname "$2")" "$3/extension"
cp -rL "$4" "$2"
ln -s "$(dirname "$4")/lib" "$(dirname "$2")/lib"
for f in /usr/share/postgresql/"$5"/*; do [ "$(basename "$f")" = extension ] || ln -s "$f" "$3";
done
for f in /usr/share/postgresql/"$5"/extension/*; do ln -s "$f" "$3/extension"; done`
	if output, err := exec.CommandContext(t.Context(), "sh", "-c", script, "sh", root, bin, share,
		original, version).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return bin, extensions
}

func TestTheExtensionIsCreatedUpgradedAndDumped(t *testing.T) {
	needsDump(t)
	bin, extensions := relocated(t)
	if code, _, stderr := tool(t, "install", "--files", extensions); code != 0 {
		t.Fatal(stderr)
	}
	earlier, err := os.ReadFile("testdata/upgrade/0.1.0.sql")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(extensions, "tailor--0.1.0.sql"), earlier,
		0o644); err != nil {
		t.Fatal(err)
	}
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := pgcluster.StartFrom(t.Context(), bin, filepath.Join(stands, "extension"), port,
		"fsync=off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	admin := connect(t, cluster.SuperuserDSN("postgres"))
	for _, name := range []string{"created", "upgraded", "restored"} {
		mustExec(t, admin, `CREATE DATABASE `+name)
	}
	created := connect(t, cluster.SuperuserDSN("created"))
	mustExec(t, created, `CREATE EXTENSION tailor`)
	if v := one[string](t, created,
		`SELECT extversion FROM pg_extension WHERE extname = 'tailor'`); v != extension.Version {
		t.Errorf("version %s", v)
	}
	mustExec(t, created, earlierPolicy)
	mustExec(t, created, presentChain)

	upgraded := connect(t, cluster.SuperuserDSN("upgraded"))
	mustExec(t, upgraded, `CREATE EXTENSION tailor VERSION '0.1.0'`)
	mustExec(t, upgraded, earlierPolicy)
	mustExec(t, upgraded, earlierChain)
	before := one[string](t, upgraded, keptPolicy)
	mustExec(t, upgraded, `ALTER EXTENSION tailor UPDATE`)
	if after := one[string](t, upgraded, keptPolicy); after != shared03.Replace(before) ||
		one[bool](t, upgraded, `SELECT tailor.restored()`) {
		t.Errorf("after the upgrade\n%s\nbefore\n%s", after, before)
	}
	mustExec(t, upgraded, `CALL tailor.activate('public.old')`)
	if code, _, stderr := tool(t, "install", "--dsn", cluster.SuperuserDSN("upgraded")); code != 1 ||
		!strings.Contains(stderr, "ALTER EXTENSION tailor UPDATE") {
		t.Errorf("exit %d, %s", code, stderr)
	}

	before = one[string](t, created, keptPolicy)
	dump := client(t, nil, "pg_dump", "-h", cluster.Dir, "-p", fmt.Sprint(port), "-U", "postgres",
		"created")
	client(t, dump, "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", cluster.Dir, "-p",
		fmt.Sprint(port), "-U", "postgres", "-f", "-", "restored")
	restored := connect(t, cluster.SuperuserDSN("restored"))
	if after := one[string](t, restored, keptPolicy); after != before {
		t.Errorf("restored\n%s\ndumped\n%s", after, before)
	}
	if !one[bool](t, restored, `SELECT tailor.restored()`) {
		t.Error("a restored extension is taken for the one that was dumped")
	}
	// Who was in which table is remembered, and by no digest that a dump can be read with.
	if bytes.Equal(one[[]byte](t, created, `SELECT key FROM tailor.subject_key`),
		one[[]byte](t, restored, `SELECT key FROM tailor.subject_key`)) {
		t.Error("the dump holds the key of digests")
	}
	mustExec(t, restored, `CALL tailor.accept_restore(); CALL tailor.activate('public.old')`)
	mustExec(t, restored,
		`CREATE TABLE public.older AS TABLE public.old; DROP TABLE public.old; `+
			`ALTER TABLE public.older RENAME TO old; CALL tailor.protect('public.old', 'id', 5)`)
	_, err = restored.Exec(t.Context(), `CALL tailor.activate('public.old')`)
	assertState(t, err, "55000", "tailor.forget_chains")

	// What CREATE EXTENSION has made goes as well; the roles with the last of them.
	for _, name := range []string{"created", "upgraded", "restored"} {
		if code, stdout, stderr := uninstall(t, cluster.SuperuserDSN(name), "--yes"); code != 0 ||
			!strings.Contains(stdout, "extension tailor") {
			t.Errorf("uninstall: exit %d, %s%s", code, stdout, stderr)
		}
	}
	if left := one[string](t, restored, leftovers); left != "" {
		t.Errorf("left behind: %s", left)
	}
}

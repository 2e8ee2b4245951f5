package tests

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/internal/demodata"
)

// leftovers is what of Tailor's the database and the cluster still know.
const leftovers = `SELECT coalesce(string_agg(found, ', ' ORDER BY found), '') FROM (
	SELECT 'schema ' || nspname FROM pg_namespace WHERE nspname ~ '^(tailor|research)'
	UNION ALL SELECT 'relation ' || oid::regclass FROM pg_class
	WHERE relname ~ 'tailor|^chain_|^epoch_'
	UNION ALL SELECT 'routine ' || oid::regprocedure FROM pg_proc WHERE proname ~ 'tailor'
	OR prosrc ~ 'tailor\.'
	UNION ALL SELECT 'type ' || oid::regtype FROM pg_type WHERE typname ~ 'tailor'
	UNION ALL SELECT 'trigger ' || evtname FROM pg_event_trigger
	UNION ALL SELECT 'extension ' || extname FROM pg_extension WHERE extname = 'tailor'
	UNION ALL SELECT 'role ' || rolname FROM pg_roles WHERE rolname ~ '^tailor_'
	UNION ALL SELECT 'slot ' || slot_name FROM pg_replication_slots
	UNION ALL SELECT 'label ' || label FROM pg_seclabels
	UNION ALL SELECT 'setting ' || c FROM pg_db_role_setting, unnest(setconfig) c WHERE c ~ 'tailor'
	UNION ALL SELECT 'privilege on ' || oid::regclass FROM pg_class WHERE relacl::text ~ 'tailor'
	UNION ALL SELECT 'privilege on ' || nspname FROM pg_namespace
	WHERE nspacl::text ~ 'tailor') f (found)`

func uninstall(t *testing.T, dsn string, flags ...string) (code int, stdout, stderr string) {
	t.Helper()
	code, stdout, stderr = tool(t, append([]string{"uninstall", "--dsn", dsn}, flags...)...)
	if strings.Count(stderr, "\n") > 1 ||
		code != 0 && (stdout != "" || !strings.Contains(stderr, "; ")) {
		t.Errorf("exit %d, %s%s", code, stdout, stderr)
	}
	return code, stdout, stderr
}

func TestUninstallLeavesNothingBehindAndInstallWorksAfterwards(t *testing.T) {
	s, super, dba := unprotectStand(t, "uninstall")
	dsn := s.cluster.SuperuserDSN("hospital")
	user := s.reader(t)
	p := s.serve(t)
	reader := connect(t, p.dsn(user))
	for _, q := range []string{
		`SELECT age, zip FROM patients`, `SELECT cost FROM visits`,
		`SELECT code FROM diagnoses`,
	} {
		mustExec(t, reader, q)
	}
	mustExec(t, super, fmt.Sprintf(
		`ALTER ROLE %[1]s IN DATABASE hospital SET tailor.representation = 'label';
			ALTER ROLE %[1]s SET work_mem = '5MB';
		ALTER DATABASE hospital SET tailor.notices = 'off';
			GRANT CONNECT ON DATABASE hospital TO tailor_owner;
				GRANT USAGE ON SCHEMA public TO tailor_owner`, user))
	if code, _, stderr := uninstall(t, dsn, "--yes"); code != 1 || !strings.Contains(stderr,
		"end the proxies first") {
		t.Errorf("beside a proxy: exit %d, %s", code, stderr)
	}
	p.stop(t)

	before := one[string](t, super, releasesAndChains)
	code, dry, stderr := uninstall(t, dsn)
	if code != 0 || one[string](t, super, releasesAndChains) != before {
		t.Fatalf("a dry run: exit %d, %s", code, stderr)
	}
	for _, names := range []string{
		"schema tailor_store: ", "policy of table public.patients", "lines of the audit log",
		"event trigger tailor_ddl",
		"setting tailor.representation of role " + user, "setting tailor.notices in database hospital",
		"role tailor_owner", "privileges of tailor_owner on table public.patients",
		"privileges of tailor_owner on database hospital", "--yes",
	} {
		if !strings.Contains(dry, names) {
			t.Errorf("the dry run does not name %q:\n%s", names, dry)
		}
	}
	code, done, stderr := uninstall(t, dsn, "--yes")
	if code != 0 || !strings.Contains(done, "nothing of Tailor's is left") {
		t.Fatalf("exit %d, %s%s", code, done, stderr)
	}
	if a, b := strings.SplitN(dry, "\n", 2)[1],
		strings.SplitN(done, "\n", 2)[1]; a[:strings.LastIndex(a, "\nnothing")] != b[:strings.LastIndex(b,
		"\nnothing")] {
		t.Errorf("removed\n%s\nand not\n%s", b, a)
	}
	if left := one[string](t, super, leftovers); left != "" {
		t.Errorf("left behind: %s", left)
	}
	if one[bool](t, super, `SELECT has_table_privilege($1, 'patients', 'SELECT')`, user) ||
		one[int](t, super, `SELECT count(*) FROM pg_db_role_setting`) != 1 {
		t.Error("readers have new privileges, or lack settings of their own")
	}
	if n := one[int](t, dba, `SELECT count(*) FROM patients`); n != patients {
		t.Errorf("the owner sees %d rows", n)
	}
	if code, stdout, _ := uninstall(t, dsn, "--yes"); code != 0 || !strings.Contains(stdout,
		"nothing of Tailor's") {
		t.Errorf("again: exit %d, %s", code, stdout)
	}
	if code, _, stderr := tool(t, "doctor", "--dsn", dsn); code != 1 || !strings.Contains(stderr,
		"tailor install") {
		t.Errorf("doctor: exit %d, %s", code, stderr)
	}

	if err := s.install(t.Context(), "hospital"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, super, `GRANT tailor_admin TO dba; SET SESSION AUTHORIZATION dba;`+demodata.Policy)
	mustExec(t, connect(t, s.serve(t).dsn("researcher")), `SELECT age, zip FROM patients`)
}

func TestUninstallTakesNothingOfOthers(t *testing.T) {
	s, super, _ := unprotectStand(t, "uninstallothers")
	dsn := s.cluster.SuperuserDSN("hospital")
	for _, test := range []struct{ claim, make, drop, names string }{
		{
			"a view over a view of ours", `CREATE VIEW mine AS SELECT * FROM tailor.policies`,
			`DROP VIEW mine`, "view public.mine",
		},
		{
			"a table in a schema of ours", `CREATE TABLE research.mine ()`, `DROP TABLE research.mine`,
			"research.mine",
		},
		{
			"a function in a schema of ours",
			`CREATE FUNCTION research.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'`,
			`DROP FUNCTION research.mine`, "research.mine",
		},
		{
			"a type in a schema of ours", `CREATE DOMAIN research.mine AS text`, `DROP DOMAIN research.mine`,
			"research.mine",
		},
		{
			"a column of such a type",
			`CREATE DOMAIN research.mine AS text; CREATE TABLE uses (a research.mine)`,
			`DROP TABLE uses; DROP DOMAIN research.mine`, "table public.uses",
		},
		{
			"a default that calls a function of ours",
			`CREATE TABLE uses (a text DEFAULT tailor.restored()::text)`, `DROP TABLE uses`,
			"table public.uses",
		},
		{
			"a foreign key", `CREATE TABLE uses (a text REFERENCES tailor.hierarchy)`, `DROP TABLE uses`,
			"table public.uses",
		},
		{
			"a table of tailor_owner's elsewhere",
			`CREATE TABLE uses (); ALTER TABLE uses OWNER TO tailor_owner`, `DROP TABLE uses`,
			"table public.uses",
		},
		{
			"a table of tailor_admin's", `CREATE TABLE uses (); ALTER TABLE uses OWNER TO tailor_admin`,
			`DROP TABLE uses`, "table public.uses",
		},
		{
			"an event trigger",
			`CREATE EVENT TRIGGER mine ON ddl_command_end EXECUTE FUNCTION tailor.announce_ddl()`,
			`DROP EVENT TRIGGER mine`, "event trigger mine",
		},
		{
			"an extension in a schema of ours", `CREATE EXTENSION hstore SCHEMA research`,
			`DROP EXTENSION hstore`, "hstore",
		},
	} {
		t.Run(test.claim, func(t *testing.T) {
			if strings.Contains(test.make, "EXTENSION") &&
				!one[bool](t, super,
					`SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'hstore')`) {
				t.Skip("no hstore here")
			}
			mustExec(t, super, test.make)
			if code, _, stderr := uninstall(t, dsn, "--yes"); code != 1 ||
				!strings.Contains(stderr, test.names) {
				t.Errorf("exit %d, %s", code, stderr)
			}
			mustExec(t, super, test.drop)
		})
	}

	// What waits is told of, and changes nothing.
	mustExec(t, super, `BEGIN; SELECT pg_get_viewdef('tailor.policies')`)
	if code, _, stderr := uninstall(t, dsn, "--yes"); code != 1 || !strings.Contains(stderr,
		"a transaction") {
		t.Errorf("exit %d, %s", code, stderr)
	}
	mustExec(t, super, `ROLLBACK`)

	// A database that has the roles' objects keeps the roles.
	mustExec(t, super, `CREATE DATABASE second`)
	if err := s.install(t.Context(), "second"); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := uninstall(t, dsn, "--yes")
	if code != 0 || !strings.Contains(stdout, "role tailor_owner stays") || !strings.Contains(stdout,
		"database second") {
		t.Fatalf("exit %d, %s%s", code, stdout, stderr)
	}
	if left := one[string](t, super, leftovers); left != "role tailor_admin, role tailor_owner, "+
		"role tailor_reader" {
		t.Errorf("left behind: %s", left)
	}
	if !one[bool](t, super, `SELECT pg_has_role('researcher', 'tailor_reader', 'MEMBER')`) {
		t.Error("a reader of another database is none any more")
	}
	if err := s.install(t.Context(), "hospital"); err != nil {
		t.Fatal(err)
	}
}

// TestUninstallOfHalfAnInstallation removes what a broken attempt or somebody's
// own DROP has left, as a superuser and as a role that may create roles.
func TestUninstallOfHalfAnInstallation(t *testing.T) {
	s, err := newStand(filepath.Join(stands, "uninstallhalf"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	super := s.superuser(t)
	if code, _, stderr := uninstall(t, s.cluster.SuperuserDSN("hospital"), "--yes"); code != 0 {
		t.Fatal(stderr)
	}
	mustExec(t, super, `CREATE ROLE installer LOGIN CREATEROLE PASSWORD 'installer'`)
	mustExec(t, super, `CREATE DATABASE mine OWNER installer`)
	own := fmt.Sprintf("postgres://installer:installer@%s/mine?sslmode=disable", s.cluster.Address())
	mine := connect(t, s.cluster.SuperuserDSN("mine"))
	install := func() {
		t.Helper()
		mustExec(t, mine, `CREATE ROLE tailor_owner LOGIN; GRANT tailor_owner TO installer`)
		if code, _, stderr := tool(t, "install", "--dsn", own); code != 0 {
			t.Fatal(stderr)
		}
	}
	for _, test := range []struct{ claim, half string }{
		{"all of it", ``},
		{"without the schema tailor", `DROP SCHEMA tailor CASCADE`},
		{"without stored copies", `DROP SCHEMA tailor_store, tailor_release CASCADE`},
		{"roles alone", `DROP SCHEMA tailor, tailor_store, tailor_release, research CASCADE`},
		{"without readers", `DROP OWNED BY tailor_reader; DROP ROLE tailor_reader`},
		{"a table taken from its schema", `DROP TABLE tailor.protection, tailor.audit_log CASCADE`},
		{
			"a table protected by its owner",
			`CREATE TABLE people (id integer); ALTER TABLE people OWNER TO installer;
			GRANT SELECT ON people TO tailor_owner; INSERT INTO people SELECT generate_series(1, 20);
				CALL tailor.protect('people', 'id', 5)`,
		},
		{"memberships", `CREATE ROLE somebody; GRANT tailor_reader TO somebody; ` +
			`REVOKE tailor_owner FROM installer`},
	} {
		t.Run(test.claim, func(t *testing.T) {
			install()
			if test.half != "" {
				mustExec(t, mine, test.half)
			}
			if code, stdout, stderr := uninstall(t, own, "--yes"); code != 0 {
				t.Fatalf("exit %d, %s%s", code, stdout, stderr)
			}
			if left := one[string](t, mine, leftovers); left != "" {
				t.Errorf("left behind: %s", left)
			}
		})
	}

	// A schema of that name that is somebody else's stays.
	mustExec(t, mine, `DROP SCHEMA IF EXISTS tailor CASCADE; CREATE SCHEMA research; `+
		`CREATE TABLE research.notes ()`)
	dsn := s.cluster.SuperuserDSN("mine")
	for range 2 {
		if code, _, stderr := tool(t, "install", "--dsn", dsn); code != 0 {
			t.Fatal(stderr)
		}
		if code, stdout, stderr := uninstall(t, dsn, "--yes"); code != 0 {
			t.Fatalf("exit %d, %s%s", code, stdout, stderr)
		}
		if left := one[string](t, mine, leftovers); left != "schema research" {
			t.Errorf("left behind: %s", left)
		}
	}
	mustExec(t, mine, `SELECT FROM research.notes`)

	usage := func(args ...string) int {
		code, _, _ := tool(t, append([]string{"uninstall"}, args...)...)
		return code
	}
	if usage() != 2 || usage("--dsn", dsn, "--no") != 2 || usage("--help") != 0 {
		t.Error("wrong usage is not told by the exit code")
	}
}

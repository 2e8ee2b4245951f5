package tests

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/extension"
)

// finding is what tailor doctor says in JSON.
type finding struct{ Check, Severity, Object, Message, Mend string }

func doctor(t *testing.T, s *testCluster) (code int, findings []finding) {
	t.Helper()
	code, stdout, stderr := tool(t, "doctor", "--format", "json", "--dsn",
		s.cluster.SuperuserDSN("hospital"))
	var report struct{ Findings []finding }
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatalf("%v: %s%s", err, stdout, stderr)
	}
	return code, report.Findings
}

// TestDoctorFindsWaysRoundTheProxy opens one way after the other, wants each to
// be found, runs the statement that is to mend it and wants it to be gone.
func TestDoctorFindsWaysRoundTheProxy(t *testing.T) {
	s, err := newStand(filepath.Join(stands, "doctor"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	super := s.superuser(t)
	s.reader(t)
	mustExec(t, super, `CREATE ROLE clerks; CREATE ROLE clerk LOGIN;
		CALL tailor.grant_reader('clerk'); GRANT clerks TO clerk;
CREATE TABLE wards (ward text, id integer) PARTITION BY RANGE (id);
    CREATE TABLE ward_1 PARTITION OF wards FOR VALUES FROM (0) TO (100);
INSERT INTO wards SELECT 'a', n FROM generate_series(1, 50) n;
CALL tailor.protect('wards', 'id', 5); CALL tailor.classify('wards', 'ward', 'non_sensitive');
    CALL tailor.activate('wards')`)
	for i, c := range []struct{ claim, sql, check, severity, object, undo string }{
		{
			"a privilege", `GRANT SELECT ON patients TO clerk`, "privileges", "serious", "public.patients",
			"",
		},
		{
			"a privilege by membership", `GRANT SELECT ON patients TO clerks`, "privileges", "serious",
			"public.patients", "",
		},
		{
			"a privilege on a column", `GRANT SELECT (name) ON patients TO PUBLIC`, "privileges", "serious",
			"public.patients", "",
		},
		{
			"a privilege on a partition", `GRANT SELECT ON ward_1 TO clerk`, "privileges", "serious",
			"public.ward_1", "",
		},
		{
			"a privilege to write", `GRANT INSERT ON patients TO clerk`, "writers", "warning",
			"public.patients", "",
		},
		{
			"a privilege to write by membership", `GRANT UPDATE (cost) ON patients TO clerks`, "writers",
			"warning", "public.patients", "",
		},
		{
			"the owner of the database", `ALTER DATABASE hospital OWNER TO clerk`, "powers", "serious",
			"clerk", "",
		},
		{
			"a stored copy", `GRANT SELECT ON ALL TABLES IN SCHEMA tailor_store TO clerk`, "stores",
			"serious", "tailor_store.epoch_1", "REVOKE ALL ON ALL TABLES IN SCHEMA tailor_store FROM clerk",
		},
		{
			"a role that reads everything", `GRANT pg_read_all_data TO clerk`, "powers", "serious", "clerk",
			"",
		},
		{
			"a role that reads files", `GRANT pg_read_server_files TO clerks`, "powers", "serious", "clerk",
			"REVOKE pg_read_server_files FROM clerks",
		},
		{"replication", `ALTER ROLE clerk REPLICATION`, "powers", "serious", "clerk", ""},
		{"a superuser", `ALTER ROLE clerk SUPERUSER`, "powers", "serious", "clerk", ""},
		{
			"sessions of others", `GRANT pg_read_all_stats TO clerk`, "statistics of sessions", "warning",
			"clerk", "",
		},
		{
			"statistics", `GRANT SELECT ON pg_statistic TO clerk`, "statistics of columns", "serious",
			"pg_statistic", "",
		},
		{
			"a function with its owner's rights",
			`CREATE FUNCTION peek() RETURNS text LANGUAGE sql SECURITY DEFINER ` +
				`AS 'SELECT name FROM public.patients LIMIT 1'`, "functions", "serious", "public.peek()", "",
		},
		{
			"a view", `CREATE VIEW peeking AS SELECT * FROM patients; GRANT SELECT ON peeking TO clerk`,
			"views", "serious", "public.peeking", "",
		},
		{
			"a view of a view",
			`CREATE VIEW first AS SELECT * FROM wards; CREATE VIEW second AS SELECT * FROM first; ` +
				`GRANT SELECT ON second TO PUBLIC`, "views", "serious", "public.second", "DROP VIEW second",
		},
		{
			"a materialized view",
			`CREATE MATERIALIZED VIEW frozen AS SELECT * FROM patients; ` +
				`GRANT SELECT (name) ON frozen TO clerk`, "views", "serious", "public.frozen", "",
		},
		{
			"a publication", `CREATE PUBLICATION news FOR TABLE patients`, "publications", "warning",
			"news", "",
		},
		{
			"a large object", `SELECT lo_create(4711); GRANT SELECT ON LARGE OBJECT 4711 TO PUBLIC`,
			"large objects", "warning", "large object 4711", "",
		},
		{
			"a foreign server",
			`CREATE FOREIGN DATA WRAPPER far; CREATE SERVER away FOREIGN DATA WRAPPER far; ` +
				`GRANT USAGE ON FOREIGN SERVER away TO clerk`, "other servers", "warning", "away", "",
		},
		{"an old copy", `UPDATE tailor.epoch SET created = now() - interval '40 days' ` +
			`WHERE relation = 'wards'::regclass`, "age", "warning", "public.wards", ""},
		{
			"a schedule that fails",
			`CALL tailor.schedule('patients', '1 day'); ` +
				`UPDATE tailor.schedule SET failed = 3, failure = 'a reason'`, "schedules", "warning",
			"public.patients", "",
		},
		{
			"a schedule that nobody keeps", `UPDATE tailor.schedule SET due = now() - interval '2 hours'`,
			"schedules", "warning", "public.patients", "CALL tailor.refresh('patients')",
		},
		{
			"a copy that waits to be taken in",
			`INSERT INTO tailor.chain (relation, audience, epoch, blocks, min_block, layout)
				SELECT relation, 'table', epoch, 1, 50, 8 FROM tailor.protection
					WHERE relation = 'wards'::regclass;
CALL tailor.refresh('wards');
UPDATE tailor.epoch e SET created = now() - interval '2 hours' FROM tailor.protection p
    WHERE p.epoch = e.epoch AND p.relation = 'wards'::regclass`, "disk", "warning", "public.wards",
			"UPDATE tailor.chain c SET epoch = p.epoch FROM tailor.protection p WHERE p.relation = " +
				"c.relation; DELETE FROM tailor.chain WHERE relation = 'wards'::regclass",
		},
		{
			"a release of an earlier version",
			`INSERT INTO tailor.chain (relation, audience, epoch, blocks, min_block, layout)
SELECT relation, 'table', epoch, 1, 50, 7 FROM tailor.protection
    WHERE relation = 'wards'::regclass`, "earlier releases", "serious", "public.wards",
			"DELETE FROM tailor.chain WHERE relation = 'wards'::regclass",
		},
		{
			"a table of the same people",
			`CREATE TABLE letters (patient int REFERENCES patients); GRANT SELECT ON letters TO clerk`,
			"tables beside", "warning", "public.letters", "",
		},
		{
			"a draft that protects nothing",
			`CREATE TABLE draft (id integer); CALL tailor.protect('draft', 'id', 5)`, "drafts", "warning",
			"public.draft", "",
		},
		{
			"another version",
			`UPDATE tailor.installation SET version = '0.0.9'; CALL tailor.accept_restore()`, "version",
			"warning", "tailor.installation", "UPDATE tailor.installation SET version = '" +
				extension.Version + "'; CALL tailor.accept_restore()",
		},
		{
			"a column without a class", `ALTER TABLE visits ADD mood text`, "columns", "warning",
			"public.visits.mood", "ALTER TABLE visits DROP mood",
		},
		{
			"a table of another shape", `ALTER TABLE visits ADD mood text`, "shape", "serious",
			"public.visits", "ALTER TABLE visits DROP mood; CALL tailor.activate('visits')",
		},
	} {
		t.Run(c.claim, func(t *testing.T) {
			oneIn(t, 3, i)
			find := func() *finding {
				code, findings := doctor(t, s)
				for i, f := range findings {
					if f.Check == c.check && f.Object == c.object && f.Severity == c.severity {
						if c.severity == "serious" && code != 1 {
							t.Errorf("exit %d", code)
						}
						return &findings[i]
					}
				}
				return nil
			}
			if f := find(); f != nil {
				t.Fatalf("found before it was there: %+v", f)
			}
			mustExec(t, super, c.sql)
			f := find()
			if f == nil {
				t.Fatal("not found")
			}
			mend := c.undo
			if mend == "" {
				mend = f.Mend
			}
			mustExec(t, super, mend)
			for range 3 { // a way through several roles is mended role by role
				if f = find(); f == nil {
					return
				}
				mustExec(t, super, f.Mend)
			}
			t.Errorf("still found: %+v", f)
		})
	}
	_, findings := doctor(t, s)
	trusted := false
	for _, f := range findings {
		trusted = trusted || f.Check == "connections" && strings.Contains(f.Message, "without a password")
	}
	if !trusted {
		t.Errorf("the stand's socket asks for no password: %+v", findings)
	}
}

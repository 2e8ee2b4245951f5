package tests

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestReadersHaveNoToolsPastPrivileges gives readers single rights that are as good as the
// roles of TestReadersHaveNoPowersBesideReleases: functions that read the server's files,
// where tables lie as they are; settings by which the server runs what one likes; and
// schemas in which Tailor's routines look for each other.
func TestReadersHaveNoToolsPastPrivileges(t *testing.T) {
	s, err := newStand(filepath.Join(stands, "tools"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	super := s.superuser(t)
	mustExec(t, super, `CREATE ROLE alice LOGIN; GRANT tailor_admin TO alice;
CREATE SCHEMA alice AUTHORIZATION alice;
CREATE ROLE handy; CREATE ROLE workshop; CREATE ROLE mate NOINHERIT; GRANT workshop TO mate`)
	alice := s.as(t, "alice")
	protect(t, alice, "alice.people")
	mustExec(t, alice, `CALL tailor.activate('alice.people')`)
	tools := func() (out []finding) {
		_, findings := doctor(t, s)
		for _, f := range findings {
			if f.Check == "tools" {
				out = append(out, f)
			}
		}
		return out
	}
	if found := tools(); len(found) > 0 {
		t.Fatalf("found where nothing is: %+v", found)
	}
	version := one[int](t, super, `SELECT current_setting('server_version_num')::integer`)
	for _, tool := range []struct {
		right string
		since int
	}{
		{"EXECUTE ON FUNCTION pg_catalog.pg_read_file(text)", 0},
		{"EXECUTE ON FUNCTION pg_catalog.pg_read_binary_file(text, bigint, bigint)", 0},
		{"EXECUTE ON FUNCTION pg_catalog.lo_import(text)", 0},
		{"EXECUTE ON FUNCTION pg_catalog.lo_export(oid, text)", 0},
		{"CREATE ON SCHEMA tailor", 0},
		{"CREATE ON SCHEMA research", 0},
		{"ALTER SYSTEM ON PARAMETER archive_command", 150000},
		{"SET ON PARAMETER session_preload_libraries", 150000},
		{"SET ON PARAMETER lo_compat_privileges", 150000},
	} {
		if version < tool.since {
			continue
		}
		object := tool.right[strings.LastIndex(tool.right, " ON ")+4:]
		object = strings.TrimPrefix(object[strings.Index(object, " ")+1:], "pg_catalog.")
		object = strings.ReplaceAll(object, ", ", ",")
		for _, to := range []struct{ grantee, reader string }{
			{"handy", "handy"}, {"workshop", "mate"}, {"PUBLIC", "handy"},
		} {
			t.Run(fmt.Sprint(tool.right, " to ", to.grantee), func(t *testing.T) {
				grant := fmt.Sprintf("GRANT %s TO %s", tool.right, to.grantee)
				revoke := fmt.Sprintf("REVOKE %s FROM %s", tool.right, to.grantee)
				makeReader := fmt.Sprintf(`CALL tailor.grant_reader('%s')`, to.reader)
				mustExec(t, super, `ALTER ROLE mate INHERIT; `+grant)
				refusedWithHint(t, super, "42501", "REVOKE", makeReader)
				mustExec(t, super, revoke+`; `+makeReader+`; `+grant)
				refusedWithHint(t, alice, "42501", "tailor doctor", `CALL tailor.activate('alice.people')`)
				found := tools()
				if !slices.ContainsFunc(found, func(f finding) bool {
					return f.Object == object && f.Severity == "serious"
				}) {
					t.Fatalf("the doctor does not find %s: %+v", object, found)
				}
				for _, f := range found {
					mustExec(t, super, f.Mend)
				}
				if found := tools(); len(found) > 0 {
					t.Errorf("still found: %+v", found)
				}
				mustExec(t, alice, `CALL tailor.activate('alice.people')`)
				mustExec(t, super, fmt.Sprintf(`REVOKE tailor_reader FROM %s`, to.reader))
			})
		}
	}
	t.Run("rights that are no tools", func(t *testing.T) {
		mustExec(t, super, `GRANT EXECUTE ON FUNCTION pg_catalog.pg_stat_reset() TO handy;
GRANT CREATE ON SCHEMA public TO handy; CALL tailor.grant_reader('handy')`)
		if found := tools(); len(found) > 0 {
			t.Errorf("found: %+v", found)
		}
	})
}

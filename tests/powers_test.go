package tests

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// TestReadersHaveNoPowersBesideReleases gives readers, before and after they
// become readers, what lets them past releases or overwrite Tailor's own tables.
func TestReadersHaveNoPowersBesideReleases(t *testing.T) {
	s, err := newStand(filepath.Join(stands, "powers"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	super := s.superuser(t)
	mustExec(t, super, `CREATE ROLE alice LOGIN;
GRANT tailor_admin TO alice;
CREATE SCHEMA alice AUTHORIZATION alice`)
	alice := s.as(t, "alice")
	protect(t, alice, "alice.people")
	mustExec(t, alice, `CALL tailor.activate('alice.people')`)

	refusedFor := func(t *testing.T, conn *pgx.Conn, reason, sql string) {
		t.Helper()
		_, err := conn.Exec(t.Context(), sql)
		var answer *pgconn.PgError
		if !errors.As(err, &answer) || answer.Code != "42501" ||
			!strings.Contains(answer.Message+answer.Detail, reason) {
			t.Errorf("%s: %#v, want 42501 because of %s", sql, err, reason)
		}
	}
	found := func(t *testing.T, check, object string) *finding {
		t.Helper()
		_, findings := doctor(t, s)
		i := slices.IndexFunc(findings, func(f finding) bool {
			return f.Check == check && f.Object == object
		})
		if i >= 0 {
			return &findings[i]
		}
		return nil
	}

	powers := []string{
		"pg_read_all_data", "pg_write_all_data", "pg_execute_server_program",
		"pg_read_server_files", "pg_write_server_files",
		"pg_signal_backend", "pg_maintain", "tailor_owner", "tailor_admin",
	}
	mustExec(t, super, `CREATE ROLE mightier SUPERUSER`)
	for _, power := range append(powers, "mightier") {
		if !one[bool](t, super, `SELECT to_regrole($1) IS NOT NULL`, power) {
			continue // of a later version
		}
		t.Run(power, func(t *testing.T) {
			direct, between, indirect := power+"_direct", power+"_between", power+"_indirect"
			group, member, later := power+"_group", power+"_member", power+"_later"
			for _, role := range []string{direct, between, indirect, group, member, later} {
				mustExec(t, super, fmt.Sprintf(`CREATE ROLE %q`, "x"+role))
			}
			mustExec(t, super,
				fmt.Sprintf(`GRANT %[1]q TO "x%[1]s_direct", "x%[1]s_between", "x%[1]s_member";
GRANT "x%[1]s_between" TO "x%[1]s_indirect";
GRANT "x%[1]s_group" TO "x%[1]s_member"; CALL tailor.grant_reader('x%[1]s_later')`, power))
			for _, role := range []string{direct, indirect, group} {
				refusedFor(t, super, power, `CALL tailor.grant_reader('x`+role+`')`)
			}
			mustExec(t, super, fmt.Sprintf(`GRANT %q TO "x%s"`, power, later))
			refusedFor(t, alice, later, `CALL tailor.activate('alice.people')`)
			f := found(t, "powers", "x"+later)
			if f == nil {
				t.Fatal("the doctor does not find it")
			}
			mustExec(t, super, f.Mend)
			mustExec(t, alice, `CALL tailor.activate('alice.people')`)

			mustExec(t, super, fmt.Sprintf(`GRANT "x%[1]s_between" TO "x%[1]s_later"`, power))
			if f = found(t, "powers", "x"+later); f == nil {
				t.Fatal("the doctor does not find it by way of another role")
			}
			mustExec(t, super, f.Mend)
			if f = found(t, "powers", "x"+later); f != nil {
				t.Errorf("still found: %+v", f)
			}
		})
	}
	t.Run("a power of all readers", func(t *testing.T) {
		mustExec(t, super, `GRANT pg_write_all_data TO tailor_reader; CREATE ROLE newcomer`)
		refusedFor(t, super, "pg_write_all_data", `CALL tailor.grant_reader('newcomer')`)
		mustExec(t, super, `REVOKE pg_write_all_data FROM tailor_reader`)
	})
	t.Run("the owner of the database", func(t *testing.T) {
		mustExec(t, super, `CREATE ROLE landlord; CREATE ROLE tenant; GRANT landlord TO tenant;
ALTER DATABASE hospital OWNER TO landlord`)
		refusedFor(t, super, "landlord", `CALL tailor.grant_reader('landlord')`)
		refusedFor(t, super, "landlord", `CALL tailor.grant_reader('tenant')`)
		mustExec(t, super, `ALTER DATABASE hospital OWNER TO dba; CALL tailor.grant_reader('tenant')`)
	})
	t.Run("harmless roles are no hindrance", func(t *testing.T) {
		mustExec(t, super, `CREATE ROLE harmless;
GRANT pg_read_all_settings TO harmless;
CALL tailor.grant_reader('harmless')`)
	})

	t.Run("a role that inherits nothing", func(t *testing.T) {
		mustExec(t, super, `CREATE ROLE loner LOGIN NOINHERIT`)
		refusedWithHint(t, super, "42501", "ALTER ROLE loner INHERIT",
			`CALL tailor.grant_reader('loner')`)
		mustExec(t, super, `ALTER ROLE loner INHERIT; CALL tailor.grant_reader('loner')`)

		// And one that became a reader by other means.
		mustExec(t, super, `CREATE ROLE team;
CALL tailor.grant_reader('team');
CREATE ROLE stranger NOINHERIT;
GRANT team TO stranger`)
		f := found(t, "inheritance", "stranger")
		if f == nil {
			t.Fatal("the doctor does not find the member")
		}
		mustExec(t, super, f.Mend)
		if f := found(t, "inheritance", "stranger"); f != nil {
			t.Errorf("still found: %+v", f)
		}
		if !one[bool](t, super, `SELECT pg_has_role('stranger', 'tailor_reader', 'USAGE')`) {
			t.Error("the mend mends nothing")
		}
	})

	t.Run("a privilege to write Tailor's own tables", func(t *testing.T) {
		for _, grant := range []string{
			"UPDATE ON tailor.admission_key", "UPDATE (key) ON tailor.admission_key",
			"DELETE ON tailor.chain", "TRIGGER ON tailor.admission_key",
		} {
			mustExec(t, super, `GRANT `+grant+` TO harmless`)
			object := grant[strings.LastIndex(grant, " ")+1:]
			f := found(t, "stores", object)
			if f == nil {
				t.Errorf("the doctor does not find %s", grant)
				continue
			}
			mustExec(t, super, f.Mend)
			if f := found(t, "stores", object); f != nil {
				t.Errorf("still found: %+v", f)
			}
		}
	})

	// A trigger of a reader's sees the rows that others write; a foreign key tells
	// which keys there are.
	t.Run("a privilege to look at rows without reading the table", func(t *testing.T) {
		mustExec(t, super, `CREATE ROLE staff; GRANT staff TO harmless`)
		for _, privilege := range []string{"TRIGGER", "REFERENCES", "REFERENCES (id)"} {
			grant := privilege + " ON alice.people"
			mustExec(t, alice, `GRANT `+grant+` TO staff`)
			refused(t, alice, "42501", `CALL tailor.activate('alice.people')`)
			if found(t, "privileges", "alice.people") == nil {
				t.Errorf("the doctor does not find %s", grant)
			}
			mustExec(t, alice, `REVOKE ALL ON alice.people FROM staff;
REVOKE ALL (id) ON alice.people FROM staff;
CALL tailor.activate('alice.people')`)
		}
	})
}

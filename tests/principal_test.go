package tests

import (
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/catalog"
)

// asking asks about a role by name, again and again on one catalog.
type asking func(name string) *catalog.Principal

func asksForPrincipals(t *testing.T) asking {
	t.Helper()
	c, err := catalog.Open(t.Context(), shared.cluster.ServiceDSN("hospital"),
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return func(name string) *catalog.Principal {
		principal, err := c.Principal(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return principal
	}
}

// TestWhatIsKnownOfARoleIsWhatIsTrue changes a role in all the ways there are, and
// asks a catalog that knows it together with one that does not.
func TestWhatIsKnownOfARoleIsWhatIsTrue(t *testing.T) {
	user := shared.reader(t)
	direct := shared.superuser(t)
	ask := asksForPrincipals(t)
	before := *ask(user)
	for _, change := range []struct {
		statements string
		visible    bool
	}{
		{"SELECT 1", false},
		{"ALTER ROLE USER PASSWORD 'another'", true},
		{"BEGIN; SAVEPOINT s; ALTER ROLE USER PASSWORD 'a third'; RELEASE s; COMMIT", true},
		{"BEGIN; ALTER ROLE USER PASSWORD 'a fourth'; ROLLBACK", false},
		{"ALTER ROLE USER NOLOGIN", true},
		{"ALTER ROLE USER LOGIN", true},
		{"ALTER ROLE USER SET work_mem = '5MB'", true},
		{"ALTER ROLE USER CONNECTION LIMIT 7", true},
		{"CREATE ROLE USER_group", false},
		{"GRANT USER_group TO USER", true},
		{"GRANT tailor_reader TO USER_group", true},
		{"REVOKE tailor_reader FROM USER_group", true},
		{"GRANT CONNECT ON DATABASE hospital TO USER_group", true},
		{"REVOKE CONNECT ON DATABASE hospital FROM USER_group", true},
		{"DROP ROLE USER_group", true},
		{"ALTER ROLE USER VALID UNTIL 'infinity'", true},
		{"DO $$ BEGIN EXECUTE format('ALTER ROLE USER VALID UNTIL %L', clock_timestamp() + interval '2 " +
			"s'); END $$", true},
		{`SELECT pg_sleep(extract(epoch FROM rolvaliduntil - clock_timestamp()) + 0.1)
			FROM pg_roles WHERE rolname = 'USER'`, true}, // it has expired by itself
	} {
		mustExec(t, direct, strings.ReplaceAll(change.statements, "USER", user),
			pgx.QueryExecModeSimpleProtocol)
		now := ask(user)
		if truth := asksForPrincipals(t)(user); !reflect.DeepEqual(now, truth) {
			t.Errorf("%s: known is %+v, true is %+v", change.statements, now, truth)
		}
		if (!reflect.DeepEqual(*now, before)) != change.visible {
			t.Errorf("%s: %+v became %+v", change.statements, before, *now)
		}
		before = *now
	}
	// Each process of the server notes for itself when it has read its files.
	mustExec(t, direct, "SELECT pg_reload_conf()")
	waitFor(t, func() bool { return ask(user).Settings != before.Settings })
}

// TestAnOpenTransactionHidesNoChange has the role changed by a transaction that is
// open before, and after, the role is read.
func TestAnOpenTransactionHidesNoChange(t *testing.T) {
	user := shared.reader(t)
	ask := asksForPrincipals(t)
	settings := func() string { return ask(user).Settings }
	other, changes := shared.superuser(t), shared.superuser(t)
	for _, begun := range []*pgx.Conn{other, changes} {
		mustExec(t, begun, "BEGIN")
		mustExec(t, begun, "SELECT pg_current_xact_id()")
	}
	before := settings()
	mustExec(t, changes, "ALTER ROLE "+user+" SET work_mem = '6MB'")
	if settings() != before {
		t.Error("what is not committed is seen")
	}
	mustExec(t, changes, "COMMIT")
	if settings() == before {
		t.Error("what is committed is not seen, as another transaction is open")
	}
	mustExec(t, other, "COMMIT")
}

// TestWhatHasNotChangedIsNotReadAgain sees the very same answer given twice.
func TestWhatHasNotChangedIsNotReadAgain(t *testing.T) {
	user, ask := shared.reader(t), asksForPrincipals(t)
	waitFor(t, func() bool { // other tests change the server, too
		first := ask(user)
		return first == ask(user)
	})
}

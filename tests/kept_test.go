package tests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// TestNothingIsKeptBesideARecordedStatement tries to leave something at the
// server, in a text that is planned and recorded, which a message would run later
// under that text's admission.
func TestNothingIsKeptBesideARecordedStatement(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	conn := connect(t, p.dsn(user))
	mustExec(t, conn, "SELECT count(age) FROM patients")
	chain := one[int](t, shared.superuser(t),
		`SELECT chain FROM tailor.chain WHERE relation = 'patients'::regclass`)
	inside := fmt.Sprintf(`SELECT age, zip FROM tailor_release.chain_%d`, chain)
	w := dial(t, p.dsn(user))
	w.send(t, &pgproto3.Query{String: "CREATE FUNCTION pg_temp.inside() RETURNS TABLE (a int, z " +
		"text) LANGUAGE sql STABLE AS $$ " + inside + " $$"})
	w.untilReady(t, 1)
	for _, kept := range []string{
		"PREPARE kept AS SELECT * FROM pg_temp.inside() LIMIT 1",
		"PREPARE kept (int) AS SELECT * FROM pg_temp.inside() WHERE a > $1 LIMIT 1",
		"DECLARE kept CURSOR WITH HOLD FOR SELECT * FROM pg_temp.inside()",
		"DECLARE kept CURSOR FOR SELECT * FROM pg_temp.inside()",
	} {
		for _, text := range []string{
			"SELECT count(*) FROM patients; " + kept,
			kept + "; SELECT count(*) FROM patients",
		} {
			w.send(t, &pgproto3.Query{String: text})
			if got := w.untilReady(t, 1); !strings.HasPrefix(got, "E:0A000") {
				t.Errorf("%s: %s", text, got)
			}
			w.send(t, &pgproto3.Bind{PreparedStatement: "kept"}, &pgproto3.Execute{}, &pgproto3.Sync{},
				&pgproto3.Execute{Portal: "kept"}, &pgproto3.Sync{})
			if got := w.untilReady(t, 2); strings.Contains(got, "D:") {
				t.Errorf("%s: a message then reads %s", text, got)
			}
		}
	}
}

// TestWhatSQLPreparedIsRecordedWhenAMessageRunsIt: the proxy knows its name only.
func TestWhatSQLPreparedIsRecordedWhenAMessageRunsIt(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	w := dial(t, p.dsn(user))
	w.send(t, &pgproto3.Query{String: `PREPARE "By SQL" AS SELECT 'found'`})
	w.untilReady(t, 1)
	w.send(t, &pgproto3.Bind{PreparedStatement: "By SQL"}, &pgproto3.Execute{}, &pgproto3.Sync{})
	if got := w.untilReady(t, 1); got != "D:found SELECT 1 Z" {
		t.Fatal(got)
	}
	w.send(t, &pgproto3.Query{String: `BEGIN; DECLARE "A cursor" CURSOR FOR SELECT 'found'`},
		&pgproto3.Execute{Portal: "A cursor"}, &pgproto3.Sync{})
	if got := w.untilReady(t, 2); got != "BEGIN DECLARE CURSOR Z D:found SELECT 1 Z" &&
		got != "BEGIN DECLARE CURSOR Z D:found FETCH 1 Z" {
		t.Fatal(got)
	}
	super := shared.superuser(t)
	for _, text := range []string{`EXECUTE "By SQL"`, `FETCH FROM "A cursor"`} {
		waitFor(t, func() bool {
			return one[int](t, super, fmt.Sprintf(
				`SELECT count(*) FROM tailor.audit WHERE principal = '%s' AND sql = '%s'`, user, text)) == 1
		})
	}
}

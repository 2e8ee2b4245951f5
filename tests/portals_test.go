package tests

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// TestNoPortalOfASimpleQueryIsExecuted: PostgreSQL keeps the portal of a simple query that has
// failed within a transaction, without its plan, and ends all its sessions where that is
// executed, by a client that waits for answers or by one that does not.
func TestNoPortalOfASimpleQueryIsExecuted(t *testing.T) {
	s, _ := ownStand(t, "portals")
	p := s.serve(t)
	user := s.reader(t)
	witness := s.superuser(t)
	answeredSoon(t, connect(t, p.dsn(user)), "SELECT age FROM patients")
	sync, execute := &pgproto3.Sync{}, &pgproto3.Execute{}
	const protected = "SELECT count(*) FROM patients"
	for _, bound := range []string{"", "SELECT 1", protected} {
		for _, failing := range []string{
			"SELECT 1 / 0", "COPY numbers TO STDOUT; SELECT 1 / 0",
			"DO $$ BEGIN RAISE 'no'; END $$",
		} {
			for _, again := range []string{
				"", "SELECT 1; SELECT 1 / 0; SELECT 3",
				"SELECT " + strings.Repeat("1 + ", 500) + "1",
			} {
				w := dial(t, p.dsn(user))
				w.send(t, query("BEGIN"))
				w.untilReady(t, 1)
				if bound != "" {
					w.send(t, &pgproto3.Parse{Query: bound}, &pgproto3.Bind{}, sync)
					w.untilReady(t, 1)
				}
				for _, text := range []string{failing, again} {
					w.send(t, query(text))
					w.untilReady(t, 1)
				}
				w.send(t, &pgproto3.Parse{Query: "ROLLBACK"}, sync, execute, sync, execute, sync,
					query("ROLLBACK"), query("SELECT 1"))
				got, want := w.untilReady(t, 5), "Z E:34000 Z E:34000 Z ROLLBACK Z D:1 SELECT 1 Z"
				if bound == protected { // whose portal has a name at the server
					want = strings.ReplaceAll(want, "34000", "25P02")
				}
				if got != want {
					t.Errorf("%q, %q, %.20q: %s, want %s", bound, failing, again, got, want)
				}
				_ = w.conn.Close()
				w = dial(t, p.dsn(user))
				w.send(t, query("BEGIN"), query(failing), query(again),
					&pgproto3.Parse{Query: "SELECT 1"}, sync,
					&pgproto3.Bind{}, sync, execute, sync, query("ROLLBACK"))
				if got := w.untilReady(t, 7); !strings.HasSuffix(got, "ROLLBACK Z") {
					t.Errorf("%q, %.20q, sent at once: %s", failing, again, got)
				}
				_ = w.conn.Close()
			}
		}
	}
	mustExec(t, witness, "SELECT 1")
}

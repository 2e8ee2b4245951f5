package tests

import (
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/hiatus-tailor/tailor/catalog"
)

// asking asks about a role by name, again and again on one connection.
type asking func(name string) *catalog.Principal

// waysToAsk are both ways in which a catalog is asked.
var waysToAsk = map[string]func(*testing.T) asking{"principal": asksForPrincipals, "inquiry": inquires}

// anotherCatalog is one until the test ends.
func anotherCatalog(t *testing.T) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Open(t.Context(), shared.cluster.ServiceDSN("hospital"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func asksForPrincipals(t *testing.T) asking {
	c := anotherCatalog(t)
	return func(name string) *catalog.Principal {
		principal, err := c.Principal(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return principal
	}
}

// inquires is what a proxy's loops do.
func inquires(t *testing.T) asking {
	inquiry, conn, err := anotherCatalog(t).Inquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	server := pgproto3.NewFrontend(conn, conn)
	answer := func(question []byte, err error) [][]byte {
		if err == nil {
			_, err = conn.Write(question)
		}
		var row [][]byte
		for err == nil {
			var message pgproto3.BackendMessage
			message, err = server.Receive()
			switch message := message.(type) {
			case *pgproto3.DataRow:
				for _, value := range message.Values {
					row = append(row, slices.Clone(value))
				}
			case *pgproto3.ErrorResponse:
				t.Fatal(message.Message)
			case *pgproto3.ReadyForQuery:
				return row
			}
		}
		t.Fatal(err)
		return nil
	}
	return func(name string) *catalog.Principal {
		if inquiry.Knows(name) {
			now, err := inquiry.HearState(answer(inquiry.AskState(nil)))
			if err != nil {
				t.Fatal(err)
			}
			if found := inquiry.Still(name, now); found != nil {
				return found
			}
		}
		found, err := inquiry.HearPrincipal(name, answer(inquiry.AskPrincipal(nil, name)))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
}

// TestWhatIsKnownOfARoleIsWhatIsTrue changes a role in all the ways there are, and
// asks a catalog that knows it together with one that does not.
func TestWhatIsKnownOfARoleIsWhatIsTrue(t *testing.T) {
	for way, opens := range waysToAsk {
		t.Run(way, func(t *testing.T) { knowsWhatIsTrue(t, opens) })
	}
}

func knowsWhatIsTrue(t *testing.T, opens func(*testing.T) asking) {
	user := shared.reader(t)
	direct := shared.superuser(t)
	ask := opens(t)
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
		{"DO $$ BEGIN EXECUTE format('ALTER ROLE USER VALID UNTIL %L', clock_timestamp() + interval '0.2 s'); END $$", true},
		{"SELECT pg_sleep(0.3)", true}, // it has expired by itself
	} {
		exec1(t, direct, strings.ReplaceAll(change.statements, "USER", user), pgx.QueryExecModeSimpleProtocol)
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
	exec1(t, direct, "SELECT pg_reload_conf()")
	waitFor(t, func() bool { return ask(user).Settings != before.Settings })
}

// TestAnOpenTransactionHidesNoChange has the role changed by a transaction that is
// open before, and after, the role is read.
func TestAnOpenTransactionHidesNoChange(t *testing.T) {
	for way, opens := range waysToAsk {
		t.Run(way, func(t *testing.T) { seesWhatIsCommitted(t, opens) })
	}
}

func seesWhatIsCommitted(t *testing.T, opens func(*testing.T) asking) {
	user := shared.reader(t)
	ask := opens(t)
	settings := func() string { return ask(user).Settings }
	other, changes := shared.superuser(t), shared.superuser(t)
	for _, begun := range []*pgx.Conn{other, changes} {
		exec1(t, begun, "BEGIN")
		exec1(t, begun, "SELECT pg_current_xact_id()")
	}
	before := settings()
	exec1(t, changes, "ALTER ROLE "+user+" SET work_mem = '6MB'")
	if settings() != before {
		t.Error("what is not committed is seen")
	}
	exec1(t, changes, "COMMIT")
	if settings() == before {
		t.Error("what is committed is not seen, as another transaction is open")
	}
	exec1(t, other, "COMMIT")
}

// TestWhatHasNotChangedIsNotReadAgain sees the very same answer given twice.
func TestWhatHasNotChangedIsNotReadAgain(t *testing.T) {
	for way, opens := range waysToAsk {
		t.Run(way, func(t *testing.T) {
			user, ask := shared.reader(t), opens(t)
			var same bool
			waitUntil := time.Now().Add(20 * time.Second) // other tests change the server, too
			for !same && time.Now().Before(waitUntil) {
				first := ask(user)
				same = first == ask(user)
			}
			if !same {
				t.Error("what is known of a role is never used")
			}
		})
	}
}

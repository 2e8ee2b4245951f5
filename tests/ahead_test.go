package tests

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/hiatus-tailor/tailor/internal/audit"
)

// slowRecords makes a record durable, or fails, when it is told to.
type slowRecords struct {
	noRecords
	came chan *audit.Record
	then chan error
}

func (s slowRecords) Append(_ context.Context, r *audit.Record) error {
	s.came <- r
	return <-s.then
}

// TestNothingIsExecutedBeforeItsRecordIsDurable has a statement count how often
// it is executed, in a way that no rollback undoes.
func TestNothingIsExecutedBeforeItsRecordIsDurable(t *testing.T) {
	direct := shared.superuser(t)
	mustExec(t, direct, `CREATE SEQUENCE IF NOT EXISTS executions`)
	mustExec(t, direct,
		`CREATE OR REPLACE FUNCTION executed() RETURNS bigint LANGUAGE sql VOLATILE SECURITY DEFINER `+
			`AS 'SELECT nextval(''public.executions'')'`)
	records := slowRecords{came: make(chan *audit.Record), then: make(chan error)}
	conn := servedInside(t, records)
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeExec,
		pgx.QueryExecModeCacheStatement,
	} {
		for _, fault := range []error{errors.New("disk full"), nil} {
			mustExec(t, direct, `SELECT setval('executions', 1, false)`)
			answered := make(chan error, 1)
			go func() {
				_, err := conn.Exec(t.Context(), "SELECT age, executed() FROM patients LIMIT $1", mode, 1)
				answered <- err
			}()
			executed := func() bool { return one[bool](t, direct, `SELECT is_called FROM executions`) }
			var err error
			<-records.came
			for again := true; again; { // a text that could not be recorded is, with the next
				select {
				case err := <-answered:
					t.Fatalf("mode %v: answered before the record is durable: %v", mode, err)
				case <-time.After(100 * time.Millisecond):
				}
				if executed() {
					t.Errorf("mode %v: executed before the record is durable", mode)
				}
				records.then <- fault
				select {
				case err = <-answered:
					again = false
				case <-records.came:
				}
			}
			var refusal *pgconn.PgError
			if fault == nil && (err != nil || !executed()) {
				t.Errorf("mode %v: %v, executed %v", mode, err, executed())
			}
			if fault != nil && (!errors.As(err, &refusal) || refusal.Code != "KA005" || executed()) {
				t.Errorf("mode %v: %v, executed %v; want KA005", mode, err, executed())
			}
		}
	}
}

// leftAtServer counts statements and portals, but for the one statement that the
// server keeps for the proxy.
const leftAtServer = `SELECT (SELECT count(*) FROM pg_prepared_statements
	WHERE name NOT LIKE 'tailor%query')
	+ (SELECT count(*) FROM pg_cursors WHERE name <> '')`

// TestSimpleQueriesFailAsPostgreSQLsDo has simple queries fail while they are
// parsed, planned and executed: the client is told the same at the same place as
// without a proxy, there is one record each, and nothing is left at the server.
func TestSimpleQueriesFailAsPostgreSQLsDo(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	through, direct := dial(t, p.dsn(user)), dial(t, shared.cluster.SuperuserDSN("hospital"))
	through.send(t, &pgproto3.Query{String: "SET tailor.notices = off"})
	through.untilReady(t, 1)
	ask := func(w *wire, text string) string {
		w.send(t, &pgproto3.Query{String: text})
		var seen []string
		for {
			m, err := w.Receive()
			if err != nil {
				t.Fatal(err)
			}
			switch m := m.(type) {
			case *pgproto3.DataRow:
				continue
			case *pgproto3.ErrorResponse:
				seen = append(seen, fmt.Sprintf("%s at %d", m.Code, m.Position))
			case *pgproto3.ReadyForQuery:
				return strings.Join(append(seen, string(m.TxStatus)), ", ")
			default:
				seen = append(seen, fmt.Sprintf("%T", m))
			}
		}
	}
	texts := []string{
		"SELECT cost FROM patients LIMIT 2",
		"SELECT cost || 1 = true FROM patients",                     // parsed
		"SELECT cost FROM patients WHERE 1 / 0 > 1",                 // planned
		"SELECT cost / 0 FROM patients",                             // executed
		"SELECT cost FROM patients WHERE cost = $1",                 // no parameter
		"SELECT cost FROM patients LIMIT 1; SELECT 1 / 0; SELECT 2", // several
		"SELECT cost FROM patients LIMIT 0",
	}
	sent := 0
	for _, begin := range []string{"", "BEGIN", "BEGIN"} {
		for _, text := range texts {
			if begin != "" {
				ask(through, begin)
				ask(direct, begin)
			}
			for range 2 { // in a transaction, the second time it has failed
				sent++
				if got, want := ask(through, text), ask(direct, text); got != want {
					t.Errorf("%s %s: %s; from PostgreSQL %s", begin, text, got, want)
				}
				if begin == "" {
					through.send(t, &pgproto3.Query{String: leftAtServer})
					if got := through.untilReady(t, 1); got != "D:0 SELECT 1 Z" {
						t.Errorf("%s leaves a statement or a portal: %s", text, got)
					}
				}
			}
			if begin != "" {
				ask(through, "ROLLBACK")
				ask(direct, "ROLLBACK")
			}
		}
	}
	through.send(t, &pgproto3.Query{String: leftAtServer})
	if got := through.untilReady(t, 1); got != "D:0 SELECT 1 Z" {
		t.Errorf("statements or portals are left: %s", got)
	}
	waitFor(t, func() bool {
		return one[int](t, shared.superuser(t),
			fmt.Sprintf(`SELECT count(*) FROM tailor.audit WHERE principal = '%s' AND relations <> '{}'`,
				user)) == sent
	})
	for code, times := range map[string]int{"42883": 4, "22012": 12} {
		if got := one[int](t, shared.superuser(t),
			fmt.Sprintf(`SELECT count(*) FROM tailor.audit WHERE principal = '%s' AND sqlstate = '%s'`, user,
				code)); got != times {
			t.Errorf("%d records of SQLSTATE %s, want %d", got, code, times)
		}
	}
}

package tests

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// talk sends messages that end in one answer of ReadyForQuery and counts the
// rows of the answer.
func talk(
	t *testing.T, f *pgproto3.Frontend, messages ...pgproto3.FrontendMessage,
) (rows int, codes []string) {
	t.Helper()
	for _, m := range messages {
		f.Send(m)
	}
	if err := f.Flush(); err != nil {
		t.Fatal(err)
	}
	for {
		m, err := f.Receive()
		if err != nil {
			t.Fatal(err)
		}
		switch m := m.(type) {
		case *pgproto3.DataRow:
			rows++
		case *pgproto3.ErrorResponse:
			codes = append(codes, m.Code)
		case *pgproto3.ReadyForQuery:
			return rows, codes
		}
	}
}

// TestNamesOfMessagesAreNoWayPastTheRecord runs what was prepared over a
// protected table under every name by which it might still be reached, after
// the proxy has been led to believe that it is gone. No row comes.
func TestNamesOfMessagesAreNoWayPastTheRecord(t *testing.T) {
	const secret = "SELECT age, diagnosis FROM patients"
	p := shared.serve(t)
	user := shared.reader(t)
	sync := &pgproto3.Sync{}
	parse := func(name, sql string) *pgproto3.Parse { return &pgproto3.Parse{Name: name, Query: sql} }
	bind := func(portal, statement string) *pgproto3.Bind {
		return &pgproto3.Bind{DestinationPortal: portal, PreparedStatement: statement}
	}
	execute := func(portal string) *pgproto3.Execute { return &pgproto3.Execute{Portal: portal} }
	query := func(sql string) *pgproto3.Query { return &pgproto3.Query{String: sql} }
	type turn []pgproto3.FrontendMessage
	for claim, turns := range map[string][]turn{
		"the server's name of a statement": {
			{parse("s1", secret), sync}, {bind("", "tailor_own_1"), execute(""), sync},
		},
		"the server's name of a portal": {
			{query("BEGIN")}, {parse("s1", secret), bind("x", "s1"), execute("tailor_own_2"), sync},
		},
		"the server's name in SQL": {
			{parse("s1", secret), sync}, {query("EXECUTE tailor_own_1")},
		},
		"DEALLOCATE ALL that is parsed only": {
			{parse("", secret), sync},
			{parse("z", "DEALLOCATE ALL"), sync},
			{bind("", ""), execute("tailor_own_1"), sync},
		},
		"CLOSE that is parsed only": {
			{query("BEGIN")},
			{query("DECLARE c CURSOR FOR " + secret)},
			{parse("z", "CLOSE c"), sync},
			{execute("unknown"), sync},
		},
		"a fetch beside another statement": {
			{query("BEGIN")},
			{query("DECLARE c CURSOR WITH HOLD FOR " + secret)},
			{query("COMMIT")},
			{query("FETCH 2 FROM c; SELECT 1 WHERE false")},
		},
		"PREPARE, and EXECUTE by message": {
			{query("PREPARE q AS " + secret)},
			{bind("", "q"), execute(""), sync},
		},
		"PREPARE, and EXECUTE in a block": {
			{query("PREPARE q AS " + secret)},
			{query("DO $$ BEGIN EXECUTE 'EXECUTE q'; END $$")},
		},
		"a label by its name": {
			{query("SELECT tailor_label_4 FROM patients")},
		},
		"SQL in a string beside the table": {
			{query("SELECT query_to_xml('SELECT age FROM tai'||'lor_release.cha'||'in_1', true, true, " +
				"''), count(*) FROM patients")},
		},
		"a ticket of the client's own": {
			{query("SELECT 1 FROM patients\n/* tailor 1 " + strings.Repeat("a", 64) + " */")},
		},
	} {
		t.Run(claim, func(t *testing.T) {
			f := dial(t, p.dsn(user)).Frontend
			for i, messages := range turns {
				rows, codes := talk(t, f, messages...)
				if rows > 0 {
					t.Errorf("turn %d showed %d rows", i+1, rows)
				}
				if i == len(turns)-1 && len(codes) == 0 {
					t.Error("nothing was refused")
				}
			}
		})
	}
}

// TestAnUnnamedStatementReplacedByAnotherIsGone asks again what the unnamed one
// stands for by now.
func TestAnUnnamedStatementReplacedByAnotherIsGone(t *testing.T) {
	p := shared.serve(t)
	sync := &pgproto3.Sync{}
	f := dial(t, p.dsn(shared.reader(t))).Frontend
	ask := func(want int, messages ...pgproto3.FrontendMessage) {
		t.Helper()
		if rows, codes := talk(t, f, messages...); rows != want || codes != nil {
			t.Errorf("%d rows, %v, want %d", rows, codes, want)
		}
	}
	run := []pgproto3.FrontendMessage{&pgproto3.Bind{}, &pgproto3.Execute{}, sync}
	ask(patients, append(
		[]pgproto3.FrontendMessage{&pgproto3.Parse{Query: "SELECT age FROM patients"}}, run...)...)
	ask(patients, run...)
	ask(1, append([]pgproto3.FrontendMessage{&pgproto3.Parse{Query: "SELECT 1"}}, run...)...)
	ask(1, run...)
	ask(patients, append(
		[]pgproto3.FrontendMessage{&pgproto3.Parse{Query: "SELECT sex FROM patients"}}, run...)...)
	// The server passes over another one, and refuses one, by which it forgets what there was.
	if rows, codes := talk(t, f, &pgproto3.Execute{Portal: "none"}, &pgproto3.Parse{Query: "SELECT 3"},
		sync); rows > 0 || len(codes) != 1 {
		t.Errorf("%d rows, %v", rows, codes)
	}
	ask(patients, run...)
	if rows, codes := talk(t, f, append([]pgproto3.FrontendMessage{
		&pgproto3.Parse{Query: "SELECT none"}, sync,
	}, run[:2]...)...); rows > 0 || len(codes) != 1 {
		t.Errorf("%d rows, %v", rows, codes)
	}
	if rows, codes := talk(t, f, sync); rows > 0 || !slices.Equal(codes, []string{"26000"}) {
		t.Errorf("%d rows, %v", rows, codes)
	}
	exists, codes := talk(t, f, &pgproto3.Query{String: "SELECT name FROM pg_prepared_statements"})
	if exists > 1 || codes != nil {
		t.Errorf("%d statements are left at the server, %v", exists, codes)
	}
}

// TestOtherEncodingsAreToldApart has a Latin-1 letter beside a protected table, and beside none.
func TestOtherEncodingsAreToldApart(t *testing.T) {
	conn := connect(t, shared.serve(t).dsn(shared.reader(t)))
	mustExec(t, conn, "SET client_encoding = 'LATIN1'")
	refusedAs(t, conn, "SELECT count(*), '\xe9' FROM patients", "0A000")
	if got := rowsOf(t, conn, "SELECT '\xe9' AS letter"); len(got) != 1 {
		t.Errorf("%q", got)
	}
}

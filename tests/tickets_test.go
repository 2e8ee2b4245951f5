package tests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// TestWhateverHasATicketIsRecorded has a block open a cursor on the text of a prepared statement
// that has not been run, in place of portals of three kinds, and runs those. Rows may come, of what
// is on record.
func TestWhateverHasATicketIsRecorded(t *testing.T) {
	const secret = "SELECT age, diagnosis FROM patients WHERE age > %d"
	opens := func(portal string) *pgproto3.Query {
		return &pgproto3.Query{String: `DO $$ DECLARE c refcursor := ` + portal + `; BEGIN
			IF EXISTS (SELECT FROM pg_cursors WHERE name = c::text) THEN CLOSE c; END IF;
			OPEN c NO SCROLL FOR EXECUTE (SELECT statement FROM pg_prepared_statements
				WHERE statement ~ 'age >' AND NOT statement ~ 'prepared_stat' LIMIT 1); END $$`}
	}
	sync, mine := &pgproto3.Sync{}, &pgproto3.Execute{Portal: "mine", MaxRows: 3}
	begin := &pgproto3.Query{String: "BEGIN"}
	parse := func(name, sql string) *pgproto3.Parse { return &pgproto3.Parse{Name: name, Query: sql} }
	bind := &pgproto3.Bind{DestinationPortal: "mine", PreparedStatement: "s2"}
	type turn []pgproto3.FrontendMessage
	p := shared.serve(t)
	user := shared.reader(t)
	answeredSoon(t, connect(t, p.dsn(user)), "SELECT age FROM patients")
	for i, c := range []struct {
		claim string
		turns []turn
	}{
		{"a portal that is not known", []turn{{begin}, {opens("'mine'")}, {mine, sync}}},
		{"a portal of another statement", []turn{
			{parse("s2", "SELECT 1, 2"), sync},
			{begin},
			{bind, &pgproto3.Flush{}, opens("'mine'")},
			{mine, sync},
		}},
		{"a portal of another protected statement", []turn{
			{parse("s2", "SELECT count(*) FROM patients"), sync},
			{begin},
			{bind, &pgproto3.Flush{}, opens("(SELECT name FROM pg_cursors WHERE name ~ '^tailor')")},
			{mine, sync},
		}},
		{"a cursor that was not declared", []turn{
			{parse("s3", "DECLARE mine CURSOR FOR SELECT age FROM patients WHERE age > 77"), sync},
			{begin},
			{&pgproto3.Query{String: `DO $$ BEGIN EXECUTE (SELECT statement FROM pg_prepared_statements
				WHERE statement ~ 'age > 77' AND NOT statement ~ 'prepared_stat' LIMIT 1); END $$`}},
			{mine, sync},
		}},
	} {
		t.Run(c.claim, func(t *testing.T) {
			f := dial(t, p.dsn(user)).Frontend
			before, rows := len(p.records(t)), 0
			if i < 3 {
				talk(t, f, parse("s1", fmt.Sprintf(secret, i)), sync)
			}
			for _, messages := range c.turns {
				rows, _ = talk(t, f, messages...)
			}
			t.Logf("%d rows", rows)
			waitFor(t, func() bool { return len(p.records(t)) > before })
			for _, record := range p.records(t)[before:] {
				if sql := fmt.Sprint(record["sql"]); record["verdict"] == "released" &&
					strings.Contains(sql, "age") && strings.Contains(fmt.Sprint(record["relations"]), "patients") {
					return
				}
			}
			t.Error("nothing is on record")
		})
	}
}

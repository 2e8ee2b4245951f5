package tests

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// leaking is a DO block that ends its transaction and opens, in the next one, a
// cursor WITH HOLD over a release. then is run after that.
func leaking(view, then string) string {
	return fmt.Sprintf(
		`DO $$ BEGIN COMMIT; EXECUTE 'DECLARE leak CURSOR WITH HOLD FOR SELECT age FROM tailor_rel' || `+
			`'ease.%s'; %s END $$`,
		strings.TrimPrefix(view, "tailor_release."), then)
}

// TestNoCursorIsReadInThePipelineOfARecordedText opens a cursor WITH HOLD by SQL that
// no proxy sees, in a transaction that goes on, and has a recorded text end that
// transaction: the server would read the cursor then, under the text's ticket.
// PostgreSQL stamps a transaction that a DO block begins later than the block itself.
func TestNoCursorIsReadInThePipelineOfARecordedText(t *testing.T) {
	const recorded = "SELECT count(*) FROM patients"
	p := shared.serve(t)
	user := shared.reader(t)
	_, _, text := ticketed(t, p, user)
	view := strings.Fields(text)[3]
	type turn []pgproto3.FrontendMessage
	sync := &pgproto3.Sync{}
	query := func(sql string) *pgproto3.Query { return &pgproto3.Query{String: sql} }
	run := func(name string) turn {
		return turn{&pgproto3.Bind{PreparedStatement: name}, &pgproto3.Execute{}}
	}
	once := func(sql string) turn {
		return turn{&pgproto3.Parse{Query: sql}, &pgproto3.Bind{}, &pgproto3.Execute{}}
	}
	join := func(parts ...any) (out turn) {
		for _, part := range parts {
			switch part := part.(type) {
			case turn:
				out = append(out, part...)
			case pgproto3.FrontendMessage:
				out = append(out, part)
			}
		}
		return out
	}
	kept := turn{&pgproto3.Parse{Name: "s1", Query: leaking(view, "")}, sync}
	failing := once("SELECT 1 / (random() * 0)::int")
	closing := join(failing, &pgproto3.Close{ObjectType: 'S', Name: "s1"}, sync)
	for claim, turns := range map[string][]turn{
		"run by a name that a failed pipeline closed": {
			kept, closing, {query(recorded)}, join(run("s1"), query(recorded)),
		},
		"run by a name that a failed pipeline gave to another text": {
			kept, join(failing, &pgproto3.Parse{Name: "s1", Query: "SELECT 1"}, sync),
			{query(recorded)},
			join(run("s1"), query(recorded)),
		},
		"run by its name": {kept, {query(recorded)}, join(run("s1"), query(recorded))},
		"run at once": {
			{query(recorded)}, join(once(leaking(view, "")), query(recorded)),
		},
		"behind BEGIN of the same pipeline, and COMMIT beside a recorded query": {
			{query(recorded)},
			join(once(leaking(view, "")), once("BEGIN"), sync),
			{query(recorded + "; COMMIT")},
		},
		"behind BEGIN of the same pipeline, and COMMIT of a recorded cursor": {
			{query(recorded)},
			join(once(leaking(view, "")), once("BEGIN"), sync),
			{query("DECLARE rec CURSOR WITH HOLD FOR " + recorded)},
			{query("COMMIT")},
		},
		"behind a failed Close, BEGIN and COMMIT": {
			kept, closing,
			{query(recorded)},
			join(run("s1"), once("BEGIN"), sync),
			{query(recorded + "; COMMIT")},
		},
		"before a recorded statement of the same pipeline": {
			{query(recorded)}, join(once(leaking(view, "")), once(recorded), sync),
		},
		"before a recorded COMMIT of the same pipeline": {
			{query("BEGIN")},
			{query("DECLARE rec CURSOR WITH HOLD FOR " + recorded)},
			join(once("ROLLBACK"), once(leaking(view, "")), once("COMMIT"), sync),
		},
		"in a procedure": {
			{query(`CREATE PROCEDURE pg_temp.leaks() LANGUAGE plpgsql AS $p$ BEGIN COMMIT; ` +
				`EXECUTE 'DECLARE leak CURSOR WITH HOLD FOR SELECT age FROM ` + view + `'; END $p$`)},
			{query(recorded)},
			join(once("CALL pg_temp.leaks()"), query(recorded)),
		},
		"sent without waiting for answers": {
			kept, join(failing, &pgproto3.Close{ObjectType: 'S', Name: "s1"}, sync, run("s1"),
				query(recorded)),
		},
		"a recorded query without waiting for answers": {
			{query(recorded)}, join(once(leaking(view, "")), once("BEGIN"), sync,
				query(recorded+"; COMMIT")),
		},
	} {
		t.Run(claim, func(t *testing.T) {
			f := dial(t, p.dsn(user))
			// The server's copy of a cursor is there to fetch from, if ever it was made.
			for _, messages := range append(turns, turn{query("ROLLBACK")},
				turn{query("FETCH ALL FROM leak")}) {
				f.send(t, messages...)
				ends := 0
				for _, m := range messages {
					switch m.(type) {
					case *pgproto3.Sync, *pgproto3.Query:
						ends++
					}
				}
				if got := f.untilReady(t, ends); strings.Count(got, "D:") > 1 {
					t.Fatalf("rows come: %.200s", got)
				}
			}
		})
	}
}

// TestAFailedPipelineForgetsNoStatement: what a failed pipeline was to close, or to
// give to another text, the server still has, and the record of its run holds its text.
func TestAFailedPipelineForgetsNoStatement(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	sync := &pgproto3.Sync{}
	failing := []pgproto3.FrontendMessage{
		&pgproto3.Parse{Query: "SELECT 1 / (random() * 0)::int"},
		&pgproto3.Bind{}, &pgproto3.Execute{},
	}
	for _, c := range []struct {
		claim, text string
		want        string
	}{
		{"unprotected", "SELECT 'kept'", "D:kept SELECT 1 Z"},
		{"protected", "SELECT count(*), 'kept' FROM patients", fmt.Sprintf("D:%d SELECT 1 Z", patients)},
	} {
		for _, change := range []struct {
			claim    string
			messages []pgproto3.FrontendMessage
		}{
			{"closed", append(failing, &pgproto3.Close{ObjectType: 'S', Name: "s1"}, sync)},
			{"replaced", append(failing, &pgproto3.Parse{Name: "s1", Query: "SELECT 'other'"}, sync)},
			{"replaced by a protected one", append(failing,
				&pgproto3.Parse{Name: "s1", Query: "SELECT age FROM patients"}, sync)},
			{"taken", []pgproto3.FrontendMessage{
				&pgproto3.Parse{Name: "s1", Query: "SELECT 'other'"},
				sync,
			}},
			{"closed, and prepared anew", append(failing, &pgproto3.Close{ObjectType: 'S', Name: "s1"},
				&pgproto3.Parse{Name: "s1", Query: "SELECT 'other'"}, sync)},
		} {
			t.Run(c.claim+" "+change.claim, func(t *testing.T) {
				f := dial(t, p.dsn(user))
				f.send(t, &pgproto3.Parse{Name: "s1", Query: c.text}, sync)
				f.untilReady(t, 1)
				f.send(t, change.messages...)
				if got := f.untilReady(t, 1); !strings.Contains(got, "E:") {
					t.Fatalf("nothing failed: %s", got)
				}
				before := p.verdicts(t, "released", "count")
				f.send(t, &pgproto3.Bind{PreparedStatement: "s1"}, &pgproto3.Execute{}, sync)
				if got := f.untilReady(t, 1); !strings.HasSuffix(got, c.want) {
					t.Errorf("%s, want %s", got, c.want)
				}
				if n := p.verdicts(t, "released", "count") - before; (n == 1) != strings.HasPrefix(c.claim,
					"protected") {
					t.Errorf("%d runs are recorded as released", n)
				}
				f.send(t, &pgproto3.Close{ObjectType: 'S', Name: "s1"}, sync,
					&pgproto3.Parse{Name: "s1", Query: "SELECT 'new'"}, &pgproto3.Bind{PreparedStatement: "s1"},
					&pgproto3.Execute{}, sync)
				if got := f.untilReady(t, 2); !strings.HasSuffix(got, "D:new SELECT 1 Z") {
					t.Errorf("closed and prepared anew it answers %s", got)
				}
			})
		}
	}
}

// TestAPortalReadsWhatItsBindDecided sends Bind and Execute in different packets, as
// some drivers do, for combinations that nobody has asked for before.
func TestAPortalReadsWhatItsBindDecided(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	f := dial(t, p.dsn(user))
	sync := &pgproto3.Sync{}
	f.send(t, &pgproto3.Query{String: "SELECT count(*) FROM patients"})
	f.untilReady(t, 1)
	const text = "SELECT age, zip, sex, count(*) FROM patients GROUP BY age, zip, sex ORDER BY age, " +
		"zip, sex"
	for _, text := range []string{"SELECT count(*) FROM patients WHERE age > 40", text} {
		f.send(t, &pgproto3.Parse{Query: text}, &pgproto3.Bind{}, &pgproto3.Flush{})
		for bound := false; !bound; {
			m, err := f.Receive()
			if err != nil {
				t.Fatal(err)
			}
			_, bound = m.(*pgproto3.BindComplete)
		}
		f.send(t, &pgproto3.Execute{}, sync)
		first := f.untilReady(t, 1)
		f.send(t, &pgproto3.Parse{Query: text}, &pgproto3.Bind{}, &pgproto3.Execute{}, sync)
		if again := f.untilReady(t, 1); again != first || strings.Contains(first, "E:") {
			t.Errorf("%s: answered with %.200s, then with %.200s", text, first, again)
		}
	}
}

// TestATransactionBeginsInThePipelineOfItsFirstQuery does what JDBC does without
// autocommit, after a login and after SET: BEGIN and the first query are sent together.
func TestATransactionBeginsInThePipelineOfItsFirstQuery(t *testing.T) {
	p := shared.serve(t)
	want := fmt.Sprintf("BEGIN D:%d SELECT 1 Z", patients)
	once := func(name, sql string) []pgproto3.FrontendMessage {
		return []pgproto3.FrontendMessage{
			&pgproto3.Parse{Name: name, Query: sql},
			&pgproto3.Bind{PreparedStatement: name}, &pgproto3.Execute{},
		}
	}
	first := append(once("", "SELECT count(*) FROM patients"), &pgproto3.Sync{})
	begun := []pgproto3.FrontendMessage{&pgproto3.Bind{PreparedStatement: "b"}, &pgproto3.Execute{}}
	for _, begin := range []string{
		"BEGIN", "begin read only",
		"START TRANSACTION ISOLATION LEVEL REPEATABLE READ",
	} {
		w := dial(t, p.dsn(shared.reader(t)))
		for _, c := range []struct {
			claim    string
			before   string
			pipeline []pgproto3.FrontendMessage
		}{
			{"after the login", "", slices.Concat(once("b", begin), first)},
			{"after SET", "SET search_path = public", slices.Concat(once("", begin), first)},
			{"prepared before", "SET DateStyle = ISO", slices.Concat(begun, first)},
			{"again", "", slices.Concat(begun, first)},
		} {
			if c.before != "" {
				w.send(t, query(c.before))
				w.untilReady(t, 1)
			}
			w.send(t, c.pipeline...)
			if got := w.untilReady(t, 1); got != strings.Replace(want, "BEGIN",
				strings.ToUpper(strings.TrimSuffix(strings.Split(begin, " I")[0], " read only")), 1) {
				t.Errorf("%s, %s: %s", begin, c.claim, got)
			}
			w.send(t, query("COMMIT"))
			w.untilReady(t, 1)
		}
	}
}

package tests

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

func query(text string) pgproto3.FrontendMessage { return &pgproto3.Query{String: text} }

// until names the messages up to one of a kind, the end of the session ("!"), or
// the end of the patience ("...").
func (w *wire) until(patience time.Duration, last string) string {
	_ = w.conn.SetReadDeadline(time.Now().Add(patience))
	defer func() { _ = w.conn.SetReadDeadline(time.Now().Add(30 * time.Second)) }()
	var seen []string
	for {
		m, err := w.Receive()
		if err != nil {
			if strings.Contains(err.Error(), "timeout") {
				return strings.Join(append(seen, "..."), " ")
			}
			return strings.Join(append(seen, "!"), " ")
		}
		kind := ""
		switch m := m.(type) {
		case *pgproto3.ReadyForQuery:
			kind = "Z"
		case *pgproto3.CopyInResponse:
			kind = "G"
		case *pgproto3.CommandComplete:
			kind = string(m.CommandTag)
		case *pgproto3.DataRow:
			kind = "D:" + string(m.Values[0])
		case *pgproto3.ErrorResponse:
			kind = m.Severity + ":" + m.Code
			if strings.Contains(m.Message, "invalid input syntax") {
				kind += ":" + m.Message
			}
		default:
			continue
		}
		seen = append(seen, kind)
		if kind == last {
			return strings.Join(seen, " ")
		}
	}
}

// copyInDoubt begins a copy, sends a Sync within it, and makes it fail behind
// that one.
func (w *wire) copyInDoubt(t *testing.T, extended bool) string {
	t.Helper()
	if extended {
		w.send(t, &pgproto3.Parse{Query: "COPY copied FROM STDIN"}, &pgproto3.Bind{}, &pgproto3.Execute{},
			&pgproto3.Sync{})
	} else {
		w.send(t, query("COPY copied FROM STDIN"))
	}
	w.until(10*time.Second, "G")
	w.send(t, &pgproto3.CopyData{Data: []byte("1\n")}, &pgproto3.Sync{},
		&pgproto3.CopyData{Data: []byte("x\n")}, &pgproto3.CopyDone{})
	return w.until(2*time.Second, "Z")
}

func TestASyncWithinACopyThatFailsEndsTheSession(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	for _, extended := range []bool{true, false} {
		t.Run(fmt.Sprintf("extended %v", extended), func(t *testing.T) {
			w := dial(t, p.dsn(user))
			w.send(t, query("CREATE TEMP TABLE copied (n int)"))
			w.untilReady(t, 1)
			if got := w.copyInDoubt(t, extended); !strings.HasSuffix(got, "FATAL:08P01 !") {
				t.Errorf("%s: the session goes on", got)
			}
		})
	}
}

// TestNoErrorTellsAValueAfterACopyInDoubt does what brought the queue out of step
// and then asks for an error that quotes a value.
func TestNoErrorTellsAValueAfterACopyInDoubt(t *testing.T) {
	p := shared.serve(t)
	w := dial(t, p.dsn(shared.reader(t)))
	w.send(t, query("CREATE TEMP TABLE copied (n int)"), query("SELECT count(*) FROM patients"))
	w.untilReady(t, 2)
	w.outOfStep()
	w.Send(query("SELECT diagnosis::int FROM patients"))
	_ = w.Flush()
	if got := w.until(2*time.Second, "Z"); strings.Contains(got, "invalid input syntax") ||
		!strings.HasSuffix(got, "!") {
		t.Errorf("an error came through: %s", got)
	}
}

// outOfStep leaves a Sync expected that the server has passed over, and makes an
// error meet it. The session may have ended in between.
func (w *wire) outOfStep() {
	step := func(patience time.Duration, last string, messages ...pgproto3.FrontendMessage) {
		for _, m := range messages {
			w.Send(m)
		}
		_ = w.Flush()
		w.until(patience, last)
	}
	step(10*time.Second, "G", &pgproto3.Parse{Query: "COPY copied FROM STDIN"}, &pgproto3.Bind{},
		&pgproto3.Execute{}, &pgproto3.Sync{})
	step(50*time.Millisecond, "", &pgproto3.CopyData{Data: []byte("1\n")})
	step(50*time.Millisecond, "", &pgproto3.Sync{})
	step(200*time.Millisecond, "", &pgproto3.CopyData{Data: []byte("x\n")})
	step(2*time.Second, "Z", &pgproto3.Sync{})
	step(200*time.Millisecond, "", &pgproto3.Parse{Query: "SELECT 1"}, &pgproto3.Flush{})
	for range 2 {
		step(2*time.Second, "Z", query("SELECT 1/0"))
	}
}

// TestNoRowsOfAnotherSessionAfterACopyInDoubt has one session be at rest, as it
// seems, while the server owes it answers, and another take its connection.
func TestNoRowsOfAnotherSessionAfterACopyInDoubt(t *testing.T) {
	p := shares(t, 2, "--queue-timeout", "10s")
	user := shared.reader(t)
	a := dial(t, p.dsn(user))
	a.send(t, query("CREATE TEMP TABLE copied (n int)"))
	a.untilReady(t, 1)
	a.outOfStep()
	holder := dial(t, p.dsn(user))
	holder.send(t, query("BEGIN"))
	holder.untilReady(t, 1)
	for _, m := range []pgproto3.FrontendMessage{
		query("SELECT 1"),
		query(fmt.Sprintf("SELECT NULL::text, 'f', '%s' FROM pg_sleep(1)", user)),
		query("SELECT pg_sleep(0.1)"), query("SELECT pg_sleep(0.1)"), query("SELECT pg_sleep(1)"),
		query("SELECT 'row of A', 1"), query("SELECT 'row of A', 1"), &pgproto3.Sync{},
	} {
		a.Send(m)
	}
	_ = a.Flush()
	a.until(500*time.Millisecond, "Z")
	b := dial(t, p.dsn(user))
	for i := range 7 {
		text := fmt.Sprintf("B %d", i)
		b.send(t, query(fmt.Sprintf("SELECT '%s'", text)))
		if got, want := b.until(10*time.Second, "Z"), "D:"+text+" SELECT 1 Z"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestCopiesAsDriversMakeThemStayInStep has Sync where drivers send it: behind
// Execute, behind the end of the copy; and copies that fail before their data.
func TestCopiesAsDriversMakeThemStayInStep(t *testing.T) {
	p := shared.serve(t)
	super := shared.superuser(t)
	user := shared.reader(t)
	mustExec(t, super, fmt.Sprintf(
		`CREATE TABLE IF NOT EXISTS closed (n int); GRANT ALL ON closed TO %s;
		CREATE OR REPLACE FUNCTION never() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'never';
			END $$;
		CREATE OR REPLACE TRIGGER never BEFORE INSERT ON closed FOR EACH STATEMENT EXECUTE FUNCTION
			never()`, user))
	sync := &pgproto3.Sync{}
	one, bad, done, fail := &pgproto3.CopyData{Data: []byte("1\n")},
		&pgproto3.CopyData{Data: []byte("x\n")}, &pgproto3.CopyDone{},
		&pgproto3.CopyFail{Message: "given up"}
	begin := func(table string) []pgproto3.FrontendMessage {
		return []pgproto3.FrontendMessage{
			&pgproto3.Parse{Query: "COPY " + table + " FROM STDIN"},
			&pgproto3.Bind{}, &pgproto3.Execute{}, sync,
		}
	}
	tests := []struct {
		name   string
		begins []pgproto3.FrontendMessage
		last   string // of its answer
		rest   []pgproto3.FrontendMessage
		want   string
	}{
		{"a copy", begin("copied"), "G", []pgproto3.FrontendMessage{one, one, done, sync}, "COPY 2 Z"},
		{
			"a copy with Sync within, that ends well", begin("copied"), "G",
			[]pgproto3.FrontendMessage{one, sync, one, done, sync},
			"COPY 2 Z",
		},
		{
			"a row that cannot be read", begin("copied"), "G",
			[]pgproto3.FrontendMessage{one, bad, done, sync},
			`ERROR:22P02:invalid input syntax for type integer: "x" Z`,
		},
		{
			"a copy that the client gives up", begin("copied"), "G",
			[]pgproto3.FrontendMessage{one, fail, sync},
			"ERROR:57014 Z",
		},
		{
			"one given up without data", begin("copied"), "G",
			[]pgproto3.FrontendMessage{fail, sync},
			"ERROR:57014 Z",
		},
		{"no such table", begin("nowhere"), "Z", []pgproto3.FrontendMessage{one, done, sync}, "Z"},
		{"a trigger against it", begin("closed"), "Z", []pgproto3.FrontendMessage{sync}, "Z"},
		{
			"a simple copy",
			[]pgproto3.FrontendMessage{query("COPY copied FROM STDIN")},
			"G",
			[]pgproto3.FrontendMessage{one, done},
			"COPY 1 Z",
		},
		{
			"a simple one with Sync within",
			[]pgproto3.FrontendMessage{query("COPY copied FROM STDIN")},
			"G",
			[]pgproto3.FrontendMessage{one, sync, done},
			"COPY 1 Z",
		},
		{
			"a simple one that fails",
			[]pgproto3.FrontendMessage{query("COPY copied FROM STDIN")},
			"G",
			[]pgproto3.FrontendMessage{bad, done},
			`ERROR:22P02:invalid input syntax for type integer: "x" Z`,
		},
		{
			"two in one text",
			[]pgproto3.FrontendMessage{query(
				"COPY copied FROM STDIN; COPY copied FROM STDIN")},
			"G",
			[]pgproto3.FrontendMessage{one, done, one, done},
			"COPY 1 G COPY 1 Z",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := dial(t, p.dsn(user))
			w.send(t, query("CREATE TEMP TABLE copied (n int)"))
			w.untilReady(t, 1)
			w.send(t, test.begins...)
			w.until(10*time.Second, test.last)
			w.send(t, test.rest...)
			if got := w.until(10*time.Second, "Z"); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
			w.send(t, query("SELECT 'after'"), query("SELECT count(*) FROM patients"))
			if got, want := w.untilReady(t, 2), fmt.Sprintf("D:after SELECT 1 Z D:%d SELECT 1 Z",
				patients); got != want {
				t.Errorf("then %s, want %s", got, want)
			}
		})
	}
}

// TestAnAnswerThatNobodyExpectsEndsTheSession asks, with Sync in a copy that a
// trigger has ended already, for more answers than the proxy can know of.
func TestAnAnswerThatNobodyExpectsEndsTheSession(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	mustExec(t, shared.superuser(t), fmt.Sprintf(
		`CREATE TABLE IF NOT EXISTS closed_late (n int); GRANT ALL ON closed_late TO %s;
		CREATE OR REPLACE FUNCTION late() RETURNS trigger LANGUAGE plpgsql
			AS $$ BEGIN PERFORM pg_sleep(0.5); RAISE 'never'; END $$;
		CREATE OR REPLACE TRIGGER late BEFORE INSERT
			ON closed_late FOR EACH STATEMENT EXECUTE FUNCTION late()`, user))
	w := dial(t, p.dsn(user))
	w.send(t, &pgproto3.Parse{Query: "COPY closed_late FROM STDIN"}, &pgproto3.Bind{},
		&pgproto3.Execute{}, &pgproto3.Sync{},
		&pgproto3.CopyData{Data: []byte("1\n")}, &pgproto3.CopyDone{}, &pgproto3.Sync{},
		query("SELECT 1; SELECT diagnosis::int FROM patients"), query("SELECT 2"))
	if got := w.until(5*time.Second, "never"); !strings.HasSuffix(got, "FATAL:08P01 !") ||
		strings.Contains(got, "invalid input") {
		t.Errorf("%s: the session goes on", got)
	}
}

// TestTheServersOwnEndOfASessionComesThrough: what PostgreSQL says outside of any
// query reaches readers as well.
func TestTheServersOwnEndOfASessionComesThrough(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	for _, test := range []struct{ name, before, want string }{
		{"an administrator's", "SELECT pg_backend_pid()", "FATAL:57P01 !"},
		{
			"idle in a transaction", "SET idle_in_transaction_session_timeout = 100; BEGIN; SELECT 1",
			"FATAL:25P03 !",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := dial(t, p.dsn(user))
			w.send(t, query(test.before))
			w.untilReady(t, 1)
			if test.want == "FATAL:57P01 !" {
				if _, err := shared.superuser(t).Exec(context.Background(),
					"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1",
					user); err != nil {
					t.Fatal(err)
				}
			}
			if got := w.until(10*time.Second, "Z"); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

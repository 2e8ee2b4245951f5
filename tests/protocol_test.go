package tests

import (
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// clientState is a state that a client can bring a session into, as the messages that do so and
// what answers them: the messages up to the last of its types.
type clientState struct {
	name     string
	messages []pgproto3.FrontendMessage
	until    string
	// instead is what PostgreSQL gets in place of the messages, where it has no such state.
	instead []pgproto3.FrontendMessage
	// broken says that the unnamed portal, if PostgreSQL executed it, would end all its
	// sessions (TestNoPortalOfASimpleQueryIsExecuted).
	broken bool
}

// clientStates are those that PostgreSQL distinguishes, each with and without an error before
// (PostgreSQL, chapter "Message Flow").
func clientStates(scratch string) []clientState {
	parse := func(sql string) *pgproto3.Parse { return &pgproto3.Parse{Query: sql} }
	bind, execute := &pgproto3.Bind{}, &pgproto3.Execute{}
	flush, sync := &pgproto3.Flush{}, &pgproto3.Sync{}
	row := &pgproto3.CopyData{Data: []byte("1\n")}
	const protected = "SELECT count(*) FROM patients"
	copying := "COPY " + scratch + " FROM STDIN"
	state := func(name, until string, messages ...pgproto3.FrontendMessage) clientState {
		return clientState{name: name, messages: messages, until: until}
	}
	failed := state("in a transaction that failed", "Z", query("BEGIN; SELECT 1/0"))
	failed.broken = true
	refused := state("in a pipeline that was refused", "E", parse("SELECT name FROM patients"), flush)
	refused.instead = []pgproto3.FrontendMessage{parse("SELECT nope"), flush}
	return []clientState{
		state("at rest", ""),
		state("behind a query", "Z", query("SELECT 1")),
		state("behind a query that failed", "Z", query("SELECT 1/0")),
		state("in a transaction", "Z", query("BEGIN")),
		failed,
		state("behind Sync", "Z", parse("SELECT 2"), bind, execute, sync),
		state("in a pipeline", "2", parse("SELECT 3"), bind, flush),
		state("in a pipeline behind an execution", "C", parse("SELECT 4"), bind, execute, flush),
		state("in a pipeline behind a suspended portal", "s", parse("SELECT generate_series(1, 5)"), bind,
			&pgproto3.Execute{MaxRows: 2}, flush),
		state("in a pipeline behind a query", "Z", parse("SELECT 5"), query("SELECT 6")),
		state("in a pipeline behind a query that failed", "Z", parse("SELECT 7"), query("SELECT 1/0")),
		state("in a pipeline that failed", "E", parse("SELECT nope"), flush),
		state("in a pipeline that failed behind a query", "ZE",
			query("SELECT 8"), parse("SELECT nope"), flush),
		state("in a pipeline that failed within a transaction", "ZE",
			query("BEGIN"), parse("SELECT nope"), flush),
		state("in a copy of a query", "G", query(copying)),
		state("in the data of a copy of a query", "G", query(copying), row),
		state("behind the data of a copy of a query", "Z", query(copying), row, &pgproto3.CopyDone{}),
		state("in a copy of a pipeline", "G", parse(copying), bind, execute, flush),
		state("in the data of a copy of a pipeline", "G", parse(copying), bind, execute, flush, row),
		state("behind the data of a copy of a pipeline", "C", parse(copying), bind, execute, flush, row,
			&pgproto3.CopyDone{}, flush),
		state("behind a protected query", "Z", query(protected)),
		state("in a pipeline of a protected statement", "2", parse(protected), bind, flush),
		state("in a pipeline behind a protected statement", "C", parse(protected), bind, execute, flush),
		refused,
		state("behind a copy to the client", "Z", query("COPY numbers TO STDOUT")),
		state("in a pipeline behind a copy to the client", "C",
			parse("COPY numbers TO STDOUT"), bind, execute, flush),
	}
}

// clientMessages are one of each type that a client can send in a session, and two that no
// client can.
var clientMessages = []struct {
	name    string
	message pgproto3.FrontendMessage
}{
	{"Query", query("SELECT 'one'")},
	{"Query that fails", query("SELECT nope")},
	{"Query that ends a transaction", query("COMMIT")},
	{"Parse", &pgproto3.Parse{Query: "SELECT 'two'"}},
	{"Parse that fails", &pgproto3.Parse{Query: "SELECT nope"}},
	{"Bind", &pgproto3.Bind{}},
	{"Bind that fails", &pgproto3.Bind{PreparedStatement: "nope"}},
	{"Describe of a statement", &pgproto3.Describe{ObjectType: 'S'}},
	{"Describe of a portal", &pgproto3.Describe{ObjectType: 'P'}},
	{"Execute", &pgproto3.Execute{}},
	{"Execute of some rows", &pgproto3.Execute{MaxRows: 1}},
	{"Close of a statement", &pgproto3.Close{ObjectType: 'S'}},
	{"Close of a portal", &pgproto3.Close{ObjectType: 'P'}},
	{"Sync", &pgproto3.Sync{}},
	{"Flush", &pgproto3.Flush{}},
	{"CopyData", &pgproto3.CopyData{Data: []byte("2\n")}},
	{"CopyDone", &pgproto3.CopyDone{}},
	{"CopyFail", &pgproto3.CopyFail{Message: "enough"}},
	{"FunctionCall", &pgproto3.FunctionCall{Function: 1576}}, // which has arguments
	{"Terminate", &pgproto3.Terminate{}},
	{"an unknown message", typed('z')},
	{"a message of a login", &pgproto3.PasswordMessage{Password: "nope"}},
}

// typed is a message of a type without a body.
type typed byte

func (typed) Frontend()           {}
func (typed) Decode([]byte) error { return nil }
func (m typed) Encode(dst []byte) ([]byte, error) {
	return append(dst, byte(m), 0, 0, 0, 4), nil
}

// brief names a message by its type: an error with its SQLSTATE, ReadyForQuery with the state of
// the transaction.
func brief(m pgproto3.BackendMessage) string {
	switch m := m.(type) {
	case *pgproto3.ErrorResponse:
		return "E:" + m.SeverityUnlocalized + ":" + m.Code
	case *pgproto3.ReadyForQuery:
		return "Z:" + string(m.TxStatus)
	case *pgproto3.CommandComplete:
		return "C:" + string(m.CommandTag)
	case *pgproto3.DataRow:
		return "D:" + string(m.Values[0])
	}
	encoded, _ := m.Encode(nil)
	return string(encoded[:1])
}

// receive adds what comes up to messages of types, one after the other, with repeated messages
// named once, and says whether the connection is still open.
func (w *wire) receive(t *testing.T, seen *[]string, until func(last string) bool) (open bool) {
	t.Helper()
	for {
		m, err := w.Receive()
		var late net.Error
		if errors.As(err, &late) && late.Timeout() {
			t.Errorf("nothing comes after %v", *seen)
			return false
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) &&
				!strings.Contains(err.Error(), "reset") {
				t.Errorf("after %v: %v", *seen, err)
			}
			*seen = append(*seen, "end")
			return false
		}
		if _, notice := m.(*pgproto3.NoticeResponse); notice {
			continue
		}
		last := brief(m)
		if n := len(*seen); n == 0 || (*seen)[n-1] != last {
			*seen = append(*seen, last)
		}
		if until(last) {
			return true
		}
	}
}

// sessions are those of a server, each of which serves one message after the other until it
// ends.
type sessions struct {
	dsn  string
	open *wire
}

// told is what a session answers to a message in a state, and then to Sync, the end of a
// transaction, of which a copy takes the first, and a query.
func (s *sessions) told(t *testing.T, state clientState, m pgproto3.FrontendMessage) string {
	t.Helper()
	if s.open == nil {
		s.open = dial(t, s.dsn)
	}
	w := s.open
	_ = w.conn.SetDeadline(time.Now().Add(30 * time.Second))
	var before, seen []string
	w.send(t, state.messages...)
	for _, kind := range state.until {
		if !w.receive(t, &before, func(last string) bool { return last[0] == byte(kind) }) {
			t.Fatalf("the session has ended: %v", before)
		}
	}
	for _, sent := range []pgproto3.FrontendMessage{
		m, &pgproto3.Sync{}, query("ROLLBACK"), &pgproto3.Sync{}, query("ROLLBACK"),
		query("SELECT 'last'"),
	} {
		w.Send(sent)
	}
	_ = w.Flush() // the other side may have ended the session
	last := false
	if !w.receive(t, &seen, func(told string) bool {
		last = last || told == "D:last"
		return last && told[0] == 'Z'
	}) {
		_ = w.conn.Close()
		s.open = nil
	}
	return strings.Join(seen, " ")
}

// departs is what the proxy answers in place of PostgreSQL where it is to answer otherwise.
func departs(m pgproto3.FrontendMessage, reader bool, want string) string {
	switch m.(type) {
	case *pgproto3.FunctionCall:
		if reader { // there is no SQL that could be planned
			return regexp.MustCompile(`^E:ERROR:\w{5} Z`).ReplaceAllString(want, "E:ERROR:0A000 Z")
		}
	case *pgproto3.Terminate: // nobody waits for what the copy ends with
		return "end"
	case typed, *pgproto3.PasswordMessage: // the session ends before the copy does
		return strings.TrimPrefix(want, "E:ERROR:08P01 ")
	}
	return want
}

// TestEveryMessageInEveryState: a session through the proxy answers as PostgreSQL does, whatever
// a client sends in whatever state, in types of messages, SQLSTATE and state of the transaction.
func TestEveryMessageInEveryState(t *testing.T) {
	user := shared.reader(t)
	const scratch = "protocol_scratch"
	mustExec(t, shared.superuser(t),
		fmt.Sprintf(`CREATE TABLE %s (n int); GRANT ALL ON %[1]s TO %s, dba`, scratch, user))
	p, pooled := shared.serve(t), shared.serve(t, "--pool", "transaction", "--max-upstream", "5")
	direct := &sessions{dsn: shared.cluster.SuperuserDSN("hospital")}
	ways := map[string]*sessions{
		"a reader": {dsn: p.dsn(user)}, "an administrator": {dsn: p.dsn("dba")},
		"a reader in a pool": {dsn: pooled.dsn(user)},
	}
	for _, state := range clientStates(scratch) {
		t.Run(state.name, func(t *testing.T) {
			atServer := state
			if state.instead != nil {
				atServer.messages = state.instead
			}
			for _, c := range clientMessages {
				unbroken := atServer
				if _, executes := c.message.(*pgproto3.Execute); executes && state.broken {
					unbroken.messages = slices.Concat(atServer.messages,
						[]pgproto3.FrontendMessage{&pgproto3.Close{ObjectType: 'P'}, &pgproto3.Flush{}})
					unbroken.until += "3"
				}
				told := direct.told(t, unbroken, c.message)
				for way, through := range ways {
					reader, sent := way != "an administrator", state
					if !reader {
						sent = atServer
					}
					want := departs(c.message, reader, told)
					if got := through.told(t, sent, c.message); got != want {
						t.Errorf("%s of %s: %s\nPostgreSQL itself: %s", c.name, way, got, want)
					}
				}
			}
		})
	}
}

// TestEveryMessageWithoutAConnection: a session in a pool that gets no connection to PostgreSQL
// answers each message with an error and, if PostgreSQL would be ready then, says that it is. What
// follows in a pipeline is passed over up to Sync, but for messages that no client can send.
func TestEveryMessageWithoutAConnection(t *testing.T) {
	p := shares(t, 1, "--queue-timeout", "2s")
	user := shared.reader(t)
	type attempt struct {
		name string
		*wire
		sent []pgproto3.FrontendMessage
		want string
	}
	var all []attempt
	for _, c := range clientMessages {
		const refused, unknown = "E:ERROR:53300", "E:FATAL:08P01 end"
		alone, behind := refused+" Z:I", refused+" Z:I"
		switch c.message.(type) {
		case *pgproto3.Query, *pgproto3.FunctionCall:
			alone += " " + alone
		case *pgproto3.Sync:
			alone += " " + alone
			behind += " " + behind
		case *pgproto3.Terminate:
			alone, behind = "end", refused+" end"
		case typed, *pgproto3.PasswordMessage:
			alone, behind = unknown, refused+" "+unknown
		}
		sync := &pgproto3.Sync{}
		all = append(all,
			attempt{c.name, dial(t, p.dsn(user)), []pgproto3.FrontendMessage{c.message, sync}, alone},
			attempt{
				c.name + " in a pipeline", dial(t, p.dsn(user)),
				[]pgproto3.FrontendMessage{&pgproto3.Parse{Query: "SELECT 1"}, c.message, sync},
				behind,
			})
	}
	busy := connect(t, p.dsn(user))
	mustExec(t, busy, "BEGIN")
	var group sync.WaitGroup
	for _, a := range all {
		group.Go(func() {
			for _, m := range a.sent {
				a.Send(m)
			}
			_ = a.Flush() // the other side may have ended the session
			var seen []string
			ready := strings.Count(a.want, "Z")
			a.receive(t, &seen, func(last string) bool {
				if last[0] == 'Z' {
					ready--
				}
				return ready == 0 && strings.HasSuffix(a.want, "Z:I")
			})
			if got := strings.Join(seen, " "); got != a.want {
				t.Errorf("%s: %s, want %s", a.name, got, a.want)
			}
		})
	}
	group.Wait()
}

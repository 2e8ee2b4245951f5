package proxy

import (
	"bytes"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgproto3/v2"
	decode "github.com/jackc/pgx/v5/pgproto3"
)

// TestParametersComeInTheServersOrder tells a changed parameter in its old place
// and as it is now: the next session is greeted with it as by the server.
func TestParametersComeInTheServersOrder(t *testing.T) {
	u := &upstream{}
	status := func(name, value string) []byte {
		frame, err := encode(&pgproto3.ParameterStatus{Name: name, Value: value})
		if err != nil {
			t.Fatal(err)
		}
		return frame
	}
	for _, p := range [][2]string{{"server_version", "15"}, {"application_name", "a"}, {
		"TimeZone",
		"UTC",
	}, {"application_name", "b"}} {
		u.setParameter(status(p[0], p[1]))
	}
	want := append(append(status("server_version", "15"), status("application_name", "b")...),
		status("TimeZone", "UTC")...)
	if got := u.parameters(); string(got) != string(want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestOnlyTheAnswerToItsOwnQuestionClearsAConnection plays a server that gives the
// right answer, and others.
func TestOnlyTheAnswerToItsOwnQuestionClearsAConnection(t *testing.T) {
	encoded := func(messages ...pgproto3.BackendMessage) []byte {
		var all []byte
		for _, m := range messages {
			var err error
			if all, err = m.Encode(all); err != nil {
				t.Fatal(err)
			}
		}
		return all
	}
	discarded := encoded(&pgproto3.ParseComplete{}, &pgproto3.BindComplete{},
		&pgproto3.CommandComplete{CommandTag: []byte("DISCARD ALL")})
	row := func(word string) []byte {
		return encoded(&pgproto3.ParseComplete{}, &pgproto3.BindComplete{},
			&pgproto3.DataRow{Values: [][]byte{[]byte(word)}},
			&pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")})
	}
	end := encoded(&pgproto3.CloseComplete{}, &pgproto3.ReadyForQuery{TxStatus: 'I'})
	failed := encoded(&pgproto3.ErrorResponse{Severity: "ERROR", Code: "25001", Message: "no"},
		&pgproto3.ReadyForQuery{TxStatus: 'I'})
	heard := encoded(&pgproto3.NotificationResponse{Channel: "c"},
		&pgproto3.ParameterStatus{Name: "TimeZone", Value: "UTC"},
		&pgproto3.NoticeResponse{Severity: "WARNING", Message: "m"})
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for claim, c := range map[string]struct {
		says  func(word string) []byte
		clear bool
	}{
		"the answer": {func(word string) []byte {
			return join(discarded, row(word), end)
		}, true},
		"what it listened to as well": {func(word string) []byte {
			return join(heard, discarded, row(word), heard, end)
		}, true},
		"another word": {func(word string) []byte {
			return join(discarded, row(word[1:]+"x"), end)
		}, false},
		"no word": {func(string) []byte { return join(discarded, end) }, false},
		"an answer owed to another": {func(word string) []byte {
			return join(row("x"), end, discarded, row(word), end)
		}, false},
		"a row owed to another": {func(word string) []byte {
			return join(encoded(&pgproto3.DataRow{Values: [][]byte{[]byte(word)}}), discarded,
				row(word), end)
		}, false},
		"an error":         {func(string) []byte { return failed }, false},
		"an error in time": {func(string) []byte { return join(discarded, failed) }, false},
		"that it is in a transaction": {func(word string) []byte {
			return join(discarded, row(word), encoded(&pgproto3.CloseComplete{},
				&pgproto3.ReadyForQuery{TxStatus: 'T'}))
		}, false},
		"more than it was asked": {func(word string) []byte {
			return join(discarded, row(word), end, end)
		}, false},
		"half an answer": {func(word string) []byte { return join(discarded, row(word)) }, false},
	} {
		t.Run(claim, func(t *testing.T) {
			server, proxy := net.Pipe()
			go func() {
				defer func() { _ = server.Close() }()
				from := decode.NewBackend(server, server)
				for word := ""; ; {
					message, err := from.Receive()
					if err != nil {
						t.Error(err)
						return
					}
					switch message := message.(type) {
					case *decode.Parse:
						word = strings.Trim(strings.TrimPrefix(message.Query, "SELECT "), "E'")
					case *decode.Sync:
						_, _ = server.Write(c.says(word))
						return
					}
				}
			}()
			u := &upstream{conn: proxy, frames: newFrames(proxy)}
			if err := u.clear(); (err == nil) != c.clear {
				t.Errorf("cleared: %v", err)
			}
			_ = proxy.Close()
		})
	}
}

package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgproto3/v2"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// answerBodies are bodies of all messages that a server may send in a session, by type; of those
// that are not here, none is looked at.
var answerBodies = map[byte][]byte{
	'C': []byte("SELECT 1\x00"), 'D': {0, 0}, 'S': []byte("a\x00b\x00"), 'Z': []byte("I"),
}

// TestEveryAnswerToEveryMessage has the server send a message of each type while it owes the
// answer to each: what is part of no such answer ends the session, and what is passes. The
// letters are those of PostgreSQL's chapter "Message Flow"; an error, and whatever may come at any
// time, is in every row.
func TestEveryAnswerToEveryMessage(t *testing.T) {
	failure, err := encode(&pgproto3.ErrorResponse{Severity: "ERROR", Code: "22012", Message: "no"})
	if err != nil {
		t.Fatal(err)
	}
	notice := append([]byte{'N'}, failure[1:]...)
	for _, c := range []struct {
		awaited byte // 0 for nothing
		passes  string
		ends    string // the answer
	}{
		{0, "NSAE", ""},
		{'Q', "NSAETDCIGHdc", ""},
		{'F', "NSAEV", ""},
		{'P', "NSAE1", "E1"},
		{'B', "NSAE2", "E2"},
		{'D', "NSAEtTn", "ETn"},
		{'C', "NSAE3", "E3"},
		{'E', "NSAEDCIsGHdc", "ECIs"},
		{'S', "NSAEZ", "Z"},
	} {
		for i := range 256 {
			kind := byte(i)
			frame := framed(kind, answerBodies[kind])
			switch kind {
			case 'E':
				frame = failure
			case 'N':
				frame = notice
			}
			s, _, toClient := bareSession(nil, nil)
			if c.awaited != 0 {
				s.expect.add(&pendingReply{kind: c.awaited})
			}
			s.expect.add(&pendingReply{kind: 'S'})
			if c.awaited == 0 {
				s.expect.complete()
			}
			err := s.answer(frame)
			_ = s.out.Flush()
			name := fmt.Sprintf("%q while %q is owed", kind, c.awaited)
			passes := bytes.IndexByte([]byte(c.passes), kind) >= 0
			if passed := err == nil && bytes.Equal(toClient.Bytes(), frame); passed != passes {
				t.Errorf("%s: passed %v, %v", name, passed, err)
			}
			var known *sqlstate.Error
			desync := errors.As(err, &known) && known.Code == sqlstate.ProtocolViolation
			if !passes && kind != 'W' && !desync {
				t.Errorf("%s: %v, want 08P01", name, err)
			}
			if c.awaited == 0 || !passes {
				continue
			}
			head := s.expect.head()
			ended := head == nil || head.kind != c.awaited || c.awaited == 'S' && kind == 'Z'
			if want := bytes.IndexByte([]byte(c.ends), kind) >= 0; ended != want {
				t.Errorf("%s: answered %v, want %v", name, ended, want)
			}
		}
	}
}

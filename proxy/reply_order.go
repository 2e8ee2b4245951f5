package proxy

import (
	"strings"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// errDesync ends a session in which nobody can know any more what the server
// answers: what is known of one statement would be held to be known of another.
var errDesync = sqlstate.New(sqlstate.ProtocolViolation, "the server's answers are out of step with what was asked").
	WithHint("Connect again. While a copy from the client runs, send Sync only before its data or after its end.")

// fits says which messages belong to the answer to which kind of message, short
// of those that end it for all kinds: an error and ReadyForQuery.
func fits(kind, answer byte) bool {
	switch kind {
	case 'E':
		return strings.IndexByte("DCIsGHdc", answer) >= 0
	case 'Q':
		return strings.IndexByte("TDCIGHdc", answer) >= 0
	case 'D':
		return answer == 't' || answer == 'T' || answer == 'n'
	case 'F':
		return answer == 'V'
	}
	return completes(kind, answer)
}

// completes says which messages end the answer to which kind of message.
func completes(kind, answer byte) bool {
	switch answer {
	case '1':
		return kind == 'P'
	case '2':
		return kind == 'B'
	case '3':
		return kind == 'C'
	case 'T', 'n':
		return kind == 'D'
	case 'C', 'I', 's':
		return kind == 'E'
	}
	return false
}

// unexpected forwards an error that answers nothing: the server ends the
// session, or says what must not happen, and ends a reader's here.
func (s *session) unexpected(frame []byte) error {
	if !s.principal.Reader {
		return s.out.pass(frame)
	}
	if err := s.out.pass(withoutData(frame)); err != nil || fatal(frame) {
		return err
	}
	return errDesync
}

package proxy

import "github.com/hiatus-tailor/tailor/internal/sqlstate"

// errDesync ends a session in which nobody can know any more what the server
// answers: what is known of one statement would be held to be known of another.
var errDesync = sqlstate.New(sqlstate.ProtocolViolation,
	"the server's answers are out of step with what was asked").
	WithHint("Connect again. While a copy from the client runs, send Sync only before its data or " +
		"after its end.")

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

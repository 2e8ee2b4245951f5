package proxy

import (
	"context"
	"strings"

	"github.com/jackc/pgproto3/v2"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/proxy/internal/protocol"
)

// unparsable is forwarded in place of a refused statement: the server answers
// it with an error and fails its transaction, as the statement would have.
const unparsable = "tailor refused this statement"

// mostActivations bounds, in bytes, what is kept of a transaction's texts that activate.
const mostActivations = 1 << 16

// statements forwards what the client sends until one side ends.
func (s *session) statements(ctx context.Context) error {
	defer func() { _ = s.up.Flush() }()
	if err := s.up.Flush(); err != nil { // what the loop has left
		return err
	}
	for {
		inside := s.in.inside()
		frame, err := s.in.next()
		if err != nil {
			if stops, again := s.stopsForHome(ctx, err); stops {
				return errHome
			} else if again {
				continue
			}
		}
		switch {
		case err != nil:
			return err
		case !inside && frame[0] == 'X':
			return nil
		}
		if err := s.forward(ctx, frame, inside); err != nil {
			return err
		}
	}
}

// statement handles one message of the client.
func (s *session) statement(ctx context.Context, frame []byte) error {
	does := s.state.On(frame[0])
	switch does.Act {
	case protocol.Reject:
		return errUnknownMessage(frame[0])
	case protocol.Skip:
		return nil
	}
	// The answer to what comes before has been seen, and then so has the transaction's state.
	s.beginning = s.principal.Reader && !s.state.InPipeline() && !s.expect.owesClient() &&
		s.status.Load() == 'I'
	if s.beginning {
		s.began, s.beganAt = s.arrived(), s.server.replayed
	}
	if does.Act == protocol.Drop {
		if err := s.dropQueried(); err != nil {
			return err
		}
	}
	before := s.state
	err := s.handle(ctx, frame)
	if err == nil && s.state == before { // a refusal has a state of its own
		s.state = does.Next
	}
	return err
}

// handle does what a message of the client comes to, and forwards what the server gets.
func (s *session) handle(ctx context.Context, frame []byte) error {
	switch frame[0] {
	case 'Q':
		return s.query(ctx, frame)
	case 'P':
		return s.parse(ctx, frame)
	case 'B':
		return s.bind(ctx, frame)
	case 'E':
		return s.execute(ctx, frame)
	case 'D', 'C':
		return s.named(ctx, frame)
	case 'S':
		s.expect.add(bare['S'])
	case 'H':
		if len(frame) != headerBytes {
			return malformed(nil) // the server would answer it with an error
		}
	case 'd':
		s.expect.add(bare['d'])
	case 'c', 'f':
		s.expect.add(bare['c'])
	case 'F':
		return s.functionCall(frame)
	}
	return s.up.pass(frame)
}

// errUnknownMessage ends the session as the server would.
func errUnknownMessage(kind byte) error {
	return sqlstate.New(sqlstate.ProtocolViolation, "invalid frontend message type %d", kind)
}

// zero ends a text in a message.
var zero = []byte{0}

// malformed is the answer to a message that cannot be decoded.
func malformed(err error) error {
	return sqlstate.New(sqlstate.ProtocolViolation, "invalid message format").Wrap(err)
}

// count sees to it that a run of a statement that passes is recorded.
func (s *session) count(e *pendingReply, l *statementInfo) {
	if s.loopSession == nil && !s.principal.Reader && l.activates() {
		text := strings.Clone(l.text)
		if before := s.activated.Load(); before != nil && len(*before) <= mostActivations {
			text += *before
		}
		s.activated.Store(&text)
	}
	if l.alike() {
		e.fingerprint = s.stats.counts(l, e.started)
	}
	if e.fingerprint == nil {
		e.record = s.recordAt(e.started, l.text)
	}
}

// admissionToken lets the server see that a text has been planned and will be recorded.
func (s *session) admissionToken(text string, d *decision) string {
	return s.proxy.catalog.AdmissionToken(text, s.server.session, d.releases)
}

// refuse makes an expectation carry the reason why a statement does not run.
func (s *session) refuse(e *pendingReply, err error) {
	e.refusal = sqlstate.From(err)
	e.record.Refuse(string(e.refusal.Code))
	s.logRefusal(e.refusal)
}

// refuseStep makes the server fail at a message of the extended protocol, as it
// would have by itself.
func (s *session) refuseStep(e *pendingReply, err error) error {
	s.refuse(e, err)
	s.state = protocol.Refused
	s.expect.add(e)
	return send(s.up, &pgproto3.Parse{Query: unparsable})
}

// functionCall refuses the fast path to readers: it runs any function without
// SQL that could be planned.
func (s *session) functionCall(frame []byte) error {
	e := &pendingReply{kind: 'F', started: s.proxy.clock()}
	if s.principal.Reader {
		e.record = s.record("")
		s.refuse(e, sqlstate.New(sqlstate.FeatureNotSupported,
			"function calls outside of SQL are not available to readers").
			WithHint("Call the function in a SELECT."))
		e.kind = 'Q'
		s.expect.add(e)
		return send(s.up, &pgproto3.Query{String: unparsable})
	}
	s.expect.add(e)
	return s.up.pass(frame)
}

package proxy

import (
	"context"
	"strings"

	"github.com/jackc/pgproto3/v2"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
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
	if s.skipping && frame[0] != 'S' {
		if strings.IndexByte("PBDECH", frame[0]) >= 0 {
			return nil // as the server would, after an error
		}
	}
	// The answer to what comes before has been seen, and then so has the transaction's state.
	s.beginning = s.principal.Reader && !s.pipelined && !s.expect.owesClient() &&
		s.status.Load() == 'I'
	if s.beginning {
		s.began = s.arrived()
	}
	s.following = s.pipelined
	if strings.IndexByte("PBDEC", frame[0]) >= 0 {
		if err := s.dropQueried(); err != nil {
			return err
		}
	}
	switch frame[0] {
	case 'Q':
		s.queried = true
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
		s.skipping, s.pipelined = false, false
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
	default:
		return sqlstate.New(sqlstate.ProtocolViolation, "invalid frontend message type %d", frame[0])
	}
	return s.up.pass(frame)
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
	s.skipping = true
	s.expect.add(e)
	return send(s.up, &pgproto3.Parse{Query: unparsable})
}

// functionCall refuses the fast path to readers: it runs any function without
// SQL that could be planned.
func (s *session) functionCall(frame []byte) error {
	e := &pendingReply{kind: 'F', started: s.proxy.clock()}
	if s.principal.Reader {
		e.record = s.record("")
		s.refuse(e, sqlstate.New(sqlstate.FeatureNotSupported, "function calls outside of SQL are not available to readers").
			WithHint("Call the function in a SELECT."))
		e.kind = 'Q'
		s.expect.add(e)
		return send(s.up, &pgproto3.Query{String: unparsable})
	}
	s.expect.add(e)
	return s.up.pass(frame)
}

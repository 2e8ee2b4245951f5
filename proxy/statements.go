package proxy

import (
	"context"
	"strings"

	"github.com/jackc/pgproto3/v2"
	decode "github.com/jackc/pgx/v5/pgproto3"

	"github.com/hiatus-tailor/tailor/internal/audit"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/planner"
)

// unparsable is forwarded in place of a refused statement: the server answers
// it with an error and fails its transaction, as the statement would have.
const unparsable = "tailor refused this statement"

// prepared is a statement that the client has named, or the unnamed one.
type prepared struct {
	plan *planner.Plan // nil where the role is no reader
	text string
}

// statements forwards what the client sends until one side ends.
func (s *session) statements(ctx context.Context) error {
	for {
		frame, err := s.in.next()
		if err != nil {
			return err
		}
		if frame[0] == 'X' {
			return nil
		}
		if err := s.statement(ctx, frame); err != nil {
			return err
		}
		if !s.in.buffered() {
			if err := s.up.Flush(); err != nil {
				return err
			}
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
	switch frame[0] {
	case 'Q':
		return s.query(ctx, frame)
	case 'P':
		return s.parse(ctx, frame)
	case 'B':
		return s.bind(frame)
	case 'E':
		return s.execute(ctx, frame)
	case 'D', 'C':
		s.expect.add(&expected{kind: frame[0]})
		s.pipelined = true
	case 'S':
		s.expect.add(&expected{kind: 'S'})
		s.skipping, s.pipelined = false, false
	case 'H', 'd', 'c', 'f':
	case 'F':
		return s.functionCall(frame)
	default:
		return sqlstate.New(sqlstate.ProtocolViolation, "invalid frontend message type %d", frame[0])
	}
	_, err := s.up.Write(frame)
	return err
}

// malformed is the answer to a message that cannot be decoded.
func malformed(err error) error {
	return sqlstate.New(sqlstate.ProtocolViolation, "invalid message format").Wrap(err)
}

// query handles the simple protocol.
func (s *session) query(ctx context.Context, frame []byte) error {
	var q decode.Query
	if err := q.Decode(frame[headerBytes:]); err != nil {
		return malformed(err)
	}
	s.skipping, s.pipelined = false, false
	e := &expected{kind: 'Q', statement: q.String, started: s.proxy.clock()}
	e.record = s.record(q.String)
	plan, err := s.plan(ctx, q.String)
	if err == nil && plan.Passes() {
		s.settingsKnown = false
		s.expect.add(e)
		_, err = s.up.Write(frame)
		return err
	}
	var decision *decision
	if err == nil {
		decision, err = s.decide(ctx, plan, e.record)
	}
	text := unparsable
	if err != nil {
		s.refuse(e, err)
	} else {
		e.rewritten = plan.Rewrite(decision.view)
		e.prelude, e.record = decision.notice, nil
		text = e.rewritten.SQL
	}
	s.expect.add(e)
	return send(s.up, &pgproto3.Query{String: text})
}

// refuse makes an expectation carry the reason why a statement does not run.
func (s *session) refuse(e *expected, err error) {
	e.refusal = sqlstate.From(err)
	e.record.Verdict, e.record.SQLState = audit.Refused, string(e.refusal.Code)
	s.logRefusal(e.refusal)
}

// parse handles the preparation of a statement.
func (s *session) parse(ctx context.Context, frame []byte) error {
	var p decode.Parse
	if err := p.Decode(frame[headerBytes:]); err != nil {
		return malformed(err)
	}
	delete(s.prepared, p.Name)
	e := &expected{kind: 'P', statement: p.Query, started: s.proxy.clock()}
	plan, err := s.plan(ctx, p.Query)
	s.pipelined = true
	if err == nil && plan.Passes() {
		s.prepared[p.Name] = &prepared{plan: plan, text: p.Query}
		s.expect.add(e)
		_, err = s.up.Write(frame)
		return err
	}
	var d *decision
	if err == nil {
		d, err = s.tailor(ctx, plan)
	}
	text := unparsable
	if err != nil {
		e.record = s.record(p.Query)
		s.refuse(e, err)
		s.skipping = true
	} else {
		e.rewritten = plan.Rewrite(d.view)
		text = e.rewritten.SQL
		s.prepared[p.Name] = &prepared{plan: plan, text: p.Query}
	}
	s.expect.add(e)
	return send(s.up, &pgproto3.Parse{Name: p.Name, Query: text, ParameterOIDs: p.ParameterOIDs})
}

// bind notes which statement a portal runs.
func (s *session) bind(frame []byte) error {
	var b decode.Bind
	if err := b.Decode(frame[headerBytes:]); err != nil {
		return malformed(err)
	}
	delete(s.portals, b.DestinationPortal)
	if p := s.prepared[b.PreparedStatement]; p != nil {
		s.portals[b.DestinationPortal] = &portal{prepared: p}
	}
	s.expect.add(&expected{kind: 'B'})
	s.pipelined = true
	_, err := s.up.Write(frame)
	return err
}

// portal is a bound statement. It is decided and recorded once, however many
// times rows are fetched from it.
type portal struct {
	*prepared
	decided bool
}

// execute handles the running of a portal.
func (s *session) execute(ctx context.Context, frame []byte) error {
	var x decode.Execute
	if err := x.Decode(frame[headerBytes:]); err != nil {
		return malformed(err)
	}
	e := &expected{kind: 'E', started: s.proxy.clock()}
	s.pipelined = true
	p := s.portals[x.Portal]
	switch {
	case p == nil || p.decided:
		// A portal that SQL made, or one that has been accounted for.
	case p.plan.Passes():
		p.decided = true
		s.settingsKnown = false
		e.record = s.record(p.text)
	default:
		p.decided = true
		e.record = s.record(p.text)
		d, err := s.decide(ctx, p.plan, e.record)
		if err != nil {
			s.refuse(e, err)
			s.skipping = true
			s.expect.add(e)
			return send(s.up, &pgproto3.Parse{Query: unparsable})
		}
		e.prelude, e.record = d.notice, nil
	}
	s.expect.add(e)
	_, err := s.up.Write(frame)
	return err
}

// functionCall refuses the fast path to readers: it runs any function without
// SQL that could be planned.
func (s *session) functionCall(frame []byte) error {
	e := &expected{kind: 'F', started: s.proxy.clock()}
	if s.principal.Reader {
		e.record = s.record("")
		s.refuse(e, sqlstate.New(sqlstate.FeatureNotSupported, "function calls outside of SQL are not available to readers").
			WithHint("Call the function in a SELECT."))
		e.kind = 'Q'
		s.expect.add(e)
		return send(s.up, &pgproto3.Query{String: unparsable})
	}
	s.expect.add(e)
	_, err := s.up.Write(frame)
	return err
}

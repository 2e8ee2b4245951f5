package proxy

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/jackc/pgproto3/v2"
	"github.com/jackc/pgx/v5"
	decode "github.com/jackc/pgx/v5/pgproto3"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/planner"
)

// unparsable is forwarded in place of a refused statement: the server answers
// it with an error and fails its transaction, as the statement would have.
const unparsable = "tailor refused this statement"

// statements forwards what the client sends until one side ends.
func (s *session) statements(ctx context.Context) error {
	defer func() { _ = s.up.Flush() }()
	if err := s.up.Flush(); err != nil { // what the loop has left
		return err
	}
	for {
		inside := s.in.inside()
		frame, err := s.in.next()
		switch {
		case err != nil:
			return err
		case !inside && frame[0] == 'X':
			return nil
		}
		kind := frame[0]
		if err := s.forward(ctx, frame, inside); err != nil {
			return err
		}
		if kind != 'd' && !inside && !s.in.buffered() {
			s.in.settle()
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
		s.expect.add(&expected{kind: 'd'})
	case 'c', 'f':
		s.expect.add(&expected{kind: 'c'})
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

// query handles the simple protocol.
func (s *session) query(ctx context.Context, frame []byte) error {
	var q decode.Query
	if err := q.Decode(frame[headerBytes:]); err != nil {
		return malformed(err)
	}
	s.note(q.String)
	started := s.proxy.clock()
	sql, plan, err := s.planned(ctx, q.String)
	if err == errWaits {
		return err
	}
	e := &expected{kind: 'Q', statement: sql, stands: sql != q.String, started: started}
	q.String = sql
	if err == nil && plan.Explain != "" {
		var account string
		if account, err = s.explained(ctx, plan, s.recordAt(e.started, q.String)); err == nil {
			if len(plan.Relations) == 0 {
				s.count(e) // else durable already
			}
			s.expect.add(e)
			return send(s.up, &pgproto3.Query{String: account})
		}
	}
	var call string
	if err == nil && plan.Passes() {
		if call, err = planner.SecurityLabel(q.String); err == nil {
			err = s.assertFetches(q.String)
		}
	}
	if err == nil && plan.Passes() {
		if d, shows := s.fetched(q.String, true); d != nil {
			e.record = s.recordAt(e.started, q.String)
			return s.fetch(ctx, e, d, shows)
		}
		s.settle(q.String, false)
		s.count(e)
		s.expect.add(e)
		s.names.discard(q.String)
		if call != "" {
			return send(s.up, &pgproto3.Query{String: call})
		}
		if text, ok := s.deallocated(q.String); ok {
			return send(s.up, &pgproto3.Query{String: text})
		}
		if e.stands {
			return send(s.up, &q)
		}
		return s.up.pass(frame)
	}
	if err == nil && plan.Prepares != "" {
		var kept string
		if kept, err = s.keep(ctx, e, plan); err == nil {
			s.count(e)
			s.expect.add(e)
			return send(s.up, &pgproto3.Query{String: kept})
		}
	}
	e.record = s.recordAt(e.started, q.String)
	if err == nil && plan.OneQuery && !s.pipelined {
		return s.queryAhead(ctx, e, plan)
	}
	var d *decision
	if err == nil {
		d, err = s.measuredDecision(ctx, plan, e.record, func(*decision) {})
	}
	text := unparsable
	if err != nil {
		s.refuse(e, err)
	} else {
		s.settle(q.String, true)
		e.rewritten, e.released = plan.Rewrite(d.view), true
		e.prelude = d.notice
		text = s.ticket(e.rewritten.SQL, d)
		s.declare(plan, d)
	}
	s.expect.add(e)
	return send(s.up, &pgproto3.Query{String: text})
}

// fetch handles a simple query that fetches from cursors over releases, or ends
// the transaction of one that outlives it.
func (s *session) fetch(ctx context.Context, e *expected, d *decision, shows bool) error {
	s.settle(e.statement, false)
	text := s.ticket(e.statement, d)
	e.released = true
	if shows {
		if err := s.recordFetch(ctx, d, e.record); err != nil {
			s.refuse(e, err)
			text = unparsable
		}
	}
	s.expect.add(e)
	return send(s.up, &pgproto3.Query{String: text})
}

// count sees to it that a run of a statement that passes is recorded.
func (s *session) count(e *expected) {
	if !alike(e.statement) {
		e.record = s.recordAt(e.started, e.statement)
		return
	}
	if e.shape = s.tally.counts(e.statement, e.started); e.shape == nil {
		e.record = s.recordAt(e.started, e.statement)
	}
}

// ticket lets the server see that a text has been planned and will be recorded.
func (s *session) ticket(text string, d *decision) string {
	return s.proxy.catalog.Ticket(text, s.server.process(), d.releases)
}

// refuse makes an expectation carry the reason why a statement does not run.
func (s *session) refuse(e *expected, err error) {
	e.refusal = sqlstate.From(err)
	e.record.Refuse(string(e.refusal.Code))
	s.logRefusal(e.refusal)
}

// parse handles the preparation of a statement.
func (s *session) parse(ctx context.Context, frame []byte) error {
	var p decode.Parse
	if err := p.Decode(frame[headerBytes:]); err != nil {
		return malformed(err)
	}
	s.note(p.Query)
	started := s.proxy.clock()
	sql, plan, err := s.planned(ctx, p.Query)
	if err == errWaits {
		return err
	}
	e := &expected{kind: 'P', statement: sql, stands: sql != p.Query, started: started}
	p.Query = sql
	s.pipelined = true
	if err == nil && s.principal.Reader && own(p.Name) {
		err = errOwnName(p.Name)
	}
	if err == nil && s.names.taken(p.Name) {
		err = sqlstate.New(sqlstate.DuplicatePreparedStatement, "prepared statement %q already exists", p.Name)
	}
	if err == nil && plan.Explain != "" {
		var account string
		if account, err = s.explained(ctx, plan, nil); err == nil {
			name := s.names.give()
			if err := s.replace('S', p.Name); err != nil {
				return err
			}
			s.names.statements[p.Name] = s.prepared(plan, &p, name, e)
			s.expect.add(e)
			return send(s.up, &pgproto3.Parse{Name: name, Query: account})
		}
	}
	var call string
	if err == nil && plan.Passes() {
		if call, err = planner.SecurityLabel(p.Query); err == nil {
			err = s.assertFetches(p.Query)
		}
	}
	if err == nil && plan.Passes() {
		d, shows := s.fetched(p.Query, false)
		made := s.prepared(plan, &p, p.Name, e)
		if err := s.replace('S', p.Name); err != nil {
			return err
		}
		s.names.statements[p.Name] = made
		if d != nil {
			made.name = s.names.give()
			if shows {
				made.fetches = d
			}
			s.expect.add(e)
			return send(s.up, &pgproto3.Parse{Name: made.name, Query: s.ticket(p.Query, d), ParameterOIDs: p.ParameterOIDs})
		}
		s.expect.add(e)
		if call != "" {
			made.sent = call
			return send(s.up, &pgproto3.Parse{Name: p.Name, Query: call, ParameterOIDs: p.ParameterOIDs})
		}
		if text, ok := s.deallocated(p.Query); ok {
			made.sent = text
			made.generation.Store(s.generation)
			return send(s.up, &pgproto3.Parse{Name: p.Name, Query: text, ParameterOIDs: p.ParameterOIDs})
		}
		if e.stands {
			return send(s.up, &p)
		}
		return s.up.pass(frame)
	}
	if err == nil && plan.Prepares != "" {
		var kept string
		if kept, err = s.keep(ctx, e, plan); err == nil {
			if err := s.replace('S', p.Name); err != nil {
				return err
			}
			made := s.prepared(&planner.Plan{}, &p, p.Name, e)
			made.sent = kept
			s.names.statements[p.Name] = made
			s.expect.add(e)
			return send(s.up, &pgproto3.Parse{Name: p.Name, Query: kept})
		}
	}
	if err == nil {
		err = assertPlainTypes(plan, p.ParameterOIDs)
	}
	var d *decision
	if err == nil {
		d, err = s.tailor(ctx, plan, toPrepare)
	}
	if err != nil {
		e.record = s.record(p.Query)
		return s.refuseStep(e, err)
	}
	e.rewritten, e.released = plan.Rewrite(d.view), true
	made := s.prepared(plan, &p, s.names.give(), e)
	if err := s.replace('S', p.Name); err != nil {
		return err
	}
	s.names.statements[p.Name] = made
	s.expect.add(e)
	return send(s.up, &pgproto3.Parse{Name: made.name, Query: s.ticket(e.rewritten.SQL, d), ParameterOIDs: p.ParameterOIDs})
}

// prepared notes a statement that the server is about to prepare under a name.
func (s *session) prepared(plan *planner.Plan, p *decode.Parse, name string, e *expected) *prepared {
	made := &prepared{plan: plan, text: p.Query, name: name, types: slices.Clone(p.ParameterOIDs)}
	made.generation.Store(s.generation)
	e.prepares = made
	return made
}

// bind notes which statement a portal runs.
func (s *session) bind(ctx context.Context, frame []byte) error {
	to, rest, ok := bytes.Cut(frame[headerBytes:], zero)
	from, _, also := bytes.Cut(rest, zero)
	if !ok || !also {
		return malformed(nil)
	}
	e := &expected{kind: 'B', started: s.proxy.clock()}
	s.pipelined = true
	for _, name := range []string{string(to), string(from)} {
		if s.principal.Reader && own(name) {
			e.record = s.record("")
			return s.refuseStep(e, errOwnName(name))
		}
	}
	p := s.names.statements[string(from)]
	if p != nil {
		e.statement = p.text
	}
	if err := s.prepareAgain(ctx, p); err != nil {
		e.record = s.record(p.text)
		return s.refuseStep(e, err)
	}
	if p != nil && p.plan.Explain != "" && s.status.Load() != 'E' {
		if err := s.explainAgain(ctx, p); err != nil {
			e.record = s.record(p.text)
			return s.refuseStep(e, err)
		}
	}
	if err := s.replace('P', string(to)); err != nil {
		return err
	}
	if p == nil { // prepared by SQL, or not at all: the record has its name
		p = &prepared{plan: &planner.Plan{}, text: "EXECUTE " + pgx.Identifier{string(from)}.Sanitize(), name: string(from)}
	}
	if !own(p.name) {
		s.names.bound(to, p)
		s.expect.add(e)
		return s.up.pass(frame)
	}
	var b decode.Bind
	if err := b.Decode(frame[headerBytes:]); err != nil {
		return malformed(err)
	}
	e.released = !p.plan.Passes() && p.plan.Explain == ""
	name := s.names.give()
	s.names.portals[b.DestinationPortal] = &portal{prepared: p, name: name}
	s.expect.add(e)
	return send(s.up, &pgproto3.Bind{
		DestinationPortal: name, PreparedStatement: p.name, ParameterFormatCodes: b.ParameterFormatCodes,
		Parameters: b.Parameters, ResultFormatCodes: b.ResultFormatCodes,
	})
}

// named forwards Describe and Close under the server's names. Both hold a
// kind ('S' statement, 'P' portal) and a name.
func (s *session) named(ctx context.Context, frame []byte) error {
	body := frame[headerBytes:]
	if len(body) < 2 || body[len(body)-1] != 0 || (body[0] != 'S' && body[0] != 'P') {
		return malformed(nil)
	}
	client := string(body[1 : len(body)-1])
	if s.principal.Reader && own(client) {
		e := &expected{kind: frame[0], started: s.proxy.clock(), record: s.record("")}
		s.pipelined = true
		return s.refuseStep(e, errOwnName(client))
	}
	server := s.names.server(body[0], client)
	s.pipelined = true
	if frame[0] == 'D' && body[0] == 'S' {
		if err := s.prepareAgain(ctx, s.names.statements[client]); err != nil {
			e := &expected{kind: 'D', started: s.proxy.clock(), record: s.record("")}
			return s.refuseStep(e, err)
		}
	}
	s.expect.add(bare[frame[0]])
	if frame[0] == 'C' {
		s.names.forget(body[0], client)
	}
	if server == client {
		return s.up.pass(frame)
	}
	if frame[0] == 'C' {
		return send(s.up, &pgproto3.Close{ObjectType: body[0], Name: server})
	}
	return send(s.up, &pgproto3.Describe{ObjectType: body[0], Name: server})
}

// execute handles the running of a portal.
func (s *session) execute(ctx context.Context, frame []byte) error {
	name, rest, ok := bytes.Cut(frame[headerBytes:], zero)
	if !ok || len(rest) != 4 {
		return malformed(nil)
	}
	most := binary.BigEndian.Uint32(rest)
	e := &expected{kind: 'E', started: s.proxy.clock(), most: most}
	s.pipelined = true
	p := s.names.portals[string(name)]
	if s.principal.Reader && (own(string(name)) || p == nil && s.names.declared && s.names.cursors[string(name)] == nil) {
		// An unknown portal may be a cursor over releases that is no longer known.
		e.record = s.record("")
		return s.refuseStep(e, errOwnName(string(name)))
	}
	if p == nil || p.plan.Passes() || p.plan.Explain != "" {
		if p != nil {
			s.settle(p.text, false)
			s.names.discard(p.text)
			_, _ = s.fetched(p.text, true)
		}
		switch {
		case p == nil: // a cursor
			e.statement = "FETCH FROM " + pgx.Identifier{string(name)}.Sanitize()
			s.count(e)
		case !p.decided:
			p.decided = true
			e.statement = p.text
			if p.plan.Explain == "" || len(p.plan.Relations) == 0 {
				s.count(e)
			}
		}
		if d, text := s.names.fetches(string(name)); d != nil {
			e.released, e.record, e.shape = true, s.record(text), nil
			if err := s.recordFetch(ctx, d, e.record); err != nil {
				return s.refuseStep(e, err)
			}
		}
		s.expect.add(e)
		if p != nil && p.name != string(name) {
			return send(s.up, &pgproto3.Execute{Portal: p.name, MaxRows: most})
		}
		return s.up.pass(frame)
	}
	e.released = true
	if !p.decided {
		e.record = s.record(p.text)
		var sending error // of what lies before, such as Bind: the server plans meanwhile
		d, err := s.measuredDecision(ctx, p.plan, e.record, func(*decision) { sending = s.up.Flush() })
		if sending != nil {
			return sending
		}
		if err != nil {
			return s.refuseStep(e, err)
		}
		p.decided, p.record = true, e.record
		s.settle(p.text, true)
		e.prelude = d.notice
		s.declare(p.plan, d)
	}
	e.record = p.record
	s.expect.add(e)
	return send(s.up, &pgproto3.Execute{Portal: p.name, MaxRows: most})
}

// refuseStep makes the server fail at a message of the extended protocol, as it
// would have by itself.
func (s *session) refuseStep(e *expected, err error) error {
	s.refuse(e, err)
	s.skipping = true
	s.expect.add(e)
	return send(s.up, &pgproto3.Parse{Query: unparsable})
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
	return s.up.pass(frame)
}

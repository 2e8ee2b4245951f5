package proxy

import (
	"bytes"
	"context"
	"encoding/binary"

	"github.com/jackc/pgproto3/v2"
	"github.com/jackc/pgx/v5"
	decode "github.com/jackc/pgx/v5/pgproto3"
)

// bind notes which statement a portal runs.
func (s *session) bind(ctx context.Context, frame []byte) error {
	to, rest, ok := bytes.Cut(frame[headerBytes:], zero)
	from, _, also := bytes.Cut(rest, zero)
	if !ok || !also {
		return malformed(nil)
	}
	to, from = cutName(to), cutName(from)
	p := s.names.statements[string(from)]
	if p != nil && (p.before != nil || p.closed || p.failed.Load()) {
		p = s.names.statement(string(from))
	}
	meant := s.assertReplayed(ctx, true)
	if p != nil && meant == nil {
		if err := s.readAhead(ctx, p.text); err != nil {
			return err
		}
		meant = s.assertMeant(ctx, p)
	}
	if meant == errWaits {
		return meant
	}
	asked := s.questions.Load()
	e := s.expect.blank()
	e.kind, e.started = 'B', s.arrived()
	if err := s.assertHolds(portalWeight); err != nil {
		e.record = s.record("")
		return s.refuseStep(e, err)
	}
	for _, name := range [][]byte{to, from} {
		if s.principal.Reader && own(name) {
			e.record = s.record("")
			return s.refuseStep(e, errOwnName(string(name)))
		}
	}
	if p != nil {
		e.statement, e.binds = p.text, p
	}
	if meant == nil {
		meant = s.prepareAgain(ctx, p)
	}
	if meant != nil {
		e.record = s.record(e.statement)
		return s.refuseStep(e, meant)
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
		s.unsettled = true
		p = &prepared{plan: passing, statementInfo: &statementInfo{text: "EXECUTE " +
			pgx.Identifier{string(from)}.Sanitize()}, name: string(from)}
	}
	if !own(p.name) {
		s.names.bound(to, p, asked)
		e.lent = true
		s.expect.add(e)
		return s.up.pass(frame)
	}
	var b decode.Bind
	if err := b.Decode(frame[headerBytes:]); err != nil {
		return malformed(err)
	}
	made := &portal{prepared: p, bound: p.decision, asked: asked}
	if !p.plan.Passes() && p.plan.Explain == "" {
		e.released, e.decision, e.runs = true, p.decision, p
		if err := s.decideBound(ctx, made); err != nil {
			e.record = s.record(p.text)
			return s.refuseStep(e, err)
		}
	}
	made.name = s.names.give()
	s.names.portals[string(to)] = made
	s.expect.add(e)
	return send(s.up, &pgproto3.Bind{
		DestinationPortal: made.name, PreparedStatement: p.name,
		ParameterFormatCodes: b.ParameterFormatCodes,
		Parameters:           b.Parameters, ResultFormatCodes: b.ResultFormatCodes,
	})
}

// named forwards Describe and Close under the server's names. Both hold a
// kind ('S' statement, 'P' portal) and a name.
func (s *session) named(ctx context.Context, frame []byte) error {
	body := frame[headerBytes:]
	if len(body) < 2 || body[len(body)-1] != 0 || (body[0] != 'S' && body[0] != 'P') {
		return malformed(nil)
	}
	client := string(cutName(body[1 : len(body)-1]))
	if s.principal.Reader && own(client) {
		e := &pendingReply{kind: frame[0], started: s.proxy.clock(), record: s.record("")}
		return s.refuseStep(e, errOwnName(client))
	}
	server := s.names.server(body[0], client)
	if frame[0] == 'D' && body[0] == 'S' {
		if err := s.prepareAgain(ctx, s.names.statement(client)); err != nil {
			e := &pendingReply{kind: 'D', started: s.proxy.clock(), record: s.record("")}
			return s.refuseStep(e, err)
		}
	}
	e := bare[frame[0]]
	if frame[0] == 'C' && body[0] == 'S' {
		if closes := s.names.close(client); closes != nil {
			e = s.expect.blank()
			e.kind, e.prepares, e.lent = 'C', closes, true
		}
	} else if frame[0] == 'C' {
		delete(s.names.portals, client)
	}
	s.expect.add(e)
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
	name = cutName(name)
	most := binary.BigEndian.Uint32(rest)
	p := s.names.portals[string(name)]
	var runs *prepared
	known := string(name)
	if p != nil {
		runs, known = p.prepared, p.name
	}
	if s.loopSession != nil && (p != nil && !s.principal.Reader && p.activates() ||
		known != "" && s.owesRecords(runs)) {
		return errWaits
	}
	e := s.expect.blank()
	e.kind, e.started, e.most = 'E', s.arrived(), most
	if known != "" { // SQL can put another portal in its place
		if err := s.recordTickets(ctx, runs); err != nil {
			e.record = s.record("")
			return s.refuseStep(e, err)
		}
	}
	if s.principal.Reader && (own(name) ||
		p == nil && s.names.declared && s.names.cursors[string(name)] == nil) {
		// An unknown portal may be a cursor over releases that is no longer known.
		e.record = s.record("")
		return s.refuseStep(e, errOwnName(string(name)))
	}
	if p == nil || p.plan.Passes() || p.plan.Explain != "" {
		if p != nil {
			s.settle(p.statementInfo, false)
			s.names.discard(p.statementInfo)
			_, _ = s.fetched(p.text, true)
		}
		switch {
		case p == nil: // a cursor
			e.statement = "FETCH FROM " + pgx.Identifier{string(name)}.Sanitize()
			s.count(e, &statementInfo{text: e.statement})
		case !p.decided:
			p.decided = true
			e.statement = p.text
			if p.plan.Explain == "" || len(p.plan.Relations) == 0 {
				s.count(e, p.statementInfo)
			}
		}
		if d, text := s.names.fetches(string(name)); d != nil {
			e.released, e.record, e.fingerprint = true, s.record(text), nil
			if err := s.recordFetch(ctx, d, e.record); err != nil {
				return s.refuseStep(e, err)
			}
			s.useTickets(runs)
		}
		e.lent = !e.released
		s.expect.add(e)
		if p != nil && p.name != string(name) {
			return send(s.up, &pgproto3.Execute{Portal: p.name, MaxRows: most})
		}
		return s.up.pass(frame)
	}
	e.released, e.decision, e.runs = true, p.bound, p.prepared
	if !p.decided {
		e.record = s.record(p.text)
		sending, err := s.recordBound(ctx, p, e.record)
		if sending != nil {
			return sending
		}
		if err != nil {
			return s.refuseStep(e, err)
		}
		p.decided, p.record = true, e.record
		s.useTickets(runs)
		s.settle(p.statementInfo, true)
		e.prelude = p.bound.notice
		s.declare(p.plan, p.bound)
	}
	e.record = p.record
	s.expect.add(e)
	return send(s.up, &pgproto3.Execute{Portal: p.name, MaxRows: most})
}

// dropQueried has the server drop the unnamed portal before the first message of the extended
// protocol that follows a simple query, unless it is certain that the query's transaction has not
// failed. PostgreSQL 15 keeps the portal of a query that has failed, without its plan, and ends
// all its sessions where the portal is executed. TestNoPortalOfASimpleQueryIsExecuted checks it.
func (s *session) dropQueried() error {
	if s.status.Load() != 'E' && !s.expect.owesClient() {
		return nil
	}
	s.expect.add(&pendingReply{kind: 'C', silent: true})
	return send(s.up, &pgproto3.Close{ObjectType: 'P'})
}

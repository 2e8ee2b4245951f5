package proxy

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/jackc/pgproto3/v2"

	"github.com/hiatus-tailor/tailor/planner"
)

// aheadName is the server's name for the statement and the portal of a simple
// query that is planned ahead.
const aheadName = ownPrefix + "query"

// pipelinedQuery is shared by the messages that run a simple query which is planned
// pipelinedQuery: one fails for all, and its last has the record.
type pipelinedQuery struct {
	failed atomic.Pointer[string]
	ran    atomic.Bool // to its end
}

// repeated is the simple query that ran last: the server keeps its plan, for it may
// come again. It is forgotten with the settings of the session (see knowledge), so
// that nothing has run since by which it could mean something else, or be gone.
type repeated struct {
	text string // with its ticket; empty for none
	run  *pipelinedQuery
}

// again says that the server has a plan for a text.
func (r repeated) again(text string) bool {
	return r.text == text && r.run.ran.Load()
}

// fail notes the SQLSTATE that the server gave.
func (a *pipelinedQuery) fail(code string) { a.failed.Store(&code) }

// code is the SQLSTATE that the server gave, empty for none. It is safe to call
// without an ahead.
func (a *pipelinedQuery) code() string {
	if a != nil {
		if code := a.failed.Load(); code != nil {
			return *code
		}
	}
	return ""
}

// queryAhead runs a simple query by the messages of the extended protocol, in two
// parts: the server parses and plans while the record is on its way to the disk,
// and executes once the record is durable. Planning gives nothing away: the
// client's own Parse and Bind have as much done before there is a record. What the
// server has planned already is sent at once, when it is recorded.
func (s *session) queryAhead(ctx context.Context, e *pendingReply, plan *planner.Plan) error {
	shared, of := &pipelinedQuery{}, &prepared{}
	var sending error
	asked := false
	var d *decision
	err := s.limitTickets(ctx)
	if err == nil {
		d, err = s.measuredDecision(ctx, plan, e.record, func(d *decision) {
			asked = true
			e.over(plan, d)
			s.tickets = append(s.tickets, ticket{of, e.statement, d})
			sending = s.prepareAhead(e, d, shared)
		})
	}
	if sending != nil {
		return sending
	}
	if err == nil {
		s.useTickets(of)
		s.settle(&statementInfo{text: e.statement}, true)
		e.kind, e.ahead = 'E', shared
		s.expect.add(&pendingReply{kind: 'D', prelude: d.notice})
		s.expect.add(e)
		s.expect.add(&pendingReply{kind: 'C', silent: true})
		s.expect.add(bare['S'])
		return errors.Join(
			send(s.up, &pgproto3.Describe{ObjectType: 'P', Name: aheadName},
				&pgproto3.Execute{Portal: aheadName},
				&pgproto3.Close{ObjectType: 'P', Name: aheadName}, &pgproto3.Sync{}),
			s.leaveNothingAhead())
	}
	s.refuse(e, err)
	if !asked {
		s.expect.add(e)
		return send(s.up, &pgproto3.Query{String: unparsable})
	}
	e.kind = 'P'
	s.expect.add(e)
	s.expect.add(bare['S'])
	return errors.Join(send(s.up, &pgproto3.Parse{Query: unparsable}, &pgproto3.Sync{}),
		s.leaveNothingAhead())
}

// prepareAhead has the server plan a query, unless it has done so before.
func (s *session) prepareAhead(e *pendingReply, d *decision, shared *pipelinedQuery) error {
	expect := func(kind byte) {
		s.expect.add(&pendingReply{
			kind: kind, silent: true, started: e.started, statement: e.statement, sent: e.sent,
			resolved: e.resolved, rewritten: e.rewritten, released: true, decision: d, ahead: shared,
		})
	}
	text := s.admissionToken(e.rewritten.SQL, d)
	again := s.repeated.again(text)
	s.repeated = repeated{text, shared}
	bind := &pgproto3.Bind{DestinationPortal: aheadName, PreparedStatement: aheadName}
	if again {
		expect('B')
		return send(s.up, bind) // with what follows when it is recorded
	}
	s.expect.add(&pendingReply{kind: 'C', silent: true})
	expect('P')
	expect('B')
	return errors.Join(send(s.up, &pgproto3.Close{ObjectType: 'S', Name: aheadName},
		&pgproto3.Parse{Name: aheadName, Query: text}, bind), s.up.Flush())
}

// leaveNothingAhead closes the statement where the connection is others' too. It
// comes behind the Sync of what ran: what comes before it, the server passes over
// where that fails. A portal that failed ends with its transaction.
func (s *session) leaveNothingAhead() error {
	if s.pool == nil {
		return nil
	}
	s.repeated = repeated{}
	for _, kind := range []byte("CS") {
		s.expect.add(&pendingReply{kind: kind, silent: true})
	}
	return send(s.up, &pgproto3.Close{ObjectType: 'S', Name: aheadName}, &pgproto3.Sync{})
}

package proxy

import (
	"context"

	"github.com/jackc/pgproto3/v2"
	decode "github.com/jackc/pgx/v5/pgproto3"

	"github.com/hiatus-tailor/tailor/planner"
)

// query handles the simple protocol.
func (s *session) query(ctx context.Context, frame []byte) error {
	var q decode.Query
	if err := q.Decode(frame[headerBytes:]); err != nil {
		return malformed(err)
	}
	s.note(q.String)
	started := s.proxy.clock()
	sql, resolved, plan, err := s.planned(ctx, q.String)
	if err == errWaits {
		return err
	}
	e := &expected{kind: 'Q', statement: sql, sent: q.String, resolved: resolved, started: started}
	var text string
	switch {
	case err != nil:
	case plan.Explain != "":
		text, err = s.queryAccount(ctx, e, plan)
	case plan.Passes():
		text, err = s.queryPassing(ctx, e)
	case plan.Prepares != "":
		if text, err = s.keep(ctx, e, plan); err == nil {
			s.count(e)
		}
	case plan.OneQuery && !s.pipelined:
		e.record = s.recordAt(started, sql)
		return s.queryAhead(ctx, e, plan)
	default:
		text, err = s.queryReleases(ctx, e, plan)
	}
	if err != nil {
		if e.record == nil {
			e.record = s.recordAt(started, sql)
		}
		s.refuse(e, err)
		text = unparsable
	}
	s.expect.add(e)
	if text == q.String {
		return s.up.pass(frame)
	}
	return send(s.up, &pgproto3.Query{String: text})
}

// queryAccount returns the query that shows the account of a plan.
func (s *session) queryAccount(ctx context.Context, e *expected, plan *planner.Plan) (string, error) {
	account, err := s.explained(ctx, plan, s.recordAt(e.started, e.statement))
	if err == nil && len(plan.Relations) == 0 {
		s.count(e) // else durable already
	}
	return account, err
}

// queryPassing returns what the server gets for a text that names no protected
// table.
func (s *session) queryPassing(ctx context.Context, e *expected) (string, error) {
	call, err := s.assertPassing(e.statement)
	if err != nil {
		return "", err
	}
	if d, shows := s.fetched(e.statement, true); d != nil {
		return s.queryFetch(ctx, e, d, shows)
	}
	s.settle(e.statement, false)
	s.count(e)
	s.names.discard(e.statement)
	return s.inPlace(e.statement, call), nil
}

// queryFetch returns the text by which rows are fetched from cursors over
// releases, or the transaction of one that outlives it ends.
func (s *session) queryFetch(ctx context.Context, e *expected, d *decision, shows bool) (string, error) {
	e.record = s.recordAt(e.started, e.statement)
	s.settle(e.statement, false)
	e.released = true
	if shows {
		if err := s.recordFetch(ctx, d, e.record); err != nil {
			return "", err
		}
	}
	return s.ticket(e.statement, d), nil
}

// queryReleases returns the text that reads releases, once it is recorded.
func (s *session) queryReleases(ctx context.Context, e *expected, plan *planner.Plan) (string, error) {
	e.record = s.recordAt(e.started, e.statement)
	d, err := s.measuredDecision(ctx, plan, e.record, func(*decision) {})
	if err != nil {
		return "", err
	}
	s.settle(e.statement, true)
	e.over(plan, d)
	e.prelude = d.notice
	s.declare(plan, d)
	return s.ticket(e.rewritten.SQL, d), nil
}

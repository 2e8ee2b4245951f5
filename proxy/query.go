package proxy

import (
	"context"

	"github.com/jackc/pgproto3/v2"
	decode "github.com/jackc/pgx/v5/pgproto3"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/planner"
)

// query handles the simple protocol.
func (s *session) query(ctx context.Context, frame []byte) error {
	var q decode.Query
	if err := q.Decode(frame[headerBytes:]); err != nil {
		return malformed(err)
	}
	s.note(q.String)
	started := s.arrived()
	runs, resolved, plan, err := s.planned(ctx, &statementInfo{text: q.String})
	if err == errWaits {
		return err
	}
	e := s.expect.blank()
	e.kind, e.statement, e.sent, e.resolved, e.started = 'Q', runs.text, q.String, resolved, started
	var text string
	switch {
	case err != nil:
	case plan.Explain != "":
		text, err = s.queryAccount(ctx, e, runs, plan)
	case plan.Passes():
		text, err = s.queryPassing(ctx, e, runs)
	case plan.Prepares != "":
		if text, err = s.keep(ctx, e, plan); err == nil {
			s.count(e, runs)
		}
	case s.state.InPipeline():
		err = errPipelined
	case plan.OneQuery && !s.names.holds:
		e.record = s.recordAt(started, runs.text)
		return s.queryAhead(ctx, e, plan)
	default:
		text, err = s.queryReleases(ctx, e, runs, plan)
	}
	if err != nil {
		if e.record == nil {
			e.record = s.recordAt(started, runs.text)
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
func (s *session) queryAccount(
	ctx context.Context, e *pendingReply, runs *statementInfo, plan *planner.Plan,
) (string, error) {
	account, err := s.explained(ctx, plan, s.recordAt(e.started, runs.text))
	if err == nil && len(plan.Relations) == 0 {
		s.count(e, runs) // else durable already
	}
	return account, err
}

// queryPassing returns what the server gets for a text that names no protected
// table.
func (s *session) queryPassing(
	ctx context.Context, e *pendingReply, runs *statementInfo,
) (string, error) {
	call, err := s.assertPassing(runs)
	if err != nil {
		return "", err
	}
	if d, shows := s.fetched(runs.text, true); d != nil {
		if s.state.InPipeline() {
			return "", errPipelined
		}
		return s.queryFetch(ctx, e, runs, d, shows)
	}
	s.settle(runs, false)
	s.count(e, runs)
	s.names.discard(runs)
	e.lent = true
	return s.inPlace(runs.text, call), nil
}

// errPipelined refuses a simple query over releases behind messages of the extended
// protocol. It would end their transaction, and what the server reads then, cursors WITH
// HOLD that SQL in a block has opened, say, it would read under this text's ticket.
var errPipelined = sqlstate.New(sqlstate.FeatureNotSupported,
	"a simple query over a protected table cannot follow other messages in one pipeline").
	WithHint("Send Sync before the query.")

// queryFetch returns the text by which rows are fetched from cursors over
// releases, or the transaction of one that outlives it ends.
func (s *session) queryFetch(
	ctx context.Context, e *pendingReply, runs *statementInfo, d *decision, shows bool,
) (string, error) {
	e.record = s.recordAt(e.started, runs.text)
	s.settle(runs, false)
	e.released = true
	if shows {
		if err := s.recordFetch(ctx, d, e.record); err != nil {
			return "", err
		}
	}
	return s.admissionToken(runs.text, d), nil
}

// queryReleases returns the text that reads releases, once it is recorded.
func (s *session) queryReleases(
	ctx context.Context, e *pendingReply, runs *statementInfo, plan *planner.Plan,
) (string, error) {
	e.record = s.recordAt(e.started, runs.text)
	d, err := s.measuredDecision(ctx, plan, e.record, func(*decision) {})
	if err != nil {
		return "", err
	}
	s.settle(runs, true)
	e.over(plan, d)
	e.prelude = d.notice
	s.declare(plan, d)
	return s.admissionToken(e.rewritten.SQL, d), nil
}

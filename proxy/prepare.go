package proxy

import (
	"context"
	"slices"

	"github.com/jackc/pgproto3/v2"
	decode "github.com/jackc/pgx/v5/pgproto3"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/planner"
)

// parse handles the preparation of a statement by message.
func (s *session) parse(ctx context.Context, frame []byte) error {
	var p decode.Parse
	if err := p.Decode(frame[headerBytes:]); err != nil {
		return malformed(err)
	}
	s.note(p.Query)
	started := s.proxy.clock()
	sql, resolved, plan, err := s.planned(ctx, p.Query)
	if err == errWaits {
		return err
	}
	e := &expected{kind: 'P', statement: sql, sent: p.Query, resolved: resolved, started: started}
	s.pipelined = true
	if err == nil {
		err = s.assertFree(p.Name)
	}
	made := &prepared{plan: plan, text: sql, name: p.Name, types: slices.Clone(p.ParameterOIDs)}
	parameters := p.ParameterOIDs
	var text string
	switch {
	case err != nil:
	case plan.Explain != "":
		made.name, parameters = s.names.give(), nil
		text, err = s.explained(ctx, plan, nil)
	case plan.Passes():
		text, err = s.preparePassing(made)
	case plan.Prepares != "":
		parameters = nil
		text, err = s.keep(ctx, e, plan)
		made.plan, made.sent = &planner.Plan{}, text
	default:
		made.name = s.names.give()
		text, err = s.prepareReleases(ctx, e, made)
	}
	if err != nil {
		e.record = s.record(sql)
		return s.refuseStep(e, err)
	}
	if err := s.replace('S', p.Name); err != nil {
		return err
	}
	made.generation.Store(s.generation)
	s.names.statements[p.Name], e.prepares = made, made
	s.expect.add(e)
	if text == p.Query && made.name == p.Name {
		return s.up.pass(frame)
	}
	return send(s.up, &pgproto3.Parse{Name: made.name, Query: text, ParameterOIDs: parameters})
}

// assertFree refuses a name that the client cannot prepare a statement under.
func (s *session) assertFree(name string) error {
	if s.principal.Reader && own(name) {
		return errOwnName(name)
	}
	if s.names.taken(name) {
		return sqlstate.New(sqlstate.DuplicatePreparedStatement, "prepared statement %q already exists", name)
	}
	return nil
}

// preparePassing returns what the server gets for a text that names no protected
// table.
func (s *session) preparePassing(made *prepared) (string, error) {
	call, err := s.assertPassing(made.text)
	if err != nil {
		return "", err
	}
	if d, shows := s.fetched(made.text, false); d != nil {
		made.name = s.names.give()
		if shows {
			made.fetches = d
		}
		return s.ticket(made.text, d), nil
	}
	text := s.inPlace(made.text, call)
	if text != made.text {
		made.sent = text
	}
	return text, nil
}

// prepareReleases returns the text that reads releases.
func (s *session) prepareReleases(ctx context.Context, e *expected, made *prepared) (string, error) {
	if err := assertPlainTypes(made.plan, made.types); err != nil {
		return "", err
	}
	d, err := s.tailor(ctx, made.plan, toPrepare)
	if err != nil {
		return "", err
	}
	e.over(made.plan, d)
	made.decision = d
	return s.ticket(e.rewritten.SQL, d), nil
}

// assertPassing refuses a text that names no protected table where it would do
// something else than it says. For SECURITY LABEL it returns the call that does it.
func (s *session) assertPassing(text string) (call string, err error) {
	if call, err = planner.SecurityLabel(text); err == nil {
		err = s.assertFetches(text)
	}
	return call, err
}

// inPlace is what the server gets for a text that passes: a call, or another
// text where the server knows names otherwise than the client, or the text.
func (s *session) inPlace(text, call string) string {
	if call != "" {
		return call
	}
	if rewritten, ok := s.deallocated(text); ok {
		return rewritten
	}
	return text
}

package proxy

import (
	"context"

	"github.com/jackc/pgproto3/v2"

	"github.com/hiatus-tailor/tailor/internal/audit"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/planner"
)

// parse handles the preparation of a statement by message.
func (s *session) parse(ctx context.Context, frame []byte) error {
	p, ok := parsingOf(frame[headerBytes:])
	if !ok {
		return malformed(nil)
	}
	sent := s.looks.at(p.query)
	if err := s.readAhead(ctx, sent.text); err != nil {
		return err
	}
	s.note(sent.text)
	started := s.arrived()
	runs, resolved, plan, err := s.planned(ctx, sent)
	if err == errWaits {
		return err
	}
	e := s.expect.blank()
	e.kind, e.statement, e.sent, e.resolved, e.started = 'P', runs.text, sent.text, resolved, started
	name, parameters := string(cutName(p.name)), p.types
	if err == nil {
		err = s.assertFree(name)
	}
	if err == nil {
		err = s.assertHolds(statementWeight + min(len(runs.text),
			audit.MostShown) + 4*len(parameters) + plan.Bytes())
	}
	made := &prepared{plan: plan, statementInfo: runs, name: name, types: parameters}
	if err == nil && plan.Explain == "" && plan.Prepares == "" && s.principal.Reader &&
		!s.concernsNothing(runs) {
		made.meant = s.settings.meaning()
	}
	var text string
	switch {
	case err != nil:
	case plan.Explain != "":
		made.name, parameters = s.names.give(), nil
		text, err = s.explained(ctx, plan, nil)
	case plan.Passes():
		made.plan = passing
		text, err = s.preparePassing(ctx, made)
		e.lent = err == nil
	case plan.Prepares != "":
		parameters = nil
		text, err = s.keep(ctx, e, plan)
		made.plan, made.sent = passing, text
	default:
		made.name = s.names.give()
		text, err = s.prepareReleases(ctx, e, made)
	}
	if replacing := s.replace('S', name); replacing != nil {
		return replacing
	}
	if err != nil {
		if name == "" {
			delete(s.names.statements, name)
		}
		e.record = s.record(runs.text)
		return s.refuseStep(e, err)
	}
	made.generation.Store(s.generation)
	e.prepares = s.names.prepare(name, made)
	s.expect.add(e)
	unchanged := text == sent.text && made.name == name
	if made.plan == passing {
		s.shorten(made)
	}
	if unchanged {
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
		return sqlstate.New(sqlstate.DuplicatePreparedStatement,
			"prepared statement %q already exists", name)
	}
	return nil
}

// preparePassing returns what the server gets for a text that names no protected
// table.
func (s *session) preparePassing(ctx context.Context, made *prepared) (string, error) {
	call, err := s.assertPassing(made.statementInfo)
	if err != nil {
		return "", err
	}
	if d, shows := s.fetched(made.text, false); d != nil {
		made.name = s.names.give()
		if shows {
			made.fetches = d
		}
		return s.admissionToken(made.text, d), s.giveTicket(ctx, ticket{made, made.text, d})
	}
	text := s.inPlace(made.text, call)
	if text != made.text {
		made.sent = text
	}
	return text, nil
}

// prepareReleases returns the text that reads releases.
func (s *session) prepareReleases(
	ctx context.Context, e *pendingReply, made *prepared,
) (string, error) {
	if err := assertPlainTypes(made.plan, made.types); err != nil {
		return "", err
	}
	d, err := s.tailor(ctx, made.plan)
	if err != nil {
		return "", err
	}
	e.over(made.plan, d)
	made.decision = d
	return s.admissionToken(e.rewritten.SQL, d), s.giveTicket(ctx, ticket{made, made.text, d})
}

// assertPassing refuses a text that names no protected table where it would do
// something else than it says. For SECURITY LABEL it returns the call that does it, for
// SHOW of Tailor's parameters the query that answers it.
func (s *session) assertPassing(l *statementInfo) (call string, err error) {
	if l.labels() {
		call, err = planner.SecurityLabel(l.text)
	} else if l.parameters() {
		call, err = planner.Parameters(l.text)
	}
	if err == nil {
		err = s.assertFetches(l.text)
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

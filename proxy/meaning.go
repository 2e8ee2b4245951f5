package proxy

import (
	"context"
	"encoding/hex"
	"fmt"
	"hash/maphash"

	"github.com/jackc/pgproto3/v2"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/planner"
)

// The server looks at the names of a prepared statement anew when it is bound after the
// search_path has changed, or a temporary table has hidden another. The proxy has planned it
// before. Property: what is planned is what runs, or the statement fails.
// TestAPipelineIsPlannedByTheSettingsItRunsUnder checks it.

var namesSeed = maphash.MakeSeed()

// meaning is a number for what unqualified names mean by the settings; never 0.
func (s *settings) meaning() uint64 { return maphash.String(namesSeed, s.names) | 1 }

// errOtherMeaning has the words by which drivers know that they have to prepare again.
var errOtherMeaning = sqlstate.New(sqlstate.FeatureNotSupported,
	"cached plan must not change result type").
	WithHint("The statement's names mean other tables than when it was prepared. Prepare it again.")

// assertMeant fails where a statement, before it is bound, would be planned otherwise than it
// was. Within a pipeline the server is asked to fail, if there is any doubt.
func (s *session) assertMeant(ctx context.Context, p *prepared) error {
	if p.meant == 0 || p.cut || s.hasFailed() {
		return nil
	}
	if !s.state.InPipeline() {
		if s.loopSession != nil {
			return errWaits
		}
		if err := s.readSettings(ctx); err != nil {
			return err
		}
	}
	if now := s.settings.meaning(); now != p.meant {
		plan, err := s.plan(ctx, p.statementInfo)
		if err != nil {
			return err
		}
		if !samePlan(plan, p.plan) {
			return errOtherMeaning
		}
		p.meant = now
	}
	if s.state.InPipeline() && s.doubtful && !p.plan.Passes() {
		return s.assertNames(p.text)
	}
	return nil
}

func samePlan(a, b *planner.Plan) bool {
	if a == b || a.Passes() || b.Passes() {
		return a.Passes() == b.Passes()
	}
	name := func(r *catalog.Relation) string { return fmt.Sprint(r.OID) }
	return a.Rewrite(name).SQL == b.Rewrite(name).SQL
}

// namesCheck is the server's name for the statement and the portal that check names.
const namesCheck = ownPrefix + "names"

// selectNames fails where unqualified names do not mean what is told in hexadecimal.
const selectNames = `SELECT WHERE pg_catalog.int4eq(0, pg_catalog.int4div(1, CASE
	WHEN pg_catalog.texteq(` + tellNames +
	`, pg_catalog.convert_from(pg_catalog.decode('%s', 'hex'), pg_catalog.pg_client_encoding()))
	THEN 1 ELSE 0 END))`

// divisionByZero is what the check fails with.
const divisionByZero = "22012"

// errOtherNames ends a pipeline in which a statement would run by other names.
var errOtherNames = sqlstate.New(sqlstate.FeatureNotSupported,
	"a protected table cannot follow what changes the meaning of names in one pipeline").
	WithHint("Send Sync before the statement.")

// assertNames has the server fail, before a statement of a pipeline, where unqualified names do
// not mean what they do by the settings that are known.
func (s *session) assertNames(statement string) error {
	for _, kind := range []byte("CPBECC") {
		e := &pendingReply{kind: kind, silent: true, started: s.arrived(), statement: statement}
		if kind == 'E' {
			e.check, e.record = true, s.record(statement)
		}
		s.expect.add(e)
	}
	return send(s.up,
		&pgproto3.Close{ObjectType: 'S', Name: namesCheck},
		&pgproto3.Parse{Name: namesCheck, Query: fmt.Sprintf(selectNames,
			hex.EncodeToString([]byte(s.settings.names)))},
		&pgproto3.Bind{DestinationPortal: namesCheck, PreparedStatement: namesCheck},
		&pgproto3.Execute{Portal: namesCheck},
		&pgproto3.Close{ObjectType: 'P', Name: namesCheck},
		&pgproto3.Close{ObjectType: 'S', Name: namesCheck})
}

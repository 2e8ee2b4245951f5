package proxy

import (
	"context"
	"slices"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/audit"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/planner"
)

// cursor is one that DECLARE made over releases. What it shows was decided and
// recorded then; each text that fetches from it is recorded as well, and gets a
// ticket for the same releases: the server may read them only while it runs.
// An entry that outlives its cursor gives a ticket to a text that fetches from
// another one of the name, which needs none.
type cursor struct {
	hold     bool
	ended    bool // the transaction: the rows are the server's own copy by now
	decision *decision
}

// declare notes the cursors of a statement that is about to run.
func (s *session) declare(plan *planner.Plan, d *decision) {
	if len(plan.Cursors) == 0 {
		return
	}
	s.forgetCursors()
	s.names.declared = true
	for _, c := range plan.Cursors {
		s.names.cursors[c.Name] = &cursor{hold: c.Hold, decision: d}
	}
}

// forgetCursors forgets the cursors whose transaction has ended, if that is known. One
// WITH HOLD may have outlived it.
func (s *session) forgetCursors() {
	if len(s.names.cursors) == 0 || s.state.InPipeline() || !s.owedNothing() {
		return
	}
	for name, c := range s.names.cursors {
		c.ended = true
		if !c.hold {
			delete(s.names.cursors, name)
		}
	}
}

// fetched is what a text reads through cursors over releases, nil for nothing.
// shows says that rows come to the client. runs says that the text runs now, and
// not only may later: then the cursors that it closes are gone.
func (s *session) fetched(text string, runs bool) (d *decision, shows bool) {
	s.forgetCursors()
	if len(s.names.cursors) == 0 {
		return nil, false
	}
	f, ok := planner.FetchingOf(text)
	if !ok {
		return nil, false
	}
	d = &decision{}
	for _, name := range f.Cursors {
		if c := s.names.cursors[name]; c != nil {
			d.add(c.decision)
			shows = true
		}
	}
	for name, c := range s.names.cursors {
		if f.Ends && c.hold && !c.ended {
			d.add(c.decision)
			c.ended = runs
		} else if (f.Ends || f.Undoes) && runs && !c.ended {
			delete(s.names.cursors, name)
		}
	}
	for _, name := range f.Closed {
		if !runs {
			break
		}
		if name == "" {
			clear(s.names.cursors)
		}
		delete(s.names.cursors, name)
	}
	if len(d.releases) == 0 {
		return nil, false
	}
	return d, shows
}

// assertFetches refuses a text that may fetch from a cursor over releases beside
// something else: it would be recorded as that. So would a cursor that SQL in a block has
// opened over the same releases, which would be read under the text's ticket.
func (s *session) assertFetches(text string) error {
	s.forgetCursors()
	if len(s.names.cursors) == 0 {
		return nil
	}
	known := func(cursor string) bool { return s.names.cursors[cursor] != nil }
	if f, ok := planner.FetchingOf(text); ok {
		other := func(cursor string) bool { return !known(cursor) }
		if slices.ContainsFunc(f.Cursors, known) && slices.ContainsFunc(f.Cursors, other) {
			return sqlstate.New(sqlstate.FeatureNotSupported,
				"one text cannot fetch from a cursor over a protected table and from another one").
				WithHint("Fetch from each in a text of its own.")
		}
		return nil
	}
	if !planner.MayFetch(text, known) {
		return nil
	}
	return sqlstate.New(sqlstate.FeatureNotSupported,
		"FETCH cannot stand beside other statements while a cursor over a protected table is open").
		WithHint("Send FETCH on its own, or close the cursor first.")
}

// add makes a decision cover another one too.
func (d *decision) add(other *decision) {
	for i, r := range other.releases {
		if !slices.ContainsFunc(d.releases, func(has *catalog.Release) bool {
			return has.Chain == r.Chain
		}) {
			d.releases = append(d.releases, r)
			d.assessments = append(d.assessments, other.assessments[i])
		}
	}
}

// recordFetch makes the record of a fetch durable before its rows are asked for.
func (s *session) recordFetch(ctx context.Context, d *decision, record *audit.Record) error {
	record.Verdict = audit.Released
	d.describe(record)
	return s.append(ctx, record)
}

package proxy

import (
	"context"
	"strings"
	"time"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/audit"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/planner"
)

// over notes what stands for a plan's relations in the text that is forwarded.
func (e *expected) over(plan *planner.Plan, d *decision) {
	e.rewritten, e.released, e.decision = plan.Rewrite(d.view), true, d
}

// standPatience bounds how long the catalog may take to say whether what a
// statement was planned on still stands.
const standPatience = 5 * time.Second

// overtaken is the server's error about a text over releases. An activation, a
// refresh or forget_chains may have closed, changed or dropped them since the text
// was planned: then the client is told to try again, and not of names and
// privileges that are none of its business.
func (s *session) overtaken(e *expected, frame []byte) []byte {
	code := codeOf(frame)
	if e.runs != nil && code == string(sqlstate.SerializationFailure) {
		e.runs.generation.Store(-1) // its ticket may be for what was
	}
	if e.decision == nil || !strings.HasPrefix(code, "42") {
		return frame
	}
	s.answerMayWait()
	ctx, cancel := context.WithTimeout(context.Background(), standPatience)
	defer cancel()
	if err := s.proxy.catalog.AssertStand(ctx, e.decision.releases); err != nil {
		if known := sqlstate.From(err); known.Code == sqlstate.SerializationFailure {
			if e.runs != nil {
				e.runs.generation.Store(-1)
			}
			return errorFrame("ERROR", known)
		}
	}
	return frame
}

// knows says that the server has a statement as it would be prepared now.
func (s *session) knows(p *prepared) bool {
	if p.generation.Load() != s.generation {
		return false
	}
	if p.decision == nil {
		return true
	}
	snapshot, err := s.proxy.catalog.Snapshot()
	return err != nil || p.decision.version == snapshot.Version()
}

// decideBound is decide for a portal. It has been bound to releases that must
// still be the present ones: what is made of a chain now, the portal does not
// show. What lies before, such as Bind, is sent meanwhile; sending says how that
// ended.
func (s *session) decideBound(ctx context.Context, p *portal, record *audit.Record) (d *decision, sending, err error) {
	snapshot, err := s.proxy.catalog.Snapshot()
	if err != nil {
		return nil, nil, err
	}
	for _, bound := range p.bound.releases {
		// Else the chain would be carried on, and wait for what the portal has locked.
		if r := snapshot.Current(bound.Relation); r != nil && r.Version == bound.Relation.Version && r.Epoch != bound.Relation.Epoch {
			return nil, nil, catalog.ErrOvertaken(r)
		}
	}
	d, err = s.measuredDecision(ctx, p.plan, record, func(*decision) { sending = s.up.push() })
	if err != nil {
		return nil, sending, err
	}
	for i, bound := range p.bound.releases {
		if d.releases[i].Chain != bound.Chain {
			return nil, sending, catalog.ErrOvertaken(bound.Relation)
		}
	}
	return d, sending, nil
}

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
func (e *pendingReply) over(plan *planner.Plan, d *decision) {
	e.rewritten, e.released, e.decision = plan.Rewrite(d.view), true, d
}

// standPatience bounds how long the catalog may take to say whether what a
// statement was planned on still stands.
const standPatience = 5 * time.Second

// stalePlan is the server's error about a text over releases. An activation, a
// refresh or forget_chains may have closed, changed or dropped them since the text
// was planned: then the client is told to try again, and not of names and
// privileges that are none of its business.
func (s *session) stalePlan(e *pendingReply, frame []byte) []byte {
	code := codeOf(frame)
	if e.runs != nil && code == string(sqlstate.SerializationFailure) {
		e.runs.generation.Store(-1) // its ticket may be for what was
	}
	if e.decision == nil || !strings.HasPrefix(code, "42") {
		return frame
	}
	ctx, cancel := context.WithTimeout(context.Background(), standPatience)
	defer cancel()
	if err := s.proxy.catalog.AssertReleasesCurrent(ctx, e.decision.releases); err != nil {
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

// decideBound decides what a portal reads, before the server binds it: what is made of a
// chain later, the portal's snapshot does not show.
func (s *session) decideBound(ctx context.Context, p *portal) error {
	started := s.proxy.clock()
	d, err := s.tailorAgain(ctx, p.plan)
	p.took = s.proxy.clock().Sub(started)
	s.proxy.metrics.assessment.Observe(p.took)
	if err != nil {
		return err
	}
	for i, prepared := range p.decision.releases {
		if d.releases[i].Chain != prepared.Chain {
			return catalog.ErrOvertaken(prepared.Relation)
		}
	}
	p.bound = d
	return nil
}

// recordBound makes the record of a portal's run durable. What the portal has been bound
// to must still be what is released. What lies before, such as Bind, is sent meanwhile;
// sending says how that ended.
func (s *session) recordBound(
	ctx context.Context, p *portal, record *audit.Record,
) (sending, err error) {
	snapshot, err := s.proxy.catalog.Snapshot()
	if err != nil {
		return nil, err
	}
	if err := assertFits(snapshot, p.plan); err != nil {
		return nil, err
	}
	for _, bound := range p.bound.releases {
		if r := snapshot.Current(bound.Relation); !bound.Stands(r) {
			return nil, catalog.ErrOvertaken(r)
		}
	}
	record.PlanMS = milliseconds(p.took)
	err = s.recorded(ctx, p.bound, record, func(*decision) { sending = s.up.Flush() })
	if err == nil {
		s.proxy.metrics.released(record)
	}
	return sending, err
}

package proxy

import (
	"strings"
	"sync"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/planner"
)

// Bounds of the plans that are kept: all are dropped when there are too many,
// long texts are not kept at all.
const (
	maxPlans     = 512
	maxPlannable = 8 << 10
)

// plans keeps the planner's answers, so that a text that comes again is neither
// parsed nor planned. A plan depends on nothing but what it is kept for. It is
// safe for concurrent use.
type plans struct {
	mu   sync.Mutex
	kept map[planned]*planner.Plan
}

// planned is what a plan depends on.
type planned struct {
	snapshot *catalog.Snapshot
	text     string
	path     string
	values   bool
}

// make plans a text, or finds the plan that was made before.
func (p *plans) make(text string, session planner.Session, snapshot *catalog.Snapshot) (*planner.Plan, error) {
	if len(text) > maxPlannable {
		return planner.Make(text, session, snapshot)
	}
	key := planned{snapshot, text, strings.Join(session.SearchPath, "\n"), session.Values}
	p.mu.Lock()
	plan := p.kept[key]
	p.mu.Unlock()
	if plan != nil {
		return plan, nil
	}
	plan, err := planner.Make(text, session, snapshot)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept == nil || len(p.kept) >= maxPlans {
		p.kept = make(map[planned]*planner.Plan)
	}
	p.kept[key] = plan
	return plan, nil
}

package catalog

import (
	"context"
	"sync"
	"time"
)

// patience bounds all the waiting for a release.
const patience = 2 * time.Minute

// patiently is [context.WithTimeout] for work that seldom has to wait: the clock
// is wound up by who first does. A query over releases that are at hand needs none,
// and Go wakes a thread for each.
func patiently(ctx context.Context) (context.Context, context.CancelFunc) {
	p := &patient{Context: ctx, until: time.Now().Add(patience)}
	return p, p.end
}

// patient is the context that patiently makes. The one within is what it was made
// from.
type patient struct {
	context.Context
	until time.Time

	mu     sync.Mutex
	timed  context.Context // in its place; nil before somebody waits
	cancel context.CancelFunc
}

// Deadline returns when the patience ends, or the earlier end of what it was
// made from.
func (p *patient) Deadline() (time.Time, bool) {
	if earlier, ok := p.Context.Deadline(); ok && earlier.Before(p.until) {
		return earlier, true
	}
	return p.until, true
}

// Done winds up the clock.
func (p *patient) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timed == nil {
		p.timed, p.cancel = context.WithDeadline(p.Context, p.until)
	}
	return p.timed.Done()
}

// Err returns why the context has ended, nil while it has not.
func (p *patient) Err() error { return p.present().Err() }

// Value returns what belongs to a key.
func (p *patient) Value(key any) any { return p.present().Value(key) }

func (p *patient) present() context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timed == nil {
		return p.Context
	}
	return p.timed
}

// end is for when the work is done.
func (p *patient) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timed == nil {
		p.timed, p.cancel = ended, func() {}
	}
	p.cancel()
}

// ended is a context that is over, under which nobody has waited.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

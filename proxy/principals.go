package proxy

import (
	"context"
	"sync"
	"time"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

const (
	// askPatience bounds how long the catalog may take to answer a question that
	// several logins share.
	askPatience = 30 * time.Second
	// recentAge is how long a principal is remembered where its logins rush in:
	// as long as the next one takes to come, since each asks anew.
	recentAge = rushInterval / rushLogins
	// maxNames bounds what is kept of names, which anybody can make up.
	maxNames = 1000
)

// principals asks the catalog about each login, but for those for which a loop asks
// by itself (see inquirer). One question about a role is on its way at a time; logins
// that come meanwhile share the next one, so that many of them cost few questions and
// no answer is older than the question that it serves. It is safe for concurrent use.
type principals struct {
	mu     sync.Mutex
	asked  map[string]*question // on its way is one about each of these; the next one, nil for none
	recent map[string]*answered
}

// question is asked once for all who wait for it.
type question struct {
	done      chan struct{} // closed when it is answered
	principal *catalog.Principal
	err       error
}

// answered is what the catalog said of a name last, and how often it was asked
// in the interval.
type answered struct {
	principal *catalog.Principal
	at        time.Time // of the answer
	since     time.Time // the interval's begin
	logins    int
}

// guess returns what the catalog said of a role a moment ago, where its logins
// rush in; else nil. It is good for nothing but to gain time: who uses it asks
// before he believes it.
func (p *principals) guess(name string, now time.Time) *catalog.Principal {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.recent[name]; known != nil && known.logins > rushLogins && now.Sub(known.at) < recentAge {
		return known.principal
	}
	return nil
}

// find asks now, or with the next question that is asked.
func (p *principals) find(ctx context.Context, source Catalog, name string, clock func() time.Time) (*catalog.Principal, error) {
	p.mu.Lock()
	next, busy := p.asked[name]
	if !busy {
		if p.asked == nil {
			p.asked, p.recent = make(map[string]*question), make(map[string]*answered)
		}
		p.asked[name] = nil
		p.mu.Unlock()
		found, err := source.Principal(ctx, name)
		p.answered(source, name, found, clock)
		return found, err
	}
	if next == nil {
		next = &question{done: make(chan struct{})}
		p.asked[name] = next
	}
	p.mu.Unlock()
	select {
	case <-next.done:
		return next.principal, next.err
	case <-ctx.Done():
		return nil, sqlstate.New(sqlstate.CannotConnectNow, "the role cannot be looked up in time").
			WithHint("Connect again.").Wrap(ctx.Err())
	}
}

// answered remembers an answer, nil for none, and asks the next question about
// the name.
func (p *principals) answered(source Catalog, name string, found *catalog.Principal, clock func() time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remember(name, found, clock())
	next := p.asked[name]
	if next == nil {
		delete(p.asked, name)
		return
	}
	p.asked[name] = nil
	go func() {
		// Who waits may go away: the others still want the answer.
		ctx, cancel := context.WithTimeout(context.Background(), askPatience)
		defer cancel()
		next.principal, next.err = source.Principal(ctx, name)
		close(next.done)
		p.answered(source, name, next.principal, clock)
	}()
}

// heard remembers an answer that a loop was given, which asked because there was
// a guess.
func (p *principals) heard(name string, found *catalog.Principal, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remember(name, found, now)
}

func (p *principals) remember(name string, found *catalog.Principal, now time.Time) {
	known := p.recent[name]
	switch {
	case found == nil || found.Verifier == "":
		delete(p.recent, name)
		return
	case known == nil:
		if len(p.recent) >= maxNames {
			clear(p.recent)
		}
		known = &answered{since: now}
		p.recent[name] = known
	case now.Sub(known.since) >= 2*rushInterval:
		known.since, known.logins = now, known.logins/2
	}
	known.principal, known.at = found, now
	known.logins++
}

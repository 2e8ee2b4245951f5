package proxy

import (
	"context"
	"sync"
	"time"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// askPatience bounds how long the catalog may take to answer a question that
// several logins share.
const askPatience = 30 * time.Second

// principals asks the catalog about each login. One question about a role is on its
// way at a time; logins that come meanwhile share the next one, so that many of them
// cost few questions and no answer is older than the question that it serves. It is
// safe for concurrent use.
type principals struct {
	mu    sync.Mutex
	asked map[string]*question // on its way is one about each of these; the next one, nil for none
}

// question is asked once for all who wait for it.
type question struct {
	done      chan struct{} // closed when it is answered
	principal *catalog.Principal
	err       error
}

// find asks now, or with the next question that is asked.
func (p *principals) find(
	ctx context.Context, source Catalog, name string,
) (*catalog.Principal, error) {
	p.mu.Lock()
	next, busy := p.asked[name]
	if !busy {
		if p.asked == nil {
			p.asked = make(map[string]*question)
		}
		p.asked[name] = nil
		p.mu.Unlock()
		defer p.askNext(source, name)
		return source.Principal(ctx, name)
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

// askNext asks the next question about a name, if there is one.
func (p *principals) askNext(source Catalog, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := p.asked[name]
	if next == nil {
		delete(p.asked, name)
		return
	}
	p.asked[name] = nil
	go func() {
		defer p.askNext(source, name)
		// Who waits may go away: the others still want the answer.
		ctx, cancel := context.WithTimeout(context.Background(), askPatience)
		defer cancel()
		next.principal, next.err = source.Principal(ctx, name)
		close(next.done)
	}()
}

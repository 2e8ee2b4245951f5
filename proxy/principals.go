package proxy

import (
	"context"
	"sync"
	"time"

	"github.com/hiatus-tailor/tailor/catalog"
)

// principalPatience bounds how long the catalog may take to answer a question
// that several logins share.
const principalPatience = 30 * time.Second

// principals asks the catalog about each login. Where many logins of one role
// come at once, those that came while a question was on its way share the next
// one, so that no answer is older than the login that it serves. It is safe for
// concurrent use.
type principals struct {
	mu    sync.Mutex
	names map[string]*questions
}

// questions are those about one name: one is on its way.
type questions struct {
	next *question // to be asked when that is answered; nil for none
}

// question is asked once for all who wait for it.
type question struct {
	done      chan struct{} // closed when it is answered
	principal *catalog.Principal
	err       error
}

// find returns what the catalog says of a role now.
func (p *principals) find(ctx context.Context, source Catalog, name string) (*catalog.Principal, error) {
	p.mu.Lock()
	about := p.names[name]
	if about == nil {
		if p.names == nil {
			p.names = make(map[string]*questions)
		}
		p.names[name] = &questions{}
		p.mu.Unlock()
		defer p.answered(source, name)
		return source.Principal(ctx, name)
	}
	if about.next == nil {
		about.next = &question{done: make(chan struct{})}
	}
	q := about.next
	p.mu.Unlock()
	select {
	case <-q.done:
		return q.principal, q.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// answered sees to it that the next question about a name is asked.
func (p *principals) answered(source Catalog, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	about := p.names[name]
	q := about.next
	if q == nil {
		delete(p.names, name)
		return
	}
	about.next = nil
	go func() {
		// Who waits may go away: the others still want the answer.
		ctx, cancel := context.WithTimeout(context.Background(), principalPatience)
		defer cancel()
		defer p.answered(source, name)
		defer close(q.done)
		q.principal, q.err = source.Principal(ctx, name)
	}()
}

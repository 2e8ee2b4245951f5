package proxy

import (
	"context"
	"sync"
	"time"

	"github.com/hiatus-tailor/tailor/catalog"
)

// askPatience bounds how long the catalog may take to answer a question that
// several logins share.
const askPatience = 30 * time.Second

// roles asks the catalog about those who log in, each time anew.
type roles struct {
	verifiers  askings[string]
	principals askings[*catalog.Principal]
}

// verifier returns how a role's password is checked, as Catalog.Verifier does.
func (r *roles) verifier(ctx context.Context, source Catalog, name string) (string, error) {
	return r.verifiers.ask(ctx, name, source.Verifier)
}

// principal returns all that the proxy needs to know of a role.
func (r *roles) principal(ctx context.Context, source Catalog, name string) (*catalog.Principal, error) {
	return r.principals.ask(ctx, name, source.Principal)
}

// askings are questions of one kind about names. One about each name is on its
// way at a time; those that come meanwhile share the next one, so that many
// logins cost few questions and no answer is older than the login that it
// serves. It is safe for concurrent use.
type askings[T any] struct {
	mu    sync.Mutex
	names map[string]*asking[T] // on its way is one about each of these; the next one, nil for none
}

// asking is one question for all who wait for its answer.
type asking[T any] struct {
	done   chan struct{} // closed when it is answered
	answer T
	err    error
}

// ask asks now, or with the next question that is asked.
func (a *askings[T]) ask(ctx context.Context, name string, source func(context.Context, string) (T, error)) (T, error) {
	a.mu.Lock()
	next, busy := a.names[name]
	if !busy {
		if a.names == nil {
			a.names = make(map[string]*asking[T])
		}
		a.names[name] = nil
		a.mu.Unlock()
		defer a.answered(name, source)
		return source(ctx, name)
	}
	if next == nil {
		next = &asking[T]{done: make(chan struct{})}
		a.names[name] = next
	}
	a.mu.Unlock()
	select {
	case <-next.done:
		return next.answer, next.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// answered sees to it that the next question about a name is asked.
func (a *askings[T]) answered(name string, source func(context.Context, string) (T, error)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	next := a.names[name]
	if next == nil {
		delete(a.names, name)
		return
	}
	a.names[name] = nil
	go func() {
		// Who waits may go away: the others still want the answer.
		ctx, cancel := context.WithTimeout(context.Background(), askPatience)
		defer cancel()
		defer a.answered(name, source)
		defer close(next.done)
		next.answer, next.err = source(ctx, name)
	}()
}

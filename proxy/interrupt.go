package proxy

import (
	"context"
	"errors"
	"sync"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// interrupts lets a cancel request end what the proxy itself does for a
// session: for a statement before the server gets it, or for one that has run. It is
// safe for concurrent use.
type interrupts struct {
	mu     sync.Mutex
	ended  bool
	cancel map[int]context.CancelCauseFunc // of all that is being done
	begun  int
}

// errInterrupted is the cause of a context that a cancel request ended.
var errInterrupted = errors.New("cancel request")

// during returns a context for the proxy's own work. done ends it.
func (i *interrupts) during(ctx context.Context) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ended {
		cancel(errInterrupted)
	}
	if i.cancel == nil {
		i.cancel = make(map[int]context.CancelCauseFunc)
	}
	i.begun++
	number := i.begun
	i.cancel[number] = cancel
	return ctx, func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		delete(i.cancel, number)
		cancel(nil)
	}
}

// interrupt ends the proxy's work and says whether there was any. If so, the
// server is not to be asked to cancel: it is not running the statement.
func (i *interrupts) interrupt() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, cancel := range i.cancel {
		cancel(errInterrupted)
	}
	return len(i.cancel) > 0
}

// end ends the proxy's work, and whatever is begun later at once: the session is over.
func (i *interrupts) end() {
	i.mu.Lock()
	i.ended = true
	i.mu.Unlock()
	i.interrupt()
}

// interrupted is the outcome of work that failed under a context of during.
func interrupted(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errInterrupted) {
		return sqlstate.New(sqlstate.QueryCanceled, "canceling statement due to user request").Wrap(err)
	}
	return err
}

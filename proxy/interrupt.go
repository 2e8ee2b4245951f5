package proxy

import (
	"context"
	"errors"
	"sync"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// interrupts lets a cancel request end what the proxy itself does for a
// statement before the server gets it. It is safe for concurrent use.
type interrupts struct {
	mu     sync.Mutex
	cancel context.CancelCauseFunc // nil while the proxy does nothing
}

// errInterrupted is the cause of a context that a cancel request ended.
var errInterrupted = errors.New("cancel request")

// during returns a context for the proxy's own work. done ends it.
func (i *interrupts) during(ctx context.Context) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.cancel = cancel
	return ctx, func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.cancel = nil
		cancel(nil)
	}
}

// interrupt ends the proxy's work and says whether there was any. If so, the
// server is not to be asked to cancel: it is not running the statement.
func (i *interrupts) interrupt() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.cancel == nil {
		return false
	}
	i.cancel(errInterrupted)
	return true
}

// interrupted is the outcome of work that failed under a context of during.
func interrupted(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errInterrupted) {
		return sqlstate.New(sqlstate.QueryCanceled, "canceling statement due to user request").Wrap(err)
	}
	return err
}

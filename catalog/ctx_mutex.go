package catalog

import "context"

// ctxMutex lets one in at a time. Whoever waits may give up, which a mutex does not
// allow. It waits under its context only where it has to.
type ctxMutex chan struct{}

func newCtxMutex() ctxMutex { return make(ctxMutex, 1) }

// enter waits as long as the context lets it.
func (g ctxMutex) enter(ctx context.Context) error {
	select {
	case g <- struct{}{}:
		return nil
	default:
	}
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g ctxMutex) leave() { <-g }

package catalog

import "context"

// gate lets one in at a time. Whoever waits may give up, which a mutex does not
// allow. It waits under its context only where it has to.
type gate chan struct{}

func newGate() gate { return make(gate, 1) }

// enter waits as long as the context lets it.
func (g gate) enter(ctx context.Context) error {
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

func (g gate) leave() { <-g }

package catalog

import (
	"context"
	"time"
)

// patience bounds all the waiting for a release.
const patience = 2 * time.Minute

func patiently(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, patience)
}

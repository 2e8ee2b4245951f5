package console

import (
	"context"
	"net/http"

	"github.com/hiatus-tailor/tailor/internal/doctor"
)

// findings are those of tailor doctor, as far as the proxy's own role may look.
func (c *Console) findings(ctx context.Context, _ *http.Request) (any, error) {
	conn, err := c.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	found, err := doctor.Examine(ctx, conn.Conn())
	if err != nil {
		return nil, err
	}
	return map[string]any{"checks": doctor.Checks(), "findings": found}, nil
}

package catalog

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Position is a place in the server's write-ahead log: a standby that has replayed so many
// bytes of the timeline has all that was read before.
type Position struct {
	Bytes    uint64 // from the log's beginning
	Timeline string // of tailor.installation; empty where that is not told
}

// Has says whether a server that has replayed up to p has what was read before another position.
// Those of two timelines are not comparable.
func (p Position) Has(other Position) bool {
	return p.Timeline == other.Timeline && p.Bytes >= other.Bytes
}

// Position is behind all that the catalog has read so far and has kept: policies, releases,
// and who may read them.
func (c *Catalog) Position() Position {
	if at := c.position.Load(); at != nil {
		return *at
	}
	return Position{}
}

// selectPosition is behind all commits that the connection can see. Where that is not told, no
// standby gets so far.
const selectPosition = `
SELECT coalesce(tailor.written(), 18446744073709551615), coalesce(i.timeline::text, '')
FROM (SELECT) one LEFT JOIN tailor.installation i ON true`

// advance moves the position behind what has been read, and returns it as it is now. It is asked
// after that, by the QueryRow of a connection.
func (c *Catalog) advance(
	ctx context.Context, queryRow func(ctx context.Context, sql string, args ...any) pgx.Row,
) (Position, error) {
	var now Position
	if err := queryRow(ctx, selectPosition).Scan(&now.Bytes, &now.Timeline); err != nil {
		return now, fmt.Errorf("read position: %w", err)
	}
	for {
		last := c.position.Load()
		if last != nil && last.Has(now) {
			return now, nil
		}
		if c.position.CompareAndSwap(last, &now) {
			return now, nil
		}
	}
}

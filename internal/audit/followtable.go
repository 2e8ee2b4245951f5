package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// LastPosition is how far the table goes, 0 where it is empty.
func LastPosition(ctx context.Context, q Querier) (int64, error) {
	last, err := List(ctx, q, Filter{}, Page{Most: 1})
	if err != nil || len(last) == 0 {
		return 0, err
	}
	return last[0].Position, nil
}

// late is how many positions back a statement may still come: two proxies
// commit theirs in another order than they were given positions.
const late = 200

// Follow calls a function with each statement that comes to the table after a
// position, until the context ends.
func Follow(ctx context.Context, q Querier, f Filter, after int64, do func(Entry) error) error {
	start := after
	shown := make(map[int64]bool)
	for {
		news, err := unshown(ctx, q, f, max(start, after-late), shown)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		for _, e := range news {
			if err := do(e); err != nil {
				return err
			}
			shown[e.Position] = true
			after = max(after, e.Position)
		}
		for position := range shown {
			if position <= after-late {
				delete(shown, position)
			}
		}
		if len(news) == batchLength {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followPause):
		}
	}
}

// unshown reads the statements after a position that have not been shown.
func unshown(
	ctx context.Context, q Querier, f Filter, after int64, shown map[int64]bool,
) ([]Entry, error) {
	where, args := f.where()
	args = append(args, after)
	rows, err := q.Query(ctx,
		fmt.Sprintf(`SELECT position FROM tailor.audit WHERE %s AND position > $%d
			ORDER BY position LIMIT %d`,
			where, len(args), late+batchLength), args...)
	if err != nil {
		return nil, err
	}
	positions, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, err
	}
	var missing []int64
	for _, p := range positions {
		if !shown[p] && len(missing) < batchLength {
			missing = append(missing, p)
		}
	}
	if missing == nil {
		return nil, nil
	}
	return entries(ctx, q, "WHERE position = ANY ($1) ORDER BY position", missing)
}

package catalog

import (
	"context"
	"fmt"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// AssertNoShadow fails where an operator of a principal's own, or of anybody who
// is no superuser, could be called with the values of rows of a relation that
// shows none. The planner names operators with their schema; this is the second
// line. It asks each time, and fails closed.
func (c *Catalog) AssertNoShadow(ctx context.Context, principal string, r *Relation) error {
	var could bool
	if err := c.pool.QueryRow(ctx, `SELECT tailor.could_shadow($1)`, principal).Scan(&could); err != nil {
		return unavailable(fmt.Errorf("look for operators of one's own: %w", err))
	}
	if could {
		return sqlstate.New(sqlstate.InsufficientPrivilege, "table %q answers only roles that can create nothing but temporary objects", r.Name).
			WithHint("An operator of one's own would see rows. Take CREATE on the database and its schemas from the role, from PUBLIC and from the roles that it is a member of; drop operators that others than superusers have made.")
	}
	return nil
}

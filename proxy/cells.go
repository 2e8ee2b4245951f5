package proxy

import (
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/planner"
)

// firstOID is the first that PostgreSQL gives to objects which are not its own.
const firstOID = 16384

// assertOwnTypes refuses parameters of types that are not PostgreSQL's own
// where a statement reads a relation that answers with aggregates only: their
// casts would be functions that are called for each row.
func assertOwnTypes(plan *planner.Plan, types []uint32) error {
	for _, r := range plan.Relations {
		for _, oid := range types {
			if r.AggregateOnly && oid >= firstOID {
				return sqlstate.New(sqlstate.FeatureNotSupported, "parameters over table %q have types of PostgreSQL's own", r.Name).
					WithHint("Leave the types of parameters to the server.")
			}
		}
	}
	return nil
}

package proxy

import (
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/planner"
)

// firstOwnOID is the lowest number of what was made after the server was set up
// (FirstNormalObjectId).
const firstOwnOID = 16384

// assertPlainTypes refuses parameters of types of others than PostgreSQL's own, whose
// constraints and casts may run SQL.
func assertPlainTypes(plan *planner.Plan, types []uint32) error {
	for _, r := range plan.Relations {
		for _, oid := range types {
			if oid >= firstOwnOID {
				return sqlstate.New(sqlstate.FeatureNotSupported,
					"parameters over table %q are of types of PostgreSQL's own", r.Name).
					WithHint("The type may run SQL that no record would hold. Leave the types of " +
						"parameters to the server.")
			}
		}
	}
	return nil
}

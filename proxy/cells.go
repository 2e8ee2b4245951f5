package proxy

import (
	"slices"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/planner"
)

// parameterTypes are those with which a column can be compared without a cast of
// the column that could fail for a row's value. oid, for one, has a bigint cast
// to it, which fails for whoever's is negative.
var parameterTypes = []uint32{
	0, // left to the server
	pgtype.BoolOID, pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.NumericOID, pgtype.Float4OID, pgtype.Float8OID,
	pgtype.TextOID, pgtype.VarcharOID, pgtype.DateOID, pgtype.TimestampOID, pgtype.UUIDOID,
	pgtype.BoolArrayOID, pgtype.Int2ArrayOID, pgtype.Int4ArrayOID, pgtype.Int8ArrayOID, pgtype.NumericArrayOID, pgtype.Float4ArrayOID, pgtype.Float8ArrayOID,
	pgtype.TextArrayOID, pgtype.VarcharArrayOID, pgtype.DateArrayOID, pgtype.TimestampArrayOID, pgtype.UUIDArrayOID,
}

// firstOwnOID is the lowest number of what was made after the server was set up
// (FirstNormalObjectId).
const firstOwnOID = 16384

// assertPlainTypes refuses parameters of types of others than PostgreSQL's own, whose
// constraints and casts may run SQL, and of further ones where a statement reads a
// relation that answers with aggregates only: their casts would be called for
// each row.
func assertPlainTypes(plan *planner.Plan, types []uint32) error {
	for _, r := range plan.Relations {
		for _, oid := range types {
			if oid >= firstOwnOID {
				return sqlstate.New(sqlstate.FeatureNotSupported, "parameters over table %q are of types of PostgreSQL's own", r.Name).
					WithHint("The type may run SQL that no record would hold. Leave the types of parameters to the server.")
			}
			if r.AggregateOnly && !slices.Contains(parameterTypes, oid) {
				return sqlstate.New(sqlstate.FeatureNotSupported, "parameters over table %q are numbers, text, dates, timestamps, uuid or boolean", r.Name).
					WithHint("Leave the types of parameters to the server.")
			}
		}
	}
	return nil
}

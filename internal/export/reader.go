package export

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// assertReader fails for a role that is shown tables and not releases, and where there is no proxy.
func assertReader(ctx context.Context, conn *pgx.Conn) error {
	var reads bool
	if err := conn.QueryRow(ctx, `SELECT NOT r.rolsuper AND EXISTS (SELECT FROM pg_catalog.pg_roles t
			WHERE t.rolname = 'tailor_reader' AND pg_catalog.pg_has_role(CURRENT_USER, t.oid, 'MEMBER'))
		FROM pg_catalog.pg_roles r WHERE r.rolname = CURRENT_USER`).Scan(&reads); err != nil {
		return err
	}
	if !reads {
		return &Fault{
			"the role of --dsn is no reader: it would be shown tables and not releases",
			"connect as a reader, which CALL tailor.grant_reader('ROLE') makes",
		}
	}
	var server *pgconn.PgError
	_, err := conn.PgConn().Exec(ctx, "EXPLAIN (TAILOR) SELECT 1").ReadAll()
	if errors.As(err, &server) {
		return &Fault{
			"--dsn leads to PostgreSQL and not to a proxy", "give host and port of tailor serve",
		}
	}
	return err
}

package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// audience is who shares a chain of a relation: one principal, those who read
// through one role, or everyone.
type audience struct {
	scope string
	role  uint32 // its number, whatever its name is by now; 0 for everyone
}

// audienceOf is the audience that a principal belongs to.
func audienceOf(r *Relation, p *Principal) audience {
	switch r.Scope {
	case "everyone":
		return audience{scope: "everyone"}
	case "role":
		return audience{"role", p.GroupOID}
	}
	return audience{"principal", p.OID}
}

// followRoles keeps chains under the names that their roles have now. Who was
// renamed has been shown what he has been shown, and who got the name of another
// has not; who was dropped and made again counts as the same. Restored chains
// have got the numbers of their roles (tailor.accept_restore).
var followRoles = [...]string{
	// Another's, who finds it by number under any name.
	`UPDATE tailor.chain c SET audience = c.audience || ' #' || c.role FROM pg_roles me
WHERE me.oid = $3 AND c.relation = $1 AND c.audience = $2 || ' ' || me.rolname AND c.role <> $3 AND (
    EXISTS (SELECT FROM pg_roles o WHERE o.oid = c.role)
    OR EXISTS (SELECT FROM tailor.chain own WHERE own.relation = $1 AND own.role = $3 AND starts_with(own.audience, $2 || ' ')))`,
	`UPDATE tailor.chain c SET audience = $2 || ' ' || me.rolname FROM pg_roles me
WHERE me.oid = $3 AND c.relation = $1 AND c.role = $3 AND starts_with(c.audience, $2 || ' ') AND c.audience <> $2 || ' ' || me.rolname`,
	`UPDATE tailor.chain c SET role = $3 FROM pg_roles me
WHERE me.oid = $3 AND c.relation = $1 AND c.audience = $2 || ' ' || me.rolname AND c.role IS DISTINCT FROM $3`,
}

// name is that under which the audience's chain of a relation is kept.
func (a audience) name(ctx context.Context, tx pgx.Tx, r *Relation) (string, error) {
	if a.scope == "everyone" {
		return a.scope, nil
	}
	for _, statement := range followRoles {
		if _, err := tx.Exec(ctx, statement, r.OID, a.scope, a.role); err != nil {
			return "", fmt.Errorf("follow a renamed role: %w", err)
		}
	}
	var name string
	err := tx.QueryRow(ctx, `SELECT rolname::text FROM pg_roles WHERE oid = $1`, a.role).Scan(&name)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", sqlstate.New(sqlstate.InvalidAuthorization, "the role of this session does not exist any more").
			WithHint("Connect again, as a role that does.")
	}
	if err != nil {
		return "", fmt.Errorf("find the role of a chain: %w", err)
	}
	return a.scope + " " + name, nil
}

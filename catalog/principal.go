package catalog

import (
	"context"
	"fmt"
)

// Principal is a database role that logs in through the proxy.
type Principal struct {
	Name string
	// Verifier is the stored SCRAM verifier; empty where the role does not
	// exist, may not log in, or has no password.
	Verifier string
	// Reader says that protected tables reach the role as releases only.
	Reader bool
	// Group is the reader role through which the principal reads: the first
	// by name that it is a direct member of, or its own name.
	Group string
	// Settings stands for what a new session of the role would begin with: the
	// settings of roles and databases, the time at which the server read its
	// files, and who may connect where.
	Settings string
}

const selectPrincipal = `
SELECT coalesce(tailor.verifier($1::text::name), ''),
       EXISTS (SELECT FROM tailor.reader_roles() r WHERE r = $1),
       coalesce((SELECT min(g.rolname::text) FROM pg_auth_members m
                 JOIN pg_roles g ON g.oid = m.roleid JOIN pg_roles u ON u.oid = m.member
                 WHERE u.rolname = $1 AND g.rolname <> 'tailor_reader'
                   AND EXISTS (SELECT FROM tailor.reader_roles() r WHERE r = g.rolname)), $1),
       md5(pg_conf_load_time()::text
           || coalesce((SELECT string_agg(d::text, ';' ORDER BY setdatabase, setrole) FROM pg_db_role_setting d), '')
           || coalesce((SELECT string_agg(concat(datname, datacl, datallowconn, datconnlimit), ';' ORDER BY oid) FROM pg_database), ''))`

// Principal reads what the proxy needs to know of a role before it may log in.
// An unknown role is no error: its verifier is empty.
func (c *Catalog) Principal(ctx context.Context, name string) (*Principal, error) {
	p := &Principal{Name: name}
	err := c.pool.QueryRow(ctx, selectPrincipal, name).Scan(&p.Verifier, &p.Reader, &p.Group, &p.Settings)
	if err != nil {
		return nil, unavailable(fmt.Errorf("read principal: %w", err))
	}
	return p, nil
}

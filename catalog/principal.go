package catalog

import (
	"context"
	"fmt"
	"time"
)

// Principal is a database role that logs in through the proxy.
type Principal struct {
	Name string
	OID  uint32 // the role's number, which outlives its name; 0 where it does not exist
	// Verifier is the stored SCRAM verifier; empty where the role does not
	// exist, may not log in, or has no password.
	Verifier string
	// Reader says that protected tables reach the role as releases only.
	Reader bool
	// Group is the reader role through which the principal reads: the first
	// by name that it is a direct member of, or its own name.
	Group    string
	GroupOID uint32 // that role's number
	// Settings stands for what a new session of the role would begin with: the
	// role's attributes and memberships, the settings of roles and databases, the
	// time at which the server read its files, and who may connect where.
	Settings string
}

// selectPrincipal is asked at each login. It says what tailor.reader_roles says,
// from the one role upwards: calls of functions in SQL, which are planned each
// time, took three quarters of a millisecond.
const selectPrincipal = `
WITH RECURSIVE me AS (SELECT r.oid, r::text AS attributes FROM pg_roles r WHERE r.rolname = $1),
above (member, roleid, rights) AS (
    SELECT m.member, m.roleid, coalesce((to_jsonb(m) ->> 'inherit_option')::boolean OR (to_jsonb(m) ->> 'set_option')::boolean, true)
    FROM pg_auth_members m JOIN me ON m.member = me.oid
  UNION
    SELECT m.member, m.roleid, coalesce((to_jsonb(m) ->> 'inherit_option')::boolean OR (to_jsonb(m) ->> 'set_option')::boolean, true)
    FROM pg_auth_members m JOIN above ON m.member = above.roleid),
readers (oid) AS (
    SELECT r.oid FROM pg_roles r WHERE r.rolname = 'tailor_reader'
  UNION
    SELECT a.member FROM above a JOIN readers ON a.roleid = readers.oid WHERE a.rights)
SELECT coalesce(tailor.verifier($1::text::name), ''), coalesce((SELECT oid FROM me), 0),
       EXISTS (SELECT FROM me JOIN readers USING (oid)), coalesce(g.name, $1), coalesce(g.oid, (SELECT oid FROM me), 0),
       md5(concat(pg_conf_load_time(), (SELECT attributes FROM me),
           (SELECT string_agg(a::text, ';' ORDER BY member, roleid) FROM above a),
           (SELECT string_agg(d::text, ';' ORDER BY setdatabase, setrole) FROM pg_db_role_setting d),
           (SELECT string_agg(concat(oid, datname, datacl, datallowconn, datconnlimit), ';' ORDER BY oid) FROM pg_database)))
FROM (SELECT) one LEFT JOIN (
    SELECT g.rolname::text AS name, g.oid FROM above a JOIN me ON a.member = me.oid JOIN readers ON a.roleid = readers.oid
    JOIN pg_roles g ON g.oid = a.roleid WHERE g.rolname <> 'tailor_reader' ORDER BY 1 LIMIT 1) g ON true`

// Principal reads what the proxy needs to know of a role before it may log in.
// An unknown role is no error: its verifier is empty.
func (c *Catalog) Principal(ctx context.Context, name string) (*Principal, error) {
	p := &Principal{Name: name}
	conn, err := c.pool.Acquire(ctx)
	if err != nil {
		return nil, unavailable(fmt.Errorf("read principal: %w", err))
	}
	defer conn.Release()
	// The connection has the context's deadline: a goroutine to watch the context
	// would cost two changes of goroutine.
	if deadline, ok := ctx.Deadline(); ok {
		raw := conn.Conn().PgConn().Conn()
		_ = raw.SetDeadline(deadline)
		defer func() { _ = raw.SetDeadline(time.Time{}) }()
	}
	err = conn.QueryRow(context.WithoutCancel(ctx), selectPrincipal, name).Scan(&p.Verifier, &p.OID, &p.Reader, &p.Group, &p.GroupOID, &p.Settings)
	if err != nil {
		return nil, unavailable(fmt.Errorf("read principal: %w", err))
	}
	return p, nil
}

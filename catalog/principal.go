package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
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
	// Inherits says that what tailor_reader may read, the role may read by itself.
	Inherits bool
	// Projects are those that the role, or one that it is a member of, reads for.
	Projects []string
	// Settings stands for what a new session of the role would begin with: the
	// role's attributes and memberships, the settings of roles and databases, the
	// time at which the server read its files, and who may connect where.
	Settings string
}

// selectState asks what of a role may change by time alone, and of all else whether
// it may have changed: as long as a server that writes shows the same snapshot, no
// transaction that could have changed a catalog has ended. (A server in recovery does
// not show all of them.) It costs a small part of selectPrincipal.
const selectState = `SELECT ` + serverState + `, date_part('epoch', now())`

const serverState = `CASE WHEN pg_is_in_recovery() THEN ''
	ELSE concat(pg_current_snapshot(), ' ', pg_conf_load_time()) END`

// selectPrincipal is asked where the state has changed since. It says what
// tailor.reader_roles says, from the one role upwards: calls of functions in SQL,
// which are planned each time, took three quarters of a millisecond.
const selectPrincipal = `
WITH RECURSIVE me AS (SELECT r.oid, r::text AS attributes FROM pg_roles r WHERE r.rolname = $1),
above (member, roleid, rights) AS (
    SELECT m.member, m.roleid, coalesce((to_jsonb(m) ->> 'inherit_option')::boolean
        OR (to_jsonb(m) ->> 'set_option')::boolean, true)
    FROM pg_auth_members m JOIN me ON m.member = me.oid
  UNION
    SELECT m.member, m.roleid, coalesce((to_jsonb(m) ->> 'inherit_option')::boolean
        OR (to_jsonb(m) ->> 'set_option')::boolean, true)
    FROM pg_auth_members m JOIN above ON m.member = above.roleid),
readers (oid) AS (
    SELECT r.oid FROM pg_roles r WHERE r.rolname = 'tailor_reader'
  UNION
    SELECT a.member FROM above a JOIN readers ON a.roleid = readers.oid WHERE a.rights)
SELECT coalesce(tailor.verifier($1::text::name), ''), ` + serverState + `,
       coalesce((SELECT date_part('epoch', rolvaliduntil) FROM pg_roles
           WHERE rolname = $1 AND rolvaliduntil > now()), 'Infinity'),
       coalesce((SELECT oid FROM me), 0),
       EXISTS (SELECT FROM me JOIN readers USING (oid)),
       coalesce((SELECT pg_has_role(me.oid, 'tailor_reader', 'USAGE') FROM me), false),
       array_to_json(ARRAY(SELECT DISTINCT p.project FROM tailor.project_reader p
           JOIN pg_roles r ON (r.oid, r.rolname) = (p.reader, p.name)
           WHERE p.reader IN (SELECT oid FROM me UNION ALL SELECT roleid FROM above)
           ORDER BY 1))::text,
       md5(concat(pg_conf_load_time(), (SELECT attributes FROM me),
           (SELECT string_agg(a::text, ';' ORDER BY member, roleid) FROM above a),
           (SELECT string_agg(d::text, ';' ORDER BY setdatabase, setrole)
               FROM pg_db_role_setting d),
           (SELECT string_agg(concat(oid, datname, datacl, datallowconn, datconnlimit), ';'
               ORDER BY oid) FROM pg_database)))`

// Principal reads what the proxy needs to know of a role before it may log in.
// An unknown role is no error: its verifier is empty.
func (c *Catalog) Principal(ctx context.Context, name string) (*Principal, error) {
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
	p, err := c.known.principal(context.WithoutCancel(ctx), conn.Conn(), name)
	if err != nil {
		return nil, unavailable(fmt.Errorf("read principal: %w", err))
	}
	return p, nil
}

// maxKnown bounds what is kept of names, which anybody can make up.
const maxKnown = 1000

// known are principals with the states in which they were read. It is safe for
// concurrent use.
type known struct {
	mu     sync.Mutex
	byName map[string]*stated
}

// stated is a principal as it was in a state of the server. A connection outlives
// no crash, after which a snapshot could come a second time.
type stated struct {
	Principal
	state string  // of the server; empty for one that tells nothing
	until float64 // the server's time at which the verifier expires, in seconds since 1970
	conn  *pgx.Conn
}

// last is what was read of a role on a connection, nil where that tells nothing
// about now.
func (k *known) last(conn *pgx.Conn, name string) *stated {
	k.mu.Lock()
	defer k.mu.Unlock()
	if last := k.byName[name]; last != nil && last.conn == conn && last.state != "" {
		return last
	}
	return nil
}

// learn remembers what was read of a role.
func (k *known) learn(now *stated) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byName == nil || len(k.byName) >= maxKnown {
		k.byName = make(map[string]*stated)
	}
	k.byName[now.Name] = now
}

// principal reads a role, as far as it may have changed.
func (k *known) principal(ctx context.Context, conn *pgx.Conn, name string) (*Principal, error) {
	if last := k.last(conn, name); last != nil {
		var state string
		var at float64
		if err := conn.QueryRow(ctx, selectState).Scan(&state, &at); err != nil {
			return nil, err
		}
		if state == last.state && at < last.until {
			return &last.Principal, nil
		}
	}
	now := &stated{Principal: Principal{Name: name}, conn: conn}
	var projects []byte
	err := conn.QueryRow(ctx, selectPrincipal, name).Scan(
		&now.Verifier, &now.state, &now.until, &now.OID, &now.Reader, &now.Inherits, &projects,
		&now.Settings)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(projects, &now.Projects); err != nil {
		return nil, fmt.Errorf("projects of role %q: %w", name, err)
	}
	k.learn(now)
	return &now.Principal, nil
}

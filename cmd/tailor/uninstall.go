package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func runUninstall(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	flags := newFlags("uninstall",
		"remove the SQL side from a database, with all policies, copies and records in it", stderr)
	dsn := flags.String("dsn", fromEnvironment("dsn", ""),
		"`connection` string of a role that may run tailor install in the database")
	yes := flags.Bool("yes", false,
		"remove; without it, what would be removed is listed, and nothing is changed")
	describe(flags, "\nProtected tables stay as they are. Readers get back no privilege on them, "+
		"and keep their roles.\n")
	if code, ok := parseFlags(flags, args, stdout, stderr); !ok {
		return code
	}
	if *dsn == "" {
		return complainUsage(flags, stderr, "--dsn is missing")
	}
	return complainPolicy("uninstall", "", stderr, uninstall(ctx, *dsn, *yes, stdout))
}

// uninstall removes in one transaction: all of it or nothing.
func uninstall(ctx context.Context, dsn string, yes bool, stdout io.Writer) error {
	conn, err := connectTo(ctx, dsn, nil)
	if err != nil {
		return err
	}
	defer closeQuietly(conn)
	var p *removalPlan
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		// Whoever holds a lock is not waited for without end.
		if _, err := tx.Exec(ctx,
			`SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL lock_timeout = '20s'`); err != nil {
			return err
		}
		if p, err = planRemoval(ctx, tx); err != nil || !yes || p.isEmpty() {
			return err
		}
		return p.carryOut(ctx, tx)
	})
	if err != nil {
		return uninstallFault(ctx, err)
	}
	return p.write(stdout, yes)
}

// uninstallFault tells what stood in the way, of which names say enough.
func uninstallFault(ctx context.Context, err error) error {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		switch server.Code {
		case "42501":
			return &policyError{
				"remove the SQL side: " + server.Message,
				"connect as a superuser, or as the role that ran tailor install",
			}
		case "55P03":
			return &policyError{
				"remove the SQL side: a transaction is reading a release or writes a policy",
				"end it: pg_locks and pg_stat_activity say which it is; nothing was changed",
			}
		}
	}
	return databaseFault(ctx, "remove the SQL side", err)
}

// serviceRoles are the roles of every installation, in the order in which they
// are dropped.
var serviceRoles = []string{"tailor_reader", "tailor_admin", "tailor_owner"}

// removalPlan is what of Tailor's a database and its cluster have.
type removalPlan struct {
	database  string
	extension bool     // the SQL side was made by CREATE EXTENSION
	schemas   []string // of tailor_owner
	views     []string // of tailor_owner, in a schema research of somebody else's
	triggers  []string // event triggers
	contents  []string // of the schemas, in words
	roles     []removedRole
	settings  []removedSetting
}

// removedRole is one of serviceRoles that the cluster has.
type removedRole struct {
	name    string
	members []string
	// elsewhere is what uses the role outside of the database; it stays then.
	elsewhere []string
	// granted are statements that take its privileges in this database, for a role
	// that stays, and on what they are.
	granted, on []string
}

// removedSetting is a setting of a role, a database or both; "" for all.
type removedSetting struct{ name, role, database string }

func (p *removalPlan) isEmpty() bool {
	if p.extension || len(p.schemas)+len(p.views)+len(p.triggers)+len(p.settings) > 0 {
		return false
	}
	for _, r := range p.roles {
		if len(r.elsewhere) == 0 || len(r.granted) > 0 {
			return false
		}
	}
	return true
}

// ownSchemas and gone are what DROP SCHEMA would take: the schemas, and what
// depends on them and on what is in them. home is the schema of an object, and of
// what an object is a part of.
const (
	ownSchemas = `ours AS (
	SELECT n.oid, n.nspname FROM pg_namespace n JOIN pg_roles r ON r.oid = n.nspowner
	WHERE n.nspname IN ('tailor', 'tailor_store', 'tailor_release', 'research')
		AND r.rolname = 'tailor_owner')`
	goneObjects = ownSchemas + `,
gone (classid, objid) AS (
	SELECT 'pg_namespace'::regclass::oid, oid FROM ours
  UNION
	SELECT d.classid, d.objid FROM gone g
		JOIN pg_depend d ON d.refclassid = g.classid AND d.refobjid = g.objid),
homes AS (
	SELECT g.classid, g.objid,
		coalesce(c.relnamespace, f.pronamespace, t.typnamespace, k.connamespace) AS home,
	       c.relowner AS owner, t.typrelid <> 0 OR t.typelem <> 0 AS follows
	FROM (SELECT classid, objid, CASE classid
			WHEN 'pg_class'::regclass THEN objid
			WHEN 'pg_rewrite'::regclass THEN (SELECT w.ev_class FROM pg_rewrite w WHERE w.oid = objid)
			WHEN 'pg_attrdef'::regclass THEN (SELECT a.adrelid FROM pg_attrdef a WHERE a.oid = objid)
			WHEN 'pg_trigger'::regclass THEN (SELECT x.tgrelid FROM pg_trigger x WHERE x.oid = objid)
			WHEN 'pg_policy'::regclass THEN (SELECT x.polrelid FROM pg_policy x WHERE x.oid = objid)
			END AS relation FROM gone) g
	LEFT JOIN pg_class c ON c.oid = g.relation
	LEFT JOIN pg_proc f ON g.classid = 'pg_proc'::regclass AND f.oid = g.objid
	LEFT JOIN pg_type t ON g.classid = 'pg_type'::regclass AND t.oid = g.objid
	LEFT JOIN pg_constraint k ON g.classid = 'pg_constraint'::regclass AND k.oid = g.objid)`
)

// foreignObjects are what is not Tailor's and would go with it, or belongs to
// one of Tailor's roles and would keep it from going.
const foreignObjects = `WITH RECURSIVE ` + goneObjects + `
SELECT pg_describe_object(classid, objid, 0) FROM homes
WHERE home IS NOT NULL AND home NOT IN (SELECT oid FROM ours)
    AND home <> 'pg_toast'::regnamespace AND follows IS NOT TRUE
   AND NOT (home = to_regnamespace('research') AND owner = (SELECT oid FROM pg_roles
   WHERE rolname = 'tailor_owner'))
   OR classid = 'pg_class'::regclass AND home IN (SELECT oid FROM ours) AND owner <> (SELECT oid
   FROM pg_roles WHERE rolname = 'tailor_owner')
   OR classid = 'pg_proc'::regclass AND home IN (SELECT oid FROM ours WHERE nspname <> 'tailor')
   OR classid = 'pg_type'::regclass AND home IN (SELECT oid FROM ours) AND follows IS NOT TRUE
   OR classid = 'pg_extension'::regclass AND objid NOT IN (SELECT oid FROM pg_extension
   WHERE extname = 'tailor')
   OR classid = 'pg_event_trigger'::regclass AND objid NOT IN (SELECT oid FROM pg_event_trigger
   WHERE evtname = 'tailor_ddl')
UNION
SELECT pg_describe_object(s.classid, s.objid, 0)
FROM pg_shdepend s JOIN pg_roles r ON s.refclassid = 'pg_authid'::regclass
    AND r.oid = s.refobjid AND r.rolname IN ('tailor_owner', 'tailor_admin', 'tailor_reader')
WHERE s.deptype = 'o' AND s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND NOT EXISTS (SELECT FROM gone g WHERE g.classid = s.classid AND g.objid = s.objid)
  AND NOT (s.classid = 'pg_class'::regclass AND EXISTS (SELECT FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
           WHERE c.oid = s.objid AND c.relkind = 'v' AND n.nspname = 'research'))
ORDER BY 1 LIMIT 3`

// planRemoval looks at everything and changes nothing. What stands in the way is
// its error.
func planRemoval(ctx context.Context, tx pgx.Tx) (*removalPlan, error) {
	p := &removalPlan{}
	var proxies int
	var foreign []string
	err := tx.QueryRow(ctx,
		`SELECT current_database(), EXISTS (SELECT FROM pg_extension WHERE extname = 'tailor'),
		(SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
		AND usename = 'tailor_owner' AND pid <> pg_backend_pid()),
		ARRAY(SELECT evtname FROM pg_event_trigger t JOIN pg_proc f ON f.oid = t.evtfoid
			WHERE evtname = 'tailor_ddl' AND f.pronamespace = to_regnamespace('tailor')),
		ARRAY(WITH `+ownSchemas+` SELECT nspname FROM ours ORDER BY nspname),
		ARRAY(WITH `+ownSchemas+` SELECT c.oid::regclass::text FROM pg_class c
			WHERE c.relkind = 'v' AND c.relnamespace = to_regnamespace('research')
				AND c.relnamespace NOT IN (SELECT oid FROM ours)
			  AND c.relowner = (SELECT oid FROM pg_roles WHERE rolname = 'tailor_owner') ORDER BY 1)`).
		Scan(&p.database, &p.extension, &proxies, &p.triggers, &p.schemas, &p.views)
	if err != nil {
		return nil, err
	}
	if proxies > 0 {
		return nil, &policyError{fmt.Sprintf("a proxy serves the database: tailor_owner has %d sessions",
			proxies), "end the proxies first; nothing was changed"}
	}
	if foreign, err = texts(ctx, tx, foreignObjects); err != nil {
		return nil, err
	}
	if len(foreign) > 0 {
		return nil, &policyError{
			"not Tailor's, and would go with it: " + strings.Join(foreign, ", "),
			"move or drop it first; nothing was changed",
		}
	}
	if p.contents, err = contentsOf(ctx, tx, p.schemas); err != nil {
		return nil, err
	}
	if err := p.findRoles(ctx, tx); err != nil {
		return nil, err
	}
	return p, p.findSettings(ctx, tx)
}

func texts(ctx context.Context, tx pgx.Tx, query string, args ...any) ([]string, error) {
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// contentsOf words what schemas hold. Half an installation has half of them.
func contentsOf(ctx context.Context, tx pgx.Tx, schemas []string) ([]string, error) {
	contents, err := texts(ctx, tx,
		`SELECT format('schema %I: %s tables (%s), %s views, %s routines', n.nspname,
			count(c.oid) FILTER (WHERE c.relkind = 'r'),
			pg_size_pretty(coalesce(sum(pg_total_relation_size(c.oid)) FILTER (WHERE c.relkind = 'r'), 0)),
			count(c.oid) FILTER (WHERE c.relkind = 'v'), (SELECT count(*) FROM pg_proc f
			WHERE f.pronamespace = n.oid))
		FROM pg_namespace n LEFT JOIN pg_class c ON c.relnamespace = n.oid
		WHERE n.nspname = ANY ($1) GROUP BY n.oid, n.nspname ORDER BY n.nspname`, schemas)
	if err != nil {
		return nil, err
	}
	for _, part := range []struct{ table, query string }{
		{"protection", `SELECT format('policy of table %s', relation) FROM tailor.protection
			WHERE active IS NOT NULL ORDER BY 1`},
		{"audit_log", `SELECT format('%s lines of the audit log', count(*)) FROM tailor.audit_log
			HAVING count(*) > 0`},
	} {
		// Whoever removes need not be allowed to read.
		var readable bool
		err := tx.QueryRow(ctx,
			`SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE n.nspname = 'tailor' AND c.relname = $1 AND has_schema_privilege(n.oid, 'USAGE')
				AND has_table_privilege(c.oid, 'SELECT'))`, part.table).
			Scan(&readable)
		if err != nil {
			return nil, err
		}
		if !readable {
			continue
		}
		more, err := texts(ctx, tx, part.query)
		if err != nil {
			return nil, err
		}
		contents = append(contents, more...)
	}
	return contents, nil
}

// findRoles tells which roles only this database uses.
func (p *removalPlan) findRoles(ctx context.Context, tx pgx.Tx) error {
	for _, name := range serviceRoles {
		r := removedRole{name: name}
		err := tx.QueryRow(ctx, `WITH r AS (SELECT oid, rolname FROM pg_roles WHERE rolname = $1),
			used AS (
				SELECT s.*, s.dbid = d.oid OR s.classid = 'pg_database'::regclass AND s.objid = d.oid
					AND s.deptype = 'a' AS here
				FROM pg_shdepend s JOIN r ON s.refclassid = 'pg_authid'::regclass AND s.refobjid = r.oid
				JOIN pg_database d ON d.datname = current_database()
				WHERE s.classid <> 'pg_auth_members'::regclass),
					-- memberships, since PostgreSQL 16, go with the role
			taken AS (
				SELECT CASE classid WHEN 'pg_class'::regclass THEN format('TABLE %s', objid::regclass)
					WHEN 'pg_namespace'::regclass THEN format('SCHEMA %s', objid::regnamespace)
					WHEN 'pg_proc'::regclass THEN format('ROUTINE %s', objid::regprocedure)
					WHEN 'pg_database'::regclass THEN format('DATABASE %I', current_database()) END AS object
				FROM used WHERE here AND deptype = 'a'
				  AND NOT coalesce((pg_identify_object(classid, objid, 0)).schema,
				  (pg_identify_object(classid, objid, 0)).name) = ANY ($2))
			SELECT ARRAY(SELECT DISTINCT m.rolname FROM pg_auth_members a JOIN pg_roles m
				ON m.oid = a.member WHERE a.roleid = r.oid AND a.member <> r.oid ORDER BY 1),
				ARRAY(SELECT DISTINCT coalesce('database ' || quote_ident(d.datname),
				pg_describe_object(u.classid, u.objid, 0))
					FROM used u LEFT JOIN pg_database d ON d.oid = u.dbid WHERE NOT u.here ORDER BY 1),
				ARRAY(SELECT DISTINCT format('REVOKE ALL ON %s FROM %I', object, $1::text) FROM taken
				WHERE object IS NOT NULL ORDER BY 1),
				ARRAY(SELECT DISTINCT lower(split_part(object, ' ', 1)) || substr(object,
				strpos(object, ' ')) FROM taken WHERE object IS NOT NULL ORDER BY 1)
			FROM r`, name, p.schemas).Scan(&r.members, &r.elsewhere, &r.granted, &r.on)
		if errors.Is(err, pgx.ErrNoRows) {
			continue
		}
		if err != nil {
			return err
		}
		p.roles = append(p.roles, r)
	}
	return nil
}

// findSettings lists those of this database; and those of all databases, where no
// other has Tailor.
func (p *removalPlan) findSettings(ctx context.Context, tx pgx.Tx) error {
	last := true
	for _, r := range p.roles {
		last = last && len(r.elsewhere) == 0
	}
	rows, err := tx.Query(ctx,
		`SELECT split_part(c, '=', 1), coalesce(r.rolname, ''), coalesce(d.datname, '')
		FROM pg_db_role_setting s LEFT JOIN pg_roles r ON r.oid = s.setrole LEFT JOIN pg_database d
			ON d.oid = s.setdatabase, unnest(s.setconfig) c
		WHERE c LIKE 'tailor.%' AND coalesce(r.rolname, '') <> ALL ($2)
			AND (d.datname = current_database() OR s.setdatabase = 0 AND $1)
		   OR c LIKE 'search_path=research, %' AND d.datname = current_database() AND r.oid IN (
		      SELECT m.member FROM pg_auth_members m JOIN pg_roles t ON t.oid = m.roleid
		          WHERE t.rolname = 'tailor_reader')
		ORDER BY 1, 2, 3`, last, serviceRoles)
	if err != nil {
		return err
	}
	p.settings, err = pgx.CollectRows(rows,
		func(row pgx.CollectableRow) (s removedSetting, err error) {
			return s, row.Scan(&s.name, &s.role, &s.database)
		})
	return err
}

package doctor

// check is one question to the database. Its query gives, for each
// finding, severity, object, message and the statement that mends it.
type check struct{ name, query string }

// protectedParts are the protected tables with their parts, heirs and parents;
// readers are the roles that releases are for, plain those that do not bypass
// privileges, which is a finding of its own.
const (
	protectedParts = `
WITH protected AS (SELECT DISTINCT p.relation, f AS part FROM tailor.protection p CROSS
    JOIN tailor.lineage(p.relation) f WHERE p.active IS NOT NULL),
     readers AS (SELECT r.oid, r.rolname, r.rolsuper FROM pg_roles r
     WHERE r.rolname IN (SELECT tailor.reader_roles())),
     people AS (SELECT * FROM readers WHERE rolname <> 'tailor_reader'),
     plain AS (SELECT r.* FROM readers r WHERE NOT EXISTS (
         SELECT FROM pg_roles m
             WHERE (m.rolsuper OR m.rolname IN ('pg_read_all_data', 'pg_write_all_data',
                 'pg_maintain')) AND pg_has_role(r.oid, m.oid, 'MEMBER')))`
	reachingViews = `,
reaching (view, relation) AS (
    SELECT w.ev_class, p.relation FROM protected p
    JOIN pg_depend d ON d.refobjid = p.part AND d.refclassid = 'pg_class'::regclass
         AND d.classid = 'pg_rewrite'::regclass
    JOIN pg_rewrite w ON w.oid = d.objid AND w.ev_class <> d.refobjid
  UNION
    SELECT w.ev_class, r.relation FROM reaching r
    JOIN pg_depend d ON d.refobjid = r.view AND d.refclassid = 'pg_class'::regclass
         AND d.classid = 'pg_rewrite'::regclass
    JOIN pg_rewrite w ON w.oid = d.objid AND w.ev_class <> r.view)`
)

var checks = []check{
	{"restore", `
SELECT 'serious', 'tailor.chain',
    'the SQL side was restored from a dump or a copy, a standby has been promoted, '
    'or commits were lost: its chains may be older than what readers have been shown, '
    'and the proxy refuses to serve them',
       'CALL tailor.accept_restore(); if nothing was shown that it lacks, '
       'or that is to be forgotten'
WHERE tailor.restored()`},
	{"standbys", `
SELECT 'warning', coalesce(nullif(s.application_name, ''), s.pid::text),
       'it need not have received what readers have been shown: where it is promoted, '
       'the proxy refuses to serve it until somebody decides',
       'Name it in synchronous_standby_names, or promote another.'
FROM pg_stat_replication s LEFT JOIN pg_replication_slots l ON l.active_pid = s.pid
WHERE s.sync_state IN ('async', 'potential') AND s.state IN ('catchup', 'streaming')
    AND l.slot_type IS DISTINCT FROM 'logical'
  AND s.application_name NOT IN ('pg_basebackup', 'pg_receivewal')
UNION ALL
SELECT 'unknown', '-', 'the role of this connection may not see standbys',
    'Run tailor doctor as a superuser.'
WHERE EXISTS (SELECT FROM pg_stat_replication WHERE sync_state IS NULL)`},
	{"version", `
SELECT 'warning', 'tailor.installation',
    format('the SQL side is of version %s, this program of @VERSION@', i.version),
    'tailor install --dsn ...'
FROM tailor.installation i WHERE i.version <> '@VERSION@'`},
	{"privileges", protectedParts + `
SELECT 'serious', w.part::text, format('reader %I can read it as %I', w.reader, w.role),
       CASE WHEN w.role <> w.reader AND (r.rolsuper OR r.oid = c.relowner
       OR starts_with(r.rolname, 'pg_')) THEN format('REVOKE %I FROM %I;', w.role, w.reader)
            WHEN r.rolsuper OR r.oid = c.relowner THEN format('REVOKE tailor_reader FROM %I;',
            w.reader)
            ELSE format('REVOKE ALL ON %s FROM PUBLIC, %I;', w.part, w.role) END
FROM (SELECT DISTINCT relation FROM protected) p CROSS
    JOIN tailor.ways(p.relation, ARRAY(SELECT tailor.reader_roles())) w
JOIN pg_class c ON c.oid = w.part JOIN pg_roles r ON r.rolname = w.role
WHERE r.rolsuper OR r.oid = c.relowner OR starts_with(r.rolname, 'pg_')
   -- The role's own privilege, not one that it has by another.
   OR EXISTS (SELECT FROM aclexplode(c.relacl) a WHERE a.grantee IN (0, r.oid))
   OR EXISTS (SELECT FROM pg_attribute t CROSS JOIN aclexplode(t.attacl) a
              WHERE t.attrelid = c.oid AND a.grantee IN (0, r.oid))`},
	{"writers", protectedParts + `
SELECT 'warning', p.part::text,
    format('reader %I can write rows of its own, and knows who the others of their blocks are',
    min(r.rolname::text)),
       format('REVOKE INSERT, UPDATE ON %s FROM %s;', p.part, CASE a.grantee WHEN 0
       THEN 'PUBLIC' ELSE a.grantee::regrole::text END)
FROM protected p JOIN pg_class c ON c.oid = p.part
CROSS JOIN LATERAL (
    SELECT x.grantee, x.privilege_type FROM aclexplode(c.relacl) x
  UNION SELECT x.grantee, x.privilege_type FROM pg_attribute t CROSS JOIN aclexplode(t.attacl) x
  WHERE t.attrelid = c.oid) a
JOIN plain r ON CASE a.grantee WHEN 0 THEN true ELSE pg_has_role(r.oid, a.grantee, 'MEMBER') END
WHERE a.privilege_type IN ('INSERT', 'UPDATE') AND a.grantee <> c.relowner
GROUP BY p.part, a.grantee`},
	{"stores", protectedParts + `
SELECT DISTINCT 'serious', c.oid::regclass::text,
    format('reader %I can read or write what releases are made from', r.rolname),
    format('REVOKE ALL ON %s FROM PUBLIC, %I;', c.oid::regclass, r.rolname)
FROM pg_class c CROSS JOIN plain r
WHERE c.relnamespace IN ('tailor_store'::regnamespace, 'tailor'::regnamespace)
    AND c.relkind IN ('r', 'p')
  AND (has_any_column_privilege(r.oid, c.oid, 'SELECT, INSERT, UPDATE, REFERENCES')
  OR has_table_privilege(r.oid, c.oid, 'DELETE, TRUNCATE, TRIGGER'))`},
	{"powers", protectedParts + `
SELECT 'serious', p.rolname::text,
    format('reader is or can become %I, which bypasses privileges', r.rolname),
       CASE WHEN r.oid = p.oid AND r.oid = (SELECT d.datdba FROM pg_database d
       WHERE d.datname = current_database())
            THEN format('ALTER DATABASE %I OWNER TO %I;', current_database(), (SELECT o.rolname
            FROM pg_roles o WHERE o.oid = 10))
            WHEN p.rolsuper THEN format('REVOKE tailor_reader FROM %I; and make a role of its own '
            'for reading', p.rolname)
            WHEN r.oid = p.oid
            THEN format('ALTER ROLE %I NOBYPASSRLS NOREPLICATION NOCREATEROLE;', r.rolname)
            ELSE format('REVOKE %I FROM %s;', r.rolname,
            (SELECT string_agg(DISTINCT m.member::regrole::text, ', ') FROM pg_auth_members m
                                                          WHERE m.roleid = r.oid
                                                              AND pg_has_role(p.oid, m.member,
                                                              'MEMBER'))) END
FROM people p JOIN pg_roles r ON CASE WHEN p.rolsuper THEN r.oid = p.oid
    ELSE pg_has_role(p.oid, r.oid, 'MEMBER') END
WHERE r.rolsuper OR r.rolbypassrls OR r.rolreplication OR r.rolcreaterole
   OR r.oid = (SELECT d.datdba FROM pg_database d WHERE d.datname = current_database())
   OR r.rolname IN ('tailor_owner', 'tailor_admin', 'pg_read_all_data', 'pg_write_all_data',
   'pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program', 'pg_maintain',
   'pg_signal_backend')`},
	{"tools", `
SELECT 'serious', t.object, format('reader %I has a right on it that bypasses privileges',
    t.reader), t.mend
FROM tailor.tools(ARRAY(SELECT tailor.reader_roles())) t`},
	{"inheritance", protectedParts + `
SELECT 'warning', p.rolname::text,
    format('it is a reader by %I, does not inherit its privileges, and can read no release',
    r.rolname),
       CASE WHEN current_setting('server_version_num')::integer >= 160000
       THEN format('GRANT %I TO %I WITH INHERIT TRUE;', r.rolname, p.rolname)
       ELSE format('ALTER ROLE %I INHERIT;', p.rolname) END
FROM pg_auth_members m JOIN people p ON p.oid = m.member JOIN readers r ON r.oid = m.roleid
    JOIN pg_roles o ON o.oid = p.oid
WHERE NOT p.rolsuper AND NOT pg_has_role(p.oid, 'tailor_reader', 'USAGE')
  AND NOT coalesce((to_jsonb(m) ->> 'inherit_option')::boolean, o.rolinherit)`},
	{"statistics of sessions", protectedParts + `
SELECT 'warning', p.rolname::text, format('reader is a member of %I and sees what others ask',
    r.rolname), format('REVOKE %I FROM %I;', r.rolname, p.rolname)
FROM people p JOIN pg_roles r ON NOT p.rolsuper AND pg_has_role(p.oid, r.oid, 'MEMBER')
WHERE r.rolname IN ('pg_monitor', 'pg_read_all_stats', 'pg_stat_scan_tables')`},
	{"statistics of columns", protectedParts + `
SELECT DISTINCT 'serious', t.oid::regclass::text,
    format('reader %I can read samples of every column', r.rolname),
    format('REVOKE ALL ON %s FROM PUBLIC, %I;', t.oid::regclass, r.rolname)
FROM plain r CROSS JOIN pg_class t
WHERE t.relnamespace = 'pg_catalog'::regnamespace
    AND t.relname IN ('pg_statistic', 'pg_statistic_ext_data')
  AND (has_table_privilege(r.oid, t.oid, 'SELECT')
  OR has_column_privilege(r.oid, t.oid, CASE t.relname WHEN 'pg_statistic' THEN 'stavalues1'
  ELSE 'stxdmcv' END, 'SELECT'))`},
	{"functions", protectedParts + `
SELECT DISTINCT ON (f.oid) CASE WHEN strpos(lower(f.prosrc), lower(c.relname)) > 0
            OR EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass
            AND d.objid = f.oid
                       AND d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid)
                       THEN 'serious' ELSE 'warning' END,
       f.oid::regprocedure::text,
       format('readers may call it, and it runs with the rights of %I, who can read %s',
       o.rolname, t.relation),
       format('REVOKE EXECUTE ON ROUTINE %s FROM PUBLIC, tailor_reader;', f.oid::regprocedure)
FROM pg_proc f JOIN pg_roles o ON o.oid = f.proowner
CROSS JOIN protected t JOIN pg_class c ON c.oid = t.part
WHERE f.prosecdef AND f.pronamespace NOT IN ('tailor'::regnamespace, 'pg_catalog'::regnamespace)
  AND (o.rolsuper OR o.oid = c.relowner OR has_any_column_privilege(o.oid, c.oid, 'SELECT'))
  AND EXISTS (SELECT FROM readers r WHERE has_function_privilege(r.oid, f.oid, 'EXECUTE'))
ORDER BY f.oid, 1`},
	{"views", "WITH RECURSIVE" + protectedParts[len("\nWITH"):] + reachingViews + `
SELECT DISTINCT 'serious', v.oid::regclass::text,
       format('reader %I can read it, and it %s', r.rolname, CASE v.relkind WHEN 'm'
       THEN format('holds a copy of %s', x.relation)
       ELSE format('reads %s with the rights of %I', x.relation, v.relowner::regrole) END),
       format('REVOKE ALL ON %s FROM PUBLIC, %I;', v.oid::regclass, r.rolname)
FROM reaching x JOIN pg_class v ON v.oid = x.view CROSS JOIN readers r
WHERE v.relnamespace NOT IN ('tailor'::regnamespace, 'tailor_release'::regnamespace)
  AND NOT (v.relnamespace = 'research'::regnamespace AND v.relowner = 'tailor_owner'::regrole)
  AND has_any_column_privilege(r.oid, v.oid, 'SELECT')
  AND NOT coalesce('security_invoker=true' = ANY (v.reloptions)
  OR 'security_invoker=on' = ANY (v.reloptions), false)`},
	{"tables beside", protectedParts + `
SELECT DISTINCT ON (k.conrelid) 'warning', k.conrelid::regclass::text,
       format('reader %I can read it as it is, and it is of the subjects of %s: it should have a '
       'policy, too, or no reader', r.rolname, t.relation),
       format('REVOKE SELECT ON %s FROM PUBLIC, %I;', k.conrelid::regclass, r.rolname)
FROM pg_constraint k JOIN protected t ON t.part = k.confrelid CROSS JOIN readers r
WHERE k.contype = 'f' AND k.conparentid = 0
  AND NOT EXISTS (SELECT FROM protected p WHERE p.part = k.conrelid)
  AND has_any_column_privilege(r.oid, k.conrelid, 'SELECT')
ORDER BY k.conrelid, r.rolname`},
	{"connections", protectedParts + `
SELECT CASE WHEN h.auth_method = 'trust' THEN 'serious'
    ELSE 'warning' END, format('pg_hba.conf line %s', h.line_number),
       CASE WHEN h.auth_method = 'trust'
       THEN 'whoever comes this way is any role, without a password'
            ELSE 'readers can connect past the proxy; '
            'releases refuse them there, other tables do not' END,
       CASE WHEN h.auth_method = 'trust'
       THEN 'Ask for scram-sha-256 there, or for peer on a socket.'
            ELSE 'Put above it, but for the host of the proxy: host all +tailor_reader all reject'
            END
FROM pg_hba_file_rules h
WHERE h.error IS NULL AND h.auth_method <> 'reject'
  AND (h.database && ARRAY['all', current_database()::text])
  AND (h.auth_method = 'trust' OR (h.type <> 'local'
  AND (h.user_name && ARRAY['all', '+tailor_reader']
  OR h.user_name && ARRAY(SELECT rolname::text FROM people))
       AND EXISTS (SELECT FROM people)))
  AND NOT EXISTS (SELECT FROM pg_hba_file_rules e WHERE e.line_number < h.line_number
  AND e.auth_method = 'reject' AND e.type = h.type
                  AND e.user_name && ARRAY['+tailor_reader'] AND e.database && ARRAY['all',
                  current_database()::text] AND e.address = 'all')`},
	{"columns", `
SELECT 'warning', format('%s.%I', p.relation, a.attname), 'it has no class and is hidden',
       format('CALL tailor.classify(%L, %L, ...); CALL tailor.activate(%L);', p.relation::text,
       a.attname, p.relation::text)
FROM tailor.protection p JOIN tailor.policy_version v ON v.relation = p.relation
    AND v.version = p.active
JOIN pg_attribute a ON a.attrelid = p.relation AND a.attnum > 0 AND NOT a.attisdropped
WHERE a.attname <> p.subject
  AND NOT EXISTS (SELECT FROM jsonb_array_elements(v.policy -> 'columns') c
  WHERE c ->> 'name' = a.attname AND c ->> 'class' IS NOT NULL)`},
	{"shape", `
SELECT 'serious', p.relation::text, CASE WHEN m
    THEN 'its policy shows columns by means of blocks, which this version cannot do: '
        'every query is refused (KA004)'
       ELSE 'the table has another shape, other parents or row-level security '
       'since its policy was activated: every query is refused (KA004)' END,
       format('CALL tailor.activate(%L);', p.relation::text) || CASE WHEN m
       THEN format(' CALL tailor.forget_chains(%L);', p.relation::text) ELSE '' END
FROM tailor.protection p JOIN tailor.policy_version v ON v.relation = p.relation
    AND v.version = p.active
CROSS JOIN LATERAL (SELECT v.policy @? '$.columns[*] ? (@.representative == "mean")') shown (m)
WHERE v.policy ->> 'fingerprint' IS DISTINCT FROM tailor.fingerprint(p.relation)
    AND EXISTS (SELECT FROM pg_class c WHERE c.oid = p.relation)`},
	{"earlier releases", `
SELECT 'serious', c.relation::text,
    'it was shown by an earlier version of Tailor, which followed nobody from one copy '
    'to the next: every query is refused (KA004)',
       format('CALL tailor.forget_chains(%L);', c.relation::text)
FROM tailor.chain c JOIN tailor.protection p USING (relation)
WHERE c.layout < 9 AND p.active IS NOT NULL AND NOT EXISTS (SELECT FROM tailor.set_valued s
    WHERE s.relation = c.relation)
  AND EXISTS (SELECT FROM pg_class t WHERE t.oid = c.relation)
GROUP BY c.relation`},
	{"dropped tables", `
SELECT 'warning', coalesce((SELECT u.relname::text FROM pg_class u WHERE u.oid = p.relation),
    p.relation::text),
       format('the table is gone; %s copies of it and %s releases are left, with %s',
       count(c.oid) FILTER (WHERE c.relname NOT LIKE 'chain%'),
              count(DISTINCT h.chain),
              pg_size_pretty(coalesce(sum(pg_total_relation_size(c.oid)), 0))),
       format('CALL tailor.unprotect(%L);', p.relation::oid)
FROM tailor.protection p LEFT JOIN tailor.epoch e ON e.relation = p.relation LEFT
    JOIN tailor.chain h ON h.relation = p.relation AND h.epoch = e.epoch
LEFT JOIN pg_class c ON c.relnamespace = 'tailor_store'::regnamespace AND c.relkind = 'r'
     AND (c.relname ~ format('^[a-z]+_%s$', e.epoch) AND NOT starts_with(c.relname, 'chain_')
     OR starts_with(c.relname, format('chain_%s_', h.chain)))
WHERE NOT EXISTS (SELECT FROM pg_class t WHERE t.oid = p.relation) GROUP BY p.relation`},
	{"orphans", `
SELECT 'warning', 'tailor_store',
    format('%s copies and releases of earlier chains or policies are left, with %s: '
    'the first is %s', count(*),
       pg_size_pretty(sum(pg_total_relation_size(o))), min(o::text)), 'CALL tailor.drop_orphans();'
FROM tailor.orphans() o HAVING count(*) > 0`},
	{"age", `
SELECT 'warning', p.relation::text, format('its stored copy is %s days old', extract(day
    FROM now() - e.created)::integer), format('CALL tailor.refresh(%L);', p.relation::text)
FROM tailor.protection p JOIN tailor.epoch e ON e.epoch = p.epoch
WHERE e.created < now() - interval '30 days'`},
	{"releases", `
SELECT 'serious', f.relation::text, format('what is shown of it is not brought up to date: %s',
    f.reason), f.hint
FROM tailor.failures f`},
	{"schedules", `
SELECT 'warning', s.relation::text,
    format('its scheduled refresh has failed %s times in a row: %s', s.failed, s.failure),
    format('CALL tailor.refresh(%L);', s.relation::text)
FROM tailor.schedule s WHERE s.failed > 0
UNION ALL
SELECT 'warning', s.relation::text,
    'its scheduled refresh is more than an hour late: no proxy keeps schedules',
    format('Run tailor serve, or CALL tailor.refresh(%L);', s.relation::text)
FROM tailor.schedule s JOIN tailor.protection p USING (relation)
LEFT JOIN tailor.epoch e ON e.epoch = p.epoch
WHERE s.failed = 0 AND p.active IS NOT NULL
  AND CASE WHEN s.on_change THEN e.created < now() - interval '25 hours'
           ELSE s.due < now() - interval '1 hour' END`},
	{"disk", `
SELECT 'warning', s.relation::text,
       format('%s of a copy wait to be taken in by a proxy since %s: '
       'readers are shown what was before', pg_size_pretty(s.copy_bytes), e.created::timestamp(0)),
       format('Run tailor serve; its log says what keeps it from taking in the copy of %s.',
       s.relation::text)
FROM tailor.storage s JOIN tailor.protection p USING (relation) JOIN tailor.epoch e
    ON e.epoch = p.epoch
WHERE s.behind > 0 AND e.created < now() - interval '1 hour'`},
	{"drafts", `
SELECT 'warning', p.relation::text,
    'it has a draft of a policy and is not protected: nothing hides it',
    format('CALL tailor.activate(%L);', p.relation::text)
FROM tailor.protection p WHERE p.active IS NULL AND EXISTS (SELECT FROM pg_class c
    WHERE c.oid = p.relation)`},
	{"publications", protectedParts + `,
published AS (
    SELECT b.pubname, b.puballtables, c.oid::regclass AS part,
           c.relnamespace::regnamespace AS space,
           c.relnamespace IN ('tailor'::regnamespace, 'tailor_store'::regnamespace) AS own,
           -- What was named: the table itself, or what it is a partition of.
           (SELECT min(r.prrelid::regclass::text) FROM pg_publication_rel r
            WHERE r.prpubid = b.oid AND r.prrelid IN (
                SELECT c.oid UNION SELECT a.relid FROM pg_partition_ancestors(c.oid) a)) AS member
    FROM pg_publication b JOIN pg_publication_tables t ON t.pubname = b.pubname
    JOIN pg_class c ON c.oid = to_regclass(format('%I.%I', t.schemaname, t.tablename)))
SELECT DISTINCT 'warning', b.pubname::text,
       CASE WHEN b.own THEN
            format('it publishes what releases are made from (schema %s) to other servers', b.space)
            ELSE format('it publishes %s to other servers, where no policy holds', b.part) END,
       CASE WHEN b.puballtables THEN
            format('DROP PUBLICATION %I; and publish single tables in its place.', b.pubname)
            WHEN b.member IS NOT NULL THEN
            format('ALTER PUBLICATION %I DROP TABLE %s;', b.pubname, b.member)
            ELSE format('ALTER PUBLICATION %I DROP TABLES IN SCHEMA %s;', b.pubname, b.space) END
FROM published b WHERE b.own OR b.part IN (SELECT part FROM protected)`},
	{"large objects", protectedParts + `
SELECT 'warning', 'lo_compat_privileges', 'every role can read every large object',
    'ALTER SYSTEM SET lo_compat_privileges = off;'
WHERE current_setting('lo_compat_privileges')::boolean
UNION ALL
SELECT 'warning', format('large object %s', o.oid), format('%s can read it', CASE a.grantee
    WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END),
       format('REVOKE ALL ON LARGE OBJECT %s FROM %s;', o.oid, CASE a.grantee WHEN 0
       THEN 'PUBLIC' ELSE a.grantee::regrole::text END)
FROM pg_largeobject_metadata o CROSS JOIN aclexplode(o.lomacl) a WHERE a.grantee = 0
    OR a.grantee IN (SELECT oid FROM readers)`},
	{"other servers", protectedParts + `
SELECT DISTINCT 'warning', s.srvname::text,
    format('reader %I may use this server, whose user mapping '
    'may be a role that reads protected tables', r.rolname),
       format('REVOKE ALL ON FOREIGN SERVER %I FROM PUBLIC, %I;', s.srvname, r.rolname)
FROM pg_foreign_server s CROSS JOIN plain r WHERE has_server_privilege(r.oid, s.oid, 'USAGE')
UNION ALL
SELECT DISTINCT 'warning', f.oid::regprocedure::text,
    format('reader %I can connect from inside the server, past pg_hba lines for hosts', r.rolname),
       format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC, %I;', f.oid::regprocedure, r.rolname)
FROM pg_proc f JOIN pg_depend d ON d.objid = f.oid AND d.classid = 'pg_proc'::regclass
    AND d.deptype = 'e'
JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'dblink' CROSS JOIN readers r
WHERE f.proname IN ('dblink', 'dblink_connect', 'dblink_exec')
    AND has_function_privilege(r.oid, f.oid, 'EXECUTE')`},
}

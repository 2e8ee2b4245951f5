-- Who may do what ------------------------------------------------------------
--
-- Members of tailor_admin have no privileges on the tables above. What a
-- procedure writes is written by a SECURITY DEFINER routine of tailor_owner,
-- which asks itself whether the relation is the caller's. Inside such a routine
-- current_user is tailor_owner, so it is session_user that is asked about.
-- What only the relation's owner may do (GRANT, REVOKE, LOCK, reading a table
-- that a hierarchy is made from) stays in procedures with the caller's rights.

CREATE OR REPLACE FUNCTION tailor.owns(relation regclass) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce((SELECT pg_has_role(session_user, c.relowner, 'USAGE') FROM pg_class c
                     WHERE c.oid = relation), false)
$$;
COMMENT ON FUNCTION tailor.owns
    IS 'whether the one who logged in has the rights of the table''s owner';

-- Whatever is decided after a wait for a lock is decided by what the other one has committed.
CREATE OR REPLACE PROCEDURE tailor.assert_read_committed() LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION 'this needs a transaction that is READ COMMITTED' USING ERRCODE = '25001',
            DETAIL = format('It is %s, and would be decided by what was so when it began.',
                            upper(current_setting('transaction_isolation'))),
            HINT = 'BEGIN ISOLATION LEVEL READ COMMITTED; or set default_transaction_isolation.';
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_read_committed
    IS 'fails in transactions that see an older snapshot after they have waited';

CREATE OR REPLACE PROCEDURE tailor.assert_owner(relation regclass) LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    CALL tailor.assert_read_committed();
    -- The proxy, which refreshes by schedule, logs in as tailor_owner.
    IF session_user <> 'tailor_owner' AND NOT tailor.owns(relation) THEN
        RAISE EXCEPTION 'must be owner of table %', relation USING ERRCODE = '42501';
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_owner IS 'fails unless the caller owns the table';

CREATE OR REPLACE PROCEDURE tailor.assert_column(relation regclass, column_name name)
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = relation
                   AND a.attname = column_name
                   AND a.attnum > 0 AND NOT a.attisdropped) THEN
        RAISE EXCEPTION 'column "%" of table % does not exist', column_name, relation
            USING ERRCODE = '42703';
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_column IS 'fails unless the table has the column';

CREATE OR REPLACE PROCEDURE tailor.assert_protected(relation regclass) LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM tailor.protection p WHERE p.relation = assert_protected.relation)
        THEN
        RAISE EXCEPTION 'table % has no policy', relation
            USING ERRCODE = '55000',
                HINT = format('Start with: CALL tailor.protect(%L, subject => ..., k => 5);',
                              relation);
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_protected
    IS 'fails unless tailor.protect has been called for the table';

CREATE OR REPLACE FUNCTION tailor.family(relation regclass) RETURNS SETOF regclass
LANGUAGE plpgsql STABLE ROWS 3 SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH RECURSIVE family (oid) AS (
        SELECT relation::oid
      UNION
        SELECT i.inhrelid FROM pg_inherits i JOIN family f ON f.oid = i.inhparent)
    SELECT oid::regclass FROM family;
END $$;
COMMENT ON FUNCTION tailor.family
    IS 'a table and all its partitions and heirs: a read of the table reads them all, and each can '
        'be read by itself';

-- A read of a parent reads its heirs, so whoever may read the parent reads the
-- rows of the table, whatever he may do with the table itself. A part of the
-- table can have further parents.
CREATE OR REPLACE FUNCTION tailor.ancestors(relation regclass) RETURNS SETOF regclass
LANGUAGE plpgsql STABLE ROWS 3 SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH RECURSIVE ancestors (oid) AS (
        SELECT f::oid FROM tailor.family(relation) f
      UNION
        SELECT i.inhparent FROM pg_inherits i JOIN ancestors a ON a.oid = i.inhrelid)
    SELECT oid::regclass FROM ancestors
    EXCEPT SELECT f FROM tailor.family(relation) f;
END $$;
COMMENT ON FUNCTION tailor.ancestors
    IS 'what a table and its parts inherit from or are partitions of, outside the family: a read '
        'of it reads their rows too';

CREATE OR REPLACE FUNCTION tailor.lineage(relation regclass) RETURNS SETOF regclass
LANGUAGE plpgsql STABLE ROWS 3 SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT tailor.family(relation) UNION ALL SELECT tailor.ancestors(relation);
END $$;
COMMENT ON FUNCTION tailor.lineage
    IS 'a table''s family and its ancestors: all that its rows can be read from by name';

-- Tables with rows in common would be two releases of them: one audience would
-- be shown these rows in two partitions that know nothing of each other.
CREATE OR REPLACE PROCEDURE tailor.assert_apart(relation regclass) LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    other regclass;
BEGIN
    SELECT p.relation INTO other FROM tailor.protection p
        WHERE p.active IS NOT NULL AND p.relation <> assert_apart.relation
          AND EXISTS (SELECT tailor.family(p.relation) INTERSECT
                      SELECT tailor.family(assert_apart.relation)) LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'table % has rows in common with the protected table %', relation, other
            USING ERRCODE = '0A000',
            HINT = 'One is a partition or an heir of the other, or both have one. Protect one of '
                'them: two releases of the same rows can be put together.';
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_apart
    IS 'fails where another protected table reads some of the same rows';

-- A membership that can only be passed on, as PostgreSQL 16 gives to the
-- creator of a role, makes nobody a reader. The columns that say so are new in
-- 16 and therefore asked for by name.
CREATE OR REPLACE FUNCTION tailor.members(role name) RETURNS SETOF name
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE members (oid) AS (
        SELECT r.oid FROM pg_roles r WHERE r.rolname = role
      UNION
        SELECT m.member FROM pg_auth_members m JOIN members ON m.roleid = members.oid
        WHERE coalesce((to_jsonb(m) ->> 'inherit_option')::boolean
                       OR (to_jsonb(m) ->> 'set_option')::boolean, true))
    SELECT r.rolname FROM members JOIN pg_roles r USING (oid) ORDER BY 1
$$;
COMMENT ON FUNCTION tailor.members IS 'the role and every role that has or can take on its rights';

CREATE OR REPLACE FUNCTION tailor.reader_roles() RETURNS SETOF name
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT tailor.members('tailor_reader')
$$;
COMMENT ON FUNCTION tailor.reader_roles
    IS 'tailor_reader and every role that is, directly or not, a member of it';

-- Rights need not be inherited to be had: SET ROLE takes on those of any role
-- that one is a member of, so every such role counts. An owner without
-- privileges can give them to himself. A trigger sees the rows that others
-- write, and a foreign key tells which keys there are.
CREATE OR REPLACE FUNCTION tailor.ways(relation regclass, readers name[])
RETURNS TABLE (reader name, role name, part regclass)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT u.reader, u.role, f
    FROM (SELECT min(n::text)::name AS reader, r.rolname AS role, r.oid, r.rolsuper
          FROM unnest(readers) n JOIN pg_roles r ON pg_has_role(n, r.oid, 'MEMBER')
          GROUP BY r.oid, r.rolname, r.rolsuper) u
    CROSS JOIN tailor.lineage(relation) f
    JOIN pg_class c ON c.oid = f
    WHERE u.rolsuper OR u.oid = c.relowner OR has_any_column_privilege(u.oid, c.oid,
            'SELECT, REFERENCES')
       OR has_table_privilege(u.oid, c.oid, 'TRIGGER')
    ORDER BY u.reader = u.role DESC, u.reader, u.role
$$;
COMMENT ON FUNCTION tailor.ways
    IS 'how readers can still read a table, a part or a parent of it: the reader, the role that '
        'lets it, the part';

-- A view reads with its owner's rights, and a materialized one holds a copy. One
-- with the rights of its reader is no way, nor is one of an owner whom the
-- reader can be: his own rights are asked about by tailor.ways.
CREATE OR REPLACE FUNCTION tailor.view_ways(relation regclass, readers name[])
RETURNS TABLE (reader name, role name, view regclass)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE reaching (oid) AS (
        SELECT f::oid FROM tailor.lineage(relation) f
      UNION
        SELECT w.ev_class
        FROM reaching JOIN pg_depend d ON d.refobjid = reaching.oid
            AND d.refclassid = 'pg_class'::regclass AND d.classid = 'pg_rewrite'::regclass
        JOIN pg_rewrite w ON w.oid = d.objid JOIN pg_class v ON v.oid = w.ev_class
            AND v.relkind IN ('v', 'm')),
    roles AS (
        SELECT min(n::text)::name AS reader, r.rolname AS role, r.oid
        FROM unnest(readers) n JOIN pg_roles r ON pg_has_role(n, r.oid, 'MEMBER')
            GROUP BY r.oid, r.rolname)
    SELECT u.reader, u.role, v.oid::regclass
    FROM reaching JOIN pg_class v USING (oid) CROSS JOIN roles u
    WHERE has_any_column_privilege(u.oid, v.oid, 'SELECT')
      AND (v.relkind = 'm' OR (v.relkind = 'v' AND v.relowner NOT IN (SELECT oid FROM roles)
           AND NOT EXISTS (SELECT FROM pg_options_to_table(v.reloptions) o
                           WHERE o.option_name = 'security_invoker' AND o.option_value::boolean)))
      -- What tailor.publish_shape made.
      AND NOT (v.relnamespace = 'research'::regnamespace AND v.relowner = 'tailor_owner'::regrole
               AND v.relname = (SELECT c.relname FROM pg_class c WHERE c.oid = relation))
    ORDER BY u.reader = u.role DESC, u.reader, u.role, v.oid
$$;
COMMENT ON FUNCTION tailor.view_ways
    IS 'how readers can still read a table through views that do not ask for their own rights: the '
        'reader, the role that lets it, the view';

-- A function with its owner's rights reads what its owner may. Which tables it
-- reads is known of bodies in SQL; of others it is a guess by the name.
CREATE OR REPLACE FUNCTION tailor.function_ways(relation regclass, readers name[])
RETURNS TABLE (routine regprocedure, owner name, named boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT f.oid::regprocedure, o.rolname,
           bool_or(strpos(lower(f.prosrc), lower(c.relname)) > 0
                   OR EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass
                              AND d.objid = f.oid
                              AND d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid))
    FROM pg_proc f JOIN pg_roles o ON o.oid = f.proowner CROSS JOIN tailor.lineage(relation) l
        JOIN pg_class c ON c.oid = l
    WHERE f.prosecdef AND f.pronamespace NOT IN ('tailor'::regnamespace, 'pg_catalog'::regnamespace)
      AND (o.rolsuper OR o.oid = c.relowner OR has_any_column_privilege(o.oid, c.oid, 'SELECT'))
      AND EXISTS (SELECT FROM unnest(readers) r WHERE has_function_privilege(r, f.oid, 'EXECUTE'))
    GROUP BY f.oid, o.rolname ORDER BY f.oid
$$;
COMMENT ON FUNCTION tailor.function_ways
    IS 'SECURITY DEFINER routines that readers may call and whose owner can read a table; whether '
        'they name it';

-- Roles that can read or write whatever they like, Tailor's own tables included,
-- make themselves or others so, or end the sessions of others and of the proxy. The
-- owner of the database sets what all sessions in it begin with, search_path as well.
-- tailor doctor has the same list.
CREATE OR REPLACE FUNCTION tailor.powers(readers name[]) RETURNS TABLE (reader name, role name)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT u.rolname, r.rolname
    FROM pg_roles u JOIN pg_roles r ON CASE WHEN u.rolsuper THEN r.oid = u.oid
        ELSE pg_has_role(u.oid, r.oid, 'MEMBER') END
    WHERE u.rolname = ANY (readers)
      AND (r.rolsuper OR r.rolbypassrls OR r.rolreplication OR r.rolcreaterole
           OR r.oid = (SELECT d.datdba FROM pg_database d WHERE d.datname = current_database())
           OR r.rolname IN ('tailor_owner', 'tailor_admin', 'pg_read_all_data', 'pg_write_all_data',
                            'pg_maintain', 'pg_read_server_files',
                            'pg_write_server_files', 'pg_execute_server_program',
                            'pg_signal_backend'))
    ORDER BY r.oid <> u.oid, u.rolname, r.rolname
$$;
COMMENT ON FUNCTION tailor.powers
    IS 'readers that are or can become a role for which privileges are no bound, and that role';

-- Single rights that are as good as such a role: functions by which the server's files are
-- read, where tables lie as they are; settings by which the server runs what one likes, or
-- large objects are everybody's; and schemas in which Tailor's routines look for each other.
-- Roles of PostgreSQL's own that have them are tailor.powers.
CREATE OR REPLACE FUNCTION tailor.tools(readers name[])
RETURNS TABLE (reader name, object text, mend text)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    rights text := $q$
        SELECT a.grantee, a.privilege_type, 'FUNCTION', f.oid::regprocedure::text
        FROM pg_proc f CROSS JOIN aclexplode(coalesce(f.proacl, acldefault('f', f.proowner))) a
        WHERE a.grantee <> f.proowner
          AND (f.pronamespace = 'pg_catalog'::regnamespace OR EXISTS (
                   SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass
                     AND d.objid = f.oid AND d.deptype = 'e'))
          AND f.proname IN (
              'pg_read_file', 'pg_read_binary_file', 'pg_file_read',
              'pg_file_write', 'pg_file_rename', 'pg_file_unlink', 'lo_import', 'lo_export',
              'pg_get_wal_record_info', 'pg_get_wal_records_info', 'pg_get_wal_block_info',
              'dblink_connect_u')
      UNION ALL
        SELECT a.grantee, a.privilege_type, 'SCHEMA', quote_ident(n.nspname)
        FROM pg_namespace n CROSS JOIN aclexplode(n.nspacl) a
        WHERE n.nspname IN ('tailor', 'tailor_store', 'tailor_release', 'research')
          AND a.privilege_type = 'CREATE' AND a.grantee <> n.nspowner$q$;
BEGIN
    IF to_regclass('pg_catalog.pg_parameter_acl') IS NOT NULL THEN -- since version 15
        rights := rights || $q$
      UNION ALL
        SELECT a.grantee, a.privilege_type, 'PARAMETER', quote_ident(p.parname)
        FROM pg_parameter_acl p CROSS JOIN aclexplode(p.paracl) a
        WHERE a.grantee <> 10 AND (a.privilege_type = 'ALTER SYSTEM' OR p.parname IN (
            'session_preload_libraries', 'dynamic_library_path', 'lo_compat_privileges'))$q$;
    END IF;
    RETURN QUERY EXECUTE format($q$
        SELECT min(u.rolname::text)::name, h.object, format('REVOKE %%s ON %%s %%s FROM %%s;',
            h.privilege, h.kind, h.object,
            CASE h.grantee WHEN 0 THEN 'PUBLIC' ELSE h.grantee::regrole::text END)
        FROM (%s) h (grantee, privilege, kind, object)
        JOIN pg_roles u ON CASE h.grantee WHEN 0 THEN true
                           ELSE h.grantee >= 16384 AND pg_has_role(u.oid, h.grantee, 'MEMBER') END
        WHERE u.rolname = ANY ($1) AND NOT u.rolsuper
        GROUP BY h.privilege, h.kind, h.object, h.grantee ORDER BY 1, 2, 3$q$, rights)
        USING readers;
END $$;
COMMENT ON FUNCTION tailor.tools IS
    'rights of readers by which privileges are no bound: a reader, on what, what takes it back';

-- What a table is -------------------------------------------------------------

CREATE OR REPLACE FUNCTION tailor.computed_columns(relation regclass)
    RETURNS TABLE (computed name, origin name)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT DISTINCT c.attname, o.attname
    FROM tailor.family(relation) f JOIN pg_attribute c ON c.attrelid = f AND c.attgenerated <> ''
        AND NOT c.attisdropped
    LEFT JOIN pg_attrdef e ON e.adrelid = c.attrelid AND e.adnum = c.attnum
    -- PostgreSQL 14 has it that the column depends on the others, later versions its expression.
    JOIN pg_depend d ON (d.classid = 'pg_class'::regclass AND d.objid = c.attrelid
                         AND d.objsubid = c.attnum)
                     OR (d.classid = 'pg_attrdef'::regclass AND d.objid = e.oid)
    JOIN pg_attribute o ON o.attrelid = d.refobjid AND o.attnum = d.refobjsubid
    WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = c.attrelid AND o.attnum > 0
        AND o.attnum <> c.attnum
$$;
COMMENT ON FUNCTION tailor.computed_columns
    IS 'generated columns of a table or a part of it, and what they are computed from';

CREATE OR REPLACE FUNCTION tailor.fingerprint(relation regclass) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN (SELECT md5(string_agg(format('%s %s %s %s', attnum, attname, atttypid, atttypmod), ','
                          ORDER BY attnum)
               || coalesce((SELECT ' of ' || string_agg(a::text, ',' ORDER BY a::text COLLATE "C")
                            FROM tailor.ancestors(relation) a), '')
               || coalesce(CASE WHEN bool_or(attgenerated <> '') THEN
                      (SELECT ' computed ' || string_agg(format('%s %s', g.computed, g.origin), ','
                                                         ORDER BY g.computed, g.origin)
                       FROM tailor.computed_columns(relation) g) END, '')
               || (SELECT CASE WHEN c.relrowsecurity THEN ' secured' ELSE '' END FROM pg_class c
                   WHERE c.oid = relation))
    FROM pg_attribute WHERE attrelid = relation AND attnum > 0 AND NOT attisdropped);
END $$;
COMMENT ON FUNCTION tailor.fingerprint
    IS 'changes when a column is added, dropped, renamed, retyped or computed from others, the '
        'table gets or loses a parent, or row-level security';

-- tailor_owner evaluates nothing that belongs to a user's type: a cast can be a
-- function of the type's owner, and a cast to a domain calls its constraints. So
-- copies and releases have the base type of a domain, text for an enum, and
-- arrays of these, and values are read by PostgreSQL's own output functions.
CREATE OR REPLACE FUNCTION tailor.stored_type(type oid, modifier integer, expression text,
                                              OUT stored oid, OUT stored_modifier integer,
                                                  OUT reading text)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kind    record;
    element record;
BEGIN
    stored := type;
    stored_modifier := modifier;
    reading := expression;
    LOOP
        SELECT t.typtype, t.typbasetype, t.typtypmod, e.oid AS element INTO kind
            FROM pg_type t LEFT JOIN pg_type e ON e.typarray = t.oid WHERE t.oid = stored;
        EXIT WHEN kind.typtype IS DISTINCT FROM 'd';
        stored := kind.typbasetype;
        stored_modifier := kind.typtypmod;
    END LOOP;
    IF stored <> type THEN
        reading := format('(%s)::%s', reading, format_type(stored, stored_modifier));
    END IF;
    IF kind.typtype = 'e' THEN
        stored := 'text'::regtype;
        stored_modifier := -1;
        reading := format('pg_catalog.enum_out(%s)::text', reading);
    ELSIF kind.element IS NOT NULL THEN
        SELECT e.stored, e.stored_modifier, t.typarray INTO element
            FROM tailor.stored_type(kind.element, stored_modifier, '') e
                JOIN pg_type t ON t.oid = e.stored;
        IF element.stored <> kind.element THEN
            stored := element.typarray;
            stored_modifier := element.stored_modifier;
            reading := format('pg_catalog.array_out(%s)::text::%s', reading, format_type(stored,
                    stored_modifier));
        END IF;
    END IF;
END $$;
COMMENT ON FUNCTION tailor.stored_type
    IS 'the type that copies and releases have for one of a table, and the expression that reads '
        'it from an expression of the table''s';

-- Values that are equal have one text: of 1.0 and 1.00, and of characters that blanks fill up.
CREATE OR REPLACE FUNCTION tailor.text_of(type oid, modifier integer, expression text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('concat(%s)', CASE s.stored
        WHEN 'numeric'::regtype THEN format('trim_scale(%s)', s.reading)
        WHEN 'bpchar'::regtype THEN format('(%s)::text', s.reading) ELSE expression END)
    FROM tailor.stored_type(type, modifier, expression) s
$$;
COMMENT ON FUNCTION tailor.text_of IS 'an expression for the text of a subject, by which it is '
    'digested; for Tailor''s own routines only';

CREATE OR REPLACE FUNCTION tailor.called(relation regclass, subject name) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT tailor.text_of(a.atttypid, a.atttypmod, format('b.%I', a.attname)) FROM pg_attribute a
    WHERE a.attrelid = relation AND a.attname = subject AND a.attnum > 0 AND NOT a.attisdropped
$$;
COMMENT ON FUNCTION tailor.called IS 'the same of a column of rows b of a table; for Tailor''s own '
    'routines only';

CREATE OR REPLACE FUNCTION tailor.tells_people(relation regclass, subject name) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT s.stored = ANY (ARRAY['smallint', 'integer', 'bigint', 'oid', 'numeric', 'text',
                                 'varchar', 'bpchar', 'name', 'uuid']::regtype[])
       AND NOT EXISTS (SELECT FROM pg_collation l
                       WHERE l.oid = a.attcollation AND NOT l.collisdeterministic)
    FROM pg_attribute a CROSS JOIN tailor.stored_type(a.atttypid, a.atttypmod, '') s
    WHERE a.attrelid = relation AND a.attname = subject AND a.attnum > 0 AND NOT a.attisdropped
$$;
COMMENT ON FUNCTION tailor.tells_people IS 'whether values of a column are equal where their texts '
    'are, and only there; for Tailor''s own routines only';

CREATE OR REPLACE FUNCTION tailor.is_key(relation regclass, column_name name) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (
        SELECT FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid
            AND a.attnum = i.indkey[0]
        WHERE i.indrelid = relation AND i.indisunique AND i.indisvalid AND i.indimmediate
            AND i.indnkeyatts = 1
          AND i.indpred IS NULL AND i.indexprs IS NULL AND a.attname = column_name)
$$;
COMMENT ON FUNCTION tailor.is_key
    IS 'whether no two rows have the same value in a column, at any time';

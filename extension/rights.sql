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
    SELECT coalesce((SELECT pg_has_role(session_user, c.relowner, 'USAGE') FROM pg_class c WHERE c.oid = relation), false)
$$;
COMMENT ON FUNCTION tailor.owns IS 'whether the one who logged in has the rights of the table''s owner';

CREATE OR REPLACE PROCEDURE tailor.assert_owner(relation regclass) LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- The proxy, which refreshes by schedule, logs in as tailor_owner.
    IF session_user <> 'tailor_owner' AND NOT tailor.owns(relation) THEN
        RAISE EXCEPTION 'must be owner of table %', relation USING ERRCODE = '42501';
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_owner IS 'fails unless the caller owns the table';

CREATE OR REPLACE PROCEDURE tailor.assert_column(relation regclass, column_name name) LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = relation AND a.attname = column_name
                   AND a.attnum > 0 AND NOT a.attisdropped) THEN
        RAISE EXCEPTION 'column "%" of table % does not exist', column_name, relation USING ERRCODE = '42703';
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_column IS 'fails unless the table has the column';

CREATE OR REPLACE PROCEDURE tailor.assert_protected(relation regclass) LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM tailor.protection p WHERE p.relation = assert_protected.relation) THEN
        RAISE EXCEPTION 'table % has no policy', relation
            USING ERRCODE = '55000', HINT = format('Start with: CALL tailor.protect(%L, subject => ..., k => 5);', relation);
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_protected IS 'fails unless tailor.protect has been called for the table';

CREATE OR REPLACE FUNCTION tailor.family(relation regclass) RETURNS SETOF regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE family (oid) AS (
        SELECT relation::oid
      UNION
        SELECT i.inhrelid FROM pg_inherits i JOIN family f ON f.oid = i.inhparent)
    SELECT oid::regclass FROM family
$$;
COMMENT ON FUNCTION tailor.family IS 'a table and all its partitions and heirs: a read of the table reads them all, and each can be read by itself';

-- A read of a parent reads its heirs, so whoever may read the parent reads the
-- rows of the table, whatever he may do with the table itself. A part of the
-- table can have further parents.
CREATE OR REPLACE FUNCTION tailor.ancestors(relation regclass) RETURNS SETOF regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE ancestors (oid) AS (
        SELECT f::oid FROM tailor.family(relation) f
      UNION
        SELECT i.inhparent FROM pg_inherits i JOIN ancestors a ON a.oid = i.inhrelid)
    SELECT oid::regclass FROM ancestors
    EXCEPT SELECT f FROM tailor.family(relation) f
$$;
COMMENT ON FUNCTION tailor.ancestors IS 'what a table and its parts inherit from or are partitions of, outside the family: a read of it reads their rows too';

CREATE OR REPLACE FUNCTION tailor.lineage(relation regclass) RETURNS SETOF regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT tailor.family(relation) UNION ALL SELECT tailor.ancestors(relation)
$$;
COMMENT ON FUNCTION tailor.lineage IS 'a table''s family and its ancestors: all that its rows can be read from by name';

-- Tables with rows in common would be two releases of them: one audience would
-- be shown these rows in two partitions that know nothing of each other.
CREATE OR REPLACE PROCEDURE tailor.assert_apart(relation regclass) LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    other regclass;
BEGIN
    SELECT p.relation INTO other FROM tailor.protection p
        WHERE p.active IS NOT NULL AND p.relation <> assert_apart.relation
          AND EXISTS (SELECT tailor.family(p.relation) INTERSECT SELECT tailor.family(assert_apart.relation)) LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'table % has rows in common with the protected table %', relation, other USING ERRCODE = '0A000',
            HINT = 'One is a partition or an heir of the other, or both have one. Protect one of them: two releases of the same rows can be put together.';
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_apart IS 'fails where another protected table reads some of the same rows';

-- A membership that can only be passed on, as PostgreSQL 16 gives to the
-- creator of a role, makes nobody a reader. The columns that say so are new in
-- 16 and therefore asked for by name.
CREATE OR REPLACE FUNCTION tailor.members(role name) RETURNS SETOF name
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE members (oid) AS (
        SELECT r.oid FROM pg_roles r WHERE r.rolname = role
      UNION
        SELECT m.member FROM pg_auth_members m JOIN members ON m.roleid = members.oid
        WHERE coalesce((to_jsonb(m) ->> 'inherit_option')::boolean OR (to_jsonb(m) ->> 'set_option')::boolean, true))
    SELECT r.rolname FROM members JOIN pg_roles r USING (oid) ORDER BY 1
$$;
COMMENT ON FUNCTION tailor.members IS 'the role and every role that has or can take on its rights';

CREATE OR REPLACE FUNCTION tailor.reader_roles() RETURNS SETOF name
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT tailor.members('tailor_reader')
$$;
COMMENT ON FUNCTION tailor.reader_roles IS 'tailor_reader and every role that is, directly or not, a member of it';

-- Rights need not be inherited to be had: SET ROLE takes on those of any role
-- that one is a member of, so every such role counts. An owner without
-- privileges can give them to himself.
CREATE OR REPLACE FUNCTION tailor.ways(relation regclass, readers name[])
RETURNS TABLE (reader name, role name, part regclass)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT u.reader, u.role, f
    FROM (SELECT min(n::text)::name AS reader, r.rolname AS role, r.oid, r.rolsuper
          FROM unnest(readers) n JOIN pg_roles r ON pg_has_role(n, r.oid, 'MEMBER')
          GROUP BY r.oid, r.rolname, r.rolsuper) u
    CROSS JOIN tailor.lineage(relation) f
    JOIN pg_class c ON c.oid = f
    WHERE u.rolsuper OR u.oid = c.relowner OR has_any_column_privilege(u.oid, c.oid, 'SELECT')
    ORDER BY u.reader = u.role DESC, u.reader, u.role
$$;
COMMENT ON FUNCTION tailor.ways IS 'how readers can still read a table, a part or a parent of it: the reader, the role that lets it, the part';

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
        FROM reaching JOIN pg_depend d ON d.refobjid = reaching.oid AND d.refclassid = 'pg_class'::regclass AND d.classid = 'pg_rewrite'::regclass
        JOIN pg_rewrite w ON w.oid = d.objid JOIN pg_class v ON v.oid = w.ev_class AND v.relkind IN ('v', 'm')),
    roles AS (
        SELECT min(n::text)::name AS reader, r.rolname AS role, r.oid
        FROM unnest(readers) n JOIN pg_roles r ON pg_has_role(n, r.oid, 'MEMBER') GROUP BY r.oid, r.rolname)
    SELECT u.reader, u.role, v.oid::regclass
    FROM reaching JOIN pg_class v USING (oid) CROSS JOIN roles u
    WHERE has_any_column_privilege(u.oid, v.oid, 'SELECT')
      AND (v.relkind = 'm' OR (v.relkind = 'v' AND v.relowner NOT IN (SELECT oid FROM roles)
           AND NOT EXISTS (SELECT FROM pg_options_to_table(v.reloptions) o WHERE o.option_name = 'security_invoker' AND o.option_value::boolean)))
      -- What tailor.publish_shape made.
      AND NOT (v.relnamespace = 'research'::regnamespace AND v.relowner = 'tailor_owner'::regrole
               AND v.relname = (SELECT c.relname FROM pg_class c WHERE c.oid = relation))
    ORDER BY u.reader = u.role DESC, u.reader, u.role, v.oid
$$;
COMMENT ON FUNCTION tailor.view_ways IS 'how readers can still read a table through views that do not ask for their own rights: the reader, the role that lets it, the view';

-- What a table is -------------------------------------------------------------

CREATE OR REPLACE FUNCTION tailor.fingerprint(relation regclass) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT md5(string_agg(format('%s %s %s %s', attnum, attname, atttypid, atttypmod), ',' ORDER BY attnum)
               || coalesce((SELECT ' of ' || string_agg(a::text, ',' ORDER BY a::text COLLATE "C") FROM tailor.ancestors(relation) a), ''))
    FROM pg_attribute WHERE attrelid = relation AND attnum > 0 AND NOT attisdropped
$$;
COMMENT ON FUNCTION tailor.fingerprint IS 'changes when a column is added, dropped, renamed or retyped, or the table gets or loses a parent';

CREATE OR REPLACE FUNCTION tailor.is_key(relation regclass, column_name name) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (
        SELECT FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
        WHERE i.indrelid = relation AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indnkeyatts = 1
          AND i.indpred IS NULL AND i.indexprs IS NULL AND a.attname = column_name)
$$;
COMMENT ON FUNCTION tailor.is_key IS 'whether no two rows have the same value in a column, at any time';

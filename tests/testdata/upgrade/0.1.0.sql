-- Tailor, SQL side. Idempotent: safe to run again over an existing
-- installation. Runs as a superuser or as a role that may create roles and
-- schemas; without superuser the proxy cannot read password verifiers.

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'tailor_owner') THEN
        CREATE ROLE tailor_owner LOGIN;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'tailor_reader') THEN
        CREATE ROLE tailor_reader NOLOGIN;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'tailor_admin') THEN
        CREATE ROLE tailor_admin NOLOGIN;
    END IF;
END $$;

COMMENT ON ROLE tailor_owner IS 'owns Tailor''s schemas, stored copies and releases; the proxy''s service account';
COMMENT ON ROLE tailor_reader IS 'members read protected tables through releases only';
COMMENT ON ROLE tailor_admin IS 'members attach policies to the tables they own';

CREATE SCHEMA IF NOT EXISTS tailor AUTHORIZATION tailor_owner;
CREATE SCHEMA IF NOT EXISTS tailor_store AUTHORIZATION tailor_owner;
CREATE SCHEMA IF NOT EXISTS tailor_release AUTHORIZATION tailor_owner;
CREATE SCHEMA IF NOT EXISTS research AUTHORIZATION tailor_owner;
GRANT USAGE ON SCHEMA tailor_release, research TO tailor_reader;
GRANT USAGE ON SCHEMA tailor TO tailor_admin, tailor_reader;

SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL client_min_messages = warning;
SET LOCAL check_function_bodies = on;

-- Configuration -------------------------------------------------------------

CREATE TABLE IF NOT EXISTS tailor.hierarchy (
    name        text PRIMARY KEY,
    kind        text NOT NULL CHECK (kind IN ('interval', 'prefix', 'date', 'table')),
    definition  jsonb NOT NULL
);
ALTER TABLE tailor.hierarchy ADD COLUMN IF NOT EXISTS owner name NOT NULL DEFAULT session_user;
COMMENT ON COLUMN tailor.hierarchy.owner IS 'the role whose members may define it anew';

CREATE TABLE IF NOT EXISTS tailor.protection (
    relation    regclass PRIMARY KEY,
    subject     name NOT NULL,
    k           integer NOT NULL CHECK (k >= 2),
    recoding    text NOT NULL DEFAULT 'auto' CHECK (recoding IN ('auto', 'local', 'full_domain', 'cell')),
    scope       text NOT NULL DEFAULT 'principal' CHECK (scope IN ('principal', 'role', 'everyone')),
    active      integer,
    epoch       integer
);
COMMENT ON COLUMN tailor.protection.active IS 'the policy version in force; NULL before the first activation';

CREATE TABLE IF NOT EXISTS tailor.classification (
    relation    regclass NOT NULL REFERENCES tailor.protection ON DELETE CASCADE,
    column_name name NOT NULL,
    class       text NOT NULL CHECK (class IN ('direct_identifier', 'quasi_identifier', 'sensitive', 'non_sensitive')),
    hierarchy   text REFERENCES tailor.hierarchy,
    action      text NOT NULL DEFAULT 'hide' CHECK (action IN ('hide', 'pseudonym')),
    PRIMARY KEY (relation, column_name)
);

CREATE TABLE IF NOT EXISTS tailor.requirement (
    relation    regclass NOT NULL REFERENCES tailor.protection ON DELETE CASCADE,
    model       text NOT NULL CHECK (model IN ('l_diversity')),
    column_name name NOT NULL,
    parameter   integer NOT NULL CHECK (parameter >= 2),
    PRIMARY KEY (relation, model, column_name)
);

CREATE TABLE IF NOT EXISTS tailor.policy_version (
    relation    regclass NOT NULL,
    version     integer NOT NULL,
    policy      jsonb NOT NULL,
    author      name NOT NULL DEFAULT session_user,
    created     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (relation, version)
);
COMMENT ON TABLE tailor.policy_version IS 'append-only; tailor.protection.active names the one in force';

CREATE TABLE IF NOT EXISTS tailor.epoch (
    epoch       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    relation    regclass NOT NULL,
    version     integer NOT NULL,
    created     timestamptz NOT NULL DEFAULT now(),
    rows        bigint NOT NULL,
    tuples      bigint NOT NULL,
    subjects    bigint NOT NULL
);

CREATE TABLE IF NOT EXISTS tailor.chain (
    chain       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    relation    regclass NOT NULL,
    audience    text NOT NULL,
    epoch       integer NOT NULL REFERENCES tailor.epoch,
    generation  integer NOT NULL DEFAULT 0,
    partition   bytea NOT NULL,
    blocks      integer NOT NULL,
    min_block   integer NOT NULL,
    created     timestamptz NOT NULL DEFAULT now(),
    changed     timestamptz NOT NULL DEFAULT now(),
    UNIQUE (relation, audience)
);
COMMENT ON TABLE tailor.chain IS 'the partition that one audience has been shown; only ever refined';

CREATE TABLE IF NOT EXISTS tailor.audit_log (
    position    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id          text NOT NULL UNIQUE,
    record      jsonb NOT NULL
);
CREATE INDEX IF NOT EXISTS audit_log_time ON tailor.audit_log ((record ->> 'time'));

CREATE TABLE IF NOT EXISTS tailor.admission_key (
    single      boolean PRIMARY KEY DEFAULT true CHECK (single),
    key         bytea NOT NULL
);
COMMENT ON TABLE tailor.admission_key IS 'what the proxy and tailor.admit share; for tailor_owner only';
INSERT INTO tailor.admission_key (key)
    SELECT sha256(convert_to(gen_random_uuid()::text || gen_random_uuid() || gen_random_uuid(), 'UTF8'))
    ON CONFLICT DO NOTHING;

CREATE SEQUENCE IF NOT EXISTS tailor.catalog_version;

-- Views ---------------------------------------------------------------------

CREATE OR REPLACE VIEW tailor.policies AS
    SELECT p.relation, p.subject, p.k, p.recoding, p.scope, p.active AS version, v.author, v.created, p.epoch, v.policy
    FROM tailor.protection p
    LEFT JOIN tailor.policy_version v ON v.relation = p.relation AND v.version = p.active;
COMMENT ON VIEW tailor.policies IS 'protected tables and the policy version in force';

CREATE OR REPLACE VIEW tailor.hierarchies AS
    SELECT name, kind, owner FROM tailor.hierarchy;
COMMENT ON VIEW tailor.hierarchies IS 'names for use in tailor.classify; definitions may quote data and are left out';

CREATE OR REPLACE VIEW tailor.chains AS
    SELECT chain, relation, audience, epoch, generation, blocks, min_block, created, changed FROM tailor.chain;
COMMENT ON VIEW tailor.chains IS 'how fine the partition of each audience is by now';

CREATE OR REPLACE VIEW tailor.audit AS
    SELECT (record ->> 'time')::timestamptz AS time, id,
           record ->> 'principal' AS principal, record ->> 'database' AS database,
           record ->> 'verdict' AS verdict, record ->> 'sqlstate' AS sqlstate,
           record ->> 'sql' AS sql, record -> 'relations' AS relations,
           (record ->> 'aggregate_risk')::float8 AS aggregate_risk,
           (record ->> 'aggregate_loss')::float8 AS aggregate_loss,
           (record ->> 'min_block')::integer AS min_block, record
    FROM tailor.audit_log;
COMMENT ON VIEW tailor.audit IS 'one row a statement that came through the proxy';

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
    IF NOT tailor.owns(relation) THEN
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
    CROSS JOIN tailor.family(relation) f
    JOIN pg_class c ON c.oid = f
    WHERE u.rolsuper OR u.oid = c.relowner OR has_any_column_privilege(u.oid, c.oid, 'SELECT')
    ORDER BY u.reader = u.role DESC, u.reader, u.role
$$;
COMMENT ON FUNCTION tailor.ways IS 'how readers can still read a table or a part of it: the reader, the role that lets it, the part';

-- Procedures that write the draft of a policy -------------------------------

CREATE OR REPLACE PROCEDURE tailor.write_protection(relation regclass, subject name, k integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_column(relation, subject);
    IF NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = relation AND c.relkind IN ('r', 'p')) THEN
        RAISE EXCEPTION '% is not a table', relation USING ERRCODE = '42809';
    END IF;
    IF k IS NULL OR k < 2 THEN
        RAISE EXCEPTION 'k must be at least 2' USING ERRCODE = '22023';
    END IF;
    INSERT INTO tailor.protection (relation, subject, k) VALUES (relation, subject, k)
        ON CONFLICT ON CONSTRAINT protection_pkey DO UPDATE SET subject = excluded.subject, k = excluded.k;
END $$;
COMMENT ON PROCEDURE tailor.write_protection IS 'the part of tailor.protect that writes';

CREATE OR REPLACE PROCEDURE tailor.protect(relation regclass, subject name, k integer)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    CALL tailor.write_protection(relation, subject, k);
    EXECUTE format('GRANT SELECT ON %s TO tailor_owner', relation);
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO tailor_owner',
                   (SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = relation));
END $$;
COMMENT ON PROCEDURE tailor.protect IS 'starts a policy: the column that identifies the subject, and k';

CREATE OR REPLACE PROCEDURE tailor.write_hierarchy(name text, kind text, definition jsonb)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    owner name;
BEGIN
    IF kind IS NULL OR kind NOT IN ('interval', 'prefix', 'date', 'table') THEN
        RAISE EXCEPTION 'unknown kind of hierarchy "%"', kind
            USING ERRCODE = '22023', HINT = 'Kinds are interval, prefix, date and table.';
    END IF;
    IF kind = 'table' AND jsonb_typeof(definition -> 'paths') IS DISTINCT FROM 'array' THEN
        RAISE EXCEPTION 'a hierarchy of kind table needs "source" and "columns", or "paths"' USING ERRCODE = '22023';
    END IF;
    INSERT INTO tailor.hierarchy (name, kind, definition) VALUES (name, kind, definition) ON CONFLICT DO NOTHING;
    IF FOUND THEN
        RETURN;
    END IF;
    -- Policies of others may use it. A role that is gone leaves it to superusers.
    SELECT h.owner INTO owner FROM tailor.hierarchy h WHERE h.name = write_hierarchy.name FOR UPDATE;
    IF NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = session_user AND r.rolsuper)
       AND NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = owner AND pg_has_role(session_user, r.oid, 'USAGE')) THEN
        RAISE EXCEPTION 'must be owner of hierarchy "%"', name
            USING ERRCODE = '42501', HINT = format('It belongs to %I. Define one of another name.', owner);
    END IF;
    UPDATE tailor.hierarchy h SET kind = write_hierarchy.kind, definition = write_hierarchy.definition
        WHERE h.name = write_hierarchy.name;
END $$;
COMMENT ON PROCEDURE tailor.write_hierarchy IS 'the part of tailor.define_hierarchy that writes';

-- The source table is read here, with the caller's rights: tailor_owner can
-- read every protected table.
CREATE OR REPLACE PROCEDURE tailor.define_hierarchy(name text, kind text, definition jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    path  text;
    paths jsonb;
BEGIN
    IF kind = 'table' AND definition ? 'source' THEN
        SELECT string_agg(format('%I::text', c), ', ') INTO path
            FROM jsonb_array_elements_text(definition -> 'columns') c;
        EXECUTE format('SELECT jsonb_agg(jsonb_build_array(%s)) FROM %s', path, (definition ->> 'source')::regclass) INTO paths;
        definition := definition || jsonb_build_object('paths', paths);
    END IF;
    CALL tailor.write_hierarchy(name, kind, definition);
END $$;
COMMENT ON PROCEDURE tailor.define_hierarchy IS 'names a generalization hierarchy for use in tailor.classify; only its owner may define it anew';

CREATE OR REPLACE PROCEDURE tailor.classify(relation regclass, column_name name, class text,
                                            hierarchy text DEFAULT NULL, action text DEFAULT 'hide')
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    CALL tailor.assert_column(relation, column_name);
    IF class NOT IN ('direct_identifier', 'quasi_identifier', 'sensitive', 'non_sensitive') THEN
        RAISE EXCEPTION 'unknown class "%"', class USING ERRCODE = '22023',
            HINT = 'Classes are direct_identifier, quasi_identifier, sensitive and non_sensitive.';
    END IF;
    IF (class = 'quasi_identifier') <> (hierarchy IS NOT NULL) THEN
        RAISE EXCEPTION 'a hierarchy belongs to a quasi-identifier, and a quasi-identifier needs one'
            USING ERRCODE = '22023', HINT = 'Define one with tailor.define_hierarchy and pass hierarchy => its name.';
    END IF;
    IF hierarchy IS NOT NULL AND NOT EXISTS (SELECT FROM tailor.hierarchy h WHERE h.name = hierarchy) THEN
        RAISE EXCEPTION 'hierarchy "%" does not exist', hierarchy USING ERRCODE = '42704';
    END IF;
    IF action = 'pseudonym' AND class <> 'direct_identifier' THEN
        RAISE EXCEPTION 'only a direct identifier can have a pseudonym' USING ERRCODE = '22023';
    END IF;
    INSERT INTO tailor.classification VALUES (relation, column_name, class, hierarchy, action)
        ON CONFLICT ON CONSTRAINT classification_pkey DO UPDATE
        SET class = excluded.class, hierarchy = excluded.hierarchy, action = excluded.action;
END $$;
COMMENT ON PROCEDURE tailor.classify IS 'says what a column is; a column without a class is hidden';

CREATE OR REPLACE PROCEDURE tailor.require(relation regclass, model text, column_name name, parameter integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    CALL tailor.assert_column(relation, column_name);
    IF model <> 'l_diversity' THEN
        RAISE EXCEPTION 'unknown model "%"', model USING ERRCODE = '22023', HINT = 'Models are l_diversity.';
    END IF;
    IF parameter IS NULL OR parameter < 2 THEN
        RAISE EXCEPTION 'the parameter of l_diversity must be at least 2' USING ERRCODE = '22023';
    END IF;
    INSERT INTO tailor.requirement VALUES (relation, model, column_name, parameter)
        ON CONFLICT ON CONSTRAINT requirement_pkey DO UPDATE SET parameter = excluded.parameter;
END $$;
COMMENT ON PROCEDURE tailor.require IS 'adds a privacy model that every block has to meet besides k';

CREATE OR REPLACE PROCEDURE tailor.chain_scope(relation regclass, scope text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    IF scope NOT IN ('principal', 'role', 'everyone') THEN
        RAISE EXCEPTION 'unknown scope "%"', scope
            USING ERRCODE = '22023', HINT = 'Scopes are principal, role and everyone.';
    END IF;
    UPDATE tailor.protection p SET scope = chain_scope.scope WHERE p.relation = chain_scope.relation;
END $$;
COMMENT ON PROCEDURE tailor.chain_scope IS 'says who shares a chain: each principal, a role, or everyone';

-- Belongs to the role that installed, for tailor_owner may not grant roles.
CREATE OR REPLACE PROCEDURE tailor.grant_reader(role name)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found record;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = role) THEN
        RAISE EXCEPTION 'role "%" does not exist', role USING ERRCODE = '42704';
    END IF;
    IF role IN ('tailor_owner', 'tailor_admin', 'tailor_reader') THEN
        RAISE EXCEPTION 'role "%" is Tailor''s own and cannot be a reader', role USING ERRCODE = '42501';
    END IF;
    -- Whatever the role could become by SET ROLE counts, see tailor.ways.
    FOR found IN
        SELECT r.rolname AS name FROM pg_roles r
        WHERE pg_has_role(role, r.oid, 'MEMBER')
          AND (r.rolsuper OR r.rolbypassrls OR r.rolreplication OR r.rolcreaterole
               OR r.rolname IN ('tailor_owner', 'tailor_admin', 'pg_read_all_data', 'pg_read_server_files',
                                'pg_write_server_files', 'pg_execute_server_program'))
        ORDER BY r.rolname <> role LIMIT 1
    LOOP
        RAISE EXCEPTION 'role "%" bypasses privileges and cannot be a reader', role USING ERRCODE = '42501',
            DETAIL = format('It is or can become %I.', found.name);
    END LOOP;
    FOR found IN
        SELECT p.relation, c.relowner::regrole AS owner FROM tailor.protection p
        CROSS JOIN tailor.family(p.relation) f JOIN pg_class c ON c.oid = f
        WHERE pg_has_role(role, c.relowner, 'MEMBER') OR pg_get_userbyid(c.relowner) IN (SELECT tailor.members(role)) LIMIT 1
    LOOP
        RAISE EXCEPTION 'role "%" is, has as a member or is a member of the owner of the protected table %', role, found.relation
            USING ERRCODE = '42501', DETAIL = format('Its owner is %s.', found.owner);
    END LOOP;
    FOR found IN
        SELECT p.relation, w.role, w.part FROM tailor.protection p
        CROSS JOIN tailor.ways(p.relation, ARRAY(SELECT tailor.members(role))) w
        WHERE p.active IS NOT NULL LIMIT 1
    LOOP
        RAISE EXCEPTION 'role "%" can read the protected table % itself', role, found.relation USING ERRCODE = '42501',
            HINT = format('REVOKE ALL ON %s FROM %I; from PUBLIC, and from the roles that it is a member of.', found.part, found.role);
    END LOOP;
    EXECUTE format('GRANT tailor_reader TO %I', role);
    PERFORM pg_notify('tailor', 'readers');
END $$;
COMMENT ON PROCEDURE tailor.grant_reader IS 'makes a role a reader: protected tables reach it as releases only';

-- Activation ----------------------------------------------------------------

CREATE OR REPLACE FUNCTION tailor.fingerprint(relation regclass) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT md5(string_agg(format('%s %s %s %s', attnum, attname, atttypid, atttypmod), ',' ORDER BY attnum))
    FROM pg_attribute WHERE attrelid = relation AND attnum > 0 AND NOT attisdropped
$$;
COMMENT ON FUNCTION tailor.fingerprint IS 'changes when a column is added, dropped, renamed or retyped';

-- The draft as one self-contained document.
CREATE OR REPLACE FUNCTION tailor.draft(relation regclass) RETURNS jsonb
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT jsonb_build_object(
        'subject', p.subject, 'k', p.k, 'recoding', p.recoding, 'scope', p.scope,
        'fingerprint', tailor.fingerprint(p.relation),
        'require', coalesce((SELECT jsonb_agg(jsonb_build_object('model', r.model, 'column', r.column_name, 'parameter', r.parameter)
                                              ORDER BY r.model, r.column_name)
                             FROM tailor.requirement r WHERE r.relation = p.relation), '[]'),
        'columns', (SELECT jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
                        'name', a.attname, 'number', a.attnum, 'type', format_type(a.atttypid, a.atttypmod),
                        'category', t.typcategory, 'class', c.class, 'action', c.action,
                        'hierarchy', CASE WHEN h.name IS NOT NULL THEN jsonb_build_object('name', h.name, 'kind', h.kind, 'definition', h.definition) END))
                        ORDER BY a.attnum)
                    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
                    LEFT JOIN tailor.classification c ON c.relation = a.attrelid AND c.column_name = a.attname
                    LEFT JOIN tailor.hierarchy h ON h.name = c.hierarchy
                    WHERE a.attrelid = p.relation AND a.attnum > 0 AND NOT a.attisdropped))
    FROM tailor.protection p WHERE p.relation = draft.relation AND tailor.owns(p.relation)
$$;
COMMENT ON FUNCTION tailor.draft IS 'the policy of one''s own table as it would be activated; NULL for others';

-- tailor_owner is about to read a table of somebody else's making. Whatever of
-- it is executable would run with tailor_owner's rights: a view, a row security
-- policy, a foreign table, a function in an index, a constraint or a statistic
-- (the planner evaluates calls of constants), a support function of a type.
-- The lock, taken by the caller, keeps all this as it is until the transaction
-- ends; without one the check would prove nothing.
CREATE OR REPLACE PROCEDURE tailor.assert_inert(relation regclass, columns name[])
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found record;
BEGIN
    FOR found IN
        SELECT f AS part FROM tailor.family(relation) f
        WHERE NOT EXISTS (
            SELECT FROM pg_locks l
            WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND l.granted AND l.relation = f
              AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
              AND l.mode IN ('ShareUpdateExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'))
    LOOP
        RAISE EXCEPTION 'table % is not locked against changes', found.part
            USING ERRCODE = '55000', HINT = 'Call tailor.activate or tailor.refresh.';
    END LOOP;
    FOR found IN
        SELECT f AS part FROM tailor.family(relation) f JOIN pg_class c ON c.oid = f
        WHERE c.relkind NOT IN ('r', 'p') OR c.relpersistence = 't'
    LOOP
        RAISE EXCEPTION '% is not a table that is stored here', found.part USING ERRCODE = '42809';
    END LOOP;
    IF (SELECT c.relrowsecurity FROM pg_class c WHERE c.oid = relation) THEN
        RAISE EXCEPTION 'table % has row-level security', relation USING ERRCODE = '0A000',
            HINT = 'A copy of the rows that tailor_owner is shown would not be a copy of the table.';
    END IF;
    FOR found IN
        WITH family AS (SELECT f AS oid FROM tailor.family(relation) f), parts (classid, objid) AS (
            SELECT 'pg_class'::regclass, f.oid FROM family f
          UNION ALL
            SELECT 'pg_class'::regclass, i.indexrelid FROM pg_index i JOIN family f ON f.oid = i.indrelid
          UNION ALL
            SELECT 'pg_constraint'::regclass, k.oid FROM pg_constraint k JOIN family f ON f.oid = k.conrelid
          UNION ALL
            SELECT 'pg_statistic_ext'::regclass, x.oid FROM pg_statistic_ext x JOIN family f ON f.oid = x.stxrelid)
        SELECT p.oid::regprocedure AS routine
        FROM parts
        JOIN pg_depend d ON d.classid = parts.classid AND d.objid = parts.objid
        LEFT JOIN pg_operator o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
        JOIN pg_proc p ON p.oid = CASE WHEN d.refclassid = 'pg_proc'::regclass THEN d.refobjid ELSE o.oprcode END
        JOIN pg_roles r ON r.oid = p.proowner
        WHERE NOT r.rolsuper LIMIT 1
    LOOP
        RAISE EXCEPTION 'an index, constraint or statistic of table % calls %', relation, found.routine
            USING ERRCODE = '42501', HINT = 'Functions there must belong to a superuser: reading the table may run them.';
    END LOOP;
    FOR found IN
        WITH RECURSIVE types (column_name, oid) AS (
            SELECT a.attname, a.atttypid FROM pg_attribute a
            WHERE a.attrelid = relation AND a.attname = ANY (columns) AND a.attnum > 0 AND NOT a.attisdropped
          UNION
            SELECT types.column_name, CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.typelem END
            FROM types JOIN pg_type t USING (oid)
            WHERE t.typtype = 'd' OR (t.typcategory = 'A' AND t.typelem <> 0))
        SELECT types.column_name, types.oid::regtype AS type
        FROM types JOIN pg_type t USING (oid) JOIN pg_roles r ON r.oid = t.typowner
        WHERE NOT r.rolsuper AND t.typtype NOT IN ('d', 'e') AND NOT (t.typcategory = 'A' AND t.typelem <> 0)
    LOOP
        RAISE EXCEPTION 'column "%" of table % is of type %, which is not a superuser''s', found.column_name, relation, found.type
            USING ERRCODE = '42501', HINT = 'Reading the table may run functions of the type. Hide the column.';
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.assert_inert IS 'fails unless reading the columns of the table runs nobody''s code';

-- Builds the stored copy of a relation under a policy. Rows get numbers in
-- random order; quasi-identifiers are replaced by the number of their tuple,
-- direct identifiers and unclassified columns are left out, pseudonyms are
-- drawn at random. The document is the one that was stored, never the caller's.
DROP FUNCTION IF EXISTS tailor.build_epoch(regclass, integer, jsonb);
CREATE OR REPLACE FUNCTION tailor.build_epoch(relation regclass, version integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET constraint_exclusion = off AS $$
DECLARE
    policy   jsonb := (SELECT v.policy FROM tailor.policy_version v
                       WHERE v.relation = build_epoch.relation AND v.version = build_epoch.version);
    number   integer;
    copied   name[];
    qids     text;
    payload  text;
    subjects bigint;
    total    bigint;
    tuples   bigint;
    missing  bigint;
BEGIN
    CALL tailor.assert_owner(relation);
    IF policy IS NULL THEN
        RAISE EXCEPTION 'the policy of table % has no version %', relation, version USING ERRCODE = '42704';
    END IF;
    copied := ARRAY(
        SELECT (c ->> 'name')::name FROM jsonb_array_elements(policy -> 'columns') c
        WHERE c ->> 'class' IN ('quasi_identifier', 'sensitive', 'non_sensitive') OR c ->> 'name' = policy ->> 'subject');
    CALL tailor.assert_inert(relation, copied);
    SELECT string_agg(format('%I', c ->> 'name'), ', ' ORDER BY (c ->> 'number')::int) INTO qids
        FROM jsonb_array_elements(policy -> 'columns') c WHERE c ->> 'class' = 'quasi_identifier';
    -- Types are those of the catalog, and a cast is made only to types whose
    -- casts are PostgreSQL's own.
    SELECT string_agg(CASE WHEN c ->> 'class' = 'direct_identifier'
                           THEN format('(s.pseudonym)::%s AS %I', format_type(a.atttypid, a.atttypmod), a.attname)
                           ELSE format('b.%I', a.attname) END, ', ' ORDER BY a.attnum) INTO payload
        FROM jsonb_array_elements(policy -> 'columns') c
        JOIN pg_attribute a ON a.attrelid = relation AND a.attname = c ->> 'name' AND a.attnum > 0 AND NOT a.attisdropped
        WHERE c ->> 'class' IN ('sensitive', 'non_sensitive')
           OR (c ->> 'class' = 'direct_identifier' AND c ->> 'action' = 'pseudonym'
               AND a.atttypid IN ('int4'::regtype, 'int8'::regtype, 'numeric'::regtype, 'text'::regtype));

    EXECUTE format('SELECT count(*) FROM %s WHERE %I IS NULL', relation, policy ->> 'subject') INTO missing;
    IF missing > 0 THEN
        RAISE EXCEPTION 'the subject column of % is NULL in % rows', relation, missing
            USING ERRCODE = '23502', HINT = 'Every row must say whom it is about.';
    END IF;

    number := nextval(pg_get_serial_sequence('tailor.epoch', 'epoch'));
    EXECUTE format(
        'CREATE TABLE tailor_store.epoch_%1$s AS
         WITH subjects AS (
             SELECT %3$I AS subject, (row_number() OVER (ORDER BY gen_random_uuid()))::integer AS pseudonym
             FROM %2$s GROUP BY %3$I)
         SELECT ((row_number() OVER (ORDER BY gen_random_uuid())) - 1)::integer AS "tailor row",
                (%4$s)::integer AS "tailor tuple", s.pseudonym - 1 AS "tailor subject"%5$s %6$s
         FROM %2$s b JOIN subjects s ON s.subject = b.%3$I',
        number, relation, policy ->> 'subject',
        CASE WHEN qids IS NULL THEN '0' ELSE format('dense_rank() OVER (ORDER BY %s) - 1', qids) END,
        CASE WHEN payload IS NULL THEN '' ELSE ', ' || payload END,
        CASE WHEN qids IS NULL THEN '' ELSE ', ' || (
            SELECT string_agg(format('b.%I AS %I', c ->> 'name', 'tailor qid ' || (c ->> 'number')), ', ' ORDER BY (c ->> 'number')::int)
            FROM jsonb_array_elements(policy -> 'columns') c WHERE c ->> 'class' = 'quasi_identifier') END);
    EXECUTE format(
        'CREATE TABLE tailor_store.tuples_%1$s AS SELECT DISTINCT "tailor tuple"%2$s FROM tailor_store.epoch_%1$s',
        number, (SELECT coalesce(', ' || string_agg(format('%I AS %I', 'tailor qid ' || (c ->> 'number'), c ->> 'name'), ', ' ORDER BY (c ->> 'number')::int), '')
                 FROM jsonb_array_elements(policy -> 'columns') c WHERE c ->> 'class' = 'quasi_identifier'));
    -- The copy is written once more, in the order of its random numbers and
    -- without the quasi-identifiers, so that nothing of the first layout is left.
    EXECUTE format(
        'CREATE TABLE tailor_store.copy_%1$s AS SELECT %2$s FROM tailor_store.epoch_%1$s ORDER BY "tailor row"',
        number, (SELECT string_agg(format('%I', a.attname), ', ' ORDER BY a.attnum) FROM pg_attribute a
                 WHERE a.attrelid = format('tailor_store.epoch_%s', number)::regclass AND a.attnum > 0
                   AND a.attname NOT LIKE 'tailor qid %'));
    EXECUTE format('DROP TABLE tailor_store.epoch_%s', number);
    EXECUTE format('ALTER TABLE tailor_store.copy_%1$s RENAME TO epoch_%1$s', number);
    EXECUTE format('ANALYZE tailor_store.epoch_%s', number);

    EXECUTE format('SELECT count(*), count(DISTINCT "tailor subject") FROM tailor_store.epoch_%s', number) INTO total, subjects;
    EXECUTE format('SELECT count(*) FROM tailor_store.tuples_%s', number) INTO tuples;
    IF total > subjects AND qids IS NOT NULL AND EXISTS (
        SELECT FROM jsonb_array_elements(policy -> 'columns') c WHERE c ->> 'action' = 'pseudonym' AND c ->> 'class' = 'direct_identifier') THEN
        RAISE EXCEPTION 'a pseudonym would link the rows of one subject in table %', relation USING ERRCODE = '0A000',
            HINT = 'Hide the subject column: several rows of one subject, linked, identify by their sequence.';
    END IF;
    INSERT INTO tailor.epoch (epoch, relation, version, rows, tuples, subjects)
        OVERRIDING SYSTEM VALUE VALUES (number, build_epoch.relation, build_epoch.version, total, tuples, subjects);
    RETURN number;
END $$;
COMMENT ON FUNCTION tailor.build_epoch IS 'stores a copy of a table under a version of its policy and returns the epoch''s number; for Tailor''s own routines only';

-- Evaluated when a view of the schema research is read as it is, although the
-- view has no rows: a silent nothing would be taken for an answer.
CREATE OR REPLACE FUNCTION tailor.unreachable(relation text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION 'table % is read through the proxy', relation
        USING ERRCODE = '0A000', HINT = 'Connect to the proxy; it answers with the release that is meant for you.';
END $$;
COMMENT ON FUNCTION tailor.unreachable IS 'fails: the released shape of a table holds no rows';

-- The released shape, empty, for tools that list tables and columns.
DROP PROCEDURE IF EXISTS tailor.publish_shape(regclass, jsonb);
CREATE OR REPLACE PROCEDURE tailor.publish_shape(relation regclass, version integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    policy     jsonb := (SELECT v.policy FROM tailor.policy_version v
                         WHERE v.relation = publish_shape.relation AND v.version = publish_shape.version);
    table_name name := (SELECT relname FROM pg_class WHERE oid = relation);
    shape      text;
BEGIN
    CALL tailor.assert_owner(relation);
    SELECT string_agg(format('NULL::%s AS %I', CASE WHEN t.typcategory = 'S' THEN 'text' ELSE format_type(a.atttypid, a.atttypmod) END, a.attname),
                      ', ' ORDER BY a.attnum) INTO shape
        FROM jsonb_array_elements(policy -> 'columns') c
        JOIN pg_attribute a ON a.attrelid = relation AND a.attname = c ->> 'name' AND a.attnum > 0 AND NOT a.attisdropped
        JOIN pg_type t ON t.oid = a.atttypid
        WHERE c ->> 'class' IN ('quasi_identifier', 'sensitive', 'non_sensitive')
           OR (c ->> 'class' = 'direct_identifier' AND c ->> 'action' = 'pseudonym');
    EXECUTE format('DROP VIEW IF EXISTS research.%I', table_name);
    -- OFFSET keeps a query from being planned with the NULLs, which could show
    -- that it has no rows before anything is evaluated.
    EXECUTE format('CREATE VIEW research.%I AS SELECT %s WHERE (SELECT tailor.unreachable(%L)) OFFSET 0', table_name, coalesce(shape, ''), relation);
    EXECUTE format('GRANT SELECT ON research.%I TO tailor_reader', table_name);
    EXECUTE format('COMMENT ON VIEW research.%I IS %L', table_name,
                   format('released shape of %s; ask for it by either name through the proxy', relation));
END $$;
COMMENT ON PROCEDURE tailor.publish_shape IS 'makes the view research.<table>; for Tailor''s own routines only';

-- A release shows the columns that were visible when it was made, until the
-- chain is next used and the proxy makes it anew, for whoever uses it then.
CREATE OR REPLACE PROCEDURE tailor.close_releases(relation regclass)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    chain   record;
    grantee record;
BEGIN
    CALL tailor.assert_owner(relation);
    FOR chain IN SELECT c.chain AS number FROM tailor.chain c WHERE c.relation = close_releases.relation ORDER BY 1 FOR UPDATE LOOP
        FOR grantee IN
            SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS name
            FROM pg_class c CROSS JOIN aclexplode(c.relacl) a
            WHERE c.oid = to_regclass(format('tailor_release.chain_%s', chain.number)) AND a.grantee <> c.relowner
        LOOP
            EXECUTE format('REVOKE ALL ON tailor_release.chain_%s FROM %s', chain.number, grantee.name);
        END LOOP;
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.close_releases IS 'takes all releases of a table from everybody; for Tailor''s own routines only';

CREATE OR REPLACE PROCEDURE tailor.assert_valid(relation regclass, policy jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    problem record;
BEGIN
    FOR problem IN
        SELECT c ->> 'name' AS name, c ->> 'type' AS type, c -> 'hierarchy' ->> 'kind' AS kind
        FROM jsonb_array_elements(policy -> 'columns') c WHERE c ->> 'class' = 'quasi_identifier'
    LOOP
        IF (problem.kind = 'interval' AND problem.type !~ '^(smallint|integer|bigint|numeric|real|double precision)')
           OR (problem.kind = 'date' AND problem.type <> 'date')
           OR (problem.kind = 'prefix' AND problem.type !~ '^(text|character)') THEN
            RAISE EXCEPTION 'column "%" of type % cannot have a hierarchy of kind %', problem.name, problem.type, problem.kind
                USING ERRCODE = '42804';
        END IF;
    END LOOP;
    FOR problem IN
        SELECT a.attname AS name FROM jsonb_array_elements(policy -> 'columns') c
        JOIN pg_attribute a ON a.attrelid = relation AND a.attname = c ->> 'name' AND a.attnum > 0 AND NOT a.attisdropped
        WHERE c ->> 'action' = 'pseudonym' AND c ->> 'class' = 'direct_identifier'
          AND (a.attname <> policy ->> 'subject'
               OR a.atttypid NOT IN ('int4'::regtype, 'int8'::regtype, 'numeric'::regtype, 'text'::regtype))
    LOOP
        RAISE EXCEPTION 'column "%" cannot have a pseudonym', problem.name USING ERRCODE = '0A000',
            HINT = 'Only the subject column can, with type integer, bigint, numeric or text.';
    END LOOP;
    -- Two tables of one subject, both with quasi-identifiers, need blocks that
    -- nest; until they do, one of them must do without.
    IF EXISTS (SELECT FROM tailor.classification c WHERE c.relation = assert_valid.relation AND c.class = 'quasi_identifier')
       AND EXISTS (
        SELECT FROM pg_constraint f JOIN tailor.protection o
            ON o.relation = CASE WHEN f.conrelid = assert_valid.relation THEN f.confrelid ELSE f.conrelid END::regclass
        WHERE f.contype = 'f' AND assert_valid.relation IN (f.conrelid, f.confrelid) AND f.conrelid <> f.confrelid
          AND o.active IS NOT NULL
          AND EXISTS (SELECT FROM tailor.classification c WHERE c.relation = o.relation AND c.class = 'quasi_identifier')) THEN
        RAISE EXCEPTION 'table % is linked by a foreign key to a protected table that has quasi-identifiers too', relation
            USING ERRCODE = '0A000', HINT = 'Classify the quasi-identifiers of one of the two tables as direct_identifier, which hides them.';
    END IF;
    -- research.<name> stands for one table only.
    FOR problem IN
        SELECT p.relation AS other FROM tailor.protection p
        JOIN pg_class o ON o.oid = p.relation JOIN pg_class c ON c.oid = assert_valid.relation
        WHERE p.active IS NOT NULL AND o.oid <> c.oid AND o.relname = c.relname
    LOOP
        RAISE EXCEPTION 'table % has the name of the protected table %', relation, problem.other
            USING ERRCODE = '42710', HINT = 'Rename it: the schema research can show one of them only.';
    END LOOP;
    -- Who shares a chain decides its name. Under another one the same audience
    -- would be shown a second, independent partition.
    IF EXISTS (
        SELECT FROM tailor.protection p
        JOIN tailor.policy_version v ON v.relation = p.relation AND v.version = p.active
        WHERE p.relation = assert_valid.relation AND v.policy ->> 'scope' <> assert_valid.policy ->> 'scope')
       AND EXISTS (SELECT FROM tailor.chain c WHERE c.relation = assert_valid.relation) THEN
        RAISE EXCEPTION 'the scope of table % cannot change: it has chains already', relation
            USING ERRCODE = '55000', HINT = 'Start all chains anew with tailor.forget_chains, which gives up the guarantee over what was shown before.';
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_valid IS 'fails unless a draft can be activated';

CREATE OR REPLACE PROCEDURE tailor.put_in_force(relation regclass)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    policy jsonb;
    number integer;
    built  integer;
    way    record;
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    -- One activation of a table at a time, and one of a name.
    PERFORM FROM tailor.protection p WHERE p.relation = put_in_force.relation FOR UPDATE;
    PERFORM pg_advisory_xact_lock('tailor.protection'::regclass::oid::int,
                                  (SELECT hashtext(c.relname::text) FROM pg_class c WHERE c.oid = relation));
    policy := tailor.draft(relation);
    CALL tailor.assert_valid(relation, policy);
    FOR way IN SELECT * FROM tailor.ways(relation, ARRAY(SELECT tailor.reader_roles())) LIMIT 1 LOOP
        RAISE EXCEPTION 'reader "%" can still read table %', way.reader, way.part USING ERRCODE = '42501',
            DETAIL = format('It may do so as %I.', way.role),
            HINT = 'Revoke the role that grants it, or the privileges on single columns.';
    END LOOP;
    SELECT coalesce(max(version), 0) + 1 INTO number FROM tailor.policy_version v WHERE v.relation = put_in_force.relation;
    INSERT INTO tailor.policy_version (relation, version, policy) VALUES (put_in_force.relation, number, policy);
    built := tailor.build_epoch(relation, number);
    CALL tailor.publish_shape(relation, number);
    CALL tailor.close_releases(relation);
    UPDATE tailor.protection p SET active = number, epoch = built WHERE p.relation = put_in_force.relation;
    PERFORM nextval('tailor.catalog_version');
    PERFORM pg_notify('tailor', 'policies');
END $$;
COMMENT ON PROCEDURE tailor.put_in_force IS 'the part of tailor.activate that writes';

CREATE OR REPLACE PROCEDURE tailor.activate(relation regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    part    record;
    readers text;
BEGIN
    CALL tailor.assert_owner(relation);
    EXECUTE format('LOCK TABLE %s IN SHARE UPDATE EXCLUSIVE MODE', relation);
    SELECT string_agg(quote_ident(r), ', ') INTO readers FROM tailor.reader_roles() r;
    FOR part IN
        SELECT f AS name, pg_get_userbyid(c.relowner) AS owner
        FROM tailor.family(relation) f JOIN pg_class c ON c.oid = f
    LOOP
        -- To revoke an owner's privileges helps nobody: he can give them back.
        IF part.owner IN (SELECT tailor.reader_roles()) THEN
            RAISE EXCEPTION 'the owner "%" of table % is a reader', part.owner, part.name
                USING ERRCODE = '42501', HINT = 'Take tailor_reader from the owner, and from the roles that it is a member of.';
        END IF;
        EXECUTE format('REVOKE ALL ON %s FROM PUBLIC, %s', part.name, readers);
    END LOOP;
    CALL tailor.put_in_force(relation);
END $$;
COMMENT ON PROCEDURE tailor.activate IS 'publishes the draft as a new policy version, takes direct privileges and old releases from readers and builds the stored copy';

CREATE OR REPLACE PROCEDURE tailor.renew_copy(relation regclass)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    number integer;
    built  integer;
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    SELECT p.active INTO number FROM tailor.protection p WHERE p.relation = renew_copy.relation FOR UPDATE;
    IF number IS NULL THEN
        RAISE EXCEPTION 'the policy of table % is not active', relation
            USING ERRCODE = '55000', HINT = format('CALL tailor.activate(%L);', relation);
    END IF;
    built := tailor.build_epoch(relation, number);
    UPDATE tailor.protection p SET epoch = built WHERE p.relation = renew_copy.relation;
    PERFORM nextval('tailor.catalog_version');
    PERFORM pg_notify('tailor', 'policies');
END $$;
COMMENT ON PROCEDURE tailor.renew_copy IS 'the part of tailor.refresh that writes';

CREATE OR REPLACE PROCEDURE tailor.refresh(relation regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    EXECUTE format('LOCK TABLE %s IN SHARE UPDATE EXCLUSIVE MODE', relation);
    CALL tailor.renew_copy(relation);
END $$;
COMMENT ON PROCEDURE tailor.refresh IS 'stores a new copy of the table; each chain is re-fitted to it when it is next used';

CREATE OR REPLACE PROCEDURE tailor.forget_chains(relation regclass)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    chain record;
BEGIN
    CALL tailor.assert_owner(relation);
    FOR chain IN SELECT c.chain AS number FROM tailor.chain c WHERE c.relation = forget_chains.relation FOR UPDATE LOOP
        EXECUTE format('DROP VIEW IF EXISTS tailor_release.chain_%s', chain.number);
        EXECUTE format('DROP TABLE IF EXISTS tailor_store.chain_%1$s_block, tailor_store.chain_%1$s_row', chain.number);
        DELETE FROM tailor.chain c WHERE c.chain = chain.number;
    END LOOP;
    RAISE WARNING 'what was shown of % before may be combined with what will be shown: the guarantee starts anew', relation;
    PERFORM nextval('tailor.catalog_version');
    PERFORM pg_notify('tailor', 'policies');
END $$;
COMMENT ON PROCEDURE tailor.forget_chains IS 'starts all chains of a table anew, giving up the guarantee over what was shown before';

-- What the proxy asks -------------------------------------------------------

CREATE OR REPLACE FUNCTION tailor.verifier(principal name) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT rolpassword FROM pg_authid
    WHERE rolname = principal AND rolcanlogin AND (rolvaliduntil IS NULL OR rolvaliduntil > now())
$$;
COMMENT ON FUNCTION tailor.verifier IS 'SCRAM verifier of a role that may log in; for the proxy only';
REVOKE ALL ON FUNCTION tailor.verifier FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tailor.verifier TO tailor_owner;

-- A release answers only statements that the proxy has planned and recorded:
-- their text, as the client's session sent it, ends in a ticket that the proxy
-- made for this text, this session and these chains. SQL in a string, EXECUTE,
-- FETCH and a connection past the proxy have no ticket.
CREATE OR REPLACE FUNCTION tailor.admit(chain integer, visible boolean) RETURNS boolean
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    form   CONSTANT text := E'\n/\\* tailor ([0-9,]+) ([0-9a-f]{64}) \\*/$';
    ticket text[] := regexp_match(current_query(), form);
    secret bytea := (SELECT key FROM tailor.admission_key);
BEGIN
    IF NOT visible THEN
        RAISE EXCEPTION 'a release is newer than the snapshot of this transaction'
            USING ERRCODE = '40001', HINT = 'Start the transaction again.';
    END IF;
    IF ticket IS NULL OR chain::text <> ALL (string_to_array(ticket[1], ','))
       OR ticket[2] <> encode(sha256(secret || sha256(secret || convert_to(
              format(E'%s %s\n', pg_backend_pid(), ticket[1]) || regexp_replace(current_query(), form, ''),
              pg_client_encoding()))), 'hex') THEN
        RAISE EXCEPTION 'a release is read through the proxy, in place of its table'
            USING ERRCODE = '42501', HINT = 'Connect to the proxy and name the protected table itself.';
    END IF;
    RETURN true;
END $$;
COMMENT ON FUNCTION tailor.admit IS 'lets a statement read a release that the proxy has planned and recorded, and no other';

-- Tells the proxies that names have changed: a view made a moment ago may read
-- a protected table. Event triggers are for superusers; without one the proxies
-- look by themselves every few seconds.
CREATE OR REPLACE FUNCTION tailor.announce_ddl() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF tg_tag LIKE 'DROP %' OR EXISTS (
        SELECT FROM pg_event_trigger_ddl_commands() c
        WHERE coalesce(c.schema_name, '') NOT IN ('pg_temp', 'tailor', 'tailor_store', 'tailor_release')) THEN
        PERFORM pg_notify('tailor', 'ddl');
    END IF;
END $$;
DO $$
BEGIN
    IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        DROP EVENT TRIGGER IF EXISTS tailor_ddl;
        CREATE EVENT TRIGGER tailor_ddl ON ddl_command_end EXECUTE FUNCTION tailor.announce_ddl();
    END IF;
END $$;

-- Ownership and privileges --------------------------------------------------

DO $$
DECLARE
    object record;
BEGIN
    FOR object IN SELECT c.oid::regclass AS name, c.relkind FROM pg_class c
                  WHERE c.relnamespace = 'tailor'::regnamespace AND c.relkind IN ('r', 'v')
    LOOP
        EXECUTE format('ALTER %s %s OWNER TO tailor_owner', CASE object.relkind WHEN 'r' THEN 'TABLE' ELSE 'VIEW' END, object.name);
    END LOOP;
    ALTER SEQUENCE tailor.catalog_version OWNER TO tailor_owner;
    -- Upgrades take what earlier versions granted.
    REVOKE ALL ON ALL TABLES IN SCHEMA tailor FROM PUBLIC, tailor_admin, tailor_reader;
    REVOKE ALL ON ALL SEQUENCES IN SCHEMA tailor FROM PUBLIC, tailor_admin, tailor_reader;
    -- Members of tailor_reader may call nothing that writes.
    FOR object IN SELECT p.oid::regprocedure AS name, p.proname, p.prosecdef FROM pg_proc p
                  WHERE p.pronamespace = 'tailor'::regnamespace
    LOOP
        EXECUTE format('REVOKE ALL ON ROUTINE %s FROM PUBLIC, tailor_admin, tailor_reader', object.name);
        IF object.prosecdef AND object.proname NOT IN ('verifier', 'grant_reader', 'announce_ddl') THEN
            EXECUTE format('ALTER ROUTINE %s OWNER TO tailor_owner', object.name);
        END IF;
        EXECUTE format('GRANT EXECUTE ON ROUTINE %s TO tailor_owner', object.name);
        -- The procedures of an administrator, and what they call with his rights.
        IF object.proname IN (
            'protect', 'define_hierarchy', 'classify', 'require', 'chain_scope', 'draft',
            'grant_reader', 'activate', 'refresh', 'forget_chains',
            'write_protection', 'write_hierarchy', 'put_in_force', 'renew_copy',
            'owns', 'assert_owner', 'family', 'members', 'reader_roles', 'ways', 'unreachable') THEN
            EXECUTE format('GRANT EXECUTE ON ROUTINE %s TO tailor_admin', object.name);
        END IF;
    END LOOP;
END $$;
GRANT EXECUTE ON FUNCTION tailor.admit(integer, boolean), tailor.unreachable(text) TO tailor_reader;
GRANT SELECT ON tailor.policies, tailor.hierarchies, tailor.chains, tailor.audit TO tailor_admin;

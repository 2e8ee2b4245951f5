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

-- Procedures that write the draft of a policy -------------------------------

CREATE OR REPLACE PROCEDURE tailor.assert_owner(relation regclass) LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = relation AND pg_has_role(c.relowner, 'USAGE')) THEN
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

CREATE OR REPLACE PROCEDURE tailor.protect(relation regclass, subject name, k integer)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
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
    EXECUTE format('GRANT SELECT ON %s TO tailor_owner', relation);
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO tailor_owner',
                   (SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = relation));
END $$;
COMMENT ON PROCEDURE tailor.protect IS 'starts a policy: the column that identifies the subject, and k';

CREATE OR REPLACE PROCEDURE tailor.define_hierarchy(name text, kind text, definition jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    path  text;
    paths jsonb;
BEGIN
    IF kind NOT IN ('interval', 'prefix', 'date', 'table') THEN
        RAISE EXCEPTION 'unknown kind of hierarchy "%"', kind
            USING ERRCODE = '22023', HINT = 'Kinds are interval, prefix, date and table.';
    END IF;
    IF kind = 'table' AND definition ? 'source' THEN
        SELECT string_agg(format('%I::text', c), ', ') INTO path
            FROM jsonb_array_elements_text(definition -> 'columns') c;
        EXECUTE format('SELECT jsonb_agg(jsonb_build_array(%s)) FROM %s', path, (definition ->> 'source')::regclass) INTO paths;
        definition := definition || jsonb_build_object('paths', paths);
    END IF;
    IF kind = 'table' AND jsonb_typeof(definition -> 'paths') IS DISTINCT FROM 'array' THEN
        RAISE EXCEPTION 'a hierarchy of kind table needs "source" and "columns", or "paths"' USING ERRCODE = '22023';
    END IF;
    INSERT INTO tailor.hierarchy VALUES (name, kind, definition)
        ON CONFLICT ON CONSTRAINT hierarchy_pkey DO UPDATE SET kind = excluded.kind, definition = excluded.definition;
END $$;
COMMENT ON PROCEDURE tailor.define_hierarchy IS 'names a generalization hierarchy for use in tailor.classify';

CREATE OR REPLACE PROCEDURE tailor.classify(relation regclass, column_name name, class text,
                                            hierarchy text DEFAULT NULL, action text DEFAULT 'hide')
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
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
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
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
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
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

CREATE OR REPLACE PROCEDURE tailor.grant_reader(role name)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    protected regclass;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = role) THEN
        RAISE EXCEPTION 'role "%" does not exist', role USING ERRCODE = '42704';
    END IF;
    IF EXISTS (SELECT FROM pg_roles r WHERE r.rolname = role AND (r.rolsuper OR r.rolbypassrls)) THEN
        RAISE EXCEPTION 'role "%" bypasses privileges and cannot be a reader', role USING ERRCODE = '42501';
    END IF;
    FOR protected IN SELECT p.relation FROM tailor.protection p WHERE p.active IS NOT NULL LOOP
        IF has_any_column_privilege(role, protected, 'SELECT') THEN
            RAISE EXCEPTION 'role "%" can read the protected table % itself', role, protected USING ERRCODE = '42501',
                HINT = format('REVOKE ALL ON %s FROM %I; and from the roles that it is a member of.', protected, role);
        END IF;
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
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
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
    FROM tailor.protection p WHERE p.relation = draft.relation
$$;
COMMENT ON FUNCTION tailor.draft IS 'the policy as it would be activated';

-- Builds the stored copy of a relation under a policy. Rows get numbers in
-- random order; quasi-identifiers are replaced by the number of their tuple,
-- direct identifiers and unclassified columns are left out, pseudonyms are
-- drawn at random.
CREATE OR REPLACE FUNCTION tailor.build_epoch(relation regclass, version integer, policy jsonb) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    number   integer;
    qids     text;
    payload  text;
    subjects bigint;
    total    bigint;
    tuples   bigint;
    missing  bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = relation AND pg_has_role(session_user, c.relowner, 'USAGE')) THEN
        RAISE EXCEPTION 'must be owner of table %', relation USING ERRCODE = '42501';
    END IF;
    SELECT string_agg(format('%I', c ->> 'name'), ', ' ORDER BY (c ->> 'number')::int) INTO qids
        FROM jsonb_array_elements(policy -> 'columns') c WHERE c ->> 'class' = 'quasi_identifier';
    -- Types are the catalog's own: the document is an administrator's text, and
    -- this function runs with more privileges than an administrator has.
    SELECT string_agg(CASE WHEN c ->> 'class' = 'direct_identifier'
                           THEN format('(s.pseudonym)::%s AS %I', format_type(a.atttypid, a.atttypmod), a.attname)
                           ELSE format('b.%I', a.attname) END, ', ' ORDER BY a.attnum) INTO payload
        FROM jsonb_array_elements(policy -> 'columns') c
        JOIN pg_attribute a ON a.attrelid = relation AND a.attname = c ->> 'name' AND a.attnum > 0 AND NOT a.attisdropped
        WHERE c ->> 'class' IN ('sensitive', 'non_sensitive')
           OR (c ->> 'class' = 'direct_identifier' AND c ->> 'action' = 'pseudonym');

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
REVOKE ALL ON FUNCTION tailor.build_epoch FROM PUBLIC;

-- The released shape, empty, for tools that list tables and columns.
CREATE OR REPLACE PROCEDURE tailor.publish_shape(relation regclass, policy jsonb)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    table_name name := (SELECT relname FROM pg_class WHERE oid = relation);
    shape text;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = relation AND pg_has_role(session_user, c.relowner, 'USAGE')) THEN
        RAISE EXCEPTION 'must be owner of table %', relation USING ERRCODE = '42501';
    END IF;
    SELECT string_agg(format('NULL::%s AS %I', CASE WHEN t.typcategory = 'S' THEN 'text' ELSE format_type(a.atttypid, a.atttypmod) END, a.attname),
                      ', ' ORDER BY a.attnum) INTO shape
        FROM jsonb_array_elements(policy -> 'columns') c
        JOIN pg_attribute a ON a.attrelid = relation AND a.attname = c ->> 'name' AND a.attnum > 0 AND NOT a.attisdropped
        JOIN pg_type t ON t.oid = a.atttypid
        WHERE c ->> 'class' IN ('quasi_identifier', 'sensitive', 'non_sensitive')
           OR (c ->> 'class' = 'direct_identifier' AND c ->> 'action' = 'pseudonym');
    EXECUTE format('DROP VIEW IF EXISTS research.%I', table_name);
    EXECUTE format('CREATE VIEW research.%I AS SELECT %s WHERE false', table_name, coalesce(shape, ''));
    EXECUTE format('GRANT SELECT ON research.%I TO tailor_reader', table_name);
    EXECUTE format('COMMENT ON VIEW research.%I IS %L', table_name,
                   format('released shape of %s; ask for it by either name through the proxy', relation));
END $$;
REVOKE ALL ON PROCEDURE tailor.publish_shape FROM PUBLIC;

CREATE OR REPLACE FUNCTION tailor.reader_roles() RETURNS SETOF name
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE members AS (
        SELECT r.oid FROM pg_roles r WHERE r.rolname = 'tailor_reader'
        UNION
        SELECT m.member FROM pg_auth_members m JOIN members ON m.roleid = members.oid)
    SELECT r.rolname FROM members JOIN pg_roles r USING (oid) ORDER BY 1
$$;
COMMENT ON FUNCTION tailor.reader_roles IS 'tailor_reader and every role that is, directly or not, a member of it';

CREATE OR REPLACE PROCEDURE tailor.activate(relation regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    policy  jsonb;
    number  integer;
    built   integer;
    problem record;
    reader  name;
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    -- One activation of a table at a time.
    PERFORM FROM tailor.protection p WHERE p.relation = activate.relation FOR UPDATE;
    policy := tailor.draft(relation);

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
        SELECT c ->> 'name' AS name, c ->> 'type' AS type FROM jsonb_array_elements(policy -> 'columns') c
        WHERE c ->> 'action' = 'pseudonym' AND c ->> 'class' = 'direct_identifier'
          AND (c ->> 'name' <> policy ->> 'subject' OR c ->> 'type' !~ '^(integer|bigint|numeric|text)')
    LOOP
        RAISE EXCEPTION 'column "%" cannot have a pseudonym', problem.name USING ERRCODE = '0A000',
            HINT = 'Only the subject column can, with type integer, bigint, numeric or text.';
    END LOOP;
    -- Two tables of one subject, both with quasi-identifiers, need blocks that
    -- nest; until they do, one of them must do without.
    IF EXISTS (SELECT FROM tailor.classification c WHERE c.relation = activate.relation AND c.class = 'quasi_identifier')
       AND EXISTS (
        SELECT FROM pg_constraint f JOIN tailor.protection o
            ON o.relation = CASE WHEN f.conrelid = activate.relation THEN f.confrelid ELSE f.conrelid END::regclass
        WHERE f.contype = 'f' AND activate.relation IN (f.conrelid, f.confrelid) AND f.conrelid <> f.confrelid
          AND o.active IS NOT NULL
          AND EXISTS (SELECT FROM tailor.classification c WHERE c.relation = o.relation AND c.class = 'quasi_identifier')) THEN
        RAISE EXCEPTION 'table % is linked by a foreign key to a protected table that has quasi-identifiers too', relation
            USING ERRCODE = '0A000', HINT = 'Classify the quasi-identifiers of one of the two tables as direct_identifier, which hides them.';
    END IF;

    SELECT coalesce(max(version), 0) + 1 INTO number FROM tailor.policy_version v WHERE v.relation = activate.relation;
    INSERT INTO tailor.policy_version (relation, version, policy) VALUES (activate.relation, number, policy);

    FOR reader IN SELECT tailor.reader_roles() UNION ALL SELECT 'public' LOOP
        EXECUTE format('REVOKE ALL ON %s FROM %s', relation, CASE WHEN reader = 'public' THEN 'PUBLIC' ELSE quote_ident(reader) END);
    END LOOP;
    FOR reader IN SELECT r FROM tailor.reader_roles() r WHERE has_any_column_privilege(r, relation, 'SELECT') LOOP
        RAISE EXCEPTION 'reader "%" can still read table %', reader, relation USING ERRCODE = '42501',
            HINT = 'Revoke the role that grants it, or the privileges on single columns.';
    END LOOP;

    built := tailor.build_epoch(relation, number, policy);
    CALL tailor.publish_shape(relation, policy);
    UPDATE tailor.protection p SET active = number, epoch = built WHERE p.relation = activate.relation;
    PERFORM nextval('tailor.catalog_version');
    PERFORM pg_notify('tailor', 'policies');
END $$;
COMMENT ON PROCEDURE tailor.activate IS 'publishes the draft as a new policy version, takes direct privileges from readers and builds the stored copy';

CREATE OR REPLACE PROCEDURE tailor.refresh(relation regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    number integer;
    built  integer;
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    SELECT p.active INTO number FROM tailor.protection p WHERE p.relation = refresh.relation FOR UPDATE;
    IF number IS NULL THEN
        RAISE EXCEPTION 'the policy of table % is not active', relation
            USING ERRCODE = '55000', HINT = format('CALL tailor.activate(%L);', relation);
    END IF;
    built := tailor.build_epoch(relation, number,
        (SELECT v.policy FROM tailor.policy_version v WHERE v.relation = refresh.relation AND v.version = number));
    UPDATE tailor.protection p SET epoch = built WHERE p.relation = refresh.relation;
    PERFORM nextval('tailor.catalog_version');
    PERFORM pg_notify('tailor', 'policies');
END $$;
COMMENT ON PROCEDURE tailor.refresh IS 'stores a new copy of the table; each chain is re-fitted to it when it is next used';

CREATE OR REPLACE PROCEDURE tailor.forget_chains(relation regclass)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    chain record;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = relation AND pg_has_role(session_user, c.relowner, 'USAGE')) THEN
        RAISE EXCEPTION 'must be owner of table %', relation USING ERRCODE = '42501';
    END IF;
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
    ALTER FUNCTION tailor.build_epoch(regclass, integer, jsonb) OWNER TO tailor_owner;
    ALTER PROCEDURE tailor.publish_shape(regclass, jsonb) OWNER TO tailor_owner;
    ALTER PROCEDURE tailor.forget_chains(regclass) OWNER TO tailor_owner;
    ALTER FUNCTION tailor.admit(integer, boolean) OWNER TO tailor_owner;
    -- Members of tailor_reader may call nothing that writes.
    FOR object IN SELECT p.oid::regprocedure AS name FROM pg_proc p WHERE p.pronamespace = 'tailor'::regnamespace
    LOOP
        EXECUTE format('REVOKE ALL ON ROUTINE %s FROM PUBLIC', object.name);
        IF object.name <> 'tailor.verifier(name)'::regprocedure THEN
            EXECUTE format('GRANT EXECUTE ON ROUTINE %s TO tailor_admin, tailor_owner', object.name);
        END IF;
    END LOOP;
END $$;
GRANT EXECUTE ON FUNCTION tailor.admit(integer, boolean) TO tailor_reader;
GRANT SELECT, INSERT, UPDATE, DELETE ON tailor.hierarchy, tailor.protection, tailor.classification, tailor.requirement TO tailor_admin;
GRANT SELECT, INSERT ON tailor.policy_version TO tailor_admin;
GRANT SELECT ON tailor.policies, tailor.chains, tailor.audit TO tailor_admin;
GRANT USAGE ON SEQUENCE tailor.catalog_version TO tailor_admin;

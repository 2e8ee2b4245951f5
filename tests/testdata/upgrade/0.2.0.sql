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
ALTER TABLE tailor.protection ADD COLUMN IF NOT EXISTS gate text CHECK (gate IN ('highest', 'average', 'below_k', 'unique'));
ALTER TABLE tailor.protection ADD COLUMN IF NOT EXISTS max_risk double precision CHECK (max_risk > 0 AND max_risk <= 1);
ALTER TABLE tailor.protection ADD COLUMN IF NOT EXISTS seed jsonb NOT NULL DEFAULT '[]';
ALTER TABLE tailor.protection ADD COLUMN IF NOT EXISTS rows boolean NOT NULL DEFAULT true;
COMMENT ON COLUMN tailor.protection.rows IS 'whether answers may show rows, or only aggregates over at least k subjects';
COMMENT ON COLUMN tailor.protection.gate IS 'the measure of risk that decides whether a stage of a query is de-identified; NULL means the highest, up to 1/k';
COMMENT ON COLUMN tailor.protection.seed IS 'the combinations of quasi-identifiers that every chain is prepared for';
COMMENT ON COLUMN tailor.protection.active IS 'the policy version in force; NULL before the first activation';

CREATE TABLE IF NOT EXISTS tailor.classification (
    relation    regclass NOT NULL REFERENCES tailor.protection ON DELETE CASCADE,
    column_name name NOT NULL,
    class       text NOT NULL CHECK (class IN ('direct_identifier', 'quasi_identifier', 'sensitive', 'non_sensitive')),
    hierarchy   text REFERENCES tailor.hierarchy,
    action      text NOT NULL DEFAULT 'hide' CHECK (action IN ('hide', 'pseudonym')),
    PRIMARY KEY (relation, column_name)
);
ALTER TABLE tailor.classification ADD COLUMN IF NOT EXISTS representative text NOT NULL DEFAULT 'middle' CHECK (representative IN ('middle', 'mean'));
COMMENT ON COLUMN tailor.classification.representative IS 'which value stands for a label: its middle, or the mean of those who share it';

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
ALTER TABLE tailor.chain ADD COLUMN IF NOT EXISTS score double precision NOT NULL DEFAULT 0;
ALTER TABLE tailor.chain ADD COLUMN IF NOT EXISTS seeds text[] NOT NULL DEFAULT '{}';
ALTER TABLE tailor.chain ADD COLUMN IF NOT EXISTS layout smallint NOT NULL DEFAULT 0;
ALTER TABLE tailor.chain ADD COLUMN IF NOT EXISTS means bytea;
ALTER TABLE tailor.chain ADD COLUMN IF NOT EXISTS role oid;
UPDATE tailor.chain c SET role = r.oid FROM pg_roles r WHERE c.role IS NULL AND c.audience IN ('principal ' || r.rolname, 'role ' || r.rolname);
COMMENT ON TABLE tailor.chain IS 'the partition that one audience has been shown; only ever refined';
COMMENT ON COLUMN tailor.chain.role IS 'the role of the audience, by which a chain finds its role again that has another name by now; NULL for everyone';
COMMENT ON COLUMN tailor.chain.score IS 'the running sum of local risks along the graph; it bounds nothing, min_block does';
COMMENT ON COLUMN tailor.chain.means IS 'the groups of blocks over which means have been shown; NULL where the policy asks for none';
COMMENT ON COLUMN tailor.chain.layout IS 'the way its release is stored; a proxy of another version stores it anew';
COMMENT ON COLUMN tailor.chain.seeds IS 'the declared workloads that the chain has been prepared for; the policy''s own has an empty name';

CREATE TABLE IF NOT EXISTS tailor.chain_node (
    chain       integer NOT NULL REFERENCES tailor.chain ON DELETE CASCADE,
    generation  integer NOT NULL,
    position    integer NOT NULL,
    node        jsonb NOT NULL,
    PRIMARY KEY (chain, generation, position)
);
COMMENT ON TABLE tailor.chain_node IS 'the Execution Chain Graph: the stages that refined each chain, in order';

CREATE TABLE IF NOT EXISTS tailor.project (
    name         text NOT NULL CHECK (name <> ''),
    relation     regclass NOT NULL REFERENCES tailor.protection ON DELETE CASCADE,
    combinations jsonb NOT NULL,
    PRIMARY KEY (name, relation)
);
COMMENT ON TABLE tailor.project IS 'declared workloads: SET tailor.project prepares a chain for one';

-- Versions before the chain was numbered kept records as jsonb, which forgets
-- the bytes that a hash is about.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid = pg_catalog.to_regclass('tailor.audit_log')
               AND a.attname = 'record' AND a.atttypid = 'pg_catalog.jsonb'::pg_catalog.regtype) THEN
        DROP VIEW IF EXISTS tailor.audit;
        DROP INDEX IF EXISTS tailor.audit_log_time;
        ALTER TABLE tailor.audit_log ADD COLUMN log text, ADD COLUMN sequence bigint, ADD UNIQUE (log, sequence),
            ALTER COLUMN record TYPE json USING record::text::json;
    END IF;
END $$;
CREATE TABLE IF NOT EXISTS tailor.audit_log (
    position    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id          text NOT NULL UNIQUE,
    log         text,
    sequence    bigint,
    record      json NOT NULL,
    UNIQUE (log, sequence)
);
COMMENT ON TABLE tailor.audit_log IS 'every line of every chain, byte by byte; NULL log: written before chains were numbered';

-- What lists and totals look at, apart from the lines, which are many times as
-- wide: a million rows are read in well below the time of a glance.
CREATE TABLE IF NOT EXISTS tailor.audit_entry (
    position    bigint PRIMARY KEY,
    time        timestamptz NOT NULL,
    principal   text NOT NULL,
    database    text NOT NULL,
    verdict     text NOT NULL,
    sqlstate    text NOT NULL,
    relations   text[] NOT NULL,
    chain       integer NOT NULL,
    risk        float8 NOT NULL,
    loss        float8 NOT NULL,
    min_block   integer NOT NULL,
    rows        bigint,
    duration_ms float8 NOT NULL
);
CREATE INDEX IF NOT EXISTS audit_entry_time ON tailor.audit_entry (time, position);
CREATE INDEX IF NOT EXISTS audit_entry_principal ON tailor.audit_entry (principal, position);
CREATE INDEX IF NOT EXISTS audit_entry_verdict ON tailor.audit_entry (verdict, position);
CREATE INDEX IF NOT EXISTS audit_entry_chain ON tailor.audit_entry (chain, position) WHERE verdict = 'released';
CREATE INDEX IF NOT EXISTS audit_entry_relations ON tailor.audit_entry USING gin (relations);
CREATE INDEX IF NOT EXISTS audit_entry_risk ON tailor.audit_entry (risk);
CREATE INDEX IF NOT EXISTS audit_entry_loss ON tailor.audit_entry (loss);
-- For a table that is seldom asked for, or never, the planner is to know that.
ALTER TABLE tailor.audit_entry ALTER relations SET STATISTICS 500;
COMMENT ON TABLE tailor.audit_entry IS 'one row a statement or refused login, with the outcome of its answer';

CREATE TABLE IF NOT EXISTS tailor.audit_head (
    log         text PRIMARY KEY,
    sequence    bigint NOT NULL,
    hash        text NOT NULL,
    changed     timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE tailor.audit_head IS 'the last line of each chain: a tail that was cut off is missed here';

CREATE TABLE IF NOT EXISTS tailor.admission_key (
    single      boolean PRIMARY KEY DEFAULT true CHECK (single),
    key         bytea NOT NULL
);
COMMENT ON TABLE tailor.admission_key IS 'what the proxy and tailor.admit share; for tailor_owner only';
INSERT INTO tailor.admission_key (key)
    SELECT sha256(convert_to(gen_random_uuid()::text || gen_random_uuid() || gen_random_uuid(), 'UTF8'))
    ON CONFLICT DO NOTHING;

CREATE SEQUENCE IF NOT EXISTS tailor.catalog_version;

-- Which installation this is, so that one restored from a dump is known: its
-- chains may be older than what readers have been shown. A restored row lies in
-- a table of another number, or was written by another transaction than the one
-- it names. There is no key, so that a dump restores beside a new row.
CREATE TABLE IF NOT EXISTS tailor.installation (
    version     text NOT NULL,
    installed   timestamptz NOT NULL DEFAULT now(),
    chain_table bigint NOT NULL,
    written     text NOT NULL
);
COMMENT ON TABLE tailor.installation IS 'the version of the SQL side, and what tells a restored one from the one that was dumped';
-- Locks -----------------------------------------------------------------------
--
-- What one does at a time is done under a lock of one of these tables, which hold
-- nothing. Readers have no right to them; an advisory lock could be anybody's.

CREATE TABLE IF NOT EXISTS tailor.lock_schedules ();
COMMENT ON TABLE tailor.lock_schedules IS 'locked by the proxy that makes scheduled refreshes';

CREATE TABLE IF NOT EXISTS tailor.lock_apply ();
COMMENT ON TABLE tailor.lock_apply IS 'locked while a policy file is applied';

CREATE TABLE IF NOT EXISTS tailor.lock_name (name name PRIMARY KEY);
COMMENT ON TABLE tailor.lock_name IS 'names of tables that are being activated: each is added and taken away again by one transaction, for which others wait';

CREATE OR REPLACE FUNCTION tailor.apply_alone() RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    LOCK TABLE tailor.lock_apply IN EXCLUSIVE MODE NOWAIT;
    RETURN true;
EXCEPTION WHEN lock_not_available THEN
    RETURN false;
END $$;
COMMENT ON FUNCTION tailor.apply_alone IS 'whether nobody else applies a policy file, which holds until the transaction ends';

CREATE OR REPLACE PROCEDURE tailor.take_turn(relation regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '1min' AS $$
DECLARE
    called name := (SELECT c.relname FROM pg_class c WHERE c.oid = relation);
BEGIN
    PERFORM FROM tailor.protection p WHERE p.relation = take_turn.relation FOR UPDATE;
    INSERT INTO tailor.lock_name VALUES (called);
    DELETE FROM tailor.lock_name l WHERE l.name = called;
EXCEPTION WHEN lock_not_available THEN
    RAISE EXCEPTION 'table %, or another of its name, is being activated or refreshed', relation
        USING ERRCODE = '55P03', HINT = 'Try again when that is done; pg_blocking_pids says who it is.';
END $$;
COMMENT ON PROCEDURE tailor.take_turn IS 'lets one activation or refresh of a table happen at a time, and one of a name; for Tailor''s own routines only';
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
    SELECT chain, relation, audience, epoch, generation, blocks, min_block, created, changed, score, seeds FROM tailor.chain;
COMMENT ON VIEW tailor.chains IS 'how fine the partition of each audience is by now';

CREATE OR REPLACE VIEW tailor.graphs AS
    SELECT n.chain, c.relation, c.audience, n.generation, n.position,
           n.node ->> 'stage' AS stage, n.node ->> 'place' AS place,
           ARRAY(SELECT jsonb_array_elements_text(n.node -> 'qids')) AS qids, n.node ->> 'condition' AS condition,
           n.node ->> 'action' AS action, (n.node ->> 'risk_before')::float8 AS risk_before,
           (n.node ->> 'risk_after')::float8 AS risk_after, (n.node ->> 'loss')::float8 AS loss, n.node
    FROM tailor.chain_node n JOIN tailor.chain c USING (chain);
COMMENT ON VIEW tailor.graphs IS 'the Execution Chain Graph of each chain: one row a stage that refined it';

CREATE OR REPLACE VIEW tailor.audit AS
    SELECT e.time, l.id, e.principal, e.database, e.verdict, e.sqlstate,
           l.record ->> 'sql' AS sql, e.relations, e.risk AS aggregate_risk, e.loss AS aggregate_loss, e.min_block,
           e.rows, e.duration_ms, (l.record ->> 'plan_ms')::float8 AS plan_ms,
           l.record ->> 'session' AS session, l.record ->> 'client' AS client, l.record ->> 'fingerprint' AS fingerprint,
           (l.record ->> 'epoch')::integer AS epoch, (l.record ->> 'policy_version')::integer AS policy_version,
           e.chain, l.record -> 'stages' AS stages, l.record ->> 'recoding' AS recoding,
           coalesce(l.record ->> 'event', 'statement') AS event,
           l.record ->> 'previous_hash' AS previous_hash, l.record ->> 'hash' AS hash, e.position, l.record
    FROM tailor.audit_entry e LEFT JOIN tailor.audit_log l USING (position);
COMMENT ON VIEW tailor.audit IS 'one row a statement that came through the proxy, or login that it refused; ORDER BY position or time';

CREATE OR REPLACE VIEW tailor.audit_lines AS
    SELECT l.position, l.log, l.sequence, l.record::text AS line, e.principal, e.verdict, e.sqlstate, e.relations, e.risk, e.loss,
           e.min_block, e.rows
    FROM tailor.audit_log l LEFT JOIN tailor.audit_entry e USING (position);
COMMENT ON VIEW tailor.audit_lines IS 'what tailor audit --verify reads: lines as they were written, and what lists show of them';

CREATE OR REPLACE VIEW tailor.audit_heads AS
    SELECT log, sequence, hash, changed FROM tailor.audit_head;
COMMENT ON VIEW tailor.audit_heads IS 'the last line of each chain of the audit log';

-- Writing audit lines ----------------------------------------------------------

-- Writes lines in their order. A line that is there already stays as it is, so
-- that what a crash has taken can be written again.
CREATE OR REPLACE FUNCTION tailor.record(lines text[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO tailor.audit_log (id, log, sequence, record)
        SELECT j ->> 'id', j ->> 'log', (j ->> 'sequence')::bigint, line::json
        FROM unnest(record.lines) WITH ORDINALITY u (line, number), LATERAL (SELECT line::jsonb AS j) p
        ORDER BY number
        ON CONFLICT (log, sequence) DO NOTHING;
    INSERT INTO tailor.audit_entry
        SELECT l.position, (j ->> 'time')::timestamptz, j ->> 'principal', j ->> 'database', j ->> 'verdict', j ->> 'sqlstate',
               ARRAY(SELECT jsonb_array_elements_text(j -> 'relations')), (j ->> 'chain')::integer,
               (j ->> 'aggregate_risk')::float8, (j ->> 'aggregate_loss')::float8, (j ->> 'min_block')::integer,
               (j ->> 'rows')::bigint, (j ->> 'duration_ms')::float8
        FROM unnest(record.lines) line, LATERAL (SELECT line::jsonb AS j OFFSET 0) p
        JOIN tailor.audit_log l ON l.id = j ->> 'id'
        WHERE NOT j ? 'completes'
        ORDER BY l.position
        ON CONFLICT DO NOTHING;
    -- A completion counts once: it moves the head, and those behind it are old.
    UPDATE tailor.audit_entry e
        SET rows = coalesce(e.rows, 0) + c.rows, duration_ms = e.duration_ms + c.duration_ms,
            verdict = coalesce(c.verdict, e.verdict), sqlstate = CASE WHEN c.verdict IS NULL THEN e.sqlstate ELSE c.sqlstate END
        FROM (SELECT l.position, sum((j ->> 'rows')::bigint)::bigint AS rows, sum((j ->> 'duration_ms')::float8) AS duration_ms,
                     max(j ->> 'verdict') AS verdict, max(j ->> 'sqlstate') AS sqlstate
              FROM unnest(record.lines) line, LATERAL (SELECT line::jsonb AS j OFFSET 0) p
              JOIN tailor.audit_log l ON l.id = j ->> 'completes'
              WHERE j ? 'completes' AND (j ->> 'sequence')::bigint > coalesce(
                  (SELECT h.sequence FROM tailor.audit_head h WHERE h.log = j ->> 'log'), 0)
              GROUP BY l.position) c
        WHERE e.position = c.position;
    INSERT INTO tailor.audit_head (log, sequence, hash)
        SELECT DISTINCT ON (j ->> 'log') j ->> 'log', (j ->> 'sequence')::bigint, j ->> 'hash'
        FROM unnest(record.lines) line, LATERAL (SELECT line::jsonb AS j OFFSET 0) p
        ORDER BY j ->> 'log', (j ->> 'sequence')::bigint DESC
        ON CONFLICT (log) DO UPDATE SET sequence = excluded.sequence, hash = excluded.hash, changed = now()
            WHERE excluded.sequence > audit_head.sequence;
END $$;
COMMENT ON FUNCTION tailor.record IS 'the sink of the audit log; for tailor_owner only';

-- Records of versions before there were entries.
INSERT INTO tailor.audit_entry
    SELECT l.position, (j ->> 'time')::timestamptz, j ->> 'principal', j ->> 'database', j ->> 'verdict', j ->> 'sqlstate',
           ARRAY(SELECT jsonb_array_elements_text(j -> 'relations')), (j ->> 'chain')::integer,
           (j ->> 'aggregate_risk')::float8, (j ->> 'aggregate_loss')::float8, (j ->> 'min_block')::integer,
           (j ->> 'rows')::bigint, (j ->> 'duration_ms')::float8
    FROM tailor.audit_log l, LATERAL (SELECT l.record::jsonb AS j OFFSET 0) p
    WHERE l.log IS NULL
    ON CONFLICT DO NOTHING;

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
-- What makes a hierarchy -----------------------------------------------------

CREATE OR REPLACE PROCEDURE tailor.assert_numbers(value jsonb, name text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF jsonb_typeof(value) IS DISTINCT FROM 'array'
       OR EXISTS (SELECT FROM jsonb_array_elements(value) e WHERE jsonb_typeof(e) <> 'number') THEN
        RAISE EXCEPTION '"%" must be a list of numbers', name USING ERRCODE = '22023';
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_numbers IS 'fails unless a key of a definition holds a list of numbers';

CREATE OR REPLACE PROCEDURE tailor.assert_interval(definition jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    width  numeric;
    before numeric;
BEGIN
    CALL tailor.assert_numbers(definition -> 'widths', 'widths');
    FOR width IN SELECT e::numeric FROM jsonb_array_elements_text(definition -> 'widths') WITH ORDINALITY w (e, n) ORDER BY n LOOP
        IF width <= 0 THEN
            RAISE EXCEPTION 'a width must be above 0' USING ERRCODE = '22023';
        END IF;
        IF before IS NOT NULL AND (width <= before OR width % before <> 0) THEN
            RAISE EXCEPTION 'width % is not a multiple of the width % before it', width, before
                USING ERRCODE = '22023', HINT = 'Levels nest only where each range is made of whole ranges of the level before.';
        END IF;
        before := width;
    END LOOP;
    IF jsonb_typeof(definition -> 'lower') IS DISTINCT FROM 'number' OR jsonb_typeof(definition -> 'upper') IS DISTINCT FROM 'number' THEN
        RAISE EXCEPTION 'a hierarchy of kind interval needs "lower" and "upper"' USING ERRCODE = '22023',
            HINT = 'Bounds come from the policy, so that no label tells an extreme value.';
    END IF;
    IF (definition ->> 'lower')::numeric >= (definition ->> 'upper')::numeric THEN
        RAISE EXCEPTION 'the lower bound must be below the upper bound' USING ERRCODE = '22023';
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_interval IS 'fails unless a definition makes a hierarchy of kind interval';

CREATE OR REPLACE PROCEDURE tailor.assert_prefix(definition jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kept   numeric;
    before numeric;
BEGIN
    CALL tailor.assert_numbers(definition -> 'keep', 'keep');
    FOR kept IN SELECT e::numeric FROM jsonb_array_elements_text(definition -> 'keep') WITH ORDINALITY w (e, n) ORDER BY n LOOP
        IF kept < 0 OR kept <> trunc(kept) OR kept >= before THEN
            RAISE EXCEPTION 'kept characters must fall from level to level, not below 0' USING ERRCODE = '22023';
        END IF;
        before := kept;
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.assert_prefix IS 'fails unless a definition makes a hierarchy of kind prefix';

CREATE OR REPLACE PROCEDURE tailor.assert_dates(definition jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    units  CONSTANT text[] := ARRAY['week', 'month', 'quarter', 'year', 'decade', 'century'];
    unit   text;
    before text;
    bound  text;
BEGIN
    IF jsonb_typeof(definition -> 'levels') IS DISTINCT FROM 'array' THEN
        RAISE EXCEPTION 'a hierarchy of kind date needs "levels"' USING ERRCODE = '22023';
    END IF;
    FOR unit IN SELECT e FROM jsonb_array_elements_text(definition -> 'levels') WITH ORDINALITY w (e, n) ORDER BY n LOOP
        IF unit IS NULL OR unit <> ALL (units) THEN
            RAISE EXCEPTION 'unknown unit "%"', unit USING ERRCODE = '22023', HINT = format('Units are %s.', array_to_string(units, ', '));
        END IF;
        IF before = 'week' OR array_position(units, unit) <= array_position(units, before) THEN
            RAISE EXCEPTION '"%" does not nest in "%"', before, unit USING ERRCODE = '22023';
        END IF;
        before := unit;
    END LOOP;
    FOREACH bound IN ARRAY ARRAY['lower', 'upper'] LOOP
        IF definition ? bound AND coalesce(definition ->> bound, '') !~ '^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$' THEN
            RAISE EXCEPTION 'the bound "%" is not a date', bound USING ERRCODE = '22023', HINT = 'Write it as 1900-01-01.';
        END IF;
    END LOOP;
    IF coalesce(definition ->> 'lower', '1900-01-01') >= coalesce(definition ->> 'upper', '2099-12-31') THEN
        RAISE EXCEPTION 'the lower bound must be below the upper bound' USING ERRCODE = '22023';
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_dates IS 'fails unless a definition makes a hierarchy of kind date';

CREATE OR REPLACE PROCEDURE tailor.assert_paths(definition jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    height integer;
    level  integer;
BEGIN
    IF jsonb_typeof(definition -> 'paths') IS DISTINCT FROM 'array' THEN
        RAISE EXCEPTION 'a hierarchy of kind table needs "source" and "columns", or "paths"' USING ERRCODE = '22023';
    END IF;
    IF EXISTS (SELECT FROM jsonb_array_elements(definition -> 'paths') p
               WHERE jsonb_typeof(p) <> 'array'
                  OR EXISTS (SELECT FROM jsonb_array_elements(CASE jsonb_typeof(p) WHEN 'array' THEN p ELSE '[]' END) e WHERE jsonb_typeof(e) <> 'string')) THEN
        RAISE EXCEPTION 'each path of a hierarchy must be a list of texts' USING ERRCODE = '22023',
            HINT = 'The value, and its label at each level; a source must hold no NULL.';
    END IF;
    SELECT min(jsonb_array_length(p)), max(jsonb_array_length(p)) INTO level, height FROM jsonb_array_elements(definition -> 'paths') p;
    IF height IS NULL OR level < 1 OR level <> height THEN
        RAISE EXCEPTION 'the paths of a hierarchy must be as long as each other, and there must be one' USING ERRCODE = '22023';
    END IF;
    FOR level IN 0 .. height - 2 LOOP
        IF EXISTS (SELECT FROM jsonb_array_elements(definition -> 'paths') p
                   GROUP BY p ->> level HAVING count(DISTINCT p ->> (level + 1)) > 1) THEN
            RAISE EXCEPTION 'levels do not nest: a label of level % has two different parents', level USING ERRCODE = '22023';
        END IF;
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.assert_paths IS 'fails unless a definition makes a hierarchy of kind table';

CREATE OR REPLACE PROCEDURE tailor.assert_hierarchy(kind text, definition jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    known text[] := CASE kind WHEN 'interval' THEN ARRAY['widths', 'lower', 'upper'] WHEN 'prefix' THEN ARRAY['keep']
                              WHEN 'date' THEN ARRAY['levels', 'lower', 'upper'] WHEN 'table' THEN ARRAY['source', 'columns', 'paths'] END;
    key   text;
BEGIN
    IF known IS NULL THEN
        RAISE EXCEPTION 'unknown kind of hierarchy "%"', kind
            USING ERRCODE = '22023', HINT = 'Kinds are interval, prefix, date and table.';
    END IF;
    IF jsonb_typeof(definition) IS DISTINCT FROM 'object' THEN
        RAISE EXCEPTION 'the definition of a hierarchy must be a JSON object' USING ERRCODE = '22023';
    END IF;
    SELECT k INTO key FROM jsonb_object_keys(definition) k WHERE k <> ALL (known) LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'unknown key "%" in a hierarchy of kind %', key, kind
            USING ERRCODE = '22023', HINT = format('Keys are %s.', array_to_string(known, ', '));
    END IF;
    CASE kind
        WHEN 'interval' THEN CALL tailor.assert_interval(definition);
        WHEN 'prefix' THEN CALL tailor.assert_prefix(definition);
        WHEN 'date' THEN CALL tailor.assert_dates(definition);
        WHEN 'table' THEN CALL tailor.assert_paths(definition);
    END CASE;
END $$;
COMMENT ON PROCEDURE tailor.assert_hierarchy IS 'fails unless a definition makes a hierarchy of its kind';

-- Hierarchies for use by name. A policy keeps the definition that it was
-- activated with, so a version of Tailor may change them.
INSERT INTO tailor.hierarchy (name, kind, definition, owner) VALUES
    ('builtin.age', 'interval', '{"widths": [5, 10, 20], "lower": 0, "upper": 119}', 'tailor_owner'),
    ('builtin.birth_date', 'date', '{"levels": ["month", "year", "decade"], "lower": "1900-01-01", "upper": "2029-12-31"}', 'tailor_owner'),
    ('builtin.event_date', 'date', '{"levels": ["month", "quarter", "year"]}', 'tailor_owner'),
    ('builtin.icd10', 'prefix', '{"keep": [3, 2, 1]}', 'tailor_owner'),
    ('builtin.icd9', 'prefix', '{"keep": [3, 2, 1]}', 'tailor_owner'),
    ('builtin.income', 'interval', '{"widths": [1000, 5000, 10000, 50000, 100000], "lower": 0, "upper": 9999999}', 'tailor_owner'),
    ('builtin.postal_code', 'prefix', '{"keep": [4, 3, 2, 1]}', 'tailor_owner')
ON CONFLICT (name) DO UPDATE SET kind = excluded.kind, definition = excluded.definition, owner = excluded.owner;

-- A value without a place in its hierarchy could never be shown. The message
-- counts such values and quotes none.
-- Where a copy stores a column of the table's parent. A table has far fewer
-- than 10000 columns.
CREATE OR REPLACE FUNCTION tailor.borrowed(parent_column jsonb) RETURNS name
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT 'tailor qid ' || 10000 + (parent_column ->> 'number')::integer
$$;
COMMENT ON FUNCTION tailor.borrowed IS 'the name, in a copy, of a quasi-identifier of the table''s parent';

CREATE OR REPLACE PROCEDURE tailor.assert_covers(policy jsonb, epoch integer)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    qid     record;
    outside text;
    missing bigint;
BEGIN
    FOR qid IN
        SELECT c ->> 'name' AS name, c ->> 'name' AS stored, c -> 'hierarchy' ->> 'name' AS hierarchy, c -> 'hierarchy' ->> 'kind' AS kind,
               c -> 'hierarchy' -> 'definition' AS definition
        FROM jsonb_array_elements(policy -> 'columns') c WHERE c ->> 'class' = 'quasi_identifier'
      UNION ALL
        SELECT c ->> 'name', tailor.borrowed(c), c -> 'hierarchy' ->> 'name', c -> 'hierarchy' ->> 'kind', c -> 'hierarchy' -> 'definition'
        FROM jsonb_array_elements(policy #> '{parent,columns}') c
    LOOP
        outside := CASE qid.kind
            WHEN 'interval' THEN '%1$I NOT BETWEEN ($1 ->> ''lower'')::numeric AND ($1 ->> ''upper'')::numeric'
            WHEN 'date' THEN '%1$I NOT BETWEEN coalesce($1 ->> ''lower'', ''1900-01-01'')::date AND coalesce($1 ->> ''upper'', ''2099-12-31'')::date'
            WHEN 'table' THEN '%1$I IS NOT NULL AND NOT EXISTS (SELECT FROM jsonb_array_elements($1 -> ''paths'') p WHERE p.value ->> 0 = t.%1$I::text)'
        END;
        CONTINUE WHEN outside IS NULL;
        EXECUTE format('SELECT count(*) FROM (SELECT DISTINCT %1$I FROM tailor_store.tuples_%2$s) t WHERE ' || outside, qid.stored, epoch)
            INTO missing USING qid.definition;
        IF missing > 0 THEN
            RAISE EXCEPTION 'hierarchy "%" has no place for % of the values of column "%"', qid.hierarchy, missing, qid.name
                USING ERRCODE = '22023', HINT = CASE qid.kind WHEN 'table' THEN 'Complete its list.' ELSE 'Widen its bounds.' END;
        END IF;
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.assert_covers IS 'fails unless the hierarchies of a policy have a place for every value of an epoch';

-- Procedures that write the draft of a policy -------------------------------

CREATE OR REPLACE PROCEDURE tailor.write_protection(relation regclass, subject name, k integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_column(relation, subject);
    IF NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = relation AND c.relkind IN ('r', 'p')) THEN
        RAISE EXCEPTION '% is not a table', relation USING ERRCODE = '42809';
    END IF;
    IF (SELECT c.relpersistence FROM pg_class c WHERE c.oid = relation) = 't' THEN
        RAISE EXCEPTION '% is a temporary table', relation USING ERRCODE = '42809';
    END IF;
    IF (SELECT c.relnamespace::regnamespace::text FROM pg_class c WHERE c.oid = relation)
       IN ('tailor', 'tailor_store', 'tailor_release', 'research', 'pg_catalog', 'information_schema') THEN
        RAISE EXCEPTION '% is not a table of yours to protect', relation USING ERRCODE = '42501';
    END IF;
    IF k IS NULL OR k < 2 THEN
        RAISE EXCEPTION 'k must be at least 2' USING ERRCODE = '22023',
            HINT = 'k is the least number of subjects that a reader cannot tell apart; 5 is common.';
    END IF;
    INSERT INTO tailor.protection (relation, subject, k) VALUES (relation, subject, k)
        ON CONFLICT ON CONSTRAINT protection_pkey DO UPDATE SET subject = excluded.subject, k = excluded.k;
END $$;
COMMENT ON PROCEDURE tailor.write_protection IS 'the part of tailor.protect that writes';

CREATE OR REPLACE PROCEDURE tailor.protect(relation regclass, subject name, k integer)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    CALL tailor.write_protection(relation, subject, k);
    IF NOT has_table_privilege('tailor_owner', relation, 'SELECT') THEN
        -- VACUUM would wait for the grant with the lock that an activation in this transaction needs.
        EXECUTE format('LOCK TABLE %s IN SHARE UPDATE EXCLUSIVE MODE', relation);
        EXECUTE format('GRANT SELECT ON %s TO tailor_owner', relation);
    END IF;
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO tailor_owner',
                   (SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = relation));
END $$;
COMMENT ON PROCEDURE tailor.protect IS 'starts a policy: the column that identifies the subject, and k';

CREATE OR REPLACE PROCEDURE tailor.write_hierarchy(name text, kind text, definition jsonb)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    owner name;
BEGIN
    IF coalesce(name, '') = '' THEN
        RAISE EXCEPTION 'a hierarchy needs a name' USING ERRCODE = '22023';
    END IF;
    IF starts_with(name, 'builtin.') THEN
        RAISE EXCEPTION 'names of hierarchies that start with "builtin." are Tailor''s own' USING ERRCODE = '42939',
            HINT = 'Define one of another name.';
    END IF;
    -- Policies of others may use it. A role that is gone leaves it to superusers.
    SELECT h.owner INTO owner FROM tailor.hierarchy h WHERE h.name = write_hierarchy.name FOR UPDATE;
    IF FOUND AND NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = session_user AND r.rolsuper)
       AND NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = owner AND pg_has_role(session_user, r.oid, 'USAGE')) THEN
        RAISE EXCEPTION 'must be owner of hierarchy "%"', name
            USING ERRCODE = '42501', HINT = format('It belongs to %I. Define one of another name.', owner);
    END IF;
    CALL tailor.assert_hierarchy(kind, definition);
    IF owner IS NOT NULL THEN
        UPDATE tailor.hierarchy h SET kind = write_hierarchy.kind, definition = write_hierarchy.definition
            WHERE h.name = write_hierarchy.name;
    ELSE -- whoever is faster: the other one is told that it exists
        INSERT INTO tailor.hierarchy (name, kind, definition) VALUES (name, kind, definition);
    END IF;
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
        IF jsonb_typeof(definition -> 'columns') IS DISTINCT FROM 'array' OR definition -> 'columns' = '[]' THEN
            RAISE EXCEPTION 'a source needs "columns"' USING ERRCODE = '22023',
                HINT = 'The first holds the value, each further one the label one level up.';
        END IF;
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
    IF class IS NULL OR class NOT IN ('direct_identifier', 'quasi_identifier', 'sensitive', 'non_sensitive') THEN
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
    IF action IS NULL OR action NOT IN ('hide', 'pseudonym') THEN
        RAISE EXCEPTION 'unknown action "%"', action USING ERRCODE = '22023', HINT = 'Actions are hide and pseudonym.';
    END IF;
    IF action = 'pseudonym' AND class <> 'direct_identifier' THEN
        RAISE EXCEPTION 'only a direct identifier can have a pseudonym' USING ERRCODE = '22023';
    END IF;
    INSERT INTO tailor.classification VALUES (relation, column_name, class, hierarchy, action)
        ON CONFLICT ON CONSTRAINT classification_pkey DO UPDATE
        SET class = excluded.class, hierarchy = excluded.hierarchy, action = excluded.action, representative = excluded.representative;
END $$;
COMMENT ON PROCEDURE tailor.classify IS 'says what a column is; a column without a class is hidden';

CREATE OR REPLACE PROCEDURE tailor.require(relation regclass, model text, column_name name, parameter integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    CALL tailor.assert_column(relation, column_name);
    IF model IS DISTINCT FROM 'l_diversity' THEN
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
    IF scope IS NULL OR scope NOT IN ('principal', 'role', 'everyone') THEN
        RAISE EXCEPTION 'unknown scope "%"', scope
            USING ERRCODE = '22023', HINT = 'Scopes are principal, role and everyone.';
    END IF;
    UPDATE tailor.protection p SET scope = chain_scope.scope WHERE p.relation = chain_scope.relation;
END $$;
COMMENT ON PROCEDURE tailor.chain_scope IS 'says who shares a chain: each principal, a role, or everyone';

CREATE OR REPLACE PROCEDURE tailor.recode(relation regclass, recoding text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    IF recoding IS NULL OR recoding NOT IN ('auto', 'local', 'full_domain', 'cell') THEN
        RAISE EXCEPTION 'unknown recoding "%"', recoding
            USING ERRCODE = '22023', HINT = 'Recodings are auto, local, full_domain and cell.';
    END IF;
    UPDATE tailor.protection p SET recoding = recode.recoding WHERE p.relation = recode.relation;
END $$;
COMMENT ON PROCEDURE tailor.recode IS 'says how quasi-identifiers are recoded: auto, local, full_domain or cell';

CREATE OR REPLACE PROCEDURE tailor.clear_draft(relation regclass)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    DELETE FROM tailor.classification c WHERE c.relation = clear_draft.relation;
    DELETE FROM tailor.requirement r WHERE r.relation = clear_draft.relation;
    DELETE FROM tailor.set_valued s WHERE s.relation = clear_draft.relation;
    UPDATE tailor.protection p SET recoding = DEFAULT, scope = DEFAULT, seed = DEFAULT, rows = DEFAULT, gate = NULL, max_risk = NULL WHERE p.relation = clear_draft.relation;
END $$;
COMMENT ON PROCEDURE tailor.clear_draft IS 'empties the draft of a policy but for subject and k; the policy in force stays';

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
    FOR found IN
        SELECT p.relation, w.role, w.view FROM tailor.protection p
        CROSS JOIN tailor.view_ways(p.relation, ARRAY(SELECT tailor.members(role))) w
        WHERE p.active IS NOT NULL LIMIT 1
    LOOP
        RAISE EXCEPTION 'role "%" can read the protected table % through the view %', role, found.relation, found.view USING ERRCODE = '42501',
            HINT = format('REVOKE ALL ON %s FROM PUBLIC, %I; and from the roles that it is a member of.', found.view, found.role);
    END LOOP;
    EXECUTE format('GRANT tailor_reader TO %I', role);
    PERFORM pg_notify('tailor', 'readers');
END $$;
COMMENT ON PROCEDURE tailor.grant_reader IS 'makes a role a reader: protected tables reach it as releases only';

-- Set-valued tables -----------------------------------------------------------
--
-- A set-valued table says which codes each subject has: a row a code, or a row
-- a subject with an array of codes. Codes of one subject identify it, so no
-- copy of the rows is released but a disassociated publication of them: one an
-- epoch, for all audiences and all queries. The proxy that first needs it makes
-- it (catalog/setvalued.go); here is the policy, and what it is made from.

CREATE TABLE IF NOT EXISTS tailor.set_valued (
    relation    regclass PRIMARY KEY REFERENCES tailor.protection ON DELETE CASCADE,
    column_name name NOT NULL,
    m           integer NOT NULL CHECK (m >= 1),
    constraints jsonb,
    sensitive   text[],
    diversity   integer
);
COMMENT ON TABLE tailor.set_valued IS 'draft: tables of which the codes of a subject form a set; k is that of tailor.protection';

CREATE TABLE IF NOT EXISTS tailor.publication (
    epoch       integer PRIMARY KEY REFERENCES tailor.epoch,
    k           integer NOT NULL,
    m           integer NOT NULL,
    records     integer NOT NULL,
    codes       integer NOT NULL,
    clusters    integer NOT NULL,
    created     timestamptz NOT NULL DEFAULT now(),
    form        text NOT NULL
);
COMMENT ON TABLE tailor.publication IS 'what is published of an epoch of a set-valued table, written once; safe to be shown in full';

CREATE OR REPLACE PROCEDURE tailor.set_valued(relation regclass, column_name name, m integer DEFAULT 2,
                                              constraints jsonb DEFAULT NULL, sensitive text[] DEFAULT NULL, diversity integer DEFAULT NULL)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    IF column_name IS NULL THEN
        DELETE FROM tailor.set_valued s WHERE s.relation = set_valued.relation;
        RETURN;
    END IF;
    CALL tailor.assert_column(relation, column_name);
    IF m IS NULL OR m < 1 THEN
        RAISE EXCEPTION 'm must be at least 1' USING ERRCODE = '22023', HINT = 'It is the number of codes of a subject that an attacker may know.';
    END IF;
    IF constraints IS NOT NULL AND NOT coalesce((
        SELECT bool_and(jsonb_typeof(c.value) = 'array' AND jsonb_array_length(c.value) > 0
                        AND NOT jsonb_path_exists(c.value, 'strict $[*] ? (@.type() != "string")'))
        FROM jsonb_each(CASE jsonb_typeof(constraints) WHEN 'object' THEN constraints END) c), jsonb_typeof(constraints) = 'object') THEN
        RAISE EXCEPTION 'constraints must be lists of codes by name'
            USING ERRCODE = '22023', HINT = 'For example, {"hypertension": ["401.1", "401.9"]}.';
    END IF;
    IF EXISTS (SELECT FROM jsonb_each(constraints) c CROSS JOIN jsonb_array_elements_text(c.value) code
               GROUP BY code HAVING count(*) > 1) THEN
        RAISE EXCEPTION 'a code stands twice in the constraints' USING ERRCODE = '22023', HINT = 'Constraints are disjoint.';
    END IF;
    IF array_position(sensitive, NULL) IS NOT NULL THEN
        RAISE EXCEPTION 'a sensitive code is NULL' USING ERRCODE = '22023';
    END IF;
    IF (coalesce(cardinality(sensitive), 0) > 0) <> (diversity IS NOT NULL) OR diversity < 2 THEN
        RAISE EXCEPTION 'sensitive codes and a diversity of at least 2 belong together' USING ERRCODE = '22023',
            HINT = 'A subject is linked to a sensitive code with a probability of at most 1/diversity.';
    END IF;
    INSERT INTO tailor.set_valued VALUES (relation, column_name, m, constraints, sensitive, diversity)
        ON CONFLICT ON CONSTRAINT set_valued_pkey DO UPDATE
        SET column_name = excluded.column_name, m = excluded.m, constraints = excluded.constraints,
            sensitive = excluded.sensitive, diversity = excluded.diversity;
    CALL tailor.classify(relation, column_name, 'sensitive');
END $$;
COMMENT ON PROCEDURE tailor.set_valued IS 'says that the codes of a column are a set for each subject, published once an epoch with k^m-anonymity; column_name => NULL takes it back';

CREATE OR REPLACE FUNCTION tailor.draft_set_valued(relation regclass) RETURNS jsonb
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT jsonb_build_object('set_valued', jsonb_strip_nulls(jsonb_build_object(
        'column', s.column_name, 'm', s.m, 'constraints', s.constraints, 'sensitive', to_jsonb(s.sensitive), 'diversity', s.diversity)))
    FROM tailor.set_valued s WHERE s.relation = draft_set_valued.relation
$$;
COMMENT ON FUNCTION tailor.draft_set_valued IS 'what tailor.draft says of a set-valued table; NULL for others';

-- What another publication would be made of, as far as the policy says.
CREATE OR REPLACE FUNCTION tailor.publishes(policy jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN policy ? 'set_valued' THEN (policy -> 'set_valued') || jsonb_build_object('k', policy -> 'k', 'subject', policy -> 'subject') END
$$;
COMMENT ON FUNCTION tailor.publishes IS 'the part of a policy that decides how a set-valued table is published; NULL for others';

CREATE OR REPLACE PROCEDURE tailor.assert_set_valued(relation regclass, policy jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    spec  jsonb := policy -> 'set_valued';
    found record;
BEGIN
    -- Two publications of the same subjects can be intersected. Under the same
    -- policy the same codes give the same publication; under another one not.
    IF EXISTS (SELECT FROM tailor.chain c JOIN tailor.publication u USING (epoch) JOIN tailor.epoch e USING (epoch)
               JOIN tailor.policy_version v ON v.relation = e.relation AND v.version = e.version
               WHERE c.relation = assert_set_valued.relation
                 AND tailor.publishes(v.policy) IS DISTINCT FROM tailor.publishes(assert_set_valued.policy)) THEN
        RAISE EXCEPTION 'table % has been published with another k, m or other constraints', relation
            USING ERRCODE = '55000', HINT = 'Start all chains anew with tailor.forget_chains, which gives up the guarantee over what was shown before.';
    END IF;
    IF spec IS NULL THEN
        RETURN;
    END IF;
    FOR found IN
        SELECT c ->> 'name' AS name, coalesce(c ->> 'class', '') AS class, a.atttypid AS type
        FROM jsonb_array_elements(policy -> 'columns') c
        LEFT JOIN pg_attribute a ON a.attrelid = relation AND a.attname = c ->> 'name' AND a.attnum > 0 AND NOT a.attisdropped
    LOOP
        IF found.name = spec ->> 'column' THEN
            IF found.class <> 'sensitive' OR found.name = policy ->> 'subject' THEN
                RAISE EXCEPTION 'the set-valued column "%" must be classified as sensitive, and not be the subject', found.name USING ERRCODE = '0A000';
            END IF;
            IF found.type NOT IN ('text'::regtype, 'varchar'::regtype, 'bpchar'::regtype, 'int2'::regtype, 'int4'::regtype, 'int8'::regtype,
                                  'text[]'::regtype, 'varchar[]'::regtype, 'bpchar[]'::regtype, 'int2[]'::regtype, 'int4[]'::regtype, 'int8[]'::regtype) THEN
                RAISE EXCEPTION 'column "%" of type % cannot be set-valued', found.name, found.type::regtype
                    USING ERRCODE = '42804', HINT = 'Codes are text or integers, or arrays of these.';
            END IF;
        ELSIF found.class IN ('quasi_identifier', 'sensitive', 'non_sensitive') THEN
            RAISE EXCEPTION 'column "%" cannot be shown beside the codes of the set-valued table %', found.name, relation USING ERRCODE = '0A000',
                HINT = 'Classify it as direct_identifier, which hides it: it would link the codes of one subject again.';
        END IF;
    END LOOP;
    IF jsonb_array_length(policy -> 'require') > 0 THEN
        RAISE EXCEPTION 'the set-valued table % has no blocks that could meet %', relation, policy #>> '{require,0,model}' USING ERRCODE = '0A000',
            HINT = 'Pass sensitive => and diversity => to tailor.set_valued.';
    END IF;
    IF jsonb_typeof(policy -> 'gate') = 'object' THEN
        RAISE EXCEPTION 'the set-valued table % has no stages that a gate could decide on', relation USING ERRCODE = '0A000',
            HINT = 'Its risk is at most 1/k for whoever knows m codes of a subject.';
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_set_valued IS 'fails unless what a draft says of a set-valued table can be activated';

-- The counts of two publications can be subtracted. What is left is about the
-- subjects that have changed in between, so these are to be a crowd as well.
CREATE OR REPLACE PROCEDURE tailor.assert_enough_changed(relation regclass, number integer, k integer)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    earlier integer;
    changed bigint;
BEGIN
    FOR earlier IN SELECT DISTINCT c.epoch FROM tailor.chain c JOIN tailor.publication u USING (epoch)
                   WHERE c.relation = assert_enough_changed.relation LOOP
        EXECUTE format('SELECT count(*) FROM tailor_store.digest_%s a FULL JOIN tailor_store.digest_%s b USING ("tailor key")
                        WHERE a."tailor codes" IS DISTINCT FROM b."tailor codes"', earlier, number) INTO changed;
        IF changed BETWEEN 1 AND k - 1 THEN
            RAISE EXCEPTION 'the codes of fewer than % subjects of table % have changed since it was published', k, relation
                USING ERRCODE = '55000', HINT = 'A new publication would show what has changed about them. Refresh when more have changed.';
        END IF;
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.assert_enough_changed IS 'fails where a new publication would differ from an earlier one in fewer than k subjects';

-- Stores what a publication is made from: the codes of each subject under a
-- random number. The proxy drops it in the transaction that publishes, so that
-- an epoch cannot be published a second time. Until then there is no table
-- epoch_N that a release could read, only its shape.
CREATE OR REPLACE FUNCTION tailor.build_records(relation regclass, version integer, policy jsonb) RETURNS integer
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET constraint_exclusion = off AS $$
DECLARE
    subject   name := policy ->> 'subject';
    code      name := policy #>> '{set_valued,column}';
    arrays    boolean;
    pseudonym text;
    source    text;
    number    integer;
    total     bigint;
    subjects  bigint;
    left_out  bigint;
    earlier   integer;
BEGIN
    SELECT t.typcategory = 'A' INTO arrays FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
        WHERE a.attrelid = relation AND a.attname = code AND a.attnum > 0 AND NOT a.attisdropped;
    SELECT format('NULL::%s AS %I, ', format_type(a.atttypid, NULL), a.attname) INTO pseudonym
        FROM jsonb_array_elements(policy -> 'columns') c
        JOIN pg_attribute a ON a.attrelid = relation AND a.attname = c ->> 'name' AND a.attnum > 0 AND NOT a.attisdropped
        WHERE a.attname = subject AND c ->> 'class' = 'direct_identifier' AND c ->> 'action' = 'pseudonym'
          AND a.atttypid IN ('int4'::regtype, 'int8'::regtype, 'numeric'::regtype, 'text'::regtype);
    IF arrays THEN
        EXECUTE format('SELECT count(*) - count(DISTINCT %I), count(*) FILTER (WHERE cardinality(array_remove(ARRAY(SELECT unnest(%I)), NULL)) = 0) FROM %s',
                       subject, code, relation) INTO total, left_out;
        IF total > 0 THEN
            RAISE EXCEPTION 'table % has several rows of one subject', relation
                USING ERRCODE = '23505', HINT = 'A table with an array of codes has one row a subject.';
        END IF;
    ELSE
        EXECUTE format('SELECT count(*) FROM %s WHERE %I IS NULL', relation, code) INTO left_out;
    END IF;
    IF left_out > 0 THEN
        RAISE WARNING '% rows of table % hold no code and are not published', left_out, relation;
    END IF;

    number := nextval(pg_get_serial_sequence('tailor.epoch', 'epoch'));
    source := CASE WHEN arrays THEN 'SELECT b.%1$I AS subject, u.code::text AS code FROM %2$s b CROSS JOIN unnest(b.%3$I) u (code)'
                   ELSE 'SELECT b.%1$I AS subject, b.%3$I::text AS code FROM %2$s b' END;
    EXECUTE format(
        'CREATE TABLE tailor_store.records_%s AS
         WITH codes AS MATERIALIZED (SELECT * FROM (%s) q WHERE code IS NOT NULL), subjects AS (
             SELECT subject, (row_number() OVER (ORDER BY gen_random_uuid()))::integer AS number FROM codes GROUP BY subject)
         SELECT s.number AS "tailor subject", c.code AS "tailor code", md5(s.subject::text)::uuid AS "tailor key"
         FROM codes c JOIN subjects s ON s.subject = c.subject ORDER BY 1', number, format(source, subject, relation, code));
    EXECUTE format(
        'CREATE TABLE tailor_store.digest_%1$s AS
         SELECT "tailor key", md5(array_agg("tailor code" ORDER BY "tailor code" COLLATE "C")::text)::uuid AS "tailor codes"
         FROM tailor_store.records_%1$s GROUP BY "tailor key"', number);
    CALL tailor.assert_enough_changed(relation, number, (policy ->> 'k')::integer);
    EXECUTE format(
        'CREATE TABLE tailor_store.shape_%s AS
         SELECT 0 AS "tailor row", 0 AS "tailor tuple", 0 AS "tailor subject", %s b.%I FROM %s b WITH NO DATA',
        number, coalesce(pseudonym, ''), code, relation);
    CALL tailor.keep_no_samples(format('tailor_store.shape_%s', number)::regclass);
    EXECUTE format('SELECT count(*), count(DISTINCT "tailor subject") FROM tailor_store.records_%s', number) INTO total, subjects;
    INSERT INTO tailor.epoch (epoch, relation, version, rows, tuples, subjects)
        OVERRIDING SYSTEM VALUE VALUES (number, build_records.relation, build_records.version, total, 1, subjects);
    -- An epoch that nobody asked for will never be published.
    FOR earlier IN SELECT e.epoch FROM tailor.epoch e WHERE e.relation = build_records.relation AND e.epoch < number LOOP
        CONTINUE WHEN EXISTS (SELECT FROM tailor.publication u WHERE u.epoch = earlier);
        EXECUTE format('DROP TABLE IF EXISTS tailor_store.records_%1$s, tailor_store.shape_%1$s, tailor_store.digest_%1$s', earlier);
    END LOOP;
    RETURN number;
END $$;
COMMENT ON FUNCTION tailor.build_records IS 'stores what the publication of a set-valued table is made from and returns the epoch''s number; for tailor.build_epoch only';
-- Tables that answer with aggregates only --------------------------------------

CREATE OR REPLACE PROCEDURE tailor.rows(relation regclass, allowed boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    IF allowed IS NULL THEN
        RAISE EXCEPTION 'rows are either shown or not' USING ERRCODE = '22004', HINT = 'Pass true or false.';
    END IF;
    UPDATE tailor.protection p SET rows = allowed WHERE p.relation = rows.relation;
END $$;
COMMENT ON PROCEDURE tailor.rows IS 'says whether answers may show rows; false: only aggregates, each computed from at least k subjects';

CREATE OR REPLACE PROCEDURE tailor.assert_rows(relation regclass, policy jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF policy -> 'rows' = 'false' AND policy ? 'set_valued' THEN
        RAISE EXCEPTION 'table % is set-valued and cannot answer with aggregates only', relation USING ERRCODE = '0A000',
            HINT = 'Its publication is safe to be shown; leave rows at true.';
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_rows IS 'fails where a policy without rows cannot be kept, as far as that does not depend on data';

-- Cells are counted in rows, so that each subject must have one: a release
-- holds no key by which subjects could be told apart.
CREATE OR REPLACE PROCEDURE tailor.assert_one_row(relation regclass, policy jsonb, total bigint, subjects bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF policy -> 'rows' = 'false' AND total > subjects THEN
        RAISE EXCEPTION 'table % has several rows for a subject and cannot answer with aggregates only', relation USING ERRCODE = '0A000',
            HINT = format('Protect a table with one row for each subject, or CALL tailor.rows(%L, true).', relation);
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_one_row IS 'fails where a table without rows to show has several for a subject';

-- A cell may be shown that is computed from k subjects or more, and of which
-- fewer are left out of none of the sets that it is a part of: those are what
-- another cell of the same answer could be computed from.
CREATE OR REPLACE FUNCTION tailor.shows(k integer, seen bigint, VARIADIC whole bigint[]) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT seen >= k AND NOT EXISTS (SELECT FROM unnest(whole) w WHERE w - seen BETWEEN 1 AND k - 1)
$$;
COMMENT ON FUNCTION tailor.shows IS 'whether a cell computed from so many subjects, out of sets of so many, may be shown';

-- Operators that a statement could find in place of PostgreSQL's own. Those of
-- pg_temp are never found without their schema.
CREATE OR REPLACE FUNCTION tailor.operators_of_others() RETURNS boolean
LANGUAGE sql VOLATILE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (
        SELECT FROM pg_operator o JOIN pg_namespace n ON n.oid = o.oprnamespace JOIN pg_roles r ON r.oid = o.oprowner
        WHERE NOT r.rolsuper AND n.nspname <> 'pg_catalog' AND n.nspname !~ '^pg_temp'
          AND o.oprname IN ('=', '<>', '<', '<=', '>', '>=', '~~', '!~~', '~~*', '!~~*', '+', '-', '*', '/', '%', '^', '||'))
$$;
COMMENT ON FUNCTION tailor.operators_of_others IS 'whether somebody who is no superuser has made operators by the names of those that statements over aggregates use';

-- Part of every statement over a table that answers with aggregates only; where
-- it is false, there is no answer. The number of groups is told where they hold
-- k subjects or more between them: below that, it would be an answer about
-- fewer, and none left out looks alike. The subjects of other groups are none,
-- or k and more. A condition that is not true for fewer than k subjects, but for
-- some, would tell of them beside an answer without it.
DROP FUNCTION IF EXISTS tailor.left_out(integer, bigint, numeric);
CREATE OR REPLACE FUNCTION tailor.left_out(k integer, groups bigint, subjects numeric, missing bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    told boolean := current_setting('tailor.notices', true) IS DISTINCT FROM 'off';
BEGIN
    IF tailor.operators_of_others() THEN
        RAISE EXCEPTION 'somebody has made an operator that a statement over aggregates could call' USING ERRCODE = '42501',
            HINT = 'Drop operators that others than superusers have made.';
    END IF;
    IF missing BETWEEN 1 AND k - 1 THEN
        IF told THEN
            RAISE NOTICE 'nothing is shown: the condition leaves out fewer than % subjects', k;
        END IF;
        RETURN false;
    END IF;
    IF told THEN
        IF subjects >= k THEN
            RAISE NOTICE '% groups of fewer than % subjects are left out', groups, k;
        ELSE
            RAISE NOTICE 'groups of fewer than % subjects are left out: none, or some with fewer than % subjects in all', k, k;
        END IF;
    END IF;
    RETURN true;
END $$;
COMMENT ON FUNCTION tailor.left_out IS 'tells how many groups an answer leaves out; whether there is one';

-- The planner names the operators of a statement with their schema, wherever
-- they are called with the values of rows. Should one be overlooked, whoever can
-- make operators could have his called.
CREATE OR REPLACE FUNCTION tailor.could_shadow(principal name) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT tailor.operators_of_others() OR EXISTS (
        SELECT FROM pg_roles r
        WHERE pg_has_role(principal, r.oid, 'MEMBER')
          AND (r.rolsuper OR has_database_privilege(r.oid, current_database(), 'CREATE')
               OR EXISTS (SELECT FROM pg_namespace n WHERE n.nspname !~ '^pg_(temp|toast)' AND has_schema_privilege(r.oid, n.oid, 'CREATE'))
               OR EXISTS (SELECT FROM pg_operator o JOIN pg_namespace n ON n.oid = o.oprnamespace
                          WHERE o.oprowner = r.oid AND n.nspname !~ '^pg_temp')))
$$;
COMMENT ON FUNCTION tailor.could_shadow IS 'whether somebody has made operators, or the role can make or has made some, in a schema that statements look into; for the proxy';
-- Columns that are shown by means ----------------------------------------------
--
-- A quasi-identifier of numbers can be shown by the means of groups of blocks in
-- place of the middles of its labels. The proxy guards them
-- (docs/decisions/block-means.md); here is the policy.

CREATE OR REPLACE PROCEDURE tailor.represent(relation regclass, column_name name, representative text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    CALL tailor.assert_column(relation, column_name);
    IF representative IS NULL OR representative NOT IN ('middle', 'mean') THEN
        RAISE EXCEPTION 'unknown representative "%"', representative USING ERRCODE = '22023', HINT = 'Representatives are middle and mean.';
    END IF;
    UPDATE tailor.classification c SET representative = represent.representative
        WHERE c.relation = represent.relation AND c.column_name = represent.column_name AND c.class = 'quasi_identifier';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'column "%" of table % is not classified as quasi_identifier', column_name, relation USING ERRCODE = '22023',
            HINT = 'A representative is what stands for a label; call tailor.classify first.';
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.represent IS 'says which value stands for a label of a quasi-identifier: the middle of the label, or the mean of those who share it';

CREATE OR REPLACE PROCEDURE tailor.assert_means(relation regclass, policy jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found record;
BEGIN
    FOR found IN
        SELECT c ->> 'name' AS name, c ->> 'class' AS class, c #>> '{hierarchy,kind}' AS kind
        FROM jsonb_array_elements(policy -> 'columns') c WHERE c ->> 'representative' = 'mean'
    LOOP
        IF found.class IS DISTINCT FROM 'quasi_identifier' OR found.kind IS DISTINCT FROM 'interval' THEN
            RAISE EXCEPTION 'column "%" cannot be shown by means', found.name USING ERRCODE = '0A000',
                HINT = 'Means are of quasi-identifiers that are numbers, with a hierarchy of kind interval: its widths bound what a mean may tell.';
        END IF;
        -- Joins have shown labels of it over other blocks than those of the means.
        IF EXISTS (SELECT FROM tailor.chain c JOIN tailor.epoch e USING (epoch)
                   JOIN tailor.policy_version v ON v.relation = e.relation AND v.version = e.version
                   WHERE v.policy ? 'parent' AND (
                       -- The name is of the time when the child was activated.
                       coalesce(to_regclass(quote_ident(v.policy #>> '{parent,schema}') || '.' || quote_ident(v.policy #>> '{parent,name}')),
                                assert_means.relation) = assert_means.relation
                       OR EXISTS (SELECT FROM pg_constraint f WHERE f.contype = 'f' AND f.conrelid = c.relation AND f.confrelid = assert_means.relation))) THEN
            RAISE EXCEPTION 'column "%" cannot be shown by means: joins with table % have shown its labels', found.name, relation
                USING ERRCODE = '55000', HINT = 'Start the chains of the tables that refer to it anew with tailor.forget_chains, which gives up the guarantee over what was shown before.';
        END IF;
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.assert_means IS 'fails where a policy asks for means that nothing would guard, as far as that does not depend on data';

-- The guard weighs the values of people; of several rows it could not tell which
-- are one person's.
CREATE OR REPLACE PROCEDURE tailor.assert_one_value(relation regclass, policy jsonb, total bigint, subjects bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF total > subjects AND policy @? '$.columns[*] ? (@.representative == "mean")' THEN
        RAISE EXCEPTION 'table % has several rows for a subject and cannot be shown by means', relation USING ERRCODE = '0A000',
            HINT = 'Protect a table with one row for each subject, or leave representative at middle.';
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_one_value IS 'fails where a table that is shown by means has several rows for a subject';
-- What chains are prepared for, and which risk decides ------------------------

CREATE OR REPLACE PROCEDURE tailor.assert_combinations(relation regclass, combinations jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    combination jsonb;
    member      jsonb;
BEGIN
    IF jsonb_typeof(combinations) IS DISTINCT FROM 'array' THEN
        RAISE EXCEPTION 'a workload is a list of lists of columns' USING ERRCODE = '22023', HINT = 'For example: [["age", "zip"], ["sex"]].';
    END IF;
    FOR combination IN SELECT * FROM jsonb_array_elements(combinations) LOOP
        IF jsonb_typeof(combination) <> 'array' OR jsonb_array_length(combination) = 0 THEN
            RAISE EXCEPTION 'a workload is a list of lists of columns' USING ERRCODE = '22023', HINT = 'For example: [["age", "zip"], ["sex"]].';
        END IF;
        FOR member IN SELECT * FROM jsonb_array_elements(combination) LOOP
            IF jsonb_typeof(member) <> 'string' OR NOT EXISTS (
                SELECT FROM tailor.classification c
                WHERE c.relation = assert_combinations.relation AND c.class = 'quasi_identifier' AND c.column_name = member #>> '{}') THEN
                RAISE EXCEPTION '% is no quasi-identifier of table %', member, relation
                    USING ERRCODE = '42703', HINT = 'Classify the quasi-identifiers first, with tailor.classify.';
            END IF;
        END LOOP;
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.assert_combinations IS 'fails unless a workload names quasi-identifiers only';

CREATE OR REPLACE PROCEDURE tailor.seed(relation regclass, combinations jsonb)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    CALL tailor.assert_combinations(relation, combinations);
    UPDATE tailor.protection p SET seed = combinations WHERE p.relation = seed.relation;
END $$;
COMMENT ON PROCEDURE tailor.seed IS 'says which combinations of quasi-identifiers every chain of a table is prepared for, from the next activation on';

CREATE OR REPLACE PROCEDURE tailor.project(name text, relation regclass, combinations jsonb)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    IF coalesce(name, '') = '' THEN
        RAISE EXCEPTION 'a project needs a name' USING ERRCODE = '22023';
    END IF;
    IF combinations IS NULL THEN
        DELETE FROM tailor.project j WHERE j.name = project.name AND j.relation = project.relation;
    ELSE
        CALL tailor.assert_combinations(relation, combinations);
        INSERT INTO tailor.project (name, relation, combinations) VALUES (name, relation, combinations)
            ON CONFLICT ON CONSTRAINT project_pkey DO UPDATE SET combinations = excluded.combinations;
    END IF;
    PERFORM nextval('tailor.catalog_version');
    PERFORM pg_notify('tailor', 'policies');
END $$;
COMMENT ON PROCEDURE tailor.project IS 'declares the workload of a project on a table, NULL to drop it; SET tailor.project prepares a chain for it';

CREATE OR REPLACE PROCEDURE tailor.gate(relation regclass, measure text, max_risk double precision)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    IF measure IS NULL OR measure NOT IN ('highest', 'average', 'below_k', 'unique') THEN
        RAISE EXCEPTION '"%" cannot gate: it does not grow with every refinement', measure USING ERRCODE = '22023',
            DETAIL = 'A chain could pass the gate after it had been above it, and what was shown in between stays shown.',
            HINT = 'Measures are highest, average, below_k and unique.';
    END IF;
    IF max_risk IS NULL OR NOT (max_risk > 0 AND max_risk <= 1) THEN
        RAISE EXCEPTION 'max_risk must be above 0 and at most 1' USING ERRCODE = '22023';
    END IF;
    UPDATE tailor.protection p SET gate = measure, max_risk = gate.max_risk WHERE p.relation = gate.relation;
END $$;
COMMENT ON PROCEDURE tailor.gate IS 'chooses the measure of risk that decides whether a stage is de-identified; whatever it is, no block has fewer than k subjects';

-- Progress --------------------------------------------------------------------
--
-- Others see what a transaction has written once it ends, but for sequences,
-- which no transaction takes back, and for locks. A copy that is being made
-- takes one of four slots by locking its table, which ends with the transaction
-- whatever becomes of it, and writes into the sequences of the slot. A fifth
-- copy at the same time is made without being seen.

DO $$
DECLARE
    part text;
BEGIN
    FOR slot IN 1 .. 4 LOOP
        EXECUTE format('CREATE TABLE IF NOT EXISTS tailor.lock_progress_%s ()', slot);
        -- Numbers are taken a thousand at a time: a number a row costs next to nothing.
        EXECUTE format('CREATE SEQUENCE IF NOT EXISTS tailor.progress_%s_rows CACHE 1000', slot);
        EXECUTE format('CREATE SEQUENCE IF NOT EXISTS tailor.progress_%s_stored INCREMENT 1000 START 1000', slot);
        FOREACH part IN ARRAY ARRAY['what', 'of', 'since'] LOOP
            EXECUTE format('CREATE SEQUENCE IF NOT EXISTS tailor.progress_%s_%s MINVALUE 0', slot, part);
        END LOOP;
        FOREACH part IN ARRAY ARRAY['rows', 'stored', 'what', 'of', 'since'] LOOP
            EXECUTE format('ALTER SEQUENCE tailor.progress_%s_%s OWNER TO tailor_owner', slot, part);
        END LOOP;
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION tailor.phases() RETURNS text[]
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT ARRAY['counting rows', 'copying rows', 'collecting combinations', 'checking hierarchies', 'leaving quasi-identifiers out',
                 'counting subjects', 'publishing', 'collecting codes']
$$;
COMMENT ON FUNCTION tailor.phases IS 'what tailor.progress calls the phases of a copy';

CREATE OR REPLACE FUNCTION tailor.start_progress(relation regclass) RETURNS integer
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    FOR slot IN 1 .. 4 LOOP
        BEGIN
            EXECUTE format('LOCK TABLE tailor.lock_progress_%s IN EXCLUSIVE MODE NOWAIT', slot);
            PERFORM setval(format('tailor.progress_%s_since', slot)::regclass, floor(extract(epoch FROM clock_timestamp()))::bigint);
            PERFORM setval(format('tailor.progress_%s_of', slot)::regclass, 0);
            CALL tailor.note_progress(slot, relation, 1);
            RETURN slot;
        EXCEPTION WHEN lock_not_available THEN
            CONTINUE;
        END;
    END LOOP;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION tailor.start_progress IS 'takes a slot of tailor.progress until the transaction ends, NULL if there is none; for Tailor''s own routines only';

CREATE OR REPLACE PROCEDURE tailor.note_progress(slot integer, relation regclass, phase integer, total bigint DEFAULT NULL)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF slot IS NULL THEN
        RETURN;
    END IF;
    -- Others look in between: what belongs to the next phase comes before it, and
    -- what belongs to this one goes after it.
    IF total IS NOT NULL THEN
        PERFORM setval(format('tailor.progress_%s_of', slot)::regclass, total);
    END IF;
    PERFORM setval(format('tailor.progress_%s_what', slot)::regclass, relation::oid::bigint * 16 + phase);
    PERFORM setval(format('tailor.progress_%s_rows', slot)::regclass, 1, false);
    PERFORM setval(format('tailor.progress_%s_stored', slot)::regclass, 1000, false);
END $$;
COMMENT ON PROCEDURE tailor.note_progress IS 'says in which phase a copy is, and of how many rows; for Tailor''s own routines only';

-- A copy of a table reads each row and later stores it. What is read is counted
-- row by row; rows that are stored have numbers, and each thousandth counts.
-- Some of the numbers are told to the client.
CREATE OR REPLACE FUNCTION tailor.step(slot integer, relation regclass, total bigint, stored boolean) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN slot IS NULL THEN 'true'
                ELSE format('(%snextval(%L::regclass) %% %s <> 0 OR tailor.tell_progress(%s, %L, %s, %L))',
                            CASE WHEN stored THEN '"tailor row" % 1000 <> 0 OR ' END,
                            format('tailor.progress_%s_%s', slot, CASE WHEN stored THEN 'stored' ELSE 'rows' END),
                            greatest(100000, total / 5000 * 1000), slot, relation, total, stored) END
$$;
COMMENT ON FUNCTION tailor.step IS 'a condition that is true and counts rows that a copy has read or stored; for Tailor''s own routines only';

CREATE OR REPLACE FUNCTION tailor.tell_progress(slot integer, relation regclass, total bigint, stored boolean) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF stored THEN
        RAISE NOTICE 'table %: stored % of % rows', relation, currval(format('tailor.progress_%s_stored', slot)::regclass), total;
    ELSE
        RAISE NOTICE 'table %: read % of % rows', relation, currval(format('tailor.progress_%s_rows', slot)::regclass), total;
    END IF;
    RETURN true;
END $$;
COMMENT ON FUNCTION tailor.tell_progress IS 'tells the client how far a copy is; for Tailor''s own routines only';

DO $$
BEGIN
    EXECUTE 'CREATE OR REPLACE VIEW tailor.progress AS
        SELECT (s.what / 16)::oid::regclass AS relation,
               CASE WHEN s.what % 16 = 2 THEN CASE WHEN s.stored = 0 THEN ''reading rows'' ELSE ''storing rows'' END
                    ELSE (tailor.phases())[s.what % 16] END AS phase,
               CASE WHEN s.what % 16 = 2 THEN least(CASE WHEN s.stored = 0 THEN s.rows ELSE s.stored END, s.total) END AS rows,
               nullif(s.total, 0) AS of_rows, to_timestamp(s.since) AS since, l.pid, a.usename AS role
        FROM (' || (SELECT string_agg(format('SELECT ''tailor.lock_progress_%1$s''::regclass::oid AS slot, w.last_value AS what, o.last_value AS total, s.last_value AS since,
                                                     CASE WHEN r.is_called THEN r.last_value ELSE 0 END AS rows, CASE WHEN d.is_called THEN d.last_value ELSE 0 END AS stored
                                              FROM tailor.progress_%1$s_what w, tailor.progress_%1$s_of o, tailor.progress_%1$s_since s, tailor.progress_%1$s_rows r, tailor.progress_%1$s_stored d', n), ' UNION ALL ')
                    FROM generate_series(1, 4) n) || ') s
        JOIN pg_locks l ON l.locktype = ''relation'' AND l.granted AND l.relation = s.slot AND l.mode = ''ExclusiveLock''
             AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
        LEFT JOIN pg_stat_activity a ON a.pid = l.pid';
END $$;
COMMENT ON VIEW tailor.progress IS 'copies that are being made by activations and refreshes: phase, rows read or stored, of how many, since when';
-- Schedules, and what copies take ---------------------------------------------

CREATE TABLE IF NOT EXISTS tailor.schedule (
    relation    regclass PRIMARY KEY REFERENCES tailor.protection ON DELETE CASCADE,
    every       interval NOT NULL,
    due         timestamptz NOT NULL,
    tried       timestamptz,
    failed      integer NOT NULL DEFAULT 0,
    failure     text
);
COMMENT ON TABLE tailor.schedule IS 'tables that a proxy refreshes by itself';
COMMENT ON COLUMN tailor.schedule.failed IS 'how often in a row; failure has the reason of the last time';

CREATE OR REPLACE VIEW tailor.schedules AS
    SELECT s.relation, s.every, s.due, s.tried, s.failed, s.failure, e.created AS refreshed
    FROM tailor.schedule s JOIN tailor.protection p USING (relation) LEFT JOIN tailor.epoch e ON e.epoch = p.epoch;
COMMENT ON VIEW tailor.schedules IS 'tables that a proxy refreshes by itself: how often, when next, and what went wrong';

CREATE OR REPLACE PROCEDURE tailor.schedule(relation regclass, every interval)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    IF every IS NULL THEN
        DELETE FROM tailor.schedule s WHERE s.relation = schedule.relation;
        RETURN;
    END IF;
    IF every < '1 minute' THEN
        RAISE EXCEPTION 'a refresh can be scheduled every minute at most' USING ERRCODE = '22023',
            HINT = 'For example: every => ''24 hours''; NULL ends the schedule.';
    END IF;
    INSERT INTO tailor.schedule AS kept (relation, every, due)
        VALUES (relation, every, coalesce((SELECT e.created FROM tailor.protection p JOIN tailor.epoch e ON e.epoch = p.epoch
                                           WHERE p.relation = schedule.relation), now()) + every)
        ON CONFLICT ON CONSTRAINT schedule_pkey DO UPDATE SET every = excluded.every, due = excluded.due, failed = 0, failure = NULL
        WHERE kept.every <> excluded.every;
END $$;
COMMENT ON PROCEDURE tailor.schedule IS 'has a proxy refresh the table, so often, counted from its last copy; NULL ends that';

-- Who asks is tailor_owner, who may read the table and not lock it. Belongs to
-- the role that installed: a superuser, or a member of the owners of tables.
CREATE OR REPLACE PROCEDURE tailor.lock_scheduled(relation regclass)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    part  regclass;
    owner name;
BEGIN
    IF NOT EXISTS (SELECT FROM tailor.schedule s WHERE s.relation = lock_scheduled.relation) THEN
        RAISE EXCEPTION 'table % has no schedule', relation USING ERRCODE = '55000';
    END IF;
    -- What the table borrows from is read with it.
    FOR part IN
        SELECT relation
      UNION ALL
        SELECT to_regclass(format('%I.%I', v.policy #>> '{parent,schema}', v.policy #>> '{parent,name}'))
        FROM tailor.protection p JOIN tailor.policy_version v ON v.relation = p.relation AND v.version = p.active
        WHERE p.relation = lock_scheduled.relation AND v.policy ? 'parent'
    LOOP
        CONTINUE WHEN part IS NULL;
        SELECT pg_get_userbyid(c.relowner) INTO owner FROM pg_class c WHERE c.oid = part;
        IF NOT pg_has_role(current_user, owner, 'USAGE') THEN
            RAISE EXCEPTION 'the role "%" that installed Tailor may not lock table %', current_user, part
                USING ERRCODE = '42501', HINT = format('GRANT %I TO %I;', owner, current_user);
        END IF;
        EXECUTE format('LOCK TABLE %s IN SHARE UPDATE EXCLUSIVE MODE', part);
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.lock_scheduled IS 'keeps a table as it is for a scheduled refresh; for the proxy only';

CREATE OR REPLACE FUNCTION tailor.due_schedules() RETURNS SETOF regclass
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT s.relation FROM tailor.schedule s JOIN tailor.protection p USING (relation) JOIN pg_class c ON c.oid = s.relation
        WHERE s.due <= now() AND p.active IS NOT NULL AND NOT tailor.restored() ORDER BY s.due;
END $$;
COMMENT ON FUNCTION tailor.due_schedules IS 'tables that are to be refreshed now, the longest overdue first; for the proxy only';

CREATE OR REPLACE PROCEDURE tailor.refresh_scheduled(relation regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    CALL tailor.lock_scheduled(relation);
    -- What is due is asked for again under the lock: somebody may have been faster.
    IF relation IN (SELECT tailor.due_schedules()) THEN
        CALL tailor.renew_copy(relation);
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.refresh_scheduled IS 'what tailor.refresh does, where a schedule says so; for the proxy only';

CREATE OR REPLACE PROCEDURE tailor.note_failure(relation regclass, reason text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE tailor.schedule s
    SET tried = clock_timestamp(), failed = s.failed + 1, failure = reason, due = clock_timestamp() + least(s.every, interval '15 minutes')
    WHERE s.relation = note_failure.relation;
END $$;
COMMENT ON PROCEDURE tailor.note_failure IS 'says why a scheduled refresh failed, to be tried again soon; for the proxy only';

-- Runs that were missed are made up for by one.
CREATE OR REPLACE PROCEDURE tailor.settle(relation regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE tailor.schedule s
    SET tried = now(), failed = 0, failure = NULL,
        due = s.due + s.every * greatest(0, floor(extract(epoch FROM now() - s.due) / extract(epoch FROM s.every)) + 1)
    WHERE s.relation = settle.relation;
    CALL tailor.drop_unused(relation);
END $$;
COMMENT ON PROCEDURE tailor.settle IS 'what follows a new copy: the schedule counts on, old copies go; for Tailor''s own routines only';

-- The copy before the present one stays for queries that are just being
-- planned on it; those before it stay while a chain has not been carried on.
CREATE OR REPLACE PROCEDURE tailor.drop_unused(relation regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    old integer;
BEGIN
    FOR old IN
        SELECT e.epoch FROM tailor.epoch e
        WHERE e.relation = drop_unused.relation AND e.epoch <> (SELECT p.epoch FROM tailor.protection p WHERE p.relation = drop_unused.relation)
          AND NOT EXISTS (SELECT FROM tailor.chain c WHERE c.epoch = e.epoch)
          AND NOT EXISTS (SELECT FROM tailor.publication u WHERE u.epoch = e.epoch)
          AND to_regclass(format('tailor_store.epoch_%s', e.epoch)) IS NOT NULL
        ORDER BY e.epoch DESC OFFSET 1
    LOOP
        EXECUTE format('DROP TABLE IF EXISTS tailor_store.epoch_%1$s, tailor_store.tuples_%1$s', old);
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.drop_unused IS 'drops copies that no chain is on, but for the present and the last one; for Tailor''s own routines only';

CREATE OR REPLACE VIEW tailor.storage AS
    SELECT p.relation, pg_total_relation_size(p.relation) AS table_bytes,
           (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
            WHERE c.relnamespace = 'tailor_store'::regnamespace AND c.relkind = 'r'
              AND substring(c.relname FROM '^[a-z]+_([0-9]+)$')::integer = p.epoch AND c.relname NOT LIKE 'chain%') AS copy_bytes,
           (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
            WHERE c.relnamespace = 'tailor_store'::regnamespace AND c.relkind = 'r'
              AND substring(c.relname FROM '^[a-z]+_([0-9]+)$')::integer IN (SELECT e.epoch FROM tailor.epoch e WHERE e.relation = p.relation AND e.epoch <> p.epoch)
              AND c.relname NOT LIKE 'chain%') AS earlier_bytes,
           (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
            WHERE c.relnamespace = 'tailor_store'::regnamespace AND c.relkind = 'r'
              AND substring(c.relname FROM '^chain_([0-9]+)_')::integer IN (SELECT h.chain FROM tailor.chain h WHERE h.relation = p.relation)) AS chain_bytes,
           (SELECT count(DISTINCT h.epoch) FROM tailor.chain h WHERE h.relation = p.relation AND h.epoch <> p.epoch) AS earlier_epochs,
           (SELECT count(*) FROM tailor.chain h WHERE h.relation = p.relation) AS chains
    FROM tailor.protection p JOIN pg_class t ON t.oid = p.relation WHERE p.epoch IS NOT NULL;
COMMENT ON VIEW tailor.storage IS 'bytes on disk of each protected table, of its present and earlier copies and of its chains';
-- Parents --------------------------------------------------------------------
--
-- A table that refers by its subject column to the subject of another protected
-- table borrows that table's quasi-identifiers: its copy holds them beside its
-- own, so that a join along the key is the child's own relation with more
-- columns (docs/decisions/joins.md).

CREATE OR REPLACE FUNCTION tailor.parents(relation regclass, subject name) RETURNS SETOF regclass
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT DISTINCT p.relation
    FROM pg_constraint f
    JOIN tailor.protection p ON p.relation = f.confrelid
    JOIN tailor.policy_version v ON v.relation = p.relation AND v.version = p.active
    JOIN pg_class c ON c.oid = f.confrelid
    JOIN pg_attribute here ON here.attrelid = f.conrelid AND here.attnum = f.conkey[1]
    JOIN pg_attribute there ON there.attrelid = f.confrelid AND there.attnum = f.confkey[1]
    WHERE f.contype = 'f' AND f.conrelid = parents.relation AND f.confrelid <> f.conrelid AND cardinality(f.conkey) = 1
      AND here.attname = coalesce(parents.subject, here.attname) AND there.attname = v.policy ->> 'subject'
      AND v.policy @? '$.columns[*] ? (@.class == "quasi_identifier")'
      -- Heirs of a table are rows that the key of the table does not cover.
      AND (c.relkind = 'p' OR NOT EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = c.oid))
$$;
COMMENT ON FUNCTION tailor.parents IS 'the active tables with quasi-identifiers whose subject the table refers to by a column, NULL for any';

-- A pseudonym on a table with several rows a subject links them, which only a
-- table without quasi-identifiers can bear: it borrows none.
CREATE OR REPLACE FUNCTION tailor.parent_of(relation regclass, policy jsonb) RETURNS jsonb
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT jsonb_build_object(
        'schema', n.nspname, 'name', c.relname, 'subject', v.policy -> 'subject', 'scope', v.policy -> 'scope',
        'k', greatest((v.policy ->> 'k')::integer, CASE WHEN v.policy #>> '{gate,measure}' = 'highest'
                      THEN least(ceil(1 / (v.policy #>> '{gate,max_risk}')::float8), 2147483647)::integer END),
        'columns', (SELECT jsonb_agg(jsonb_build_object('name', q -> 'name', 'number', q -> 'number', 'type', q -> 'type',
                                     'category', q -> 'category', 'hierarchy', q -> 'hierarchy') ORDER BY (q ->> 'number')::integer)
                    FROM jsonb_array_elements(v.policy -> 'columns') q WHERE q ->> 'class' = 'quasi_identifier'))
    FROM (SELECT array_agg(f) AS found FROM tailor.parents(parent_of.relation, (parent_of.policy ->> 'subject')::name) f) p
    JOIN tailor.protection o ON o.relation = p.found[1] AND cardinality(p.found) = 1
    JOIN tailor.policy_version v ON v.relation = o.relation AND v.version = o.active
    JOIN pg_class c ON c.oid = o.relation JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE v.policy ->> 'fingerprint' = tailor.fingerprint(o.relation) AND NOT parent_of.policy ? 'set_valued'
      -- Labels over the child's blocks would tell parts of what means are of, and
      -- of what means have been shown. A child that is shown by means has no other
      -- columns before its own.
      AND NOT parent_of.policy @? '$.columns[*] ? (@.representative == "mean")'
      AND NOT v.policy @? '$.columns[*] ? (@.representative == "mean")'
      AND NOT EXISTS (SELECT FROM tailor.chain h WHERE h.relation = o.relation AND h.means IS NOT NULL)
      AND (parent_of.policy @? '$.columns[*] ? (@.class == "quasi_identifier")' OR NOT parent_of.policy @? '$.columns[*] ? (@.action == "pseudonym")')
$$;
COMMENT ON FUNCTION tailor.parent_of IS 'the table whose quasi-identifiers a policy borrows, with them; NULL for none, and while that table is out of step with its policy';

CREATE OR REPLACE FUNCTION tailor.in_step(relation regclass) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT v.policy -> 'parent' IS NOT DISTINCT FROM tailor.parent_of(p.relation, v.policy - 'parent')
    FROM tailor.protection p JOIN tailor.policy_version v ON v.relation = p.relation AND v.version = p.active
    WHERE p.relation = in_step.relation
$$;
COMMENT ON FUNCTION tailor.in_step IS 'whether what an active table borrows is what its parent has; tailor.activate makes it so';

-- What a draft borrows. Whoever lends must be owned too: copies of one's
-- choice would show a parent's rows in partitions of one's choice.
CREATE OR REPLACE FUNCTION tailor.with_parent(relation regclass, policy jsonb) RETURNS jsonb
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT policy || coalesce(
        (SELECT jsonb_build_object('parent', p) FROM tailor.parent_of(relation, policy) p
         WHERE p IS NOT NULL AND tailor.owns(to_regclass(quote_ident(p ->> 'schema') || '.' || quote_ident(p ->> 'name')))), '{}')
$$;
COMMENT ON FUNCTION tailor.with_parent IS 'a draft with what it borrows; for Tailor''s own routines only';

CREATE OR REPLACE PROCEDURE tailor.assert_lends(relation regclass, policy jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    parent  regclass := to_regclass(format('%I.%I', policy #>> '{parent,schema}', policy #>> '{parent,name}'));
    columns name[] := ARRAY(SELECT (c ->> 'name')::name FROM jsonb_array_elements(policy #> '{parent,columns}') c);
BEGIN
    IF policy -> 'parent' IS DISTINCT FROM tailor.parent_of(relation, policy - 'parent') THEN
        RAISE EXCEPTION 'the quasi-identifiers that table % borrows have changed', relation
            USING ERRCODE = '55000', HINT = format('CALL tailor.activate(%L);', relation);
    END IF;
    CALL tailor.assert_owner(parent);
    CALL tailor.assert_inert(parent, columns || (policy #>> '{parent,subject}')::name);
END $$;
COMMENT ON PROCEDURE tailor.assert_lends IS 'fails unless the parent of a policy can be read for it as the policy says';

-- Two tables with quasi-identifiers may be linked along the key of their
-- subject; along anything else a join would be of another relation, which no
-- chain has a partition of.
CREATE OR REPLACE PROCEDURE tailor.assert_links(relation regclass, policy jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found record;
BEGIN
    FOR found IN
        WITH subjects (relation, subject) AS (
            SELECT p.relation, coalesce(v.policy ->> 'subject', p.subject)
            FROM tailor.protection p JOIN tailor.policy_version v ON v.relation = p.relation AND v.version = p.active
            WHERE p.relation <> assert_links.relation
              AND EXISTS (SELECT FROM tailor.classification c WHERE c.relation = p.relation AND c.class = 'quasi_identifier')
          UNION ALL
            SELECT assert_links.relation, assert_links.policy ->> 'subject'
            WHERE assert_links.policy @? '$.columns[*] ? (@.class == "quasi_identifier")')
        SELECT c.relation AS child, p.relation AS parent
        FROM pg_constraint f
        JOIN subjects c ON c.relation = f.conrelid JOIN subjects p ON p.relation = f.confrelid
        JOIN pg_attribute here ON here.attrelid = f.conrelid AND here.attnum = f.conkey[1]
        JOIN pg_attribute there ON there.attrelid = f.confrelid AND there.attnum = f.confkey[1]
        WHERE f.contype = 'f' AND assert_links.relation IN (f.conrelid, f.confrelid) AND f.conrelid <> f.confrelid
          AND (cardinality(f.conkey) > 1 OR here.attname <> c.subject OR there.attname <> p.subject)
    LOOP
        RAISE EXCEPTION 'table % is linked to the protected table %, which has quasi-identifiers too, by something else than the subject',
            found.child, found.parent USING ERRCODE = '0A000',
            HINT = 'Name the linking columns as the subjects of both, or classify the quasi-identifiers of one as direct_identifier, which hides them.';
    END LOOP;
    FOR found IN
        SELECT c ->> 'name' AS name, o ->> 'name' AS lent, assert_links.policy #>> '{parent,name}' AS parent
        FROM jsonb_array_elements(assert_links.policy -> 'columns') c, jsonb_array_elements(assert_links.policy #> '{parent,columns}') o
        WHERE c ->> 'name' = concat(assert_links.policy #>> '{parent,name}', '.', o ->> 'name')
    LOOP
        RAISE EXCEPTION 'column "%" of table % has the name of what it borrows from %', found.name, relation, found.parent
            USING ERRCODE = '42701', HINT = 'Rename it.';
    END LOOP;
    FOR found IN
        SELECT string_agg(quote_ident(c ->> 'name'), ', ') AS names, p.relation AS parent
        FROM tailor.protection p JOIN tailor.policy_version v ON v.relation = p.relation AND v.version = p.active,
             jsonb_array_elements(assert_links.policy -> 'columns') c, jsonb_array_elements(v.policy -> 'columns') o
        WHERE p.relation = to_regclass(quote_ident(assert_links.policy #>> '{parent,schema}') || '.' || quote_ident(assert_links.policy #>> '{parent,name}'))
          AND c ->> 'name' = o ->> 'name' AND c ->> 'class' IN ('sensitive', 'non_sensitive') AND o ->> 'class' IN ('sensitive', 'non_sensitive')
        GROUP BY p.relation
    LOOP
        RAISE NOTICE 'tables % and % both show %: where values of one subject are equal and rare, they link its rows', relation, found.parent, found.names;
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.assert_links IS 'fails where a foreign key links two tables with quasi-identifiers by anything but their subjects';

-- Called with the caller's rights: only an owner can lock. Whatever is not his
-- lends nothing.
CREATE OR REPLACE PROCEDURE tailor.hold(relation regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    parent regclass;
BEGIN
    EXECUTE format('LOCK TABLE %s IN SHARE UPDATE EXCLUSIVE MODE', relation);
    FOR parent IN SELECT f FROM tailor.parents(relation, NULL) f WHERE tailor.owns(f) ORDER BY 1 LOOP
        EXECUTE format('LOCK TABLE %s IN SHARE UPDATE EXCLUSIVE MODE', parent);
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.hold IS 'locks a table, and what it borrows from, against changes of their making until the transaction ends';

CREATE OR REPLACE PROCEDURE tailor.assert_whole(relation regclass, policy jsonb, epoch integer)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    missing bigint;
BEGIN
    IF NOT policy ? 'parent' THEN
        RETURN;
    END IF;
    EXECUTE format('SELECT count(*) FROM tailor_store.epoch_%s WHERE "tailor qid 0"', epoch) INTO missing;
    IF missing > 0 THEN
        RAISE EXCEPTION '% rows of table % refer to no row of table %', missing, relation, policy #>> '{parent,name}'
            USING ERRCODE = '23503', HINT = 'They would be a class of their own. Validate the foreign key, or drop it and give up joins.';
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_whole IS 'fails where rows of a new copy have no row of the parent';
-- Activation ----------------------------------------------------------------

-- The draft as one self-contained document.
CREATE OR REPLACE FUNCTION tailor.draft(relation regclass) RETURNS jsonb
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT tailor.with_parent(relation, jsonb_build_object(
        'subject', p.subject, 'k', p.k, 'recoding', p.recoding, 'scope', p.scope, 'seed', p.seed, 'rows', p.rows,
        'gate', CASE WHEN p.gate IS NOT NULL THEN jsonb_build_object('measure', p.gate, 'max_risk', p.max_risk) END,
        'fingerprint', tailor.fingerprint(p.relation),
        'require', coalesce((SELECT jsonb_agg(jsonb_build_object('model', r.model, 'column', r.column_name, 'parameter', r.parameter)
                                              ORDER BY r.model, r.column_name)
                             FROM tailor.requirement r WHERE r.relation = p.relation), '[]'),
        'columns', (SELECT jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
                        'name', a.attname, 'number', a.attnum, 'type', format_type(a.atttypid, a.atttypmod),
                        'category', t.typcategory, 'class', c.class, 'action', c.action,
                        'representative', nullif(c.representative, 'middle'),
                        'hierarchy', CASE WHEN h.name IS NOT NULL THEN jsonb_build_object('name', h.name, 'kind', h.kind, 'definition', h.definition) END))
                        ORDER BY a.attnum)
                    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
                    LEFT JOIN tailor.classification c ON c.relation = a.attrelid AND c.column_name = a.attname
                    LEFT JOIN tailor.hierarchy h ON h.name = c.hierarchy
                    WHERE a.attrelid = p.relation AND a.attnum > 0 AND NOT a.attisdropped))
        || coalesce(tailor.draft_set_valued(p.relation), '{}'))
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
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET constraint_exclusion = off
SET work_mem = '128MB' SET jit = off AS $$
DECLARE
    policy   jsonb := (SELECT v.policy FROM tailor.policy_version v
                       WHERE v.relation = build_epoch.relation AND v.version = build_epoch.version);
    number   integer;
    copied   name[];
    qids     text;
    originals text;
    payload  text;
    source   text := relation || ' b';
    fetched  text;
    single   boolean;
    subjects bigint;
    total    bigint;
    tuples   bigint;
    missing  bigint;
    slot     integer;
BEGIN
    CALL tailor.assert_owner(relation);
    IF policy IS NULL THEN
        RAISE EXCEPTION 'the policy of table % has no version %', relation, version USING ERRCODE = '42704';
    END IF;
    CALL tailor.assert_apart(relation);
    copied := ARRAY(
        SELECT (c ->> 'name')::name FROM jsonb_array_elements(policy -> 'columns') c
        WHERE c ->> 'class' IN ('quasi_identifier', 'sensitive', 'non_sensitive') OR c ->> 'name' = policy ->> 'subject');
    CALL tailor.assert_inert(relation, copied);
    -- Texts are told apart by their bytes: that is fastest.
    SELECT string_agg(format('b.%I%s', a.attname, CASE WHEN a.attcollation <> 0 THEN ' COLLATE "C"' ELSE '' END), ', ' ORDER BY a.attnum),
           string_agg(format(', b.%I AS %I', a.attname, 'tailor qid ' || a.attnum), '' ORDER BY a.attnum) INTO qids, originals
        FROM jsonb_array_elements(policy -> 'columns') c
        JOIN pg_attribute a ON a.attrelid = relation AND a.attname = c ->> 'name' AND a.attnum > 0 AND NOT a.attisdropped
        WHERE c ->> 'class' = 'quasi_identifier';
    SELECT string_agg(format('b.%I', c), ', ') INTO fetched FROM unnest(copied) c;
    -- The parent's are read in the statement that reads the table: both are of
    -- one moment.
    IF policy ? 'parent' THEN
        CALL tailor.assert_lends(relation, policy);
        source := format('%s LEFT JOIN %I.%I p ON p.%I = b.%I', source, policy #>> '{parent,schema}', policy #>> '{parent,name}',
                         policy #>> '{parent,subject}', policy ->> 'subject');
        SELECT concat_ws(', ', qids, string_agg(format('p.%I%s', c ->> 'name', CASE WHEN a.attcollation <> 0 THEN ' COLLATE "C"' END), ', ' ORDER BY a.attnum)),
               concat(originals, ', b."tailor qid 0"', string_agg(format(', b.%I', tailor.borrowed(c)), '' ORDER BY a.attnum)),
               concat(fetched, format(', p.%I IS NULL AS "tailor qid 0"', policy #>> '{parent,subject}'),
                      string_agg(format(', p.%I AS %I', c ->> 'name', tailor.borrowed(c)), '' ORDER BY a.attnum))
            INTO qids, originals, fetched
            FROM jsonb_array_elements(policy #> '{parent,columns}') c
            JOIN pg_attribute a ON a.attrelid = to_regclass(format('%I.%I', policy #>> '{parent,schema}', policy #>> '{parent,name}'))
                 AND a.attname = c ->> 'name' AND a.attnum > 0 AND NOT a.attisdropped;
    END IF;
    -- Where the column is a key, a row is a subject, and its random number will
    -- do for both.
    single := tailor.is_key(relation, (policy ->> 'subject')::name);
    -- Types are those of the catalog, and a cast is made only to types whose
    -- casts are PostgreSQL's own.
    SELECT string_agg(CASE WHEN c ->> 'class' = 'direct_identifier'
                           THEN format('("tailor pseudonym")::%s AS %I', format_type(a.atttypid, a.atttypmod), a.attname)
                           ELSE format('b.%I', a.attname) END, ', ' ORDER BY a.attnum) INTO payload
        FROM jsonb_array_elements(policy -> 'columns') c
        JOIN pg_attribute a ON a.attrelid = relation AND a.attname = c ->> 'name' AND a.attnum > 0 AND NOT a.attisdropped
        WHERE c ->> 'class' IN ('sensitive', 'non_sensitive')
           OR (c ->> 'class' = 'direct_identifier' AND c ->> 'action' = 'pseudonym'
               AND a.atttypid IN ('int4'::regtype, 'int8'::regtype, 'numeric'::regtype, 'text'::regtype));

    slot := tailor.start_progress(relation);
    EXECUTE format('SELECT count(*), count(*) FILTER (WHERE %I IS NULL) FROM %s', policy ->> 'subject', relation) INTO total, missing;
    IF missing > 0 THEN
        RAISE EXCEPTION 'the subject column of % is NULL in % rows', relation, missing
            USING ERRCODE = '23502', HINT = 'Every row must say whom it is about.';
    END IF;
    CALL tailor.note_progress(slot, relation, CASE WHEN policy ? 'set_valued' THEN 8 ELSE 2 END, total);
    IF policy ? 'set_valued' THEN
        RETURN tailor.build_records(relation, version, policy);
    END IF;

    number := nextval(pg_get_serial_sequence('tailor.epoch', 'epoch'));
    RAISE NOTICE 'table %: copying the rows in random order', relation;
    -- Rows are sorted by tuple, then by a random number, and written in that
    -- order; the join of subjects, where there is one, is sorted again.
    EXECUTE format(
        'CREATE TABLE tailor_store.epoch_%1$s AS
         SELECT ("tailor row" - 1)::integer AS "tailor row", "tailor tuple", ("tailor pseudonym" - 1)::integer AS "tailor subject"%2$s %3$s
         FROM (SELECT row_number() OVER (ORDER BY "tailor random") AS "tailor row", %4$s d.*
               FROM (SELECT gen_random_uuid() AS "tailor random", (%5$s)::integer AS "tailor tuple", %6$s FROM %7$s WHERE %9$s) d) b %8$s',
        number, CASE WHEN payload IS NULL THEN '' ELSE ', ' || payload END, originals,
        CASE WHEN single THEN 'row_number() OVER (ORDER BY "tailor random") AS "tailor pseudonym",' ELSE '' END,
        CASE WHEN qids IS NULL THEN '0' ELSE format('dense_rank() OVER (ORDER BY %s) - 1', qids) END,
        fetched, source,
        CASE WHEN NOT single THEN format(
            'JOIN (SELECT %1$I AS "tailor person", row_number() OVER (ORDER BY gen_random_uuid()) AS "tailor pseudonym"
                   FROM %2$s GROUP BY %1$I) s ON s."tailor person" = b.%1$I
             WHERE %3$s ORDER BY "tailor row"', policy ->> 'subject', relation, tailor.step(slot, relation, total, true))
             ELSE 'WHERE ' || tailor.step(slot, relation, total, true) END,
        tailor.step(slot, relation, total, false));
    RAISE NOTICE 'table %: collecting the combinations of quasi-identifiers', relation;
    CALL tailor.note_progress(slot, relation, 3);
    EXECUTE format(
        'CREATE TABLE tailor_store.tuples_%1$s AS SELECT DISTINCT "tailor tuple"%2$s FROM tailor_store.epoch_%1$s',
        number, (SELECT coalesce(', ' || string_agg(format('%I AS %I', 'tailor qid ' || (c ->> 'number'), c ->> 'name'), ', ' ORDER BY (c ->> 'number')::int), '')
                 FROM jsonb_array_elements(policy -> 'columns') c WHERE c ->> 'class' = 'quasi_identifier')
             || (SELECT coalesce(string_agg(format(', %I', tailor.borrowed(c)), ''), '') FROM jsonb_array_elements(policy #> '{parent,columns}') c));
    CALL tailor.note_progress(slot, relation, 4);
    CALL tailor.assert_whole(relation, policy, number);
    CALL tailor.assert_covers(policy, number);
    CALL tailor.note_progress(slot, relation, 5);
    -- The copy is written once more, without the quasi-identifiers.
    IF qids IS NOT NULL THEN
        EXECUTE format(
            'CREATE TABLE tailor_store.copy_%1$s AS SELECT %2$s FROM tailor_store.epoch_%1$s',
            number, (SELECT string_agg(format('%I', a.attname), ', ' ORDER BY a.attnum) FROM pg_attribute a
                     WHERE a.attrelid = format('tailor_store.epoch_%s', number)::regclass AND a.attnum > 0
                       AND a.attname NOT LIKE 'tailor qid %'));
        EXECUTE format('DROP TABLE tailor_store.epoch_%s', number);
        EXECUTE format('ALTER TABLE tailor_store.copy_%1$s RENAME TO epoch_%1$s', number);
    END IF;
    CALL tailor.note_progress(slot, relation, 6);
    CALL tailor.keep_no_samples(format('tailor_store.epoch_%s', number)::regclass);
    IF jsonb_typeof(policy -> 'parent') IS DISTINCT FROM 'object' THEN
        CALL tailor.expect_few(format('tailor_store.epoch_%s', number)::regclass);
    END IF;
    EXECUTE format('ANALYZE tailor_store.epoch_%s', number);

    EXECUTE format('SELECT count(*), count(DISTINCT "tailor subject") FROM tailor_store.epoch_%s', number) INTO total, subjects;
    EXECUTE format('SELECT count(*) FROM tailor_store.tuples_%s', number) INTO tuples;
    IF total > subjects AND qids IS NOT NULL AND EXISTS (
        SELECT FROM jsonb_array_elements(policy -> 'columns') c WHERE c ->> 'action' = 'pseudonym' AND c ->> 'class' = 'direct_identifier') THEN
        RAISE EXCEPTION 'a pseudonym would link the rows of one subject in table %', relation USING ERRCODE = '0A000',
            HINT = 'Hide the subject column: several rows of one subject, linked, identify by their sequence.';
    END IF;
    CALL tailor.assert_one_row(relation, policy, total, subjects);
    CALL tailor.assert_one_value(relation, policy, total, subjects);
    INSERT INTO tailor.epoch (epoch, relation, version, rows, tuples, subjects)
        OVERRIDING SYSTEM VALUE VALUES (number, build_epoch.relation, build_epoch.version, total, tuples, subjects);
    CALL tailor.note_progress(slot, relation, 7);
    RAISE NOTICE 'table %: stored % rows of % subjects, % combinations of quasi-identifiers', relation, total, subjects,
        CASE WHEN qids IS NULL THEN 0 ELSE tuples END;
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
    IF to_regclass(format('research.%I', table_name)) IS NOT NULL THEN
        EXECUTE format('DROP VIEW research.%I', table_name);
    END IF;
    -- OFFSET keeps a query from being planned with the NULLs, which could show
    -- that it has no rows before anything is evaluated.
    EXECUTE format('CREATE VIEW research.%I AS SELECT %s WHERE (SELECT tailor.unreachable(%L)) OFFSET 0', table_name, coalesce(shape, ''), relation);
    EXECUTE format('GRANT SELECT ON research.%I TO tailor_reader', table_name);
    EXECUTE format('COMMENT ON VIEW research.%I IS %L', table_name,
                   format('released shape of %s; ask for it by either name through the proxy', relation));
END $$;
COMMENT ON PROCEDURE tailor.publish_shape IS 'makes the view research.<table>; for Tailor''s own routines only';

CREATE OR REPLACE PROCEDURE tailor.close_views(names name[])
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    granted record;
BEGIN
    FOR granted IN
        SELECT DISTINCT c.oid::regclass AS view, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS grantee
        FROM pg_class c CROSS JOIN aclexplode(c.relacl) a
        WHERE c.relnamespace = 'tailor_release'::regnamespace AND a.grantee <> c.relowner AND c.relname = ANY (names)
    LOOP
        EXECUTE format('REVOKE ALL ON %s FROM %s', granted.view, granted.grantee);
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.close_views IS 'takes views of releases from everybody; for Tailor''s own routines only';

-- A release shows the columns that were visible when it was made, until the
-- chain is next used and the proxy makes it anew, for whoever uses it then.
CREATE OR REPLACE PROCEDURE tailor.close_releases(relation regclass)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    chain record;
BEGIN
    CALL tailor.assert_owner(relation);
    FOR chain IN SELECT c.chain AS number FROM tailor.chain c WHERE c.relation = close_releases.relation ORDER BY 1 FOR UPDATE LOOP
        CALL tailor.close_views(ARRAY[format('chain_%s', chain.number), format('chain_%s_parent', chain.number), format('chain_%s_label', chain.number)]);
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.close_releases IS 'takes all releases of a table from everybody; for Tailor''s own routines only';

-- A proxy that has not heard of the parent's new policy would still join. The
-- child by itself is shown as before.
CREATE OR REPLACE PROCEDURE tailor.close_joins(relation regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    child record;
    chain record;
BEGIN
    FOR child IN
        SELECT p.relation FROM tailor.protection p JOIN tailor.policy_version v ON v.relation = p.relation AND v.version = p.active
        JOIN pg_class c ON c.oid = close_joins.relation JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE v.policy #>> '{parent,schema}' = n.nspname AND v.policy #>> '{parent,name}' = c.relname
        ORDER BY 1
    LOOP
        CONTINUE WHEN tailor.in_step(child.relation);
        FOR chain IN SELECT c.chain AS number FROM tailor.chain c WHERE c.relation = child.relation ORDER BY 1 FOR UPDATE LOOP
            CALL tailor.close_views(ARRAY[format('chain_%s_parent', chain.number)]);
        END LOOP;
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.close_joins IS 'takes from everybody what releases of other tables show of a table and it no longer lends; for Tailor''s own routines only';

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
    IF policy ->> 'recoding' = 'cell' THEN
        RAISE EXCEPTION 'recoding "cell" cannot be kept safe over several answers' USING ERRCODE = '0A000',
            HINT = 'Use auto, local or full_domain; tailor anonymize withholds cells of files.';
    END IF;
    IF jsonb_array_length(policy -> 'seed') > 0 THEN
        CALL tailor.assert_combinations(relation, policy -> 'seed');
    END IF;
    CALL tailor.assert_set_valued(relation, policy);
    CALL tailor.assert_rows(relation, policy);
    CALL tailor.assert_means(relation, policy);
    FOR problem IN
        SELECT c ->> 'class' AS class FROM jsonb_array_elements(policy -> 'columns') c
        WHERE c ->> 'name' = policy ->> 'subject' AND c ->> 'class' <> 'direct_identifier'
    LOOP
        RAISE EXCEPTION 'the subject column of table % is classified as %', relation, problem.class USING ERRCODE = '22023',
            HINT = 'It says whom a row is about and would be shown: classify it as direct_identifier.';
    END LOOP;
    IF NOT EXISTS (SELECT FROM jsonb_array_elements(policy -> 'columns') c WHERE c ->> 'name' = policy ->> 'subject') THEN
        RAISE EXCEPTION 'the subject column of table % does not exist any more', relation USING ERRCODE = '42703',
            HINT = format('CALL tailor.protect(%L, subject => ..., k => %s);', relation, policy ->> 'k');
    END IF;
    FOR problem IN
        SELECT r ->> 'column' AS name, r ->> 'model' AS model FROM jsonb_array_elements(policy -> 'require') r
        WHERE NOT EXISTS (SELECT FROM jsonb_array_elements(policy -> 'columns') c
                          WHERE c ->> 'name' = r ->> 'column' AND c ->> 'class' IN ('sensitive', 'non_sensitive'))
    LOOP
        RAISE EXCEPTION '% is required of column "%", which releases do not show', problem.model, problem.name
            USING ERRCODE = '22023', HINT = 'Classify it as sensitive.';
    END LOOP;
    CALL tailor.assert_links(relation, policy);
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
    CALL tailor.take_turn(relation);
    policy := tailor.draft(relation);
    CALL tailor.assert_valid(relation, policy);
    FOR way IN SELECT * FROM tailor.ways(relation, ARRAY(SELECT tailor.reader_roles())) LIMIT 1 LOOP
        RAISE EXCEPTION 'reader "%" can still read table %', way.reader, way.part USING ERRCODE = '42501',
            DETAIL = format('It may do so as %I.', way.role),
            HINT = CASE WHEN way.part IN (SELECT tailor.family(relation))
                        THEN 'Revoke the role that grants it, or the privileges on single columns.'
                        ELSE format('REVOKE ALL ON %s FROM PUBLIC, %I; or take it from the parents of the table: a read of a parent reads its heirs.', way.part, way.role) END;
    END LOOP;
    FOR way IN SELECT * FROM tailor.view_ways(relation, ARRAY(SELECT tailor.reader_roles())) LIMIT 1 LOOP
        RAISE EXCEPTION 'reader "%" can still read table % through the view %', way.reader, relation, way.view USING ERRCODE = '42501',
            DETAIL = format('It may do so as %I.', way.role),
            HINT = format('REVOKE ALL ON %s FROM PUBLIC, %I; or drop the view.', way.view, way.role);
    END LOOP;
    SELECT coalesce(max(version), 0) + 1 INTO number FROM tailor.policy_version v WHERE v.relation = put_in_force.relation;
    INSERT INTO tailor.policy_version (relation, version, policy) VALUES (put_in_force.relation, number, policy);
    built := tailor.build_epoch(relation, number);
    CALL tailor.publish_shape(relation, number);
    -- In the order of the proxies: the policy's row, then the chains'.
    PERFORM FROM tailor.protection p WHERE p.relation = put_in_force.relation FOR UPDATE;
    CALL tailor.close_releases(relation);
    UPDATE tailor.protection p SET active = number, epoch = built WHERE p.relation = put_in_force.relation;
    CALL tailor.close_joins(relation);
    CALL tailor.settle(relation);
    PERFORM nextval('tailor.catalog_version');
    PERFORM pg_notify('tailor', 'policies');
END $$;
COMMENT ON PROCEDURE tailor.put_in_force IS 'the part of tailor.activate that writes';

CREATE OR REPLACE PROCEDURE tailor.activate(relation regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    part    record;
    readers text;
    losing  text;
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.hold(relation);
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
        SELECT string_agg(DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END, ', ') INTO losing
            FROM pg_class c
            CROSS JOIN LATERAL (
                SELECT x.grantee FROM aclexplode(c.relacl) x
              UNION SELECT x.grantee FROM pg_attribute t CROSS JOIN LATERAL aclexplode(t.attacl) x WHERE t.attrelid = c.oid) a
            WHERE c.oid = part.name
              AND (a.grantee = 0 OR EXISTS (SELECT FROM tailor.reader_roles() r JOIN pg_roles o ON o.rolname = r WHERE o.oid = a.grantee));
        IF losing IS NOT NULL THEN
            RAISE NOTICE 'table %: taking direct privileges from %', part.name, losing;
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
    CALL tailor.take_turn(relation);
    SELECT p.active INTO number FROM tailor.protection p WHERE p.relation = renew_copy.relation;
    IF number IS NULL THEN
        RAISE EXCEPTION 'the policy of table % is not active', relation
            USING ERRCODE = '55000', HINT = format('CALL tailor.activate(%L);', relation);
    END IF;
    built := tailor.build_epoch(relation, number);
    UPDATE tailor.protection p SET epoch = built WHERE p.relation = renew_copy.relation;
    CALL tailor.settle(relation);
    PERFORM nextval('tailor.catalog_version');
    PERFORM pg_notify('tailor', 'policies');
END $$;
COMMENT ON PROCEDURE tailor.renew_copy IS 'the part of tailor.refresh that writes';

CREATE OR REPLACE PROCEDURE tailor.refresh(relation regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.hold(relation);
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
        EXECUTE format('DROP VIEW IF EXISTS tailor_release.chain_%1$s, tailor_release.chain_%1$s_parent, tailor_release.chain_%1$s_label', chain.number);
        EXECUTE format('DROP TABLE IF EXISTS tailor_store.chain_%1$s_row, tailor_store.chain_%1$s_value, tailor_store.chain_%1$s_block', chain.number);
        DELETE FROM tailor.chain c WHERE c.chain = chain.number;
    END LOOP;
    RAISE WARNING 'what was shown of % before may be combined with what will be shown: the guarantee starts anew', relation;
    PERFORM nextval('tailor.catalog_version');
    PERFORM pg_notify('tailor', 'policies');
END $$;
COMMENT ON PROCEDURE tailor.forget_chains IS 'starts all chains of a table anew, giving up the guarantee over what was shown before';

-- What the proxy asks -------------------------------------------------------

CREATE OR REPLACE FUNCTION tailor.verifier(principal name) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN -- in PL/pgSQL the plan is kept: each login asks
    RETURN (SELECT rolpassword FROM pg_authid
            WHERE rolname = principal AND rolcanlogin AND (rolvaliduntil IS NULL OR rolvaliduntil > now()));
END
$$;
COMMENT ON FUNCTION tailor.verifier IS 'SCRAM verifier of a role that may log in; for the proxy only';
REVOKE ALL ON FUNCTION tailor.verifier FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tailor.verifier TO tailor_owner;

-- What tells this session from all others, also from one whose process has the
-- same number later. The statistics show the start of other roles' processes to
-- superusers only, hence the rights of whoever installs; without them the number
-- must do. It is asked where pg_backend_pid can be: never in a parallel worker.
CREATE OR REPLACE FUNCTION tailor.session() RETURNS text
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (SELECT concat(pg_backend_pid(), ' ', encode(timestamptz_send(a.backend_start), 'hex')) FROM pg_stat_get_activity(pg_backend_pid()) a);
END $$;
COMMENT ON FUNCTION tailor.session IS 'number and start of the session''s process: what tickets are bound to';

-- The same, asked once in a session: PL/pgSQL puts what an IMMUTABLE function
-- returns into its plans as a constant, and these are the process's own. Nobody can
-- set it, and it ends with the process.
CREATE OR REPLACE FUNCTION tailor.own_session() RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN tailor.session();
END $$;
COMMENT ON FUNCTION tailor.own_session IS 'tailor.session() as a constant of the plans that hold it: PL/pgSQL''s only; for Tailor''s own routines only';

-- The chains that the ticket at the end of a text is for; NULL where the proxy
-- made none for this text in this session. The key is a column of a query here and no
-- variable: plans show values of variables, and readers can have plans shown.
CREATE OR REPLACE FUNCTION tailor.ticket(query text) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    lead   CONSTANT text := E'\n/* tailor ';
    -- What stands behind the last lead; a regular expression would cost ten times as much.
    size   integer := greatest(strpos(reverse(query), reverse(lead)) - 1, 0);
    ticket text := right(query, size);
    chains text := split_part(ticket, ' ', 1);
    session CONSTANT text := tailor.own_session();
BEGIN
    RETURN (SELECT chains FROM tailor.admission_key WHERE ticket = format('%s %s */', chains, encode(sha256(key || sha256(key || convert_to(
        format(E'%s %s\n%s', session, chains, left(query, -size - length(lead))),
        pg_client_encoding()))), 'hex')));
END $$;
COMMENT ON FUNCTION tailor.ticket IS 'the chains that a text may read, by the ticket that the proxy has put behind it; for Tailor''s own routines only';

-- A release answers only statements that the proxy has planned and recorded:
-- their text, as the client's session sent it, ends in a ticket that the proxy
-- made for this text, this session and these chains, each with the epoch that the
-- text was planned on. SQL in a string, EXECUTE, FETCH and a connection past the
-- proxy have no ticket. Each query of PL/pgSQL takes longer than all the rest, so one
-- reads what every statement needs; what few need stands behind a condition that
-- needs none, in an IF of its own: a query in the same IF is set up in any case.
--
-- A view tells the epoch that it is over and the layout that it reads. This function is
-- STABLE, so it sees the chain by the snapshot of the statement, which reads the copy and
-- the chain's row by the same: older than the view, it would find one of them empty.
CREATE OR REPLACE FUNCTION tailor.admit(chain integer, epoch integer, layout integer) RETURNS boolean
LANGUAGE plpgsql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    seen   integer; -- the epoch that the chain is on in the view's layout
    holds  boolean;
    chains text;
    stack  text;
BEGIN
    -- In these encodings a byte that looks like a quote or a backslash can be half
    -- of a character, so that a text reads otherwise than it was planned.
    IF pg_client_encoding() IN ('SJIS', 'SHIFT_JIS_2004', 'BIG5', 'GBK', 'UHC', 'GB18030', 'JOHAB') THEN
        RAISE EXCEPTION 'releases are not read in client encoding %', pg_client_encoding()
            USING ERRCODE = '0A000', HINT = 'SET client_encoding = ''UTF8''.';
    END IF;
    -- When a transaction ends, the server reads its cursors WITH HOLD, whatever text
    -- ends it. Those of earlier ones have been read; a DO can begin a transaction.
    SELECT (SELECT c.epoch FROM tailor.chain c WHERE c.chain = abs(admit.chain) AND c.layout = admit.layout),
        EXISTS (SELECT FROM pg_cursor() c
                WHERE c.is_holdable AND c.creation_time >= least(transaction_timestamp(), statement_timestamp()))
        INTO seen, holds;
    IF (seen = epoch) IS NOT TRUE THEN
        RAISE EXCEPTION 'a release is newer than the snapshot of this transaction'
            USING ERRCODE = '40001', HINT = 'Start the transaction again.';
    END IF;
    chains := tailor.ticket(current_query());
    IF (strpos(',' || chains, format(',%s:', chain)) > 0) IS NOT TRUE THEN
        RAISE EXCEPTION 'a release is read through the proxy, in place of its table'
            USING ERRCODE = '42501', HINT = 'Connect to the proxy and name the protected table itself.';
    END IF;
    IF format('%s:%s', chain, epoch) <> ALL (string_to_array(chains, ',')) THEN
        RAISE EXCEPTION 'the policy or the copy of a table has just changed'
            USING ERRCODE = '40001', HINT = 'Send the statement again.';
    END IF;
    -- Behind this function's own line is whatever called the query that reads the
    -- release: nothing, or the parameters of the statement where they are logged.
    -- tailor.case_count reads publications of set-valued tables for a statement.
    GET DIAGNOSTICS stack = PG_CONTEXT;
    IF split_part(stack, E'\n', 2) !~ '^($|(unnamed portal|portal ".*") )' THEN
        IF NOT EXISTS (
            SELECT FROM tailor.chain c JOIN tailor.protection p ON p.relation = c.relation
            JOIN tailor.policy_version v ON v.relation = p.relation AND v.version = p.active
            WHERE c.chain = admit.chain AND v.policy ? 'set_valued') THEN
            RAISE EXCEPTION 'a release is read by the statement itself, and by no function that it calls'
                USING ERRCODE = '42501', HINT = 'Name the protected table in the statement.';
        END IF;
    END IF;
    IF holds THEN
        IF EXISTS (SELECT FROM pg_cursor() c
                   WHERE c.is_holdable AND c.creation_time >= least(transaction_timestamp(), statement_timestamp())
                     AND tailor.ticket(c.statement) IS NULL) THEN
            RAISE EXCEPTION 'a release is not read beside a cursor WITH HOLD over anything else'
                USING ERRCODE = '42501', HINT = 'Close the cursor, or end the transaction first.';
        END IF;
    END IF;
    RETURN true;
END $$;
COMMENT ON FUNCTION tailor.admit(integer, integer, integer) IS 'lets a statement read a release that the proxy has planned and recorded, and no other';

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

-- PostgreSQL shows the values that it sampled to the operators of a query while
-- it plans, before anything is admitted, and an operator can be a reader's own.
CREATE OR REPLACE PROCEDURE tailor.keep_no_samples(stored regclass) LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    changes text := (SELECT string_agg(format('ALTER %I SET STATISTICS 0', a.attname), ', ')
                     FROM pg_attribute a WHERE a.attrelid = stored AND a.attnum > 0 AND NOT a.attisdropped
                       AND a.attname NOT IN ('tailor row', 'tailor tuple', 'tailor subject', 'tailor block'));
BEGIN
    IF changes IS NOT NULL THEN
        EXECUTE format('ALTER TABLE %s %s', stored, changes);
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.keep_no_samples IS 'lets ANALYZE sample no column of a stored table that releases show; for Tailor''s own routines only';

-- What a release shows of a quasi-identifier is an expression of the row's number,
-- and a group by it is expected to have as many rows as there are such numbers.
CREATE OR REPLACE PROCEDURE tailor.expect_few(stored regclass) LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ALTER "tailor row" SET (n_distinct = 1000)', stored);
END $$;
COMMENT ON PROCEDURE tailor.expect_few IS 'has PostgreSQL expect few groups of what releases show; for Tailor''s own routines only';

-- Copies of earlier versions are told, and looked at, once.
DO $$
DECLARE
    stored record;
BEGIN
    FOR stored IN
        SELECT c.oid::regclass AS name FROM tailor.epoch e
        JOIN tailor.policy_version v ON v.relation = e.relation AND v.version = e.version
        JOIN pg_class c ON c.oid = to_regclass('tailor_store.epoch_' || e.epoch)
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tailor row'
        WHERE a.attoptions IS NULL AND pg_has_role(c.relowner, 'USAGE') AND jsonb_typeof(v.policy -> 'parent') IS DISTINCT FROM 'object'
    LOOP
        CALL tailor.expect_few(stored.name);
        EXECUTE format('ANALYZE %s ("tailor row")', stored.name);
    END LOOP;
END $$;

-- Earlier versions sampled: what they made is forgotten by whoever may.
DO $$
DECLARE
    stored record;
BEGIN
    IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        RETURN;
    END IF;
    FOR stored IN
        SELECT c.oid FROM pg_class c
        WHERE c.relnamespace = 'tailor_store'::regnamespace AND c.relkind = 'r' AND c.relname ~ '^((epoch|shape)_[0-9]+|chain_[0-9]+_block)$'
          AND EXISTS (SELECT FROM pg_statistic s WHERE s.starelid = c.oid)
    LOOP
        CALL tailor.keep_no_samples(stored.oid::regclass);
        DELETE FROM pg_statistic s USING pg_attribute a
        WHERE s.starelid = stored.oid AND a.attrelid = s.starelid AND a.attnum = s.staattnum AND coalesce(a.attstattarget, -1) = 0;
    END LOOP;
END $$;
-- How many subjects have some codes --------------------------------------------
--
-- Answers from the published form of a set-valued table, in closed form: the
-- expected count over all its readings, and bounds that hold for certain. The
-- formulas are those of published.Index.Count (anonymize/disassociate). All
-- that is read here is safe to be shown; tailor.admit sees to the record.
--
-- place_N      where a code is in a cluster: kind r record chunk, s shared
--              chunk, i item chunk; slots are the records of the chunk
-- subrecord_N  the distinct sub-records of each chunk, with their number
-- item_N       codes by text and occurrence within a record

CREATE OR REPLACE AGGREGATE tailor.product(double precision) (SFUNC = float8mul, STYPE = double precision, INITCOND = '1');

CREATE OR REPLACE FUNCTION tailor.case_count(relation regclass, codes text[],
                                             OUT expected double precision, OUT lower bigint, OUT upper bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
#variable_conflict use_column
DECLARE
    -- The name as text: an older snapshot may not show the view in pg_class.
    release integer := substring(relation::text FROM '^tailor_release\.chain_([0-9]+)$')::integer;
    number  integer := (SELECT c.epoch FROM tailor.chain c WHERE c.chain = release);
    wanted  integer[];
BEGIN
    IF release IS NULL THEN
        RAISE EXCEPTION 'tailor.case_count is answered through the proxy, for set-valued tables' USING ERRCODE = '42501',
            HINT = 'Connect to the proxy as a reader and name the table in quotes: tailor.case_count(''schema.table'', ARRAY[...]).';
    END IF;
    PERFORM tailor.admit(release, number, (SELECT c.layout::integer FROM tailor.chain c WHERE c.chain = release));
    IF codes IS NULL OR array_position(codes, NULL) IS NOT NULL THEN
        RAISE EXCEPTION 'a code is NULL' USING ERRCODE = '22004';
    END IF;
    IF cardinality(codes) = 0 THEN
        SELECT u.records, u.records, u.records INTO expected, lower, upper FROM tailor.publication u WHERE u.epoch = number;
        RETURN;
    END IF;
    -- A text that stands n times means its first n occurrences in a record.
    EXECUTE format(
        'SELECT array_agg(i.item ORDER BY i.item)
         FROM (SELECT c, row_number() OVER (PARTITION BY c) AS nth FROM unnest($1) c) q
         LEFT JOIN tailor_store.item_%s i ON i.code = q.c COLLATE "C" AND i.nth = q.nth', number) INTO wanted USING codes;
    IF array_position(wanted, NULL) IS NOT NULL THEN
        SELECT 0, 0, 0 INTO expected, lower, upper;
        RETURN;
    END IF;
    EXECUTE format($q$
        WITH whole AS (
            SELECT cluster FROM tailor_store.place_%1$s WHERE item = ANY ($1) GROUP BY cluster HAVING count(*) = cardinality($1)),
        parts AS MATERIALIZED (
            SELECT cluster, size, kind, chunk, slots, array_agg(item ORDER BY item) AS items
            FROM tailor_store.place_%1$s JOIN whole USING (cluster) WHERE item = ANY ($1)
            GROUP BY cluster, size, kind, chunk, slots),
        supports AS MATERIALIZED (
            SELECT p.chunk, p.items, coalesce(sum(s.records) FILTER (WHERE s.items @> p.items), 0) AS n
            FROM (SELECT DISTINCT chunk, items FROM parts WHERE kind <> 'i') p JOIN tailor_store.subrecord_%1$s s USING (chunk)
            GROUP BY p.chunk, p.items),
        counted AS (
            SELECT p.*, CASE kind WHEN 'i' THEN 1 ELSE s.n END AS n,
                   CASE kind WHEN 'i' THEN 1 WHEN 's' THEN greatest(0, s.n - (slots - size)) ELSE s.n END AS least,
                   CASE kind WHEN 'i' THEN size WHEN 's' THEN least(s.n, size) ELSE s.n END AS most
            FROM parts p LEFT JOIN supports s ON s.chunk = p.chunk AND s.items = p.items),
        clusters AS (
            SELECT cluster, count(*) = 1 AND bool_and(kind = 's') AS shared,
                   size * tailor.product(n::double precision / slots) AS expected,
                   greatest(0, sum(least) - (count(*) - 1) * size) AS lower, min(most) AS upper,
                   -- The rarest shared chunk limits all clusters of its scope together.
                   (array_agg(chunk ORDER BY n, items) FILTER (WHERE kind = 's'))[1] AS chunk,
                   min(n) FILTER (WHERE kind = 's') AS n
            FROM counted GROUP BY cluster, size),
        terms AS (
            SELECT expected, lower, upper FROM clusters WHERE chunk IS NULL
          UNION ALL
            SELECT sum(expected), sum(lower), least(sum(upper), min(n)) FROM clusters WHERE chunk IS NOT NULL AND NOT shared GROUP BY chunk
          UNION ALL -- a shared chunk that holds all codes counts once for its scope
            SELECT min(n), min(n), min(n) FROM clusters WHERE shared GROUP BY chunk)
        SELECT coalesce(sum(expected), 0), coalesce(sum(lower), 0), coalesce(sum(upper), 0) FROM terms
        $q$, number) INTO expected, lower, upper USING wanted;
EXCEPTION WHEN undefined_table THEN
    RAISE EXCEPTION 'a release is newer than the snapshot of this transaction'
        USING ERRCODE = '40001', HINT = 'Start the transaction again.';
END $$;
COMMENT ON FUNCTION tailor.case_count IS 'how many subjects of a set-valued table have all of some codes: the expected number, and bounds for certain; through the proxy';
-- Version and place of this installation ------------------------------------

CREATE OR REPLACE FUNCTION tailor.restored() RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT NOT EXISTS (SELECT FROM tailor.installation)
        OR EXISTS (SELECT FROM tailor.installation i
                   WHERE i.chain_table <> 'tailor.chain'::regclass::oid::bigint OR i.written <> i.xmin::text)
$$;
COMMENT ON FUNCTION tailor.restored IS 'whether the chains came from a dump and nobody has said yet that they are the latest';

CREATE OR REPLACE FUNCTION tailor.protocol() RETURNS integer
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN current_setting('server_version_num')::integer >= 180000 THEN 2 ELSE 0 END
$$;
COMMENT ON FUNCTION tailor.protocol IS 'the newest version 3.x of the wire protocol that this server speaks, and so the proxy';

CREATE OR REPLACE PROCEDURE tailor.write_installation(version text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM tailor.installation;
    INSERT INTO tailor.installation (version, chain_table, written)
        VALUES (version, 'tailor.chain'::regclass::oid::bigint, '');
    -- The new state of the row is written by the transaction of the old one.
    UPDATE tailor.installation i SET written = i.xmin::text;
END $$;
COMMENT ON PROCEDURE tailor.write_installation IS 'says that this is the place and the version; for Tailor''s own routines only';

CREATE OR REPLACE PROCEDURE tailor.accept_restore()
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    latest text := (SELECT i.version FROM tailor.installation i ORDER BY i.installed DESC LIMIT 1);
BEGIN
    CALL tailor.write_installation(latest);
    -- Roles have other numbers here.
    UPDATE tailor.chain c SET role = (SELECT r.oid FROM pg_roles r WHERE c.audience IN ('principal ' || r.rolname, 'role ' || r.rolname));
    PERFORM nextval('tailor.catalog_version');
    PERFORM pg_notify('tailor', 'policies');
    RAISE WARNING 'what was shown after the dump was taken may be combined with what will be shown: the guarantee holds from the dump on';
END $$;
COMMENT ON PROCEDURE tailor.accept_restore IS 'lets the proxy serve chains that came from a dump; what was shown since the dump is not part of them';

DO $$
BEGIN
    -- Of a restored installation nothing is known: tailor.accept_restore decides.
    IF NOT EXISTS (SELECT FROM tailor.installation) OR NOT tailor.restored() THEN
        CALL tailor.write_installation('0.2.0');
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
        IF object.prosecdef AND object.proname NOT IN ('verifier', 'grant_reader', 'announce_ddl', 'lock_scheduled', 'session') THEN
            EXECUTE format('ALTER ROUTINE %s OWNER TO tailor_owner', object.name);
        END IF;
        EXECUTE format('GRANT EXECUTE ON ROUTINE %s TO tailor_owner', object.name);
        -- The procedures of an administrator, and what they call with his rights.
        IF object.proname IN (
            'protect', 'define_hierarchy', 'classify', 'require', 'set_valued', 'chain_scope', 'seed', 'project', 'gate', 'recode', 'rows', 'represent', 'schedule', 'clear_draft',
            'draft', 'grant_reader', 'activate', 'refresh', 'forget_chains', 'restored', 'fingerprint',
            'phases', 'write_protection', 'write_hierarchy', 'put_in_force', 'renew_copy', 'apply_alone',
            'owns', 'assert_owner', 'parents', 'in_step', 'hold', 'family', 'ancestors', 'lineage', 'members', 'reader_roles', 'ways', 'unreachable') THEN
            EXECUTE format('GRANT EXECUTE ON ROUTINE %s TO tailor_admin', object.name);
        END IF;
    END LOOP;
END $$;
GRANT EXECUTE ON FUNCTION tailor.admit(integer, integer, integer), tailor.session(), tailor.unreachable(text), tailor.left_out(integer, bigint, numeric, bigint), tailor.shows(integer, bigint, bigint[]), tailor.operators_of_others(), tailor.case_count(regclass, text[]) TO tailor_reader;
GRANT SELECT ON tailor.policies, tailor.hierarchies, tailor.chains, tailor.graphs, tailor.progress, tailor.schedules, tailor.storage, tailor.audit, tailor.audit_lines,
    tailor.audit_heads TO tailor_admin;

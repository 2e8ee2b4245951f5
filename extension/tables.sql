-- Configuration -------------------------------------------------------------

-- An upgrade waits for a proxy that makes a release, or the proxy for it: each
-- begins with this table.
DO $$
BEGIN
    IF to_regclass('tailor.protection') IS NOT NULL THEN
        LOCK TABLE tailor.protection IN ACCESS EXCLUSIVE MODE;
    END IF;
END $$;

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
    recoding    text NOT NULL DEFAULT 'auto'
        CHECK (recoding IN ('auto', 'local', 'full_domain', 'cell')),
    scope       text NOT NULL DEFAULT 'table' CONSTRAINT protection_scope
        CHECK (scope IN ('table', 'project')),
    active      integer,
    epoch       integer
);
-- Versions before 0.3 had a chain for each principal, role or everyone.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conrelid = 'tailor.protection'::regclass
                   AND c.conname = 'protection_scope') THEN
        ALTER TABLE tailor.protection DROP CONSTRAINT IF EXISTS protection_scope_check, ALTER scope
            SET DEFAULT 'table';
        UPDATE tailor.protection SET scope = 'table';
        ALTER TABLE tailor.protection ADD CONSTRAINT protection_scope
            CHECK (scope IN ('table', 'project'));
    END IF;
END $$;
ALTER TABLE tailor.protection ADD COLUMN IF NOT EXISTS gate text
    CHECK (gate IN ('highest', 'average', 'below_k', 'unique'));
ALTER TABLE tailor.protection ADD COLUMN IF NOT EXISTS max_risk double precision CHECK (max_risk > 0
        AND max_risk <= 1);
ALTER TABLE tailor.protection ADD COLUMN IF NOT EXISTS seed jsonb NOT NULL DEFAULT '[]';
ALTER TABLE tailor.protection ADD COLUMN IF NOT EXISTS rows boolean NOT NULL DEFAULT true;
ALTER TABLE tailor.protection ADD COLUMN IF NOT EXISTS cohort integer CHECK (cohort >= 1);
COMMENT ON COLUMN tailor.protection.cohort
    IS 'how many subjects that nobody has been shown before are shown together; NULL: the larger '
        'of 100 and 20 k';
ALTER TABLE tailor.protection ADD COLUMN IF NOT EXISTS max_share double precision NOT NULL
    DEFAULT 0.5 CHECK (max_share > 0 AND max_share <= 1);
COMMENT ON COLUMN tailor.protection.max_share
    IS 'the largest share of the rows of a block that one subject may own, where subjects have '
        'several';
COMMENT ON COLUMN tailor.protection.rows IS
    'whether releases show the payload of rows, or averages of at least k subjects';
COMMENT ON COLUMN tailor.protection.gate
    IS 'the measure of risk that decides whether a stage of a query is de-identified; NULL means '
        'the highest, up to 1/k';
COMMENT ON COLUMN tailor.protection.seed
    IS 'the combinations of quasi-identifiers that the root is made for';
COMMENT ON COLUMN tailor.protection.active
    IS 'the policy version in force; NULL before the first activation';

CREATE TABLE IF NOT EXISTS tailor.classification (
    relation    regclass NOT NULL REFERENCES tailor.protection ON DELETE CASCADE,
    column_name name NOT NULL,
    class       text NOT NULL CHECK (class IN ('direct_identifier', 'quasi_identifier', 'sensitive',
                                               'non_sensitive')),
    hierarchy   text REFERENCES tailor.hierarchy,
    action      text NOT NULL DEFAULT 'hide' CHECK (action IN ('hide', 'pseudonym')),
    PRIMARY KEY (relation, column_name)
);

CREATE TABLE IF NOT EXISTS tailor.requirement (
    relation    regclass NOT NULL REFERENCES tailor.protection ON DELETE CASCADE,
    model       text NOT NULL,
    column_name name NOT NULL,
    parameter   float8 NOT NULL,
    PRIMARY KEY (relation, model, column_name)
);
-- Of earlier versions, which knew one model.
ALTER TABLE tailor.requirement DROP CONSTRAINT IF EXISTS requirement_model_check,
    DROP CONSTRAINT IF EXISTS requirement_parameter_check, ALTER parameter TYPE float8,
    ADD COLUMN IF NOT EXISTS c float8, ADD COLUMN IF NOT EXISTS distance text;

CREATE TABLE IF NOT EXISTS tailor.policy_version (
    relation    regclass NOT NULL,
    version     integer NOT NULL,
    policy      jsonb NOT NULL,
    author      name NOT NULL DEFAULT session_user,
    created     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (relation, version)
);
COMMENT ON TABLE tailor.policy_version
    IS 'append-only; tailor.protection.active names the one in force';

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
    blocks      integer NOT NULL,
    min_block   integer NOT NULL,
    created     timestamptz NOT NULL DEFAULT now(),
    changed     timestamptz NOT NULL DEFAULT now(),
    UNIQUE (relation, audience)
);
ALTER TABLE tailor.chain ADD COLUMN IF NOT EXISTS layout smallint NOT NULL DEFAULT 0;
ALTER TABLE tailor.chain DROP COLUMN IF EXISTS partition,
    ADD COLUMN IF NOT EXISTS edition integer NOT NULL DEFAULT 0, ADD COLUMN
        IF NOT EXISTS version integer, ADD COLUMN IF NOT EXISTS keyed boolean NOT NULL DEFAULT true,
    ADD COLUMN IF NOT EXISTS rows bigint NOT NULL DEFAULT 0, ADD COLUMN
        IF NOT EXISTS subjects bigint NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS arrivals bigint NOT NULL DEFAULT 0, ADD COLUMN
        IF NOT EXISTS departures bigint NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS changes bigint NOT NULL DEFAULT 0, ADD COLUMN
        IF NOT EXISTS stored jsonb NOT NULL DEFAULT '[]',
    ADD COLUMN IF NOT EXISTS columns jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN IF NOT EXISTS first_version integer;
-- By numbers, not by times: an activation may end long after its transaction began.
UPDATE tailor.chain c SET first_version = (
        SELECT coalesce(max(v.version), 0) FROM tailor.policy_version v
        WHERE v.relation = c.relation AND v.created <= c.created)
    WHERE first_version IS NULL;
COMMENT ON COLUMN tailor.chain.first_version
    IS 'the version of the policy by which the chain was first shown';
COMMENT ON COLUMN tailor.chain.columns
    IS 'of each dimension, the share of rows that are exact, and the loss';
ALTER TABLE tailor.epoch ADD COLUMN IF NOT EXISTS keyed boolean NOT NULL DEFAULT true;
COMMENT ON COLUMN tailor.epoch.keyed
    IS 'whether a row goes on when what it says changes: it is known by its subject, or by a '
        'primary key';
COMMENT ON COLUMN tailor.chain.epoch
    IS 'the copy that the release was last brought up to date with';
COMMENT ON COLUMN tailor.chain.edition
    IS 'rises with each policy under which the release is stored anew, and names its tables and '
        'views';
COMMENT ON COLUMN tailor.chain.generation IS 'rises with whatever is written of the release';
COMMENT ON COLUMN tailor.chain.version IS 'of the policy under which the release is stored';
COMMENT ON COLUMN tailor.chain.arrivals
    IS 'subjects with rows of the copy that are not shown yet: too few to be a cohort';
COMMENT ON COLUMN tailor.chain.departures
    IS 'subjects with rows that are shown still and the copy had no more: too few of their block';
COMMENT ON COLUMN tailor.chain.changes
    IS 'subjects whose row is shown as it was: too few of their block have changed';
COMMENT ON COLUMN tailor.chain.stored
    IS 'the risk of combinations of quasi-identifiers in the table as it was when the generation '
        'was made: for its owner';
COMMENT ON TABLE tailor.chain
    IS 'the root partition that one audience is shown of a table: all its readers (table), or a '
        'project''s';
COMMENT ON COLUMN tailor.chain.layout
    IS 'the way its release is stored; the proxy of another version refuses it, or publishes codes '
        'anew';

CREATE TABLE IF NOT EXISTS tailor.project (
    name         text NOT NULL CHECK (name <> ''),
    relation     regclass NOT NULL REFERENCES tailor.protection ON DELETE CASCADE,
    combinations jsonb NOT NULL,
    PRIMARY KEY (name, relation)
);
COMMENT ON TABLE tailor.project IS 'declared workloads, by which roots are made';

CREATE TABLE IF NOT EXISTS tailor.project_reader (
    reader      oid PRIMARY KEY,
    project     text NOT NULL
);
ALTER TABLE tailor.project_reader ADD COLUMN IF NOT EXISTS name name;
UPDATE tailor.project_reader p SET name = r.rolname FROM pg_roles r
    WHERE r.oid = p.reader AND p.name IS NULL;
COMMENT ON TABLE tailor.project_reader
    IS 'the project that a role, and who is a member of it, reads for';
COMMENT ON COLUMN tailor.project_reader.name IS 'the role''s name then: in a dump numbers mean '
    'other roles, and a role with another name reads for no project';

-- Earlier versions could show columns by means of blocks. Such a policy counts as
-- stale until it is activated anew; tailor.parent_of and the proxy know by the
-- versions of policies which chains were shown so.
UPDATE tailor.policy_version SET policy = policy || '{"fingerprint": "shown by means of blocks"}'
    WHERE policy @? '$.columns[*] ? (@.representative == "mean")';
ALTER TABLE tailor.classification DROP COLUMN IF EXISTS representative;
DROP VIEW IF EXISTS tailor.graphs, tailor.chains;
ALTER TABLE tailor.chain DROP COLUMN IF EXISTS means, DROP COLUMN IF EXISTS score, DROP COLUMN
    IF EXISTS seeds, DROP COLUMN IF EXISTS role;
DROP TABLE IF EXISTS tailor.chain_node;
-- Whoever shared a chain with everyone has been shown what all readers share now,
-- and is shown no less and no more. What others have been shown is not a part of
-- it: the proxy makes no root beside it until tailor.forget_chains.
UPDATE tailor.chain SET audience = 'table' WHERE audience = 'everyone';
UPDATE tailor.policy_version SET policy = policy || '{"scope": "table"}'
    WHERE policy ->> 'scope' IN ('principal', 'role', 'everyone');
UPDATE tailor.policy_version SET policy = jsonb_set(policy, '{parent,scope}', '"table"')
    WHERE policy #>> '{parent,scope}' IN ('principal', 'role', 'everyone');
DROP PROCEDURE IF EXISTS tailor.assert_means(regclass, jsonb);
DROP PROCEDURE IF EXISTS tailor.assert_one_value(regclass, jsonb, bigint, bigint);

-- Versions before the chain was numbered kept records as jsonb, which forgets
-- the bytes that a hash is about.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_catalog.pg_attribute a
               WHERE a.attrelid = pg_catalog.to_regclass('tailor.audit_log')
               AND a.attname = 'record' AND a.atttypid = 'pg_catalog.jsonb'::pg_catalog.regtype)
                   THEN
        DROP VIEW IF EXISTS tailor.audit;
        DROP INDEX IF EXISTS tailor.audit_log_time;
        ALTER TABLE tailor.audit_log ADD COLUMN log text, ADD COLUMN sequence bigint,
            ADD UNIQUE (log, sequence),
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
COMMENT ON TABLE tailor.audit_log
    IS 'every line of every chain, byte by byte; NULL log: written before chains were numbered';

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
CREATE INDEX IF NOT EXISTS audit_entry_chain ON tailor.audit_entry (chain, position)
    WHERE verdict = 'released';
CREATE INDEX IF NOT EXISTS audit_entry_relations ON tailor.audit_entry USING gin (relations);
CREATE INDEX IF NOT EXISTS audit_entry_risk ON tailor.audit_entry (risk);
CREATE INDEX IF NOT EXISTS audit_entry_loss ON tailor.audit_entry (loss);
-- For a table that is seldom asked for, or never, the planner is to know that.
ALTER TABLE tailor.audit_entry ALTER relations SET STATISTICS 500;
COMMENT ON TABLE tailor.audit_entry
    IS 'one row a statement or refused login, with the outcome of its answer';

CREATE TABLE IF NOT EXISTS tailor.audit_head (
    log         text PRIMARY KEY,
    sequence    bigint NOT NULL,
    hash        text NOT NULL,
    changed     timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE tailor.audit_head
    IS 'the last line of each chain: a tail that was cut off is missed here';

CREATE TABLE IF NOT EXISTS tailor.admission_key (
    single      boolean PRIMARY KEY DEFAULT true CHECK (single),
    key         bytea NOT NULL
);
COMMENT ON TABLE tailor.admission_key
    IS 'what the proxy and tailor.admit share; for tailor_owner only';
INSERT INTO tailor.admission_key (key)
    SELECT sha256(convert_to(gen_random_uuid()::text || gen_random_uuid() || gen_random_uuid(),
                             'UTF8'))
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
ALTER TABLE tailor.installation ADD COLUMN IF NOT EXISTS timeline bigint, ADD COLUMN
    IF NOT EXISTS accepted timestamptz;
COMMENT ON COLUMN tailor.installation.accepted
    IS 'when tailor.accept_restore was last called: what was shown before is lost, and known to be';
COMMENT ON COLUMN tailor.installation.timeline
    IS 'of the write-ahead log: a standby that is promoted, and a base backup that is recovered, '
        'begin another';
COMMENT ON TABLE tailor.installation
    IS 'the version of the SQL side, and what tells a restored one from the one that was dumped';

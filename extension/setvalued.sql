-- Set-valued tables -----------------------------------------------------------
--
-- A set-valued table says which codes each subject has: a row a code, or a row
-- a subject with an array of codes. Codes of one subject identify it, so no
-- copy of the rows is released but a disassociated publication of them: one for all
-- audiences and all queries, which lives on (publications.sql). A proxy makes it and
-- adds to it (catalog/setvalued.go); here is the policy, and what it is made from.

CREATE TABLE IF NOT EXISTS tailor.set_valued (
    relation    regclass PRIMARY KEY REFERENCES tailor.protection ON DELETE CASCADE,
    column_name name NOT NULL,
    m           integer NOT NULL CHECK (m >= 1),
    constraints jsonb,
    sensitive   text[],
    diversity   integer
);
ALTER TABLE tailor.set_valued
    ADD COLUMN IF NOT EXISTS joint name[],
    ADD COLUMN IF NOT EXISTS group_size integer;
COMMENT ON COLUMN tailor.set_valued.joint IS
    'quasi-identifiers of the parent that codes are published together with; NULL for none';
COMMENT ON COLUMN tailor.set_valued.group_size IS
    'how many subjects share their labels at least; NULL for 40 k';
COMMENT ON TABLE tailor.set_valued
    IS 'draft: tables of which the codes of a subject form a set; k is that of tailor.protection';

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
ALTER TABLE tailor.publication ADD COLUMN IF NOT EXISTS groups jsonb;
COMMENT ON COLUMN tailor.publication.groups IS 'the labels of the groups of a joint publication';
COMMENT ON COLUMN tailor.publication.epoch IS 'the copy that it began with, and by which its '
    'tables are named';
COMMENT ON COLUMN tailor.publication.clusters IS 'how many clusters were ever published: the '
    'number of the next';
COMMENT ON TABLE tailor.publication IS 'what is published of a set-valued table: cohorts are '
    'added, and clusters taken out; safe to be shown in full';

CREATE OR REPLACE PROCEDURE tailor.set_valued(relation regclass, column_name name, m integer
                                              DEFAULT 2,
                                              constraints jsonb DEFAULT NULL, sensitive text[]
                                                  DEFAULT NULL, diversity integer DEFAULT NULL)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    IF column_name IS NULL THEN
        DELETE FROM tailor.set_valued s WHERE s.relation = set_valued.relation;
        RETURN;
    END IF;
    CALL tailor.assert_column(relation, column_name);
    IF m IS NULL OR m < 1 THEN
        RAISE EXCEPTION 'm must be at least 1' USING ERRCODE = '22023',
            HINT = 'It is the number of codes of a subject that an attacker may know.';
    END IF;
    IF constraints IS NOT NULL AND NOT coalesce((
        SELECT bool_and(jsonb_typeof(c.value) = 'array' AND jsonb_array_length(c.value) > 0
                        AND NOT jsonb_path_exists(c.value, 'strict $[*] ? (@.type() != "string")'))
        FROM jsonb_each(CASE jsonb_typeof(constraints) WHEN 'object' THEN constraints END) c),
            jsonb_typeof(constraints) = 'object') THEN
        RAISE EXCEPTION 'constraints must be lists of codes by name'
            USING ERRCODE = '22023', HINT = 'For example, {"hypertension": ["401.1", "401.9"]}.';
    END IF;
    IF EXISTS (SELECT FROM jsonb_each(constraints) c CROSS
               JOIN jsonb_array_elements_text(c.value) code
               GROUP BY code HAVING count(*) > 1) THEN
        RAISE EXCEPTION 'a code stands twice in the constraints' USING ERRCODE = '22023',
            HINT = 'Constraints are disjoint.';
    END IF;
    IF array_position(sensitive, NULL) IS NOT NULL THEN
        RAISE EXCEPTION 'a sensitive code is NULL' USING ERRCODE = '22023';
    END IF;
    IF (coalesce(cardinality(sensitive), 0) > 0) <> (diversity IS NOT NULL) OR diversity < 2 THEN
        RAISE EXCEPTION 'sensitive codes and a diversity of at least 2 belong together'
            USING ERRCODE = '22023',
            HINT = 'A subject is linked to a sensitive code with a probability of at most '
                '1/diversity.';
    END IF;
    INSERT INTO tailor.set_valued (relation, column_name, m, constraints, sensitive, diversity)
        VALUES (relation, column_name, m, constraints, sensitive, diversity)
        ON CONFLICT ON CONSTRAINT set_valued_pkey DO UPDATE
        SET column_name = excluded.column_name, m = excluded.m, constraints = excluded.constraints,
            sensitive = excluded.sensitive, diversity = excluded.diversity;
    CALL tailor.classify(relation, column_name, 'sensitive');
END $$;
COMMENT ON PROCEDURE tailor.set_valued
    IS 'says that the codes of a column are a set for each subject, published once an epoch with '
        'k^m-anonymity; column_name => NULL takes it back';

-- Codes together with quasi-identifiers of the parent: (k, k^m)-anonymity.
CREATE OR REPLACE PROCEDURE tailor.joint(
    relation regclass, columns name[], group_size integer DEFAULT NULL)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    IF columns IS NOT NULL AND (cardinality(columns) = 0 OR array_position(columns, NULL)
                                IS NOT NULL
            OR cardinality(columns) > (SELECT count(DISTINCT c) FROM unnest(columns) c)) THEN
        RAISE EXCEPTION 'columns must be names, each once' USING ERRCODE = '22023',
            HINT = 'Name quasi-identifiers of the parent, the most important first; NULL for none.';
    END IF;
    IF group_size < 2 THEN
        RAISE EXCEPTION 'group_size must be at least 2' USING ERRCODE = '22023',
            HINT = 'It is how many subjects share their labels at least; NULL for 40 k.';
    END IF;
    UPDATE tailor.set_valued s SET joint = columns, group_size = joint.group_size
        WHERE s.relation = joint.relation;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'table % is not set-valued', relation USING ERRCODE = '55000',
            HINT = 'Call tailor.set_valued first.';
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.joint IS
    'says together with which quasi-identifiers of the parent codes are published; NULL for none';

CREATE OR REPLACE FUNCTION tailor.draft_set_valued(relation regclass) RETURNS jsonb
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT jsonb_build_object('set_valued', jsonb_strip_nulls(jsonb_build_object(
        'column', s.column_name, 'm', s.m, 'constraints', s.constraints, 'sensitive',
        to_jsonb(s.sensitive), 'diversity', s.diversity,
        'joint', CASE WHEN s.joint IS NOT NULL THEN jsonb_build_object('columns', to_jsonb(s.joint),
                'group_size', s.group_size) END)))
    FROM tailor.set_valued s WHERE s.relation = draft_set_valued.relation
$$;
COMMENT ON FUNCTION tailor.draft_set_valued
    IS 'what tailor.draft says of a set-valued table; NULL for others';

-- What another publication would be made of, as far as the policy says.
CREATE OR REPLACE FUNCTION tailor.publishes(policy jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN policy ? 'set_valued' THEN (policy -> 'set_valued') || jsonb_build_object('k',
            policy -> 'k', 'subject', policy -> 'subject')
        || CASE WHEN policy @? '$.set_valued.joint' THEN jsonb_build_object('parent',
                policy -> 'parent') ELSE '{}' END END
$$;
COMMENT ON FUNCTION tailor.publishes
    IS 'the part of a policy that decides how a set-valued table is published; NULL for others';

CREATE OR REPLACE PROCEDURE tailor.assert_joint(relation regclass, policy jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    parent  regclass := tailor.lender(policy);
    missing text;
    types   regtype[];
BEGIN
    IF NOT policy @? '$.set_valued.joint' THEN
        RETURN;
    END IF;
    IF parent IS NULL THEN
        RAISE EXCEPTION 'table % has no parent that its codes could be published together with',
            relation
            USING ERRCODE = '0A000',
                HINT = 'A foreign key from the subject to that of one active table of the same '
                    'owner '
                'with a row for each subject makes it the parent; activate it first.';
    END IF;
    SELECT string_agg(format('"%s"', j), ', ') INTO missing
        FROM jsonb_array_elements_text(policy #> '{set_valued,joint,columns}') j
        WHERE NOT policy #> '{parent,columns}' @> jsonb_build_array(jsonb_build_object('name', j));
    IF missing IS NOT NULL THEN
        RAISE EXCEPTION 'column % is no quasi-identifier of table %', missing, parent
            USING ERRCODE = '42703',
                HINT = 'Codes are published together with quasi-identifiers of the parent.';
    END IF;
    SELECT array_agg(a.atttypid::regtype) INTO types FROM pg_attribute a
        WHERE (a.attrelid, a.attname) IN ((relation, policy ->> 'subject'),
                                          (parent, policy #>> '{parent,subject}'));
    IF types[1] <> types[2] OR types[1] NOT IN ('int4', 'int8', 'numeric', 'text') THEN
        RAISE EXCEPTION 'the subjects of % and % are of types that cannot be random numbers',
            relation, parent
            USING ERRCODE = '0A000', HINT = 'Both must be integer, bigint, numeric or text.';
    END IF;
    IF NOT policy -> 'columns' @> jsonb_build_array(jsonb_build_object('name', policy ->> 'subject',
            'action', 'pseudonym')) THEN
        RAISE EXCEPTION 'the subject of table % must be shown as a pseudonym', relation
            USING ERRCODE = '0A000',
            HINT = format('CALL tailor.classify(%L, %L, %L, action => %L);', relation,
                          policy ->> 'subject', 'direct_identifier', 'pseudonym');
    END IF;
    IF policy @? '$.set_valued.sensitive' THEN
        RAISE EXCEPTION 'sensitive codes cannot be published together with other columns'
            USING ERRCODE = '0A000',
            HINT = 'Leave out sensitive and diversity, or tailor.joint.';
    END IF;
    IF (policy #>> '{set_valued,joint,group_size}')::integer < (policy ->> 'k')::integer THEN
        RAISE EXCEPTION 'group_size of table % is below k', relation USING ERRCODE = '22023';
    END IF;
    IF EXISTS (SELECT FROM tailor.protection p JOIN tailor.policy_version v
               ON v.relation = p.relation AND v.version = p.active
               WHERE p.relation = parent AND v.policy -> 'rows' = 'false') THEN
        RAISE EXCEPTION 'table % answers with aggregates only', parent USING ERRCODE = '0A000',
            HINT = 'A joint publication shows a row for each of its subjects.';
    END IF;
    IF policy ->> 'scope' = 'project' OR policy #>> '{parent,scope}' = 'project' THEN
        RAISE EXCEPTION 'codes of projects cannot be published together with other columns'
            USING ERRCODE = '0A000',
            HINT = format('CALL tailor.chain_scope(%L, ''table'');', relation);
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_joint
    IS 'fails unless the joint publication of a draft can be made';

CREATE OR REPLACE PROCEDURE tailor.assert_set_valued(relation regclass, policy jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    spec  jsonb := policy -> 'set_valued';
    found record;
BEGIN
    -- Two publications of the same subjects can be intersected.
    IF tailor.publication_of(relation) IS NOT NULL AND EXISTS (
            SELECT FROM tailor.chain c JOIN tailor.epoch e USING (epoch)
            JOIN tailor.policy_version v
                ON v.relation = c.relation AND v.version = coalesce(c.version, e.version)
            WHERE c.relation = assert_set_valued.relation
              AND tailor.publishes(v.policy) IS DISTINCT
                  FROM tailor.publishes(assert_set_valued.policy)) THEN
        RAISE EXCEPTION 'table % has been published with another k, m or other constraints',
            relation
            USING ERRCODE = '55000',
                HINT = 'Start all chains anew with tailor.forget_chains, which gives up the '
                    'guarantee over what was shown before.';
    END IF;
    IF spec IS NULL THEN
        RETURN;
    END IF;
    FOR found IN
        SELECT c ->> 'name' AS name, coalesce(c ->> 'class', '') AS class, a.atttypid AS type
        FROM jsonb_array_elements(policy -> 'columns') c
        LEFT JOIN pg_attribute a ON a.attrelid = relation AND a.attname = c ->> 'name'
            AND a.attnum > 0 AND NOT a.attisdropped
    LOOP
        IF found.name = spec ->> 'column' THEN
            IF found.class <> 'sensitive' OR found.name = policy ->> 'subject' THEN
                RAISE EXCEPTION 'the set-valued column "%" must be classified as sensitive, and '
                    'not be the subject', found.name USING ERRCODE = '0A000';
            END IF;
            IF found.type NOT IN ('text'::regtype, 'varchar'::regtype, 'bpchar'::regtype,
                                  'int2'::regtype, 'int4'::regtype, 'int8'::regtype,
                                  'text[]'::regtype, 'varchar[]'::regtype, 'bpchar[]'::regtype,
                                  'int2[]'::regtype, 'int4[]'::regtype, 'int8[]'::regtype) THEN
                RAISE EXCEPTION 'column "%" of type % cannot be set-valued', found.name,
                    found.type::regtype
                    USING ERRCODE = '42804',
                        HINT = 'Codes are text or integers, or arrays of these.';
            END IF;
        ELSIF found.class IN ('quasi_identifier', 'sensitive', 'non_sensitive') THEN
            RAISE EXCEPTION 'column "%" cannot be shown beside the codes of the set-valued table %',
                found.name, relation USING ERRCODE = '0A000',
                HINT = 'Classify it as direct_identifier, which hides it: it would link the codes '
                    'of one subject again.';
        END IF;
    END LOOP;
    CALL tailor.assert_joint(relation, policy);
    IF jsonb_array_length(policy -> 'require') > 0 THEN
        RAISE EXCEPTION 'the set-valued table % has no blocks that could meet %', relation,
            policy #>> '{require,0,model}' USING ERRCODE = '0A000',
            HINT = 'Pass sensitive => and diversity => to tailor.set_valued.';
    END IF;
    IF jsonb_typeof(policy -> 'gate') = 'object' THEN
        RAISE EXCEPTION 'the set-valued table % has no stages that a gate could decide on', relation
            USING ERRCODE = '0A000',
            HINT = 'Its risk is at most 1/k for whoever knows m codes of a subject.';
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_set_valued
    IS 'fails unless what a draft says of a set-valued table can be activated';

-- Stores what a publication is made from: the codes of each subject under a
-- random number. The proxy drops it in the transaction that publishes, so that
-- nobody can be published a second time. Until the first publication there is no table
-- epoch_N that a release could read, only its shape.
CREATE OR REPLACE FUNCTION tailor.build_records(relation regclass, version integer, policy jsonb)
    RETURNS integer
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET constraint_exclusion = off AS $$
DECLARE
    subject   name := policy ->> 'subject';
    person    text; -- the subject as it is stored
    code      name := policy #>> '{set_valued,column}';
    arrays    boolean;
    pseudonym text;
    source    text;
    number    integer;
    total     bigint;
    subjects  bigint;
    left_out  bigint;
    earlier   integer;
    parent    regclass; -- of a joint publication
    lent      name; -- its subject
    qids      text;     -- its columns there, as text
    names     text;     -- as they are stored
BEGIN
    SELECT t.typcategory = 'A' INTO arrays FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
        WHERE a.attrelid = relation AND a.attname = code AND a.attnum > 0 AND NOT a.attisdropped;
    SELECT s.reading INTO person
        FROM pg_attribute a CROSS JOIN tailor.stored_type(a.atttypid, a.atttypmod,
                format('b.%I', a.attname)) s
        WHERE a.attrelid = relation AND a.attname = subject AND a.attnum > 0 AND NOT a.attisdropped;
    SELECT format('NULL::%s AS %I, ', format_type(a.atttypid, NULL), a.attname) INTO pseudonym
        FROM jsonb_array_elements(policy -> 'columns') c
        JOIN pg_attribute a ON a.attrelid = relation AND a.attname = c ->> 'name' AND a.attnum > 0
            AND NOT a.attisdropped
        WHERE a.attname = subject AND c ->> 'class' = 'direct_identifier'
            AND c ->> 'action' = 'pseudonym'
          AND a.atttypid IN ('int4'::regtype, 'int8'::regtype, 'numeric'::regtype, 'text'::regtype);
    IF arrays THEN
        EXECUTE format('SELECT count(*) - count(DISTINCT %I), count(*) FILTER (WHERE '
            'cardinality(array_remove(ARRAY(SELECT unnest(%I)), NULL)) = 0) FROM %s',
                       subject, code, relation) INTO total, left_out;
        IF total > 0 THEN
            RAISE EXCEPTION 'table % has several rows of one subject', relation
                USING ERRCODE = '23505',
                    HINT = 'A table with an array of codes has one row a subject.';
        END IF;
    ELSE
        EXECUTE format('SELECT count(*) FROM %s WHERE %I IS NULL', relation, code) INTO left_out;
    END IF;
    IF left_out > 0 THEN
        RAISE WARNING '% rows of table % hold no code and are not published', left_out, relation;
    END IF;

    number := nextval(pg_get_serial_sequence('tailor.epoch', 'epoch'));
    source := CASE WHEN arrays THEN 'SELECT %1$s AS subject, %4$s AS called, '
        'u.code::text AS code
                                     FROM %2$s b CROSS JOIN unnest(b.%3$I) u (code) WHERE true%5$s'
                   ELSE 'SELECT %1$s AS subject, %4$s AS called, b.%3$I::text AS code
                         FROM %2$s b WHERE true%5$s' END;
    IF policy @? '$.set_valued.joint' THEN
        -- All subjects of the parent, whether they have codes or not.
        parent := tailor.lender(policy);
        lent := policy #>> '{parent,subject}';
        SELECT string_agg(format('(%s)::text AS %I', s.reading, tailor.borrowed(c)), ', '),
            string_agg(quote_ident(tailor.borrowed(c)), ', ')
            INTO qids, names
            FROM jsonb_array_elements(policy #> '{parent,columns}') c
            JOIN pg_attribute a ON a.attrelid = parent AND a.attname = c ->> 'name'
                AND NOT a.attisdropped
            CROSS JOIN tailor.stored_type(a.atttypid, a.atttypmod, format('b.%I', a.attname)) s;
        EXECUTE format(
            'CREATE TABLE tailor_store.demographics_%s AS
             SELECT (row_number() OVER (ORDER BY gen_random_uuid()))::integer AS "tailor subject",
                    tailor.subject_digest(%s, (SELECT k.key FROM tailor.subject_key k))
                    AS "tailor key", %s
             FROM %s b WHERE true%s%s',
            number, tailor.called(parent, lent), qids, parent, tailor.unless_erased(parent, lent),
            tailor.unless_erased(relation, lent, parent));
    END IF;
    EXECUTE format(
        'CREATE TABLE tailor_store.records_%s AS
         WITH codes AS MATERIALIZED (SELECT * FROM (%s) q WHERE code IS NOT NULL), subjects AS (
             SELECT subject, (row_number() OVER (ORDER BY gen_random_uuid()))::integer AS number,
                    tailor.subject_digest(min(called), (SELECT k.key FROM tailor.subject_key k))
                    AS digest
             FROM codes GROUP BY subject)
         SELECT s.number AS "tailor subject", c.code AS "tailor code", s.digest AS "tailor key"
         FROM codes c JOIN subjects s ON s.subject = c.subject ORDER BY 1',
        number,
        format(source, person, relation, code, tailor.called(relation, subject),
               tailor.unless_erased(relation, subject)));
    EXECUTE format(
        'CREATE TABLE tailor_store.digest_%1$s AS
         SELECT "tailor key", md5(array_agg("tailor code"
             ORDER BY "tailor code" COLLATE "C")::text)::uuid AS "tailor codes"
         FROM tailor_store.records_%1$s GROUP BY "tailor key"', number);
    -- A publication of all tables would keep rows without a key from being changed.
    EXECUTE format('ALTER TABLE tailor_store.records_%s REPLICA IDENTITY FULL', number);
    IF parent IS NOT NULL THEN
        EXECUTE format('ALTER TABLE tailor_store.demographics_%s REPLICA IDENTITY FULL', number);
        EXECUTE format('ALTER TABLE tailor_store.digest_%s RENAME TO of_codes_%1$s', number);
        EXECUTE format('CREATE TABLE tailor_store.digest_%1$s AS
                        SELECT d."tailor key", md5(ROW(%2$s, c."tailor codes")::text)::uuid
                            AS "tailor codes"
                        FROM tailor_store.demographics_%1$s d LEFT JOIN tailor_store.of_codes_%1$s c
                            USING ("tailor key")', number, names);
        EXECUTE format('DROP TABLE tailor_store.of_codes_%s', number);
    END IF;
    EXECUTE format('ALTER TABLE tailor_store.digest_%s REPLICA IDENTITY FULL', number);
    CALL tailor.keep_unpublished(relation, number);
    IF parent IS NOT NULL THEN
        -- The subjects' numbers are those of the parent's rows. Who has none yet waits.
        EXECUTE format('UPDATE tailor_store.records_%1$s r SET "tailor subject" = d."tailor subject"
                        FROM tailor_store.demographics_%1$s d
                            WHERE d."tailor key" = r."tailor key"', number);
        EXECUTE format('DELETE FROM tailor_store.records_%1$s r WHERE NOT EXISTS (
                            SELECT FROM tailor_store.demographics_%1$s d
                                WHERE d."tailor key" = r."tailor key")', number);
    END IF;
    EXECUTE format(
        'CREATE TABLE tailor_store.shape_%s AS
         SELECT 0 AS "tailor row", 0 AS "tailor tuple", 0 AS "tailor subject", %s b.%I
             FROM %s b WITH NO DATA',
        number, coalesce(pseudonym, ''), code, relation);
    EXECUTE format('SELECT count(*), count(DISTINCT "tailor subject") FROM tailor_store.records_%s',
                   number) INTO total, subjects;
    IF parent IS NOT NULL THEN
        EXECUTE format('SELECT count(*) FROM tailor_store.demographics_%s', number) INTO subjects;
    END IF;
    INSERT INTO tailor.epoch (epoch, relation, version, rows, tuples, subjects)
        OVERRIDING SYSTEM VALUE VALUES (number, build_records.relation, build_records.version,
                                        total, 1, subjects);
    -- A copy that was not taken in never will be.
    FOR earlier IN SELECT e.epoch FROM tailor.epoch e WHERE e.relation = build_records.relation
        AND e.epoch < number LOOP
        CONTINUE WHEN EXISTS (SELECT FROM tailor.publication u WHERE u.epoch = earlier);
        EXECUTE format('DROP TABLE IF EXISTS tailor_store.records_%1$s, tailor_store.shape_%1$s, '
            'tailor_store.digest_%1$s,
                            tailor_store.demographics_%1$s, tailor_store.differs_%1$s', earlier);
    END LOOP;
    RETURN number;
END $$;
COMMENT ON FUNCTION tailor.build_records
    IS 'stores what the publication of a set-valued table is made from and returns the epoch''s '
        'number; for tailor.build_epoch only';

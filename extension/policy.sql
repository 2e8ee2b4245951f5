-- Procedures that write the draft of a policy -------------------------------

CREATE OR REPLACE PROCEDURE tailor.write_protection(relation regclass, subject name, k integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_column(relation, subject);
    IF NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = relation AND c.relkind IN ('r', 'p', 'm'))
        THEN
        RAISE EXCEPTION '% is not a table', relation USING ERRCODE = '42809';
    END IF;
    IF (SELECT c.relpersistence FROM pg_class c WHERE c.oid = relation) = 't' THEN
        RAISE EXCEPTION '% is a temporary table', relation USING ERRCODE = '42809';
    END IF;
    IF (SELECT c.relnamespace::regnamespace::text FROM pg_class c WHERE c.oid = relation)
       IN ('tailor', 'tailor_store', 'tailor_release', 'research', 'pg_catalog',
           'information_schema') THEN
        RAISE EXCEPTION '% is not a table of yours to protect', relation USING ERRCODE = '42501';
    END IF;
    IF k IS NULL OR k < 2 THEN
        RAISE EXCEPTION 'k must be at least 2' USING ERRCODE = '22023',
            HINT = 'k is the least number of subjects that a reader cannot tell apart; 5 is '
                'common.';
    END IF;
    INSERT INTO tailor.protection (relation, subject, k) VALUES (relation, subject, k)
        ON CONFLICT ON CONSTRAINT protection_pkey DO UPDATE SET subject = excluded.subject,
            k = excluded.k;
END $$;
COMMENT ON PROCEDURE tailor.write_protection IS 'the part of tailor.protect that writes';

CREATE OR REPLACE PROCEDURE tailor.protect(relation regclass, subject name, k integer)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    lacking name;
BEGIN
    IF (SELECT c.relkind FROM pg_class c WHERE c.oid = relation) = 'm'
       AND tailor.data_set_parent(relation) IS NULL THEN
        RAISE EXCEPTION '% is not a table', relation USING ERRCODE = '42809',
            HINT = 'Have its query protected: tailor.define_dataset makes a materialized view of '
                'it.';
    END IF;
    CALL tailor.write_protection(relation, subject, k);
    -- What others have, activation takes from them: the right is to be tailor_owner's own.
    IF NOT EXISTS (SELECT FROM pg_class c, aclexplode(c.relacl) a
                   WHERE c.oid = relation AND a.grantee = 'tailor_owner'::regrole
                     AND a.privilege_type = 'SELECT') THEN
        -- VACUUM would wait for the grant with the lock that an activation in this transaction
        -- needs.
        EXECUTE format('LOCK TABLE %s IN SHARE UPDATE EXCLUSIVE MODE', relation);
        EXECUTE format('GRANT SELECT ON %s TO tailor_owner', relation);
    END IF;
    FOR lacking IN
        SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.oid = relation AND NOT EXISTS (
            SELECT FROM aclexplode(n.nspacl) a
            WHERE a.grantee = 'tailor_owner'::regrole AND a.privilege_type = 'USAGE')
          AND (pg_has_role(n.nspowner, 'USAGE')
               OR NOT has_schema_privilege('tailor_owner', n.oid, 'USAGE'))
    LOOP
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO tailor_owner', lacking);
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.protect
    IS 'starts a policy: the column that identifies the subject, and k';

CREATE OR REPLACE PROCEDURE tailor.write_hierarchy(name text, kind text, definition jsonb)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    owner name;
BEGIN
    IF coalesce(name, '') = '' THEN
        RAISE EXCEPTION 'a hierarchy needs a name' USING ERRCODE = '22023';
    END IF;
    IF starts_with(name, 'builtin.') THEN
        RAISE EXCEPTION 'names of hierarchies that start with "builtin." are Tailor''s own'
            USING ERRCODE = '42939',
            HINT = 'Define one of another name.';
    END IF;
    -- Policies of others may use it. A role that is gone leaves it to superusers.
    SELECT h.owner INTO owner FROM tailor.hierarchy h
        WHERE h.name = write_hierarchy.name FOR UPDATE;
    IF FOUND AND NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = session_user AND r.rolsuper)
       AND NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = owner
                       AND pg_has_role(session_user, r.oid, 'USAGE')) THEN
        RAISE EXCEPTION 'must be owner of hierarchy "%"', name
            USING ERRCODE = '42501', HINT = format('It belongs to %I. Define one of another name.',
                                                   owner);
    END IF;
    CALL tailor.assert_hierarchy(kind, definition);
    IF owner IS NOT NULL THEN
        UPDATE tailor.hierarchy h SET kind = write_hierarchy.kind,
            definition = write_hierarchy.definition
            WHERE h.name = write_hierarchy.name;
    ELSE -- whoever is faster: the other one is told that it exists
        INSERT INTO tailor.hierarchy (name, kind, definition) VALUES (name, kind, definition);
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.write_hierarchy IS 'the part of tailor.define_hierarchy that writes';

-- The source table is read here, with the caller's rights: tailor_owner can
-- read every protected table.
CREATE OR REPLACE PROCEDURE tailor.define_hierarchy(name text, kind text, definition jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    path  text;
    paths jsonb;
BEGIN
    IF kind = 'table' AND definition ? 'source' THEN
        IF jsonb_typeof(definition -> 'columns') IS DISTINCT FROM 'array'
            OR definition -> 'columns' = '[]' THEN
            RAISE EXCEPTION 'a source needs "columns"' USING ERRCODE = '22023',
                HINT = 'The first holds the value, each further one the label one level up.';
        END IF;
        SELECT string_agg(format('%I::text', c), ', ') INTO path
            FROM jsonb_array_elements_text(definition -> 'columns') c;
        EXECUTE format('SELECT jsonb_agg(jsonb_build_array(%s)) FROM %s', path,
                       (definition ->> 'source')::regclass) INTO paths;
        definition := definition || jsonb_build_object('paths', paths);
    END IF;
    CALL tailor.write_hierarchy(name, kind, definition);
END $$;
COMMENT ON PROCEDURE tailor.define_hierarchy
    IS 'names a generalization hierarchy for use in tailor.classify; only its owner may define it '
        'anew';

CREATE OR REPLACE PROCEDURE tailor.classify(relation regclass, column_name name, class text,
                                            hierarchy text DEFAULT NULL, action text DEFAULT 'hide')
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    CALL tailor.assert_column(relation, column_name);
    IF class IS NULL OR class NOT IN ('direct_identifier', 'quasi_identifier', 'sensitive',
                                      'non_sensitive') THEN
        RAISE EXCEPTION 'unknown class "%"', class USING ERRCODE = '22023',
            HINT = 'Classes are direct_identifier, quasi_identifier, sensitive and non_sensitive.';
    END IF;
    IF (class = 'quasi_identifier') <> (hierarchy IS NOT NULL) THEN
        RAISE EXCEPTION 'a hierarchy belongs to a quasi-identifier, and a quasi-identifier needs '
            'one'
            USING ERRCODE = '22023',
                HINT = 'Define one with tailor.define_hierarchy and pass hierarchy => its name.';
    END IF;
    IF hierarchy IS NOT NULL AND NOT EXISTS (SELECT FROM tailor.hierarchy h
                                             WHERE h.name = hierarchy) THEN
        RAISE EXCEPTION 'hierarchy "%" does not exist', hierarchy USING ERRCODE = '42704';
    END IF;
    IF action IS NULL OR action NOT IN ('hide', 'pseudonym') THEN
        RAISE EXCEPTION 'unknown action "%"', action USING ERRCODE = '22023',
            HINT = 'Actions are hide and pseudonym.';
    END IF;
    IF action = 'pseudonym' AND class <> 'direct_identifier' THEN
        RAISE EXCEPTION 'only a direct identifier can have a pseudonym' USING ERRCODE = '22023';
    END IF;
    INSERT INTO tailor.classification VALUES (relation, column_name, class, hierarchy, action)
        ON CONFLICT ON CONSTRAINT classification_pkey DO UPDATE
        SET class = excluded.class, hierarchy = excluded.hierarchy, action = excluded.action,
            shared_fact = excluded.shared_fact, shown_as = excluded.shown_as,
            margins = excluded.margins;
END $$;
COMMENT ON PROCEDURE tailor.classify IS 'says what a column is; a column without a class is hidden';

-- Least and largest parameters of each model; ends that are no parameters themselves.
CREATE OR REPLACE FUNCTION tailor.models() RETURNS TABLE (model text, above float8, below float8)
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    VALUES ('l_diversity', 1, 'Infinity'::float8), ('entropy_l_diversity', 1, 'Infinity'),
           ('recursive_l_diversity', 1, 'Infinity'), ('alpha', 0, 1), ('t_closeness', 0, 1),
           ('beta_likeness', 0, 'Infinity'), ('enhanced_beta_likeness', 0, 'Infinity'),
           ('delta_disclosure', 0, 'Infinity')
$$;
COMMENT ON FUNCTION tailor.models IS 'the privacy models that a policy can require besides k';

CREATE TABLE IF NOT EXISTS tailor.reference (
    chain       integer NOT NULL REFERENCES tailor.chain ON DELETE CASCADE,
    column_name name NOT NULL,
    hash        bigint NOT NULL,
    code        integer NOT NULL,
    share       float8 NOT NULL
);
CREATE INDEX IF NOT EXISTS reference_chain ON tailor.reference (chain, column_name, hash);
COMMENT ON TABLE tailor.reference IS 'the distributions that blocks of a release are held against '
    'by models of likeness, since it was made or came under its policy';
COMMENT ON COLUMN tailor.reference.code IS 'the place of the value in the order of its type, from '
    '1; 0 for NULL';

-- What a model says of a block, over its values: n subjects, the share q of all, the share p of
-- the reference, the code there (NULL: it has none), nth by falling n, and work, what it costs
-- to put the mass on the scale in place. $3 are the shares of all codes of the reference.
CREATE OR REPLACE FUNCTION tailor.model_condition(required jsonb) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format(CASE required ->> 'model'
        WHEN 'l_diversity' THEN 'count(*) >= %1$s'
        WHEN 'entropy_l_diversity'
            THEN 'ln(sum(n)) - sum(n * ln(n)) / sum(n) >= ln(%1$s::float8) - 1e-9'
        WHEN 'recursive_l_diversity'
            THEN 'max(n) < %2$s * coalesce(sum(n) FILTER (WHERE nth >= %1$s), 0)'
        WHEN 'alpha' THEN 'max(n) <= %1$s * sum(n) + 1e-9'
        WHEN 't_closeness' THEN CASE required ->> 'distance'
            WHEN 'ordered' THEN
                '(abs(coalesce(sum(q) FILTER (WHERE code > 0), 0) - on_scale)
                  + coalesce(sum(abs(q - p)) FILTER (WHERE code IS NULL OR code = 0), 0)
                  + greatest(0, 1 - on_scale
                      - coalesce(sum(p) FILTER (WHERE code IS NULL OR code = 0), 0))) / 2
                 + coalesce(sum(work), 0) / greatest(places - 1, 1) <= %1$s + 1e-9'
            ELSE 'sum(greatest(0, q - p)) <= %1$s + 1e-9' END
        WHEN 'beta_likeness' THEN 'max(q - (1 + %1$s) * p) <= 1e-9'
        WHEN 'enhanced_beta_likeness'
            THEN 'max(q - (1 + least(%1$s, -ln(nullif(p, 0)))) * p) <= 1e-9'
        WHEN 'delta_disclosure' THEN
            'count(*) = (SELECT count(*) FROM unnest($3) s WHERE s > 0)
             AND max(coalesce(abs(ln(q / nullif(p, 0))), ''Infinity'')) < %1$s + 1e-9' END,
        required ->> 'parameter', required ->> 'c')
$$;
COMMENT ON FUNCTION tailor.model_condition IS 'a model of a policy as a condition of a group of '
    'values; for Tailor''s own routines only';

-- The blocks that fail a model of likeness: the formulas are those of anonymize/reference.go. $1
-- and $2 are, for each place of the scale, the shares up to it and the sums of these.
CREATE OR REPLACE FUNCTION tailor.unlike_blocks(
    counted text, chain integer, required jsonb) RETURNS integer[]
-- Of references that were written a moment ago PostgreSQL believes that they have one row.
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET enable_nestloop = off AS $$
DECLARE
    shares  float8[];
    below   float8[];
    area    float8[];
    failing integer[];
BEGIN
    SELECT array_agg(f.share),
           array_agg(f.below ORDER BY f.code) FILTER (WHERE f.code > 0),
           array_agg(f.area ORDER BY f.code) FILTER (WHERE f.code > 0)
        INTO shares, below, area
        FROM (SELECT b.*, sum(b.below) OVER (ORDER BY b.code) AS area
              FROM (SELECT r.code, r.share, sum(r.share) FILTER (WHERE r.code > 0)
                               OVER (ORDER BY r.code) AS below
                    FROM tailor.reference r
                    WHERE r.chain = unlike_blocks.chain
                      AND r.column_name = required ->> 'column') b) f;
    EXECUTE format(
        'WITH told AS (
             SELECT v.block, v.n / sum(v.n) OVER (PARTITION BY v.block) AS q,
                    coalesce(f.share, 0) AS p, f.code,
                    coalesce($1[cardinality($1)], 0) AS on_scale,
                    coalesce(cardinality($1), 0) AS places
             FROM (%1$s) v LEFT JOIN tailor.reference f
                 ON f.chain = %2$s AND f.column_name = %3$L AND f.hash = v.value),
         placed AS (
             SELECT t.*, sum(q) OVER w AS carried, row_number() OVER w AS nth,
                    coalesce(lead(code) OVER w, places + 1) AS ends,
                    sum(q) OVER (PARTITION BY block, code > 0) / nullif(on_scale, 0) AS scaled
             FROM told t WINDOW w AS (PARTITION BY block, code > 0 ORDER BY code)),
         crossing AS (
             SELECT p.*, greatest(code, least(ends, 1
                        + width_bucket(carried / nullif(scaled, 0), $1))) AS at
             FROM placed p)
         SELECT ARRAY(SELECT block FROM (
             SELECT block, q, p, code, places, on_scale, CASE WHEN code > 0 AND places > 1 THEN
                    carried * (at - code - (ends - at))
                    + scaled * (coalesce($2[code - 1], 0) + $2[ends - 1]
                        - 2 * coalesce($2[at - 1], 0)
                        + CASE WHEN nth = 1 THEN coalesce($2[code - 1], 0) ELSE 0 END)
                    END AS work
             FROM crossing) v
         GROUP BY block, places, on_scale HAVING NOT coalesce(%4$s, false))',
        counted, chain, required ->> 'column', tailor.model_condition(required))
        INTO failing USING below, area, shares;
    RETURN failing;
END $$;
COMMENT ON FUNCTION tailor.unlike_blocks IS 'the blocks that fail a model of likeness, by how many '
    'subjects (n) have each value, by hash, in each block; for Tailor''s own routines only';

-- Models look at how many subjects of a block have each value. NULL is a value, unless it
-- stands for values that are withheld (cuts: blind).
DROP FUNCTION IF EXISTS tailor.failing_blocks(text, jsonb, text, text);
DROP FUNCTION IF EXISTS tailor.failing_blocks(text, jsonb, integer, text, text);
CREATE OR REPLACE FUNCTION tailor.failing_blocks(
    stored text, policy jsonb, chain integer, condition text,
    subjects text DEFAULT 'count(DISTINCT "tailor person")',
    told_apart_by text DEFAULT '"tailor block"') RETURNS integer[]
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    required jsonb;
    name     text;
    likened  boolean;
    counted  text;
    failing  integer[];
    blocks   integer[] := '{}';
BEGIN
    FOR required IN SELECT jsonb_array_elements(policy -> 'require') UNION ALL
                    SELECT jsonb_array_elements(s -> 'require')
                    FROM jsonb_array_elements(policy -> 'data_sets') s
    LOOP
        name := format('%I', required ->> 'column');
        likened := required ->> 'model'
            IN ('t_closeness', 'beta_likeness', 'enhanced_beta_likeness', 'delta_disclosure');
        counted := format(
            'SELECT %6$s AS block, %1$s AS value, %2$s::float8 AS n
             FROM %3$s WHERE (%4$s) AND %5$s GROUP BY 1, 2',
            CASE WHEN likened THEN format(
                'hashtextextended(coalesce(''='' || %s::text, ''''), 0)',
                CASE WHEN (SELECT a.atttypid = 'numeric'::regtype FROM pg_attribute a
                           WHERE (a.attrelid, a.attname) = (stored::regclass,
                                   required ->> 'column'))
                     THEN format('trim_scale(%s)', name) ELSE name END) ELSE name END,
            subjects, stored, condition,
            CASE WHEN policy ->> 'cuts' = 'blind' THEN name || ' IS NOT NULL'
                 WHEN required ->> 'column' IN (SELECT tailor.late_columns(chain))
                     THEN format('"tailor block" IN (SELECT "tailor block" FROM %s '
                                 'WHERE %s IS NOT NULL)', stored, name)
                 ELSE 'true' END, told_apart_by);
        IF likened THEN
            failing := tailor.unlike_blocks(counted, chain, required);
        ELSE
            EXECUTE format(
                'SELECT ARRAY(SELECT block FROM (
                     SELECT block, n, row_number() OVER (PARTITION BY block ORDER BY n DESC) AS nth
                     FROM (%s) g) v
                 GROUP BY block HAVING NOT (%s))', counted, tailor.model_condition(required))
                INTO failing;
        END IF;
        blocks := blocks || failing;
    END LOOP;
    RETURN blocks;
END $$;
COMMENT ON FUNCTION tailor.failing_blocks IS 'the blocks of a release that do not meet a model of '
    'the policy, by the rows that meet a condition; subjects counts those of some rows: where each '
    'has '
    'one, rows are counted. told_apart_by has it look at classes. For Tailor''s own routines only';

DROP PROCEDURE IF EXISTS tailor.require(regclass, text, name, integer);
DROP PROCEDURE IF EXISTS tailor.require(regclass, text, name, float8);
CREATE OR REPLACE PROCEDURE tailor.require(
    relation regclass, model text, column_name name, parameter float8, c float8 DEFAULT NULL,
    distance text DEFAULT NULL)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    known record;
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    CALL tailor.assert_column(relation, column_name);
    SELECT * INTO known FROM tailor.models() m WHERE m.model = require.model;
    IF known IS NULL THEN
        RAISE EXCEPTION 'unknown model "%"', model USING ERRCODE = '22023',
            HINT = format('Models are %s.',
                          (SELECT string_agg(m.model, ', ') FROM tailor.models() m));
    END IF;
    IF parameter IS NULL OR parameter <= known.above OR parameter >= known.below THEN
        RAISE EXCEPTION 'the parameter of % must be above %', model,
            concat(known.above,
                   CASE WHEN known.below < 'Infinity' THEN ' and below ' || known.below END)
            USING ERRCODE = '22023';
    END IF;
    IF NOT EXISTS (SELECT FROM pg_attribute a
                   CROSS JOIN tailor.stored_type(a.atttypid, a.atttypmod, '') s
                   JOIN pg_type t ON t.oid = s.stored
                   JOIN pg_opclass o ON o.opcintype = s.stored
                       OR t.typcategory = 'S' AND o.opcintype = 'text'::regtype
                       OR t.typcategory = 'A' AND o.opcintype = 'anyarray'::regtype
                   JOIN pg_am m ON m.oid = o.opcmethod AND m.amname = 'btree'
                   WHERE a.attrelid = relation AND a.attname = column_name AND o.opcdefault) THEN
        RAISE EXCEPTION 'values of column "%" cannot be told to be equal', column_name
            USING ERRCODE = '0A000',
                HINT = 'Its type has no order: a model can be required of texts, numbers, dates, '
                    '….';
    END IF;
    IF model IN ('l_diversity', 'recursive_l_diversity') AND parameter <> trunc(parameter) THEN
        RAISE EXCEPTION 'the parameter of % is a number of values', model
            USING ERRCODE = '22023';
    END IF;
    IF (model = 'recursive_l_diversity') <> (c IS NOT NULL) OR c <= 0 OR c >= 'Infinity' THEN
        RAISE EXCEPTION 'c belongs to recursive_l_diversity, and must be above 0'
            USING ERRCODE = '22023',
            HINT = 'With parameter => 3, c => 2 the most frequent value of a block is less than '
                'twice as frequent as all but the two most frequent ones together.';
    END IF;
    IF distance IS NOT NULL AND model <> 't_closeness' OR distance NOT IN ('equal', 'ordered') THEN
        RAISE EXCEPTION 'distance belongs to t_closeness, and is equal or ordered'
            USING ERRCODE = '22023';
    END IF;
    IF distance = 'ordered' AND NOT EXISTS (
        SELECT FROM pg_attribute a CROSS JOIN tailor.stored_type(a.atttypid, a.atttypmod, '') s
        JOIN pg_type t ON t.oid = s.stored
        WHERE a.attrelid = relation AND a.attname = column_name
          AND t.typcategory IN ('N', 'D', 'T')) THEN
        RAISE EXCEPTION 'values of column "%" have no places on a scale', column_name
            USING ERRCODE = '0A000', HINT = 'Numbers, dates and times have. Leave the distance '
                'out: then all values are equally far from each other.';
    END IF;
    INSERT INTO tailor.requirement (relation, model, column_name, parameter, c, distance)
        VALUES (relation, model, column_name, parameter, c, nullif(distance, 'equal'))
        ON CONFLICT ON CONSTRAINT requirement_pkey DO UPDATE
        SET parameter = excluded.parameter, c = excluded.c, distance = excluded.distance;
END $$;
COMMENT ON PROCEDURE tailor.require
    IS 'adds a privacy model that every block has to meet besides k';

CREATE OR REPLACE PROCEDURE tailor.chain_scope(relation regclass, scope text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    IF scope IS NULL OR scope NOT IN ('table', 'project') THEN
        RAISE EXCEPTION 'unknown scope "%"', scope USING ERRCODE = '22023', HINT = CASE
            WHEN scope IN ('principal', 'role', 'everyone')
                THEN 'Readers share one root since version 0.3: table; or one for each project: '
                    'project.'
            ELSE 'Scopes are table and project.' END;
    END IF;
    UPDATE tailor.protection p SET scope = chain_scope.scope
        WHERE p.relation = chain_scope.relation;
END $$;
COMMENT ON PROCEDURE tailor.chain_scope
    IS 'says who shares a root: all readers of the table, or those of a project';

CREATE OR REPLACE PROCEDURE tailor.recode(relation regclass, recoding text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    IF recoding IS NULL OR recoding NOT IN ('auto', 'local', 'full_domain', 'cell') THEN
        RAISE EXCEPTION 'unknown recoding "%"', recoding
            USING ERRCODE = '22023', HINT = 'Recodings are auto, local, full_domain and cell.';
    END IF;
    UPDATE tailor.protection p SET recoding = recode.recoding WHERE p.relation = recode.relation;
END $$;
COMMENT ON PROCEDURE tailor.recode
    IS 'says how quasi-identifiers are recoded: auto, local, full_domain or cell';

CREATE OR REPLACE PROCEDURE tailor.clear_draft(relation regclass)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    DELETE FROM tailor.classification c WHERE c.relation = clear_draft.relation;
    DELETE FROM tailor.requirement r WHERE r.relation = clear_draft.relation;
    DELETE FROM tailor.set_valued s WHERE s.relation = clear_draft.relation;
    UPDATE tailor.protection p SET recoding = DEFAULT, scope = DEFAULT, seed = DEFAULT,
        rows = DEFAULT, max_share = DEFAULT, cohort = NULL, departures = DEFAULT, changes = DEFAULT,
        cuts = DEFAULT, indexed = DEFAULT, unindexed = DEFAULT, gate = NULL, max_risk = NULL
        WHERE p.relation = clear_draft.relation;
END $$;
COMMENT ON PROCEDURE tailor.clear_draft
    IS 'empties the draft of a policy but for subject and k; the policy in force stays';

-- Belongs to the role that installed, for tailor_owner may not grant roles.
CREATE OR REPLACE PROCEDURE tailor.grant_reader(role name)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    found record;
BEGIN
    CALL tailor.assert_read_committed();
    CALL tailor.let_nobody_activate();
    IF NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = role) THEN
        RAISE EXCEPTION 'role "%" does not exist', role USING ERRCODE = '42704';
    END IF;
    IF role IN ('tailor_owner', 'tailor_admin', 'tailor_reader') THEN
        RAISE EXCEPTION 'role "%" is Tailor''s own and cannot be a reader', role
            USING ERRCODE = '42501';
    END IF;
    -- Whatever the role could become by SET ROLE counts, see tailor.ways; its
    -- members become readers with it, and it gets what tailor_reader has.
    FOR found IN
        SELECT * FROM tailor.powers(ARRAY(SELECT tailor.members(grant_reader.role) UNION
                                          SELECT 'tailor_reader')) w
        ORDER BY w.reader <> grant_reader.role LIMIT 1
    LOOP
        RAISE EXCEPTION 'role "%" bypasses privileges and cannot be a reader', found.reader
            USING ERRCODE = '42501',
            DETAIL = format('It is or can become %I.', found.role),
            HINT = CASE
            WHEN (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = found.reader)
            THEN 'A superuser reads everything: make a role of its own for reading.'
            WHEN found.role = found.reader
            THEN format('ALTER ROLE %I NOBYPASSRLS NOREPLICATION NOCREATEROLE;', found.reader)
                        ELSE format('REVOKE %I FROM %I; or from the role between them.', found.role,
                                    found.reader) END;
    END LOOP;
    FOR found IN
        SELECT * FROM tailor.tools(ARRAY(
            SELECT tailor.members(grant_reader.role) UNION SELECT 'tailor_reader')) LIMIT 1
    LOOP
        RAISE EXCEPTION 'role "%" bypasses privileges and cannot be a reader', found.reader
            USING ERRCODE = '42501', DETAIL = format('It has rights on %s.', found.object),
            HINT = found.mend;
    END LOOP;
    FOR found IN
        SELECT p.relation, c.relowner::regrole AS owner FROM tailor.protection p
        CROSS JOIN tailor.family(p.relation) f JOIN pg_class c ON c.oid = f
        WHERE pg_has_role(role, c.relowner, 'MEMBER')
            OR pg_get_userbyid(c.relowner) IN (SELECT tailor.members(role)) LIMIT 1
    LOOP
        RAISE EXCEPTION 'role "%" is, has as a member or is a member of the owner of the protected '
            'table %', role, found.relation
            USING ERRCODE = '42501', DETAIL = format('Its owner is %s.', found.owner);
    END LOOP;
    FOR found IN
        SELECT p.relation, w.role, w.part FROM tailor.protection p
        CROSS JOIN tailor.ways(p.relation, ARRAY(SELECT tailor.members(role))) w
        WHERE p.active IS NOT NULL LIMIT 1
    LOOP
        RAISE EXCEPTION 'role "%" can read the protected table % itself', role, found.relation
            USING ERRCODE = '42501',
            HINT = format('REVOKE ALL ON %s FROM %I; from PUBLIC, and from the roles that it is a '
                'member of.', found.part, found.role);
    END LOOP;
    FOR found IN
        SELECT p.relation, w.role, w.view FROM tailor.protection p
        CROSS JOIN tailor.view_ways(p.relation, ARRAY(SELECT tailor.members(role))) w
        WHERE p.active IS NOT NULL LIMIT 1
    LOOP
        RAISE EXCEPTION 'role "%" can read the protected table % through the view %', role,
            found.relation, found.view USING ERRCODE = '42501',
            HINT = format('REVOKE ALL ON %s FROM PUBLIC, %I; and from the roles that it is a '
                'member of.', found.view, found.role);
    END LOOP;
    IF NOT (SELECT r.rolinherit FROM pg_roles r WHERE r.rolname = role) THEN
        RAISE EXCEPTION 'role "%" inherits no privileges and could not read any release', role
            USING ERRCODE = '42501',
            HINT = format('ALTER ROLE %I INHERIT;', role);
    END IF;
    EXECUTE format('GRANT tailor_reader TO %I', role)
        || CASE WHEN current_setting('server_version_num')::integer >= 160000
        THEN ' WITH INHERIT TRUE' ELSE '' END;
    -- Tools that list what is in the path find the released shape first.
    IF NOT EXISTS (SELECT FROM pg_db_role_setting s JOIN pg_roles r ON r.oid = s.setrole
                   WHERE r.rolname = role AND array_to_string(s.setconfig, E'\n') ~
                       '(^|\n)search_path='
                     AND s.setdatabase IN (0, (SELECT d.oid FROM pg_database d
                                               WHERE d.datname = current_database()))) THEN
        BEGIN
            EXECUTE format('ALTER ROLE %I IN DATABASE %I SET search_path = research, %s', role,
                           current_database(),
                           coalesce((SELECT substr(c, length('search_path=') + 1)
                                     FROM pg_db_role_setting s CROSS JOIN unnest(s.setconfig) c
                                     JOIN pg_database d ON d.oid = s.setdatabase
                                         AND d.datname = current_database()
                                     WHERE s.setrole = 0 AND c LIKE 'search_path=%'),
                                         '"$user", public'));
        EXCEPTION WHEN insufficient_privilege THEN
            RAISE NOTICE 'role "%" keeps its search path: tools list released tables in the schema '
                'research', role;
        END;
    END IF;
    PERFORM pg_notify('tailor', 'readers');
END $$;
COMMENT ON PROCEDURE tailor.grant_reader
    IS 'makes a role a reader: protected tables reach it as releases only';


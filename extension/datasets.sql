-- Data sets --------------------------------------------------------------------
--
-- A query with at most one row for each subject of a protected table, its parent, kept
-- as a materialized view that PostgreSQL fills with its owner's rights. What it says of
-- a person is copied with the parent's row, as further columns of the payload, so that
-- the parent's release is one partition for both and the rules of epochs are one
-- (docs/decisions/datasets.md). The release of the data set is read off the parent's.

CREATE TABLE IF NOT EXISTS tailor.dataset (
    relation    regclass PRIMARY KEY REFERENCES tailor.protection ON DELETE CASCADE,
    parent      regclass NOT NULL,
    number      integer GENERATED ALWAYS AS IDENTITY UNIQUE,
    query       text NOT NULL
);
COMMENT ON TABLE tailor.dataset IS
    'queries that are protected as tables: of whom, and what names their columns in copies';
COMMENT ON COLUMN tailor.dataset.query IS 'as it was written, for tailor policy export';

CREATE OR REPLACE FUNCTION tailor.data_set_parent(relation regclass) RETURNS regclass
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT d.parent FROM tailor.dataset d WHERE d.relation = data_set_parent.relation
$$;
COMMENT ON FUNCTION tailor.data_set_parent IS 'of whose subjects a data set is; NULL for tables';

CREATE OR REPLACE FUNCTION tailor.data_sets(parent regclass) RETURNS SETOF regclass
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT d.relation FROM tailor.dataset d
    JOIN tailor.protection p USING (relation) JOIN pg_class c ON c.oid = d.relation
    WHERE d.parent = data_sets.parent AND p.active IS NOT NULL ORDER BY d.number
$$;
COMMENT ON FUNCTION tailor.data_sets IS 'the data sets of a table''s subjects that are in force';

-- The number of a data set's column, or 0 for whether a person is in it, among the
-- columns of its parent: no column of a table has it, and none gets it again.
CREATE OR REPLACE FUNCTION tailor.set_number(dataset integer, number integer) RETURNS integer
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT 20000 + 2000 * dataset + number
$$;

CREATE OR REPLACE FUNCTION tailor.set_column(dataset integer, number integer) RETURNS name
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT ('tailor set ' || tailor.set_number(dataset, number))::name
$$;
COMMENT ON FUNCTION tailor.set_column IS 'what copies and releases of the parent call a column of '
    'a data set; number 0: whether the person is in it';

-- Of the policies of a table's data sets, what the table's own has to know.
CREATE OR REPLACE FUNCTION tailor.data_sets_of(parent regclass) RETURNS jsonb
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT jsonb_agg(jsonb_build_object(
        'schema', n.nspname, 'name', c.relname, 'subject', v.policy -> 'subject',
        'number', tailor.set_number(d.number, 0), 'member', tailor.set_column(d.number, 0),
        'columns', (
            SELECT coalesce(jsonb_agg(jsonb_build_object('of', q -> 'name',
                       'name', tailor.set_column(d.number, (q ->> 'number')::integer),
                       'number', tailor.set_number(d.number, (q ->> 'number')::integer),
                       'type', q -> 'type', 'category', q -> 'category', 'class', q -> 'class')
                       ORDER BY (q ->> 'number')::integer), '[]')
            FROM jsonb_array_elements(v.policy -> 'columns') q
            WHERE q ->> 'class' IN ('sensitive', 'non_sensitive')),
        'require', (
            SELECT coalesce(jsonb_agg(r || jsonb_build_object('column',
                       tailor.set_column(d.number, (q ->> 'number')::integer))), '[]')
            FROM jsonb_array_elements(v.policy -> 'require') r
            JOIN jsonb_array_elements(v.policy -> 'columns') q ON q -> 'name' = r -> 'column'))
        ORDER BY d.number)
    FROM tailor.data_sets(data_sets_of.parent) s JOIN tailor.dataset d ON d.relation = s
    JOIN tailor.protection p ON p.relation = s
    JOIN tailor.policy_version v ON v.relation = s AND v.version = p.active
    JOIN pg_class c ON c.oid = s JOIN pg_namespace n ON n.oid = c.relnamespace
$$;
COMMENT ON FUNCTION tailor.data_sets_of IS 'what is copied with a table for its data sets; NULL '
    'for none';

CREATE OR REPLACE FUNCTION tailor.with_data_sets(relation regclass, policy jsonb) RETURNS jsonb
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT policy - 'data_sets' || coalesce(
        (SELECT jsonb_build_object('data_sets', s) FROM tailor.data_sets_of(relation) s
         WHERE s IS NOT NULL), '{}')
$$;

-- The tables with one row a subject whose keys the query reads, be it by way of tables
-- and views that refer to them.
CREATE OR REPLACE FUNCTION tailor.read_subjects_of(dataset regclass) RETURNS SETOF regclass
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY WITH RECURSIVE reads (relation, number) AS (
        SELECT d.refobjid, d.refobjsubid FROM pg_rewrite w
        JOIN pg_depend d ON (d.classid, d.objid) = ('pg_rewrite'::regclass, w.oid)
            AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> w.ev_class
        WHERE w.ev_class = dataset
      UNION
        SELECT d.refobjid, d.refobjsubid FROM reads r JOIN pg_rewrite w ON w.ev_class = r.relation
        JOIN pg_depend d ON (d.classid, d.objid) = ('pg_rewrite'::regclass, w.oid)
            AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> w.ev_class)
    SELECT p.relation FROM tailor.protection p
    WHERE tailor.owns(p.relation) AND tailor.is_key(p.relation, p.subject)
      AND NOT EXISTS (SELECT FROM tailor.dataset d WHERE d.relation = p.relation)
      AND EXISTS (SELECT FROM tailor.key_columns(p.relation, p.subject) k
                  JOIN reads r ON (r.relation, r.number) = (k.relation, k.number))
    ORDER BY 1;
END $$;
COMMENT ON FUNCTION tailor.read_subjects_of IS 'the protected tables of one''s own with one row '
    'a subject whose subjects a query reads';

CREATE OR REPLACE PROCEDURE tailor.write_data_set(
    relation regclass, query text, subject name, parent regclass)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    parents regclass[] := ARRAY[parent];
    least   integer;
BEGIN
    CALL tailor.assert_owner(relation);
    IF parent IS NULL THEN
        parents := ARRAY(SELECT tailor.read_subjects_of(relation));
    ELSE
        CALL tailor.assert_owner(parent);
        CALL tailor.assert_protected(parent);
    END IF;
    IF cardinality(parents) <> 1 THEN
        RAISE EXCEPTION 'data set % reads the subjects of % protected tables with one row each',
            relation, cardinality(parents) USING ERRCODE = '22023',
            DETAIL = concat('Tables: ', array_to_string(parents, ', ')),
            HINT = 'Say of whose subjects it is: parent => the table. Protect that table first.';
    END IF;
    SELECT p.k INTO least FROM tailor.protection p WHERE p.relation = parents[1];
    CALL tailor.write_protection(relation, subject, least);
    INSERT INTO tailor.dataset (relation, parent, query)
        VALUES (relation, parents[1], btrim(write_data_set.query, E' \t\r\n;'));
END $$;
COMMENT ON PROCEDURE tailor.write_data_set IS 'the part of tailor.define_dataset that writes';

-- With the caller's rights and search path: the query is the caller's.
DROP PROCEDURE IF EXISTS tailor.define_dataset(text, text, name, regclass);
CREATE OR REPLACE PROCEDURE tailor.define_dataset(
    name text, query text, subject name, parent regclass DEFAULT NULL, filled boolean DEFAULT true)
LANGUAGE plpgsql AS $$
DECLARE
    relation pg_catalog.regclass;
BEGIN
    EXECUTE pg_catalog.format('CREATE MATERIALIZED VIEW %s AS %s%s', name,
        pg_catalog.rtrim(query, E' \t\r\n;'), CASE WHEN NOT filled THEN E'\nWITH NO DATA' END);
    relation := name::pg_catalog.regclass;
    CALL tailor.assert_column(relation, subject);
    CALL tailor.write_data_set(relation, query, subject, parent);
    BEGIN
        EXECUTE pg_catalog.format('CREATE UNIQUE INDEX ON %s (%I)', relation, subject);
    EXCEPTION WHEN unique_violation THEN
        RAISE EXCEPTION 'data set % has several rows for a subject', relation
            USING ERRCODE = '0A000', HINT = 'Group by the subject, or keep what is of several '
                'rows in a table of its own, and call tailor.protect.';
    END;
    EXECUTE pg_catalog.format('GRANT SELECT ON %s TO tailor_owner', relation);
    EXECUTE pg_catalog.format('GRANT USAGE ON SCHEMA %I TO tailor_owner',
        (SELECT n.nspname FROM pg_catalog.pg_class c
         JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
         WHERE c.oid OPERATOR(pg_catalog.=) relation));
END $$;
COMMENT ON PROCEDURE tailor.define_dataset IS 'makes a materialized view of a query, with one row '
    'for each subject or some of a protected table, to be protected with it: call '
    'tailor.classify for its columns, and tailor.activate';

CREATE OR REPLACE PROCEDURE tailor.assert_has_data_sets(relation regclass, policy jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    IF policy ->> 'scope' = 'project' OR policy -> 'rows' = 'false' OR policy ? 'set_valued'
       OR policy ? 'parent' OR NOT tailor.is_key(relation, (policy ->> 'subject')::name) THEN
        RAISE EXCEPTION 'table % cannot have data sets', relation USING ERRCODE = '0A000',
            HINT = 'It needs one row for each subject, which is shown, and to all readers alike, '
                'and no table that it borrows quasi-identifiers from.';
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_has_data_sets IS 'fails unless data sets can be read off what '
    'is shown of a table; for Tailor''s own routines only';

-- What a data set may be, and of what. Its labels are the parent's.
CREATE OR REPLACE PROCEDURE tailor.assert_data_set(relation regclass, policy jsonb, parent regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    found record;
    root  jsonb := (SELECT v.policy FROM tailor.protection p JOIN tailor.policy_version v
                    ON v.relation = p.relation AND v.version = p.active WHERE p.relation = parent);
BEGIN
    CALL tailor.assert_owner(parent);
    IF root IS NULL OR root ->> 'fingerprint' IS DISTINCT FROM tailor.fingerprint(parent) THEN
        RAISE EXCEPTION 'the policy of table % is not in force, or stale', parent
            USING ERRCODE = '55000', HINT = format('CALL tailor.activate(%L);', parent);
    END IF;
    CALL tailor.assert_has_data_sets(parent, root);
    IF policy ->> 'scope' = 'project' OR policy -> 'rows' = 'false' OR policy ? 'set_valued'
       OR policy -> 'gate' <> 'null' OR policy ?| ARRAY['cohort', 'departures', 'changes', 'cuts']
       OR policy ->> 'recoding' <> 'auto' OR policy -> 'seed' <> '[]' THEN
        RAISE EXCEPTION 'data set % is shown as table % is', relation, parent
            USING ERRCODE = '0A000', HINT = 'Settings of the root and of copies belong there.';
    END IF;
    IF policy -> 'k' <> root -> 'k' THEN
        RAISE EXCEPTION 'data set % has the k of table %, which is %', relation, parent,
            root ->> 'k' USING ERRCODE = '22023', HINT = 'Change it there.';
    END IF;
    FOR found IN
        SELECT c ->> 'name' AS name, c ->> 'class' AS class, o ->> 'class' AS of
        FROM jsonb_array_elements(policy -> 'columns') c
        LEFT JOIN jsonb_array_elements(root -> 'columns') o ON o -> 'name' = c -> 'name'
        WHERE c ->> 'class' = 'quasi_identifier'
              AND (o -> 'class', o -> 'type') IS DISTINCT FROM (c -> 'class', c -> 'type')
           OR c ->> 'class' IN ('sensitive', 'non_sensitive')
              AND o ->> 'class' IN ('quasi_identifier', 'direct_identifier')
           OR c ->> 'action' = 'pseudonym' AND c ->> 'class' = 'direct_identifier'
    LOOP
        IF found.class = 'quasi_identifier' THEN
            RAISE EXCEPTION 'column "%" of data set % is no quasi-identifier of table %',
                found.name, relation, parent USING ERRCODE = '0A000',
                HINT = 'A data set shows the labels of that table, under their names and types. '
                    'What else people are known by belongs there as a column; or hide it.';
        ELSIF found.class = 'direct_identifier' THEN
            RAISE EXCEPTION 'column "%" of data set % cannot have a pseudonym', found.name,
                relation USING ERRCODE = '0A000';
        END IF;
        RAISE EXCEPTION 'column "%" of data set % is a % of table %', found.name, relation,
            replace(found.of, '_', ' '), parent USING ERRCODE = '22023',
            HINT = 'It would be shown as it is. Give it the same class here.';
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.assert_data_set IS 'fails unless a data set can be shown as a part of '
    'what its parent shows; for Tailor''s own routines only';

CREATE OR REPLACE FUNCTION tailor.draft_data_set(relation regclass) RETURNS jsonb
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT jsonb_build_object('data_set_of', jsonb_build_object(
               'schema', n.nspname, 'name', c.relname, 'query', d.query))
    FROM tailor.dataset d JOIN pg_class c ON c.oid = d.parent
    JOIN pg_namespace n ON n.oid = c.relnamespace WHERE d.relation = draft_data_set.relation
$$;
COMMENT ON FUNCTION tailor.draft_data_set IS 'what the policy of a data set says of its making';

-- The quasi-identifiers of a data set are its parent's.
CREATE OR REPLACE FUNCTION tailor.labelled_as(policy jsonb, parent regclass) RETURNS jsonb
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT labelled_as.policy || jsonb_build_object('columns', (
        SELECT jsonb_agg(CASE WHEN o IS NULL THEN c ELSE c - 'representative' - 'margins'
                   || jsonb_strip_nulls(jsonb_build_object('hierarchy', o -> 'hierarchy',
                          'representative', o -> 'representative', 'margins', o -> 'margins'))
                   END ORDER BY (c ->> 'number')::integer)
        FROM jsonb_array_elements(labelled_as.policy -> 'columns') c
        LEFT JOIN jsonb_array_elements(v.policy -> 'columns') o
            ON o -> 'name' = c -> 'name' AND c ->> 'class' = 'quasi_identifier'))
    FROM tailor.protection p
    JOIN tailor.policy_version v ON v.relation = p.relation AND v.version = p.active
    WHERE p.relation = labelled_as.parent
$$;

-- What a copy of the parent reads of its data sets beside its own rows b, whose subject
-- is person. A column is cast to no type but those of PostgreSQL (tailor.stored_type).
CREATE OR REPLACE FUNCTION tailor.reading_data_sets(policy jsonb, person text,
    OUT joins text, OUT fetched text, OUT payload text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH sets AS (
        SELECT s, 'd' || (s ->> 'number') AS alias,
               to_regclass(format('%I.%I', s ->> 'schema', s ->> 'name')) AS relation
        FROM jsonb_array_elements(policy -> 'data_sets') s),
    columns AS (
        SELECT s.alias, (c ->> 'number')::integer AS number, t.reading, c ->> 'name' AS name
        FROM sets s CROSS JOIN jsonb_array_elements(s.s -> 'columns') c
        JOIN pg_attribute a ON a.attrelid = s.relation AND a.attname = c ->> 'of'
            AND a.attnum > 0 AND NOT a.attisdropped
        CROSS JOIN tailor.stored_type(a.atttypid, a.atttypmod,
            format('%s.%I', s.alias, a.attname)) t
      UNION ALL
        SELECT s.alias, (s.s ->> 'number')::integer,
               format('%s.%I IS NOT NULL', s.alias, s.s ->> 'subject'), s.s ->> 'member'
        FROM sets s)
    SELECT (SELECT string_agg(format(' LEFT JOIN %s %s ON %s = %s',
                s.relation, s.alias, t.reading, person), '' ORDER BY s.alias)
            FROM sets s JOIN pg_attribute a ON a.attrelid = s.relation
                AND a.attname = s.s ->> 'subject' AND a.attnum > 0 AND NOT a.attisdropped
            CROSS JOIN tailor.stored_type(a.atttypid, a.atttypmod,
                format('%s.%I', s.alias, a.attname)) t),
           (SELECT string_agg(format('%s AS %I', c.reading, c.name), ', ' ORDER BY c.number)
            FROM columns c),
           (SELECT string_agg(format('b.%I', c.name), ', ' ORDER BY c.number) FROM columns c)
$$;
COMMENT ON FUNCTION tailor.reading_data_sets IS 'joins and columns by which a copy of a table '
    'reads its data sets; for Tailor''s own routines only';

CREATE OR REPLACE PROCEDURE tailor.assert_reads_data_sets(relation regclass, policy jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    dataset record;
    read    name[];
    several boolean;
    differ  bigint;
BEGIN
    IF policy -> 'data_sets' IS DISTINCT FROM tailor.data_sets_of(relation) THEN
        RAISE EXCEPTION 'the data sets of table % have changed', relation
            USING ERRCODE = '55000', HINT = format('CALL tailor.activate(%L);', relation);
    END IF;
    FOR dataset IN
        SELECT s AS relation, v.policy, v.policy ->> 'subject' AS subject
        FROM tailor.data_sets(assert_reads_data_sets.relation) s
        JOIN tailor.protection p ON p.relation = s
        JOIN tailor.policy_version v ON v.relation = s AND v.version = p.active
    LOOP
        CALL tailor.assert_owner(dataset.relation);
        read := ARRAY(
            SELECT (c ->> 'name')::name FROM jsonb_array_elements(dataset.policy -> 'columns') c
            WHERE c ->> 'class' IN ('quasi_identifier', 'sensitive', 'non_sensitive')
               OR c ->> 'name' = dataset.subject);
        CALL tailor.assert_inert(dataset.relation, read);
        EXECUTE format('SELECT count(%1$I) > count(DISTINCT %1$I) FROM %2$s',
                       dataset.subject, dataset.relation) INTO several;
        IF several THEN -- somebody has dropped the index
            RAISE EXCEPTION 'data set % has several rows for a subject', dataset.relation
                USING ERRCODE = '0A000';
        END IF;
        CALL tailor.note_facts(dataset.relation, dataset.policy);
        EXECUTE format('SELECT count(*) FROM %s d JOIN %s b ON d.%I = b.%I WHERE %s',
            dataset.relation, relation, dataset.subject, policy ->> 'subject',
            coalesce((SELECT string_agg(format('d.%1$I IS DISTINCT FROM b.%1$I', c ->> 'name'),
                          ' OR ')
                      FROM jsonb_array_elements(dataset.policy -> 'columns') c
                      WHERE c ->> 'class' = 'quasi_identifier'), 'false')) INTO differ;
        IF differ > 0 THEN
            RAISE WARNING 'data set %: % rows have other quasi-identifiers than table %, whose '
                'are shown', dataset.relation, differ, relation;
        END IF;
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.assert_reads_data_sets IS 'fails unless the data sets of a table can '
    'be copied with it as its policy says; for Tailor''s own routines only';

-- A data set shows the rest of a block, if at all, when it is next read off the release.
CREATE OR REPLACE PROCEDURE tailor.erase_from_data_sets(chain integer, release text, person bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    dataset record;
    stored  regclass;
BEGIN
    FOR dataset IN
        SELECT o.chain AS number, tailor.rows_of(o) AS rows
        FROM tailor.chain c JOIN tailor.dataset d ON d.parent = c.relation
        JOIN tailor.chain o ON o.relation = d.relation AND o.audience = c.audience
        WHERE c.chain = erase_from_data_sets.chain ORDER BY o.chain FOR UPDATE OF o
    LOOP
        FOR stored IN
            SELECT c.oid::regclass FROM pg_class c
            WHERE c.relnamespace = 'tailor_store'::regnamespace AND c.relkind = 'r'
              AND c.relname ~ format('^chain_%s(_g[0-9]+)?_row$', dataset.number)
        LOOP
            EXECUTE format('DELETE FROM %s WHERE "tailor block" IN (
                                SELECT "tailor block" FROM tailor_store.%I
                                WHERE "tailor person" = $1)', stored, release || '_row')
                USING person;
        END LOOP;
        EXECUTE format(
            'UPDATE tailor.chain SET generation = generation + 1, changed = now(),
                 (blocks, rows, subjects) = (
                     SELECT count(DISTINCT "tailor block"), count(*), count(*) FROM %s)
             WHERE chain = $1', dataset.rows) USING dataset.number;
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.erase_from_data_sets IS 'takes the block of a person out of what is '
    'read off a release that still has it; for Tailor''s own routines only';

-- The parent's policy stays as it is but for what it says of its data sets.
CREATE OR REPLACE PROCEDURE tailor.read_data_sets_anew(parent regclass)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    policy jsonb;
BEGIN
    CALL tailor.assert_owner(parent);
    CALL tailor.take_turn(parent);
    SELECT v.policy INTO policy FROM tailor.protection p
        JOIN tailor.policy_version v ON v.relation = p.relation AND v.version = p.active
        WHERE p.relation = parent;
    IF policy ->> 'fingerprint' = tailor.fingerprint(parent) THEN
        CALL tailor.write_version(parent, tailor.with_data_sets(parent, policy));
    END IF; -- else it is out of force until it is activated
END $$;
COMMENT ON PROCEDURE tailor.read_data_sets_anew IS 'puts the policy of a table in force again with '
    'its data sets as they are; the caller has locked both';

CREATE OR REPLACE PROCEDURE tailor.attach(relation regclass, policy jsonb, parent regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    number integer;
    read   name[] := ARRAY(
        SELECT (c ->> 'name')::name FROM jsonb_array_elements(policy -> 'columns') c
        WHERE c ->> 'class' IN ('quasi_identifier', 'sensitive', 'non_sensitive')
           OR c ->> 'name' = policy ->> 'subject');
BEGIN
    CALL tailor.assert_inert(relation, read);
    SELECT coalesce(max(version), 0) + 1 INTO number FROM tailor.policy_version v
        WHERE v.relation = attach.relation;
    INSERT INTO tailor.policy_version (relation, version, policy)
        VALUES (attach.relation, number, policy);
    UPDATE tailor.protection p SET active = number WHERE p.relation = attach.relation;
    CALL tailor.note_facts(relation, policy);
    CALL tailor.assert_tells_no_identifier(relation, policy, parent);
    CALL tailor.assert_no_shared_facts(relation, policy);
    CALL tailor.read_data_sets_anew(parent);
    CALL tailor.publish_shape(relation, number);
END $$;
COMMENT ON PROCEDURE tailor.attach
    IS 'puts the policy of a data set in force, with another copy of '
    'its parent; for Tailor''s own routines only';

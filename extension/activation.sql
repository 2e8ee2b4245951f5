-- Activation ----------------------------------------------------------------

-- The draft as one self-contained document.
CREATE OR REPLACE FUNCTION tailor.draft(relation regclass) RETURNS jsonb
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT tailor.with_parent(relation, jsonb_build_object(
        'subject', p.subject, 'k', p.k, 'recoding', p.recoding, 'scope', p.scope, 'seed', p.seed,
        'rows', p.rows,
        'gate', CASE WHEN p.gate IS NOT NULL THEN jsonb_build_object('measure', p.gate, 'max_risk',
                p.max_risk) END,
        'fingerprint', tailor.fingerprint(p.relation),
        'require', coalesce((SELECT jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
                                 'model', r.model, 'column', r.column_name,
                                 'parameter', r.parameter, 'c', r.c, 'distance', r.distance))
                                 ORDER BY r.model, r.column_name)
                             FROM tailor.requirement r WHERE r.relation = p.relation), '[]'),
        'columns', (SELECT jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
                        'name', a.attname, 'number', a.attnum, 'type', format_type(s.stored,
                                s.stored_modifier),
                        'category', t.typcategory, 'class', c.class, 'action', c.action,
                        'shared_fact', nullif(c.shared_fact, 'refused'),
                        'representative', nullif(c.shown_as, 'raked'), 'margins', CASE
                        WHEN NOT c.margins THEN false END,
                        'hierarchy', CASE WHEN h.name IS NOT NULL THEN jsonb_build_object('name',
                                h.name, 'kind', h.kind, 'definition', h.definition) END))
                        ORDER BY a.attnum)
                    FROM pg_attribute a CROSS JOIN tailor.stored_type(a.atttypid, a.atttypmod, '') s
                        JOIN pg_type t ON t.oid = s.stored
                    LEFT JOIN tailor.classification c ON c.relation = a.attrelid
                        AND c.column_name = a.attname
                    LEFT JOIN tailor.hierarchy h ON h.name = c.hierarchy
                    WHERE a.attrelid = p.relation AND a.attnum > 0 AND NOT a.attisdropped))
        || CASE WHEN p.max_share <> 0.5 THEN jsonb_build_object('max_share', p.max_share)
        ELSE '{}' END
        || CASE WHEN p.cohort IS NOT NULL THEN jsonb_build_object('cohort', p.cohort) ELSE '{}' END
        || tailor.draft_effects(p.relation) || coalesce(tailor.draft_set_valued(p.relation), '{}')
        || coalesce(tailor.draft_data_set(p.relation), '{}'))
    FROM tailor.protection p WHERE p.relation = draft.relation AND tailor.owns(p.relation)
$$;
COMMENT ON FUNCTION tailor.draft
    IS 'the policy of one''s own table as it would be activated; NULL for others';

-- tailor_owner is about to read a table of somebody else's making. Whatever of
-- it is executable would run with tailor_owner's rights: a view, a row security
-- policy, a foreign table, a function in an index, a constraint or a statistic
-- (the planner evaluates calls of constants), a support function of a type.
-- The lock, taken by the caller, keeps all this as it is until the transaction
-- ends; without one the check would prove nothing.
CREATE OR REPLACE PROCEDURE tailor.assert_inert(relation regclass, columns name[])
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    found record;
BEGIN
    FOR found IN
        SELECT f AS part FROM tailor.family(relation) f
        WHERE NOT EXISTS (
            SELECT FROM pg_locks l
            WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND l.granted
                AND l.relation = f
              AND l.database = (SELECT d.oid FROM pg_database d
                                WHERE d.datname = current_database())
              AND l.mode IN ('ShareUpdateExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock',
                             'AccessExclusiveLock'))
    LOOP
        RAISE EXCEPTION 'table % is not locked against changes', found.part
            USING ERRCODE = '55000', HINT = 'Call tailor.activate or tailor.refresh.';
    END LOOP;
    FOR found IN
        SELECT f AS part FROM tailor.family(relation) f JOIN pg_class c ON c.oid = f
        WHERE c.relkind NOT IN ('r', 'p', 'm') OR c.relpersistence = 't'
    LOOP
        RAISE EXCEPTION '% is not a table that is stored here', found.part USING ERRCODE = '42809';
    END LOOP;
    IF (SELECT c.relrowsecurity FROM pg_class c WHERE c.oid = relation) THEN
        RAISE EXCEPTION 'table % has row-level security', relation USING ERRCODE = '0A000',
            HINT = 'A copy of the rows that tailor_owner is shown would not be a copy of the '
                'table.';
    END IF;
    FOR found IN
        WITH family AS (SELECT f AS oid FROM tailor.family(relation) f), parts (classid, objid) AS (
            SELECT 'pg_class'::regclass, f.oid FROM family f
          UNION ALL
            SELECT 'pg_class'::regclass, i.indexrelid FROM pg_index i
                JOIN family f ON f.oid = i.indrelid
          UNION ALL
            SELECT 'pg_constraint'::regclass, k.oid FROM pg_constraint k
                JOIN family f ON f.oid = k.conrelid
          UNION ALL
            SELECT 'pg_statistic_ext'::regclass, x.oid FROM pg_statistic_ext x
                JOIN family f ON f.oid = x.stxrelid
          UNION ALL -- computed when it is read
            SELECT 'pg_attrdef'::regclass, d.oid FROM pg_attrdef d
                JOIN family f ON f.oid = d.adrelid
            JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
                WHERE a.attgenerated = 'v')
        SELECT p.oid::regprocedure AS routine
        FROM parts
        JOIN pg_depend d ON d.classid = parts.classid AND d.objid = parts.objid
        LEFT JOIN pg_operator o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
        JOIN pg_proc p ON p.oid = CASE WHEN d.refclassid = 'pg_proc'::regclass THEN d.refobjid
            ELSE o.oprcode END
        JOIN pg_roles r ON r.oid = p.proowner
        WHERE NOT r.rolsuper LIMIT 1
    LOOP
        RAISE EXCEPTION 'an index, constraint, statistic or column of table % calls %', relation,
            found.routine
            USING ERRCODE = '42501',
                HINT = 'Functions there must belong to a superuser: reading the table may run '
                    'them.';
    END LOOP;
    FOR found IN
        WITH RECURSIVE types (column_name, oid) AS (
            SELECT a.attname, a.atttypid FROM pg_attribute a
            WHERE a.attrelid = relation AND a.attname = ANY (columns) AND a.attnum > 0
                AND NOT a.attisdropped
          UNION
            SELECT types.column_name, CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.typelem END
            FROM types JOIN pg_type t USING (oid)
            WHERE t.typtype = 'd' OR (t.typcategory = 'A' AND t.typelem <> 0))
        SELECT types.column_name, types.oid::regtype AS type
        FROM types JOIN pg_type t USING (oid) JOIN pg_roles r ON r.oid = t.typowner
        WHERE NOT r.rolsuper AND t.typtype NOT IN ('d', 'e') AND NOT (t.typcategory = 'A'
                AND t.typelem <> 0)
    LOOP
        RAISE EXCEPTION 'column "%" of table % is of type %, which is not a superuser''s',
            found.column_name, relation, found.type
            USING ERRCODE = '42501',
                HINT = 'Reading the table may run functions of the type. Hide the column.';
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.assert_inert
    IS 'fails unless reading the columns of the table runs nobody''s code';

CREATE OR REPLACE FUNCTION tailor.copied_columns(relation regclass, policy jsonb) RETURNS name[]
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT ARRAY(
        SELECT (c ->> 'name')::name FROM jsonb_array_elements(policy -> 'columns') c
        WHERE c ->> 'class' IN ('quasi_identifier', 'sensitive', 'non_sensitive')
            OR c ->> 'name' = policy ->> 'subject'
      UNION
        SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid
            AND a.attnum = ANY (i.indkey)
        WHERE i.indrelid = relation AND i.indisprimary AND NOT policy ? 'set_valued')
$$;
COMMENT ON FUNCTION tailor.copied_columns
    IS 'the columns that a copy of a table is made of; for Tailor''s own routines only';

CREATE OR REPLACE PROCEDURE tailor.assert_readable(relation regclass, policy jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    CALL tailor.assert_apart(relation);
    CALL tailor.assert_inert(relation, tailor.copied_columns(relation, policy));
    IF policy ? 'parent' THEN
        CALL tailor.assert_lends(relation, policy);
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_readable IS 'fails unless a table, and what it borrows from, '
    'can be read as it is; the caller has locked them; for Tailor''s own routines only';

-- Builds the copy of a relation under a policy, from which a proxy brings the
-- releases up to date (catalog/takein.go) and which it drops then. Rows get numbers in
-- random order; quasi-identifiers are replaced by the number of their tuple,
-- direct identifiers and unclassified columns are left out, pseudonyms are
-- drawn at random. By person, key and nth a row is followed from one copy to the next:
-- the digest of its subject, hashes of its payload (the upper half) and of its own
-- quasi-identifiers (the lower), and its place among rows that are alike.
-- The document is the one that was stored, never the caller's.
DROP FUNCTION IF EXISTS tailor.build_epoch(regclass, integer, jsonb);
CREATE OR REPLACE FUNCTION tailor.build_epoch(relation regclass, version integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET constraint_exclusion = off
SET work_mem = '128MB' SET jit = off SET array_nulls = on SET datestyle = 'ISO, YMD'
    SET extra_float_digits = 1
SET timezone = 'UTC' SET intervalstyle = 'iso_8601' SET bytea_output = 'hex' AS $$
DECLARE
    policy   jsonb := (SELECT v.policy FROM tailor.policy_version v
                       WHERE v.relation = build_epoch.relation AND v.version = build_epoch.version);
    number   integer;
    copied   CONSTANT name[] := tailor.copied_columns(relation, policy);
    qids     text;
    originals text;
    payload  text;
    hashed   text; -- the columns of the payload, and of the row's own quasi-identifiers
    situated text;
    source   text := relation || ' b';
    fetched  text;
    person   text; -- the subject as it is stored
    lender   text; -- and that of the parent
    sets     record; -- what is read of data sets
    single   boolean;
    keyed    boolean;
    own_key  text; -- of a row, beside its subject
    key      text; -- hashes of what it says
    others   text; -- combinations of the quasi-identifiers of rows that are not copied
    subjects bigint;
    total    bigint;
    tuples   bigint;
    missing  bigint;
    slot     integer;
    shown    tailor.chain; -- what the copy says its differences from; NULL: it is whole
    reading  text; -- the table's rows
    copying  text; -- those that are copied
    place    text; -- of a row among those that are alike
    counting text := 'true';
BEGIN
    CALL tailor.assert_owner(relation);
    IF policy IS NULL THEN
        RAISE EXCEPTION 'the policy of table % has no version %', relation, version
            USING ERRCODE = '42704';
    END IF;
    CALL tailor.assert_readable(relation, policy);
    CALL tailor.erase_again(relation, policy);
    shown := tailor.differs_from(relation, version);
    IF shown.chain IS NULL THEN
        CALL tailor.follow_subjects(relation, policy);
        CALL tailor.erase_again(relation, policy); -- of a table that was dropped, people go on
        CALL tailor.assert_no_shared_facts(relation, policy);
    END IF;
    -- Texts are told apart by their bytes: that is fastest.
    SELECT string_agg(concat(s.reading, CASE WHEN t.typcollation <> 0 THEN ' COLLATE "C"' END), ', '
                      ORDER BY a.attnum),
           string_agg(format(', b.%I AS %I', a.attname, 'tailor qid ' || (c ->> 'number')), ''
                      ORDER BY a.attnum),
           string_agg(format('b.%I', a.attname), ', ' ORDER BY a.attnum)
           INTO qids, originals, situated
        FROM jsonb_array_elements(policy -> 'columns') c
        JOIN pg_attribute a ON a.attrelid = relation AND a.attname = c ->> 'name' AND a.attnum > 0
            AND NOT a.attisdropped
        CROSS JOIN tailor.stored_type(a.atttypid, a.atttypmod, format('b.%I', a.attname)) s
            JOIN pg_type t ON t.oid = s.stored
        WHERE c ->> 'class' = 'quasi_identifier';
    SELECT string_agg(format('%s AS %I', s.reading, a.attname), ', '),
        min(s.reading) FILTER (WHERE a.attname = policy ->> 'subject')
        INTO fetched, person
        FROM pg_attribute a CROSS JOIN tailor.stored_type(a.atttypid, a.atttypmod,
                format('b.%I', a.attname)) s
        WHERE a.attrelid = relation AND a.attname = ANY (copied) AND a.attnum > 0
            AND NOT a.attisdropped;
    -- The parent's are read in the statement that reads the table: both are of
    -- one moment.
    IF policy ? 'parent' THEN
        SELECT s.reading INTO lender
            FROM pg_attribute a CROSS JOIN tailor.stored_type(a.atttypid, a.atttypmod,
                    format('p.%I', a.attname)) s
            WHERE a.attrelid = tailor.lender(policy)
              AND a.attname = policy #>> '{parent,subject}' AND NOT a.attisdropped;
        source := format('%s LEFT JOIN %I.%I p ON %s = %s', source, policy #>> '{parent,schema}',
                         policy #>> '{parent,name}', lender, person);
        SELECT concat_ws(', ', qids, string_agg(concat(s.reading, CASE WHEN t.typcollation <> 0
                                                       THEN ' COLLATE "C"' END), ', '
                                                       ORDER BY a.attnum)),
               concat(originals, ', b."tailor qid 0"',
                      string_agg(format(', b.%I', tailor.borrowed(c)), '' ORDER BY a.attnum)),
               concat(fetched, format(', p.%I IS NULL AS "tailor qid 0"',
                                      policy #>> '{parent,subject}'),
                      string_agg(format(', %s AS %I', s.reading, tailor.borrowed(c)), ''
                                 ORDER BY a.attnum))
            INTO qids, originals, fetched
            FROM jsonb_array_elements(policy #> '{parent,columns}') c
            JOIN pg_attribute a ON a.attrelid = tailor.lender(policy)
                 AND a.attname = c ->> 'name' AND a.attnum > 0 AND NOT a.attisdropped
            CROSS JOIN tailor.stored_type(a.atttypid, a.atttypmod, format('p.%I', a.attname)) s
                JOIN pg_type t ON t.oid = s.stored;
    END IF;
    IF policy ? 'data_sets' THEN
        CALL tailor.assert_reads_data_sets(relation, policy);
        sets := tailor.reading_data_sets(policy, person);
        source := source || sets.joins;
        fetched := concat_ws(', ', fetched, sets.fetched);
    END IF;
    -- Where the column is a key, a row is a subject, and its random number will
    -- do for both.
    single := tailor.is_key(relation, (policy ->> 'subject')::name);
    IF NOT single THEN
        SELECT string_agg(format('b.%I', a.attname), ', ' ORDER BY a.attnum) INTO own_key
            FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid
                AND a.attnum = ANY (i.indkey)
            WHERE i.indrelid = relation AND i.indisprimary;
    END IF;
    -- Types are those of the catalog, and a cast is made only to types whose
    -- casts are PostgreSQL's own.
    SELECT string_agg(CASE WHEN c ->> 'class' = 'direct_identifier'
                           THEN format('("tailor pseudonym")::%s AS %I', format_type(a.atttypid,
                                   a.atttypmod), a.attname)
                           ELSE format('b.%I', a.attname) END, ', ' ORDER BY a.attnum),
           string_agg(format('b.%I', a.attname), ', '
                      ORDER BY a.attnum) FILTER (WHERE c ->> 'class' <> 'direct_identifier')
                          INTO payload, hashed
        FROM jsonb_array_elements(policy -> 'columns') c
        JOIN pg_attribute a ON a.attrelid = relation AND a.attname = c ->> 'name' AND a.attnum > 0
            AND NOT a.attisdropped
        WHERE c ->> 'class' IN ('sensitive', 'non_sensitive')
           OR (c ->> 'class' = 'direct_identifier' AND c ->> 'action' = 'pseudonym'
               AND a.atttypid IN ('int4'::regtype, 'int8'::regtype, 'numeric'::regtype,
                                  'text'::regtype));
    IF policy ? 'data_sets' THEN
        payload := concat_ws(', ', payload, sets.payload);
        hashed := concat_ws(', ', hashed, sets.payload);
    END IF;

    slot := tailor.start_progress(relation);
    EXECUTE format('SELECT count(*), count(*) FILTER (WHERE %I IS NULL) FROM %s',
                   policy ->> 'subject', relation) INTO total, missing;
    IF missing > 0 THEN
        RAISE EXCEPTION 'the subject column of % is NULL in % rows', relation, missing
            USING ERRCODE = '23502', HINT = 'Every row must say whom it is about.';
    END IF;
    CALL tailor.note_progress(slot, relation, CASE WHEN policy ? 'set_valued' THEN 8 ELSE 2 END,
                              total);
    IF policy ? 'set_valued' THEN
        RETURN tailor.build_records(relation, version, policy);
    END IF;

    -- Where a subject has one row, or rows have a key, a row goes on when what it says
    -- changes; else as long as it says the same. What a chain began with, it keeps to.
    SELECT bool_and(c.keyed) INTO keyed FROM tailor.chain c WHERE c.relation = build_epoch.relation;
    keyed := coalesce(keyed, CASE WHEN single OR own_key IS NOT NULL THEN true END);
    IF NOT single AND own_key IS NULL THEN
        EXECUTE format('SELECT count(DISTINCT %s) FROM %s b',
                       tailor.called(relation, (policy ->> 'subject')::name), relation)
            INTO subjects;
        IF keyed AND total > subjects THEN
            RAISE EXCEPTION 'table % has several rows for a subject and no primary key, and had '
                'one row for each, or a key, so far', relation USING ERRCODE = '55000',
                HINT = format('Mend the table. Or CALL tailor.forget_chains(%L), which gives up '
                    'the guarantee over what was shown before, and tailor.activate.', relation);
        END IF;
        keyed := coalesce(keyed, total = subjects);
    END IF;

    number := nextval(pg_get_serial_sequence('tailor.epoch', 'epoch'));
    hashed := format('ROW(%s)::text COLLATE "C"', hashed);
    situated := format('ROW(%s)::text COLLATE "C"', situated);
    place := CASE WHEN NOT keyed THEN format('row_number() OVER (PARTITION BY b."tailor person", '
        '%s, %s)', hashed, situated)
                  WHEN own_key IS NULL THEN '0::bigint'
                  ELSE format('hashtextextended(ROW(%s)::text COLLATE "C", 0)', own_key) END;
    key := format('(hashtext(%s)::bigint << 32) | (hashtext(%s)::bigint & 4294967295)', hashed,
                  situated);
    reading := format('tailor.person_digest(%s, (SELECT k.key FROM tailor.subject_key k)) '
        'AS "tailor person", %s FROM %s',
                      tailor.called(relation, (policy ->> 'subject')::name), fetched, source);
    IF shown.chain IS NULL THEN
        RAISE NOTICE 'table %: copying the rows in random order', relation;
        counting := tailor.step(slot, relation, total, true);
        copying := format('SELECT gen_random_uuid() AS "tailor random", (%s)::integer AS "tailor '
            'tuple", %s WHERE %s%s',
            CASE WHEN qids IS NULL THEN '0' ELSE format('dense_rank() OVER (ORDER BY %s) - 1', qids)
                END,
            reading, tailor.step(slot, relation, total, false), tailor.unless_erased(relation,
                    (policy ->> 'subject')::name));
        source := relation || ' b';
    ELSE
        RAISE NOTICE 'table %: looking for rows that are not shown as they are', relation;
        -- Whoever was erased and is shown is absent.
        CALL tailor.find_differences(shown, number, concat('SELECT ', reading, ' WHERE true',
                                                           tailor.unless_erased(relation,
                                                               (policy ->> 'subject')::name)),
                                     format('hashtext(%s)::bigint', hashed), place, CASE WHEN keyed
                                     THEN '0' ELSE key END);
        CALL tailor.follow_subjects(relation, policy, number);
        CALL tailor.assert_no_shared_facts(relation, policy);
        others := ' UNION ALL ' || tailor.other_values(policy, relation, source, number);
        source := format('tailor_store.found_%s b', number);
        copying := format('SELECT gen_random_uuid() AS "tailor random", b.* FROM %s WHERE "tailor '
            'differs"', source);
        place := 'b."tailor nth"';
        person := format('b.%I', policy ->> 'subject');
    END IF;
    -- Rows are sorted by tuple, then by a random number, and written in that
    -- order; the join of subjects, where there is one, is sorted again. Of rows that differ,
    -- each has a tuple of its own.
    EXECUTE format(
        'CREATE TABLE tailor_store.epoch_%1$s AS
         SELECT ("tailor row" - 1)::integer AS "tailor row", %2$s
             AS "tailor tuple", "tailor person", %3$s AS "tailor key", %4$s
             AS "tailor nth"%5$s%10$s %6$s
         FROM (SELECT row_number() OVER (ORDER BY "tailor random") AS "tailor row", %7$s d.*
             FROM (%8$s) d) b %9$s',
        number, CASE WHEN shown.chain IS NULL THEN '"tailor tuple"'
        ELSE '("tailor row" - 1)::integer' END, key, place, ', ' || payload, originals,
        CASE WHEN single THEN 'row_number() OVER (ORDER BY "tailor random") AS "tailor pseudonym",'
            ELSE '' END, copying,
        CASE WHEN NOT single THEN format(
            'JOIN (SELECT %1$s AS "tailor subject", row_number() OVER (ORDER BY gen_random_uuid()) '
            'AS "tailor pseudonym"
                   FROM %2$s GROUP BY 1) s ON s."tailor subject" = b.%3$I
             WHERE %4$s ORDER BY "tailor row"', person, source, policy ->> 'subject', counting)
             ELSE 'WHERE ' || counting END,
        CASE WHEN shown.chain IS NOT NULL
             THEN ', "tailor shown person" IS NOT NULL AS "tailor shown"' END);
    RAISE NOTICE 'table %: collecting the combinations of quasi-identifiers', relation;
    CALL tailor.note_progress(slot, relation, 3);
    EXECUTE (SELECT format(
        'CREATE TABLE tailor_store.tuples_%1$s AS
         SELECT "tailor tuple", count(*)::integer AS "tailor rows"%2$s
         FROM tailor_store.epoch_%1$s GROUP BY "tailor tuple"%3$s%4$s',
        number, q.listed, q.grouped, others)
    FROM (SELECT concat(', ' || string_agg(format('%I AS %I', q.reads, q.name), ', '
                                           ORDER BY q.nth)),
                 concat(', ' || string_agg(quote_ident(q.reads), ', ' ORDER BY q.nth))
          FROM (SELECT 'tailor qid ' || (c ->> 'number'), c ->> 'name', (c ->> 'number')::int
                FROM jsonb_array_elements(policy -> 'columns') c
                WHERE c ->> 'class' = 'quasi_identifier'
              UNION ALL
                SELECT tailor.borrowed(c), tailor.borrowed(c), 10000 + (c ->> 'number')::int
                FROM jsonb_array_elements(policy #> '{parent,columns}') c) q (reads, name, nth)
         ) q (listed, grouped));
    CALL tailor.note_progress(slot, relation, 4);
    CALL tailor.assert_whole(relation, policy, number);
    CALL tailor.assert_covers(policy, number);
    CALL tailor.note_progress(slot, relation, 5);
    -- The copy is written once more, without the quasi-identifiers.
    IF qids IS NOT NULL THEN
        EXECUTE format(
            'CREATE TABLE tailor_store.copy_%1$s AS SELECT %2$s FROM tailor_store.epoch_%1$s',
            number, (SELECT string_agg(format('%I', a.attname), ', ' ORDER BY a.attnum)
                     FROM pg_attribute a
                     WHERE a.attrelid = format('tailor_store.epoch_%s', number)::regclass
                         AND a.attnum > 0
                       AND a.attname NOT LIKE 'tailor qid %'));
        EXECUTE format('DROP TABLE tailor_store.epoch_%s', number);
        EXECUTE format('ALTER TABLE tailor_store.copy_%1$s RENAME TO epoch_%1$s', number);
    END IF;
    CALL tailor.note_progress(slot, relation, 6);
    -- Erasures take rows from both, be it from what a publication of all tables has.
    EXECUTE format('ALTER TABLE tailor_store.epoch_%s REPLICA IDENTITY FULL', number);
    EXECUTE format('ALTER TABLE tailor_store.tuples_%s REPLICA IDENTITY FULL', number);
    CALL tailor.keep_no_samples(format('tailor_store.epoch_%s', number)::regclass);
    EXECUTE format('ANALYZE tailor_store.epoch_%s', number);

    IF shown.chain IS NULL THEN
        EXECUTE format('SELECT count(*), count(DISTINCT "tailor person") FROM '
            'tailor_store.epoch_%s', number) INTO total, subjects;
    ELSE
        CALL tailor.count_differences(shown, number, single, total, subjects);
        EXECUTE format('DROP TABLE tailor_store.found_%s', number);
    END IF;
    EXECUTE format('SELECT count(*) FROM tailor_store.tuples_%s', number) INTO tuples;
    IF total > subjects AND qids IS NOT NULL AND EXISTS (
        SELECT FROM jsonb_array_elements(policy -> 'columns') c WHERE c ->> 'action' = 'pseudonym'
            AND c ->> 'class' = 'direct_identifier') THEN
        RAISE EXCEPTION 'a pseudonym would link the rows of one subject in table %', relation
            USING ERRCODE = '0A000',
            HINT = 'Hide the subject column: several rows of one subject, linked, identify by '
                'their sequence.';
    END IF;
    INSERT INTO tailor.epoch (epoch, relation, version, rows, tuples, subjects, keyed, chain,
                              generation)
        OVERRIDING SYSTEM VALUE VALUES (number, build_epoch.relation, build_epoch.version, total,
                                        tuples, subjects, keyed, shown.chain, shown.generation);
    CALL tailor.note_progress(slot, relation, 7);
    IF shown.chain IS NULL THEN
        RAISE NOTICE 'table %: stored % rows of % subjects, % combinations of quasi-identifiers',
            relation, total, subjects,
            CASE WHEN qids IS NULL THEN 0 ELSE tuples END;
        IF subjects < (policy ->> 'k')::integer THEN
            RAISE WARNING 'table %: readers are shown nothing before it has % subjects', relation,
                policy ->> 'k';
        END IF;
    END IF;
    RETURN number;
END $$;
COMMENT ON FUNCTION tailor.build_epoch
    IS 'stores a copy of a table under a version of its policy and returns the epoch''s number; '
        'for Tailor''s own routines only';

-- Evaluated when a view of the schema research is read as it is, although the
-- view has no rows: a silent nothing would be taken for an answer.
CREATE OR REPLACE FUNCTION tailor.unreachable(relation text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION 'table % is read through the proxy', relation
        USING ERRCODE = '42501',
            HINT = 'Connect to the proxy, which answers with the release that is meant for you. '
                'Ask again where it has not heard of a new policy yet. What stands in DO or in a '
                'function does not pass it: ask in a statement of its own.';
END $$;
COMMENT ON FUNCTION tailor.unreachable IS 'fails: the released shape of a table holds no rows';

-- The released shape, empty, for tools that list tables and columns.
DROP PROCEDURE IF EXISTS tailor.publish_shape(regclass, jsonb);
CREATE OR REPLACE PROCEDURE tailor.publish_shape(relation regclass, version integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    policy     jsonb := (SELECT v.policy FROM tailor.policy_version v
                         WHERE v.relation = publish_shape.relation
                             AND v.version = publish_shape.version);
    table_name name := (SELECT relname FROM pg_class WHERE oid = relation);
    shape      text;
    described  record;
BEGIN
    CALL tailor.assert_owner(relation);
    SELECT string_agg(format('NULL::%s AS %I', CASE WHEN t.typcategory = 'S' THEN 'text'
                             ELSE format_type(s.stored, s.stored_modifier) END, a.attname),
                      ', ' ORDER BY a.attnum) INTO shape
        FROM jsonb_array_elements(policy -> 'columns') c
        JOIN pg_attribute a ON a.attrelid = relation AND a.attname = c ->> 'name' AND a.attnum > 0
            AND NOT a.attisdropped
        CROSS JOIN tailor.stored_type(a.atttypid, a.atttypmod, '') s
            JOIN pg_type t ON t.oid = s.stored
        WHERE c ->> 'class' IN ('quasi_identifier', 'sensitive', 'non_sensitive')
           OR (c ->> 'class' = 'direct_identifier' AND c ->> 'action' = 'pseudonym');
    -- An older shape shows names of columns, and no rows.
    IF NOT tailor.drop_unless_used('VIEW', ARRAY[format('research.%I', table_name)]) THEN
        RAISE WARNING 'research.% is in use and stays as it is', quote_ident(table_name)
            USING HINT = 'It has the columns of the policy again after another CALL '
                'tailor.activate.';
        RETURN;
    END IF;
    -- OFFSET keeps a query from being planned with the NULLs, which could show
    -- that it has no rows before anything is evaluated.
    EXECUTE format('CREATE VIEW research.%I AS SELECT %s WHERE (SELECT tailor.unreachable(%L)) '
        'OFFSET 0', table_name, coalesce(shape, ''), relation);
    EXECUTE format('GRANT SELECT ON research.%I TO tailor_reader', table_name);
    EXECUTE format('COMMENT ON VIEW research.%I IS %L', table_name,
                   format('released shape of %s; ask for it by either name through the proxy',
                          relation));
    FOR described IN
        SELECT c ->> 'name' AS name, CASE c ->> 'class'
                   WHEN 'direct_identifier' THEN 'pseudonym: a random number for each subject'
                   WHEN 'quasi_identifier' THEN format('quasi-identifier, by hierarchy %s; '
                       'research.tailor_columns says how exact it is', c #>> '{hierarchy,name}')
                   ELSE replace(c ->> 'class', '_', '-') || ', as it is' END AS comment
        FROM jsonb_array_elements(policy -> 'columns') c
        JOIN pg_attribute a ON a.attrelid = format('research.%I', table_name)::regclass
            AND a.attname = c ->> 'name' AND NOT a.attisdropped
    LOOP
        EXECUTE format('COMMENT ON COLUMN research.%I.%I IS %L', table_name, described.name,
                       described.comment);
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.publish_shape
    IS 'makes the view research.<table>; for Tailor''s own routines only';

CREATE OR REPLACE FUNCTION tailor.views_of(chain integer) RETURNS name[]
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT ARRAY(SELECT c.relname FROM pg_class c
                 WHERE c.relnamespace = 'tailor_release'::regnamespace AND c.relkind = 'v'
                     AND c.relname ~ format('^chain_%s(_|$)', chain))
$$;
COMMENT ON FUNCTION tailor.views_of
    IS 'the views of a chain''s release, and of earlier editions that are still there; for '
        'Tailor''s own routines only';

CREATE OR REPLACE PROCEDURE tailor.close_views(names name[])
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    granted record;
BEGIN
    FOR granted IN
        SELECT DISTINCT c.oid::regclass AS view, CASE a.grantee WHEN 0 THEN 'PUBLIC'
            ELSE a.grantee::regrole::text END AS grantee
        FROM pg_class c CROSS JOIN aclexplode(c.relacl) a
        WHERE c.relnamespace = 'tailor_release'::regnamespace AND a.grantee <> c.relowner
            AND c.relname = ANY (names)
    LOOP
        EXECUTE format('REVOKE ALL ON %s FROM %s', granted.view, granted.grantee);
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.close_views
    IS 'takes views of releases from everybody; for Tailor''s own routines only';

-- A release shows the columns that were visible when it was made, until the
-- chain is next used and the proxy makes it anew, for whoever uses it then.
CREATE OR REPLACE PROCEDURE tailor.close_releases(relation regclass)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    chain record;
    views name[];
BEGIN
    CALL tailor.assert_owner(relation);
    FOR chain IN SELECT c.chain AS number FROM tailor.chain c
        WHERE c.relation = close_releases.relation ORDER BY 1 FOR UPDATE LOOP
        views := tailor.views_of(chain.number);
        CALL tailor.close_views(views);
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.close_releases
    IS 'takes all releases of a table from everybody; for Tailor''s own routines only';

-- A proxy that has not heard of the parent's new policy would still join. The
-- child by itself is shown as before.
CREATE OR REPLACE PROCEDURE tailor.close_joins(relation regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    child record;
    chain record;
    lent  name[];
BEGIN
    FOR child IN
        SELECT p.relation FROM tailor.protection p JOIN tailor.policy_version v
            ON v.relation = p.relation AND v.version = p.active
        JOIN pg_class c ON c.oid = close_joins.relation
            JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE v.policy #>> '{parent,schema}' = n.nspname
            AND v.policy #>> '{parent,name}' = c.relname
        ORDER BY 1
    LOOP
        CONTINUE WHEN tailor.in_step(child.relation);
        FOR chain IN SELECT c.chain AS number FROM tailor.chain c WHERE c.relation = child.relation
            ORDER BY 1 FOR UPDATE LOOP
            lent := ARRAY(SELECT v FROM unnest(tailor.views_of(chain.number)) v
                          WHERE v ~ '_parent$');
            CALL tailor.close_views(lent);
        END LOOP;
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.close_joins
    IS 'takes from everybody what releases of other tables show of a table and it no longer lends; '
        'for Tailor''s own routines only';

CREATE OR REPLACE FUNCTION tailor.has_bounds(type text, definition jsonb) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF type ~ '^(smallint|integer|bigint|real|double precision|numeric(\(\d+,-?\d+\))?)$' THEN
        EXECUTE format('SELECT %L::numeric::%s, %L::numeric::%s', definition ->> 'lower', type,
                       definition ->> 'upper', type);
    END IF;
    RETURN true;
EXCEPTION WHEN numeric_value_out_of_range THEN
    RETURN false;
END $$;
COMMENT ON FUNCTION tailor.has_bounds
    IS 'whether a type of numbers has both ends of a hierarchy''s intervals';

CREATE OR REPLACE PROCEDURE tailor.assert_valid(relation regclass, policy jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    problem record;
BEGIN
    FOR problem IN
        SELECT c ->> 'name' AS name, c ->> 'type' AS type, c -> 'hierarchy' ->> 'kind' AS kind,
               c -> 'hierarchy' -> 'definition' AS definition
        FROM jsonb_array_elements(policy -> 'columns') c WHERE c ->> 'class' = 'quasi_identifier'
    LOOP
        IF problem.kind = 'date' AND problem.type = 'date'
           AND problem.definition -> 'levels' ?| ARRAY['hour', 'day'] THEN
            RAISE EXCEPTION 'column "%" of type date has no hours, and its values are days',
                problem.name
                USING ERRCODE = '42804',
                    HINT = 'Take "hour" and "day" out of the levels of its hierarchy.';
        END IF;
        IF problem.kind = 'interval' AND problem.type IN ('smallint', 'integer', 'bigint')
           AND EXISTS (SELECT FROM (SELECT problem.definition ->> 'lower' UNION ALL
                                    SELECT problem.definition ->> 'upper'
                                    UNION ALL SELECT jsonb_array_elements_text(problem.definition
                                            -> 'widths')) n (given)
                       WHERE given::numeric <> trunc(given::numeric)) THEN
            RAISE EXCEPTION 'column "%" of type % has whole numbers, and its hierarchy has others',
                problem.name, problem.type
                USING ERRCODE = '42804', HINT = 'Give whole bounds and widths.';
        END IF;
        IF problem.kind = 'interval' AND NOT tailor.has_bounds(problem.type, problem.definition)
            THEN
            RAISE EXCEPTION 'the bounds of the hierarchy of column "%" are beyond its type, %',
                problem.name, problem.type
                USING ERRCODE = '22003',
                    HINT = 'Rows show values between the bounds. Give bounds that the type has.';
        END IF;
        IF (problem.kind = 'interval'
            AND problem.type !~ '^(smallint|integer|bigint|numeric|real|double precision)')
           OR (problem.kind = 'date' AND problem.type !~ '^(date|timestamp)')
           OR (problem.kind = 'prefix' AND problem.type !~ '^(text|character)') THEN
            RAISE EXCEPTION 'column "%" of type % cannot have a hierarchy of kind %', problem.name,
                problem.type, problem.kind
                USING ERRCODE = '42804';
        END IF;
    END LOOP;
    FOR problem IN
        SELECT a.attname AS name FROM jsonb_array_elements(policy -> 'columns') c
        JOIN pg_attribute a ON a.attrelid = relation AND a.attname = c ->> 'name' AND a.attnum > 0
            AND NOT a.attisdropped
        WHERE c ->> 'action' = 'pseudonym' AND c ->> 'class' = 'direct_identifier'
          AND (a.attname <> policy ->> 'subject'
               OR a.atttypid NOT IN ('int4'::regtype, 'int8'::regtype, 'numeric'::regtype,
                                     'text'::regtype))
    LOOP
        RAISE EXCEPTION 'column "%" cannot have a pseudonym', problem.name USING ERRCODE = '0A000',
            HINT = 'Only the subject column can, with type integer, bigint, numeric or text.';
    END LOOP;
    IF policy ->> 'recoding' = 'cell' THEN
        RAISE EXCEPTION 'recoding "cell" cannot be kept safe over several answers'
            USING ERRCODE = '0A000',
            HINT = 'Use auto, local or full_domain; tailor anonymize withholds cells of files.';
    END IF;
    IF jsonb_array_length(policy -> 'seed') > 0 THEN
        CALL tailor.assert_combinations(relation, policy -> 'seed');
    END IF;
    CALL tailor.assert_set_valued(relation, policy);
    CALL tailor.assert_rows(relation, policy);
    CALL tailor.assert_effects(relation, policy);
    FOR problem IN
        SELECT c ->> 'class' AS class FROM jsonb_array_elements(policy -> 'columns') c
        WHERE c ->> 'name' = policy ->> 'subject' AND c ->> 'class' <> 'direct_identifier'
    LOOP
        RAISE EXCEPTION 'the subject column of table % is classified as %', relation, problem.class
            USING ERRCODE = '22023',
            HINT = 'It says whom a row is about and would be shown: classify it as '
                'direct_identifier.';
    END LOOP;
    IF NOT EXISTS (SELECT FROM jsonb_array_elements(policy -> 'columns') c
                   WHERE c ->> 'name' = policy ->> 'subject') THEN
        RAISE EXCEPTION 'the subject column of table % does not exist any more', relation
            USING ERRCODE = '42703',
            HINT = format('CALL tailor.protect(%L, subject => ..., k => %s);', relation,
                          policy ->> 'k');
    END IF;
    IF NOT tailor.tells_people(relation, (policy ->> 'subject')::name) THEN
        RAISE EXCEPTION 'the subject column "%" of table % has a type or a collation by which '
            'values that are equal can differ', policy ->> 'subject', relation
            USING ERRCODE = '0A000',
            DETAIL = 'People are told apart by the text of their keys.',
            HINT = 'Have it an integer, numeric, text, uuid or an enum, with a collation that is '
                'deterministic.';
    END IF;
    FOR problem IN
        SELECT r ->> 'column' AS name, r ->> 'model' AS model
            FROM jsonb_array_elements(policy -> 'require') r
        WHERE NOT EXISTS (SELECT FROM jsonb_array_elements(policy -> 'columns') c
                          WHERE c ->> 'name' = r ->> 'column'
                              AND c ->> 'class' IN ('sensitive', 'non_sensitive'))
    LOOP
        RAISE EXCEPTION '% is required of column "%", which releases do not show', problem.model,
            problem.name
            USING ERRCODE = '22023', HINT = 'Classify it as sensitive.';
    END LOOP;
    FOR problem IN
        SELECT g.computed AS name, g.origin FROM tailor.computed_columns(relation) g
        JOIN jsonb_array_elements(policy -> 'columns') c ON c ->> 'name' = g.computed
            AND c ->> 'class' IN ('sensitive', 'non_sensitive')
        JOIN jsonb_array_elements(policy -> 'columns') o ON o ->> 'name' = g.origin
            AND o ->> 'class' = 'quasi_identifier'
        ORDER BY 1, 2
    LOOP
        RAISE EXCEPTION 'column "%" is computed from the quasi-identifier "%" and would be shown '
            'as it is', problem.name, problem.origin
            USING ERRCODE = '22023',
                HINT = 'It tells apart whom a block does not. Classify it as quasi_identifier, or '
                    'as direct_identifier, which hides it.';
    END LOOP;
    CALL tailor.assert_links(relation, policy);
    FOR problem IN
        SELECT c ->> 'name' AS name FROM jsonb_array_elements(policy -> 'columns') c
        WHERE c ->> 'class' IS NOT NULL AND c ->> 'name' ~ '^(tailor |tailor_(label|number|value)_)'
    LOOP
        RAISE EXCEPTION 'column "%" has a name that releases use themselves', problem.name
            USING ERRCODE = '42939',
            HINT = 'Rename it, or leave it without a class, which hides it.';
    END LOOP;
    CALL tailor.assert_name_is_free(relation);
    -- Under another scope the same people would be shown a second, independent
    -- partition.
    IF EXISTS (
        SELECT FROM tailor.protection p
        JOIN tailor.policy_version v ON v.relation = p.relation AND v.version = p.active
        WHERE p.relation = assert_valid.relation AND v.policy ->> 'scope' <> assert_valid.policy
            ->> 'scope')
       AND EXISTS (SELECT FROM tailor.chain c WHERE c.relation = assert_valid.relation) THEN
        RAISE EXCEPTION 'the scope of table % cannot change: it has chains already', relation
            USING ERRCODE = '55000',
                HINT = 'Start all chains anew with tailor.forget_chains, which gives up the '
                    'guarantee over what was shown before.';
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_valid IS 'fails unless a draft can be activated';

CREATE OR REPLACE FUNCTION tailor.add_version(relation regclass, policy jsonb) RETURNS integer
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    number integer;
BEGIN
    SELECT coalesce(max(version), 0) + 1 INTO number FROM tailor.policy_version v
        WHERE v.relation = add_version.relation;
    INSERT INTO tailor.policy_version (relation, version, policy)
        VALUES (add_version.relation, number, policy);
    CALL tailor.assert_goes_on(relation, number);
    CALL tailor.warn_of_dimensions(relation, policy);
    RETURN number;
END $$;
COMMENT ON FUNCTION tailor.add_version IS 'stores a policy as the next version of a table''s; '
    'fails where what has been shown cannot go on by it; for Tailor''s own routines only';

CREATE OR REPLACE PROCEDURE tailor.write_version(relation regclass, policy jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    number  CONSTANT integer := tailor.add_version(relation, policy);
    built   integer;
    dataset regclass;
BEGIN
    built := tailor.build_epoch(relation, number);
    CALL tailor.publish_shape(relation, number);
    -- In the order of the proxies: the policy's row, then the chains'.
    PERFORM FROM tailor.protection p WHERE p.relation = write_version.relation FOR UPDATE;
    CALL tailor.close_releases(relation);
    UPDATE tailor.protection p SET active = number, epoch = built
        WHERE p.relation = write_version.relation;
    -- What they show is read off what the table does, which is made under another policy now.
    FOR dataset IN SELECT tailor.data_sets(write_version.relation) LOOP
        PERFORM FROM tailor.protection p WHERE p.relation = dataset FOR UPDATE;
        CALL tailor.close_releases(dataset);
        WITH another AS (
            INSERT INTO tailor.policy_version (relation, version, policy)
                SELECT v.relation, (SELECT max(m.version) + 1 FROM tailor.policy_version m
                                    WHERE m.relation = dataset),
                       v.policy || jsonb_build_object('k', write_version.policy -> 'k')
                FROM tailor.protection p JOIN tailor.policy_version v ON v.relation = p.relation
                    AND v.version = p.active
                WHERE p.relation = dataset AND EXISTS (SELECT FROM tailor.chain c
                                                       WHERE c.relation = dataset
                                                           AND c.version = p.active)
                RETURNING version)
        UPDATE tailor.protection p SET epoch = built, active = coalesce((SELECT version
                FROM another), p.active),
                k = (write_version.policy ->> 'k')::integer
            WHERE p.relation = dataset;
    END LOOP;
    CALL tailor.close_joins(relation);
    CALL tailor.settle(relation);
    PERFORM nextval('tailor.catalog_version');
    PERFORM pg_notify('tailor', 'policies');
END $$;
COMMENT ON PROCEDURE tailor.write_version
    IS 'puts a policy in force, with a copy; for Tailor''s own routines only';

CREATE OR REPLACE PROCEDURE tailor.assert_no_ways(relation regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    way record;
BEGIN
    FOR way IN SELECT * FROM tailor.powers(ARRAY(SELECT tailor.reader_roles())) LIMIT 1 LOOP
        RAISE EXCEPTION 'reader "%" bypasses privileges', way.reader USING ERRCODE = '42501',
            DETAIL = format('It is or can become %I.', way.role),
            HINT = 'tailor doctor finds all such readers, and says what mends each.';
    END LOOP;
    FOR way IN SELECT * FROM tailor.tools(ARRAY(SELECT tailor.reader_roles())) LIMIT 1 LOOP
        RAISE EXCEPTION 'reader "%" bypasses privileges', way.reader USING ERRCODE = '42501',
            DETAIL = format('It has rights on %s.', way.object),
            HINT = 'tailor doctor finds all such readers, and says what mends each.';
    END LOOP;
    FOR way IN SELECT * FROM tailor.ways(relation, ARRAY(SELECT tailor.reader_roles())) LIMIT 1 LOOP
        RAISE EXCEPTION 'reader "%" can still read table %', way.reader, way.part
            USING ERRCODE = '42501',
            DETAIL = format('It may do so as %I.', way.role),
            HINT = CASE WHEN way.part IN (SELECT tailor.family(relation))
                        THEN 'Revoke the role that grants it, or the privileges on single columns.'
                        ELSE format('REVOKE ALL ON %s FROM PUBLIC, %I; or take it from the parents '
                            'of the table: a read of a parent reads its heirs.', way.part,
                            way.role) END;
    END LOOP;
    FOR way IN SELECT * FROM tailor.function_ways(relation, ARRAY(SELECT tailor.reader_roles()))
        LOOP
        IF way.named THEN
            RAISE WARNING 'readers may call %, which names table % and has the rights of "%", who '
                'can read it', way.routine, relation, way.owner
                USING HINT = format('REVOKE EXECUTE ON ROUTINE %s FROM PUBLIC, tailor_reader;',
                                    way.routine);
        ELSE
            RAISE NOTICE 'readers may call %, which has the rights of "%", who can read table %',
                way.routine, way.owner, relation
                USING HINT = format('If it reads the table: REVOKE EXECUTE ON ROUTINE %s FROM '
                    'PUBLIC, tailor_reader;', way.routine);
        END IF;
    END LOOP;
    FOR way IN SELECT DISTINCT ON (w.view) *
        FROM tailor.view_ways(relation, ARRAY(SELECT tailor.reader_roles())) w LOOP
        RAISE WARNING 'reader "%" can read table % through the view %', way.reader, relation,
            way.view
            USING HINT = format('REVOKE ALL ON %s FROM PUBLIC, %I; or drop the view.', way.view,
                                way.role);
    END LOOP;
    FOR way IN SELECT * FROM tailor.view_ways(relation, ARRAY(SELECT tailor.reader_roles())) LIMIT 1
        LOOP
        RAISE EXCEPTION 'reader "%" can still read table % through the view %', way.reader,
            relation, way.view USING ERRCODE = '42501',
            DETAIL = format('It may do so as %I.', way.role),
            HINT = format('REVOKE ALL ON %s FROM PUBLIC, %I; or drop the view.', way.view,
                          way.role);
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.assert_no_ways IS 'fails if a reader can read a table past its '
    'releases; for Tailor''s own routines only';

CREATE OR REPLACE FUNCTION tailor.accepted_draft(relation regclass) RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    policy jsonb;
    parent regclass := tailor.data_set_parent(relation);
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    CALL tailor.take_turn(relation);
    policy := tailor.draft(relation);
    CALL tailor.assert_valid(relation, policy);
    IF parent IS NOT NULL THEN
        CALL tailor.assert_data_set(relation, policy, parent);
    ELSIF EXISTS (SELECT FROM tailor.data_sets(relation)) THEN
        CALL tailor.assert_has_data_sets(relation, policy);
    END IF;
    CALL tailor.assert_no_ways(relation);
    RETURN CASE WHEN parent IS NULL THEN tailor.with_data_sets(relation, policy)
                ELSE tailor.labelled_as(policy, parent) END;
END $$;
COMMENT ON FUNCTION tailor.accepted_draft IS 'the draft of a table as it is put in force; fails '
    'where it cannot be, whatever the rows say; for Tailor''s own routines only';

CREATE OR REPLACE PROCEDURE tailor.put_in_force(relation regclass)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    policy jsonb := tailor.accepted_draft(relation);
    parent regclass := tailor.data_set_parent(relation);
BEGIN
    IF parent IS NULL THEN
        CALL tailor.write_version(relation, policy);
    ELSE
        CALL tailor.attach(relation, policy, parent);
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.put_in_force IS 'the part of tailor.activate that writes';

CREATE OR REPLACE PROCEDURE tailor.take_privileges(relation regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    part    record;
    readers text;
    losing  text;
BEGIN
    CALL tailor.hold_readers();
    SELECT string_agg(quote_ident(r), ', ') INTO readers FROM tailor.reader_roles() r;
    FOR part IN
        SELECT f AS name, pg_get_userbyid(c.relowner) AS owner
        FROM tailor.family(relation) f JOIN pg_class c ON c.oid = f
    LOOP
        -- To revoke an owner's privileges helps nobody: he can give them back.
        IF part.owner IN (SELECT tailor.reader_roles()) THEN
            RAISE EXCEPTION 'the owner "%" of table % is a reader', part.owner, part.name
                USING ERRCODE = '42501',
                    HINT = 'Take tailor_reader from the owner, and from the roles that it is a '
                        'member of.';
        END IF;
        SELECT string_agg(DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text
                          END, ', ') INTO losing
            FROM pg_class c
            CROSS JOIN LATERAL (
                SELECT x.grantee FROM aclexplode(c.relacl) x
              UNION SELECT x.grantee FROM pg_attribute t CROSS JOIN LATERAL aclexplode(t.attacl) x
                  WHERE t.attrelid = c.oid) a
            WHERE c.oid = part.name
              AND (a.grantee = 0 OR EXISTS (SELECT FROM tailor.reader_roles() r
                                            JOIN pg_roles o ON o.rolname = r
                                                WHERE o.oid = a.grantee));
        IF losing IS NOT NULL THEN
            RAISE NOTICE 'table %: taking direct privileges from %', part.name, losing;
        END IF;
        EXECUTE format('REVOKE ALL ON %s FROM PUBLIC, %s', part.name, readers);
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.take_privileges IS 'takes direct privileges on a table from readers, '
    'with the rights of its owner';

CREATE OR REPLACE PROCEDURE tailor.activate(relation regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.hold(relation);
    CALL tailor.take_privileges(relation);
    CALL tailor.put_in_force(relation);
END $$;
COMMENT ON PROCEDURE tailor.activate
    IS 'publishes the draft as a new policy version, takes direct privileges and old releases from '
        'readers and builds the stored copy';

CREATE OR REPLACE PROCEDURE tailor.renew_copy(relation regclass)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    number integer;
    built  integer;
    policy jsonb;
    gone   text;
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    CALL tailor.take_turn(relation);
    SELECT p.active INTO number FROM tailor.protection p WHERE p.relation = renew_copy.relation;
    IF number IS NULL THEN
        RAISE EXCEPTION 'the policy of table % is not active', relation
            USING ERRCODE = '55000', HINT = format('CALL tailor.activate(%L);', relation);
    END IF;
    SELECT v.policy INTO policy FROM tailor.policy_version v
        WHERE (v.relation, v.version) = (renew_copy.relation, number);
    IF policy ->> 'fingerprint' IS DISTINCT FROM tailor.fingerprint(relation) THEN
        SELECT c ->> 'name' INTO gone FROM jsonb_array_elements(policy -> 'columns') c
            WHERE c ->> 'class' IS NOT NULL AND NOT EXISTS (
                SELECT FROM pg_attribute a
                WHERE a.attrelid = relation AND a.attnum = (c ->> 'number')::integer
                    AND a.attname = c ->> 'name' AND NOT a.attisdropped);
        IF FOUND THEN
            RAISE EXCEPTION 'table % has no column "%" any more, or another one by its name',
                relation, gone
                USING ERRCODE = 'KA004',
                HINT = format('Classify what is in its place, and CALL tailor.activate(%L).',
                              relation);
        END IF;
        RAISE WARNING 'table % has changed shape: readers are refused until tailor.activate',
            relation;
    END IF;
    built := tailor.build_epoch(relation, number);
    UPDATE tailor.protection p SET epoch = built
        WHERE p.relation = renew_copy.relation
            OR p.relation IN (SELECT tailor.data_sets(renew_copy.relation));
    CALL tailor.settle(relation);
    PERFORM nextval('tailor.catalog_version');
    PERFORM pg_notify('tailor', 'policies');
END $$;
COMMENT ON PROCEDURE tailor.renew_copy IS 'the part of tailor.refresh that writes';

CREATE OR REPLACE PROCEDURE tailor.refresh(relation regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.hold(relation);
    IF tailor.made_anew(relation) IS NOT NULL THEN
        CALL tailor.take_privileges(relation);
        EXECUTE format('GRANT SELECT ON %s TO tailor_owner', relation);
        CALL tailor.hand_over(relation);
    ELSIF EXISTS (SELECT FROM tailor.ways(relation, ARRAY(SELECT tailor.reader_roles()))) THEN
        CALL tailor.take_privileges(relation); -- of a partition that is new
    END IF;
    CALL tailor.renew_copy(coalesce(tailor.data_set_parent(relation), relation));
END $$;
COMMENT ON PROCEDURE tailor.refresh IS 'stores a new copy of the table, to which the proxy '
    'carries what readers are shown; of a table that was dropped and made anew, too';

DROP PROCEDURE IF EXISTS tailor.begin_anew(regclass);
CREATE OR REPLACE PROCEDURE tailor.begin_anew(relation regclass, renewed boolean DEFAULT true)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    chain record;
    views name[];
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    IF tailor.data_set_parent(relation) IS NOT NULL THEN
        RAISE EXCEPTION 'data set % goes on with table %', relation,
            tailor.data_set_parent(relation)
            USING ERRCODE = '0A000', HINT = 'Call tailor.forget_chains for that.';
    END IF;
    -- The policy's row first: a proxy that is making a chain holds it.
    UPDATE tailor.protection p SET starts_anew = true WHERE p.relation = begin_anew.relation;
    UPDATE tailor.protection p SET forgotten = p.forgotten + 1, forgotten_last = now()
        WHERE p.relation = begin_anew.relation AND EXISTS (
            SELECT FROM tailor.chain c WHERE c.relation = p.relation UNION ALL
            SELECT FROM tailor.publication u JOIN tailor.epoch e USING (epoch)
            WHERE e.relation = p.relation);
    DELETE FROM tailor.unmade u WHERE u.relation = begin_anew.relation
        OR u.relation IN (SELECT tailor.data_sets(begin_anew.relation));
    FOR chain IN
        SELECT c.chain AS number FROM tailor.chain c
        WHERE c.relation = begin_anew.relation
            OR c.relation IN (SELECT tailor.data_sets(begin_anew.relation))
        ORDER BY 1 FOR UPDATE
    LOOP
        views := tailor.views_of(chain.number);
        CALL tailor.close_views(views);
        DELETE FROM tailor.chain c WHERE c.chain = chain.number;
    END LOOP;
    DELETE FROM tailor.publication u USING tailor.epoch e
        WHERE e.epoch = u.epoch AND e.relation = begin_anew.relation;
    CALL tailor.drop_orphans();
    RAISE WARNING 'what was shown of % before may be combined with what will be shown: the '
        'guarantee starts anew', relation;
    IF renewed AND EXISTS (
        SELECT FROM tailor.protection p JOIN tailor.policy_version v
               ON v.relation = p.relation AND v.version = p.active
               WHERE p.relation = begin_anew.relation
                   AND v.policy ->> 'fingerprint' = tailor.fingerprint(p.relation)) THEN
        BEGIN -- what is shown next is made from a copy; that may have to wait for another policy
            CALL tailor.renew_copy(relation);
        EXCEPTION WHEN OTHERS THEN
            RAISE NOTICE 'table % is shown again after tailor.activate: %', relation, SQLERRM;
        END;
        UPDATE tailor.protection p SET starts_anew = true WHERE p.relation = begin_anew.relation;
    END IF;
    PERFORM nextval('tailor.catalog_version');
    PERFORM pg_notify('tailor', 'policies');
END $$;
COMMENT ON PROCEDURE tailor.begin_anew IS 'the part of tailor.forget_chains that writes; not '
    'renewed, the table waits for tailor.activate';

CREATE OR REPLACE PROCEDURE tailor.forget_chains(relation regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.hold(relation);
    CALL tailor.begin_anew(relation);
END $$;
COMMENT ON PROCEDURE tailor.forget_chains
    IS 'starts all chains of a table anew, giving up the guarantee over what was shown before';


CREATE OR REPLACE FUNCTION tailor.stored_columns(columns jsonb) RETURNS jsonb
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT jsonb_agg(CASE WHEN s.stored <> t.oid
                          THEN c || jsonb_build_object('type', format_type(s.stored,
                                  s.stored_modifier), 'category', k.typcategory)
                          ELSE c END ORDER BY n)
    FROM jsonb_array_elements(stored_columns.columns) WITH ORDINALITY e (c, n)
    LEFT JOIN pg_type t ON t.oid = to_regtype(c ->> 'type')
    LEFT JOIN tailor.stored_type(t.oid, -1, '') s ON true LEFT JOIN pg_type k ON k.oid = s.stored
$$;
COMMENT ON FUNCTION tailor.stored_columns
    IS 'columns of a policy with the types that copies and releases have for theirs; for Tailor''s '
        'own routines only';

-- Earlier versions kept the types of the table, and cast to them: releases that
-- are made next go without.
WITH stored AS (
    UPDATE tailor.policy_version v SET policy = n.policy
    FROM (SELECT relation, version, policy || jsonb_build_object('columns',
            tailor.stored_columns(policy -> 'columns'))
                 || CASE WHEN jsonb_typeof(policy -> 'parent') = 'object'
                 THEN jsonb_build_object('parent',
                    (policy -> 'parent') || jsonb_build_object('columns',
                            tailor.stored_columns(policy #> '{parent,columns}'))) ELSE '{}' END
                            AS policy
          FROM tailor.policy_version) n
    WHERE n.relation = v.relation AND n.version = v.version AND n.policy <> v.policy
    RETURNING v.relation)
UPDATE tailor.chain c SET layout = 0 WHERE c.relation IN (SELECT relation FROM stored);

-- Copies of what differs -----------------------------------------------------------
--
-- Beside each row of a release stand the digest of its person and hashes of what it says
-- (tailor.build_epoch). A copy that is to be taken in by one release need not hold rows that
-- say what is shown already: it has those that the release lacks or shows otherwise, and
-- the names of those that the table lacks (docs/decisions/epochs.md, What a copy holds).

ALTER TABLE tailor.epoch
    ADD COLUMN IF NOT EXISTS chain integer, ADD COLUMN IF NOT EXISTS generation integer;
COMMENT ON COLUMN tailor.epoch.chain IS
    'the chain whose release the copy differs from; NULL: the copy has all rows of the table';
COMMENT ON COLUMN tailor.epoch.generation IS
    'in which the copy differs from the release, and in which alone it can be taken in';

CREATE OR REPLACE FUNCTION tailor.rows_of(shown tailor.chain) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT concat('tailor_store.chain_', shown.chain,
                  CASE WHEN shown.edition > 0 THEN '_g' || shown.edition END, '_row')
$$;
COMMENT ON FUNCTION tailor.rows_of IS 'the table of the rows of a release';

-- Releases of projects are brought up to date each by itself, and differ from the table
-- each in other rows. Under another policy other columns are shown.
CREATE OR REPLACE FUNCTION tailor.differs_from(relation regclass, version integer)
RETURNS tailor.chain
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT c
    FROM tailor.chain c JOIN tailor.protection p USING (relation)
    JOIN tailor.policy_version v USING (relation, version)
    JOIN tailor.shown_family f ON f.protection = p.identity
    JOIN tailor.subject_key k ON f.key = tailor.subject_digest('', k.key)
    WHERE c.relation = differs_from.relation AND c.version = differs_from.version
      AND c.audience = 'table' AND v.policy ->> 'scope' = 'table'
      AND NOT v.policy ? 'set_valued' AND NOT p.starts_anew AND f.subjects IS NOT NULL
      AND to_regclass(tailor.rows_of(c)) IS NOT NULL
$$;
COMMENT ON FUNCTION tailor.differs_from IS 'the chain that a copy of a table has to say its '
    'differences from, NULL if the copy has to be whole; for Tailor''s own routines only';

-- rows is a query for all rows of the table, with the digest of each one's person. said is
-- the hash of a row's payload, nth its place, key what else it is known by where it has no
-- key. Beside the rows that differ, found_N gets those of 6000 subjects, which are what
-- tailor.keep_facts looks at. A digest costs far more than PostgreSQL believes; what is computed of
-- rows is so within one subquery, since all but the first would be left to one process.
CREATE OR REPLACE PROCEDURE tailor.find_differences(
    shown tailor.chain, copy integer, rows text, said text, nth text, key text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
SET parallel_setup_cost = 0 SET parallel_tuple_cost = 0 AS $$
BEGIN
    EXECUTE format(
        'CREATE UNLOGGED TABLE tailor_store.found_%1$s AS
         SELECT b.*, r."tailor person" AS "tailor shown person",
                r."tailor key" AS "tailor shown key", r."tailor nth" AS "tailor shown nth",
                r."tailor person" IS NULL OR "tailor said" <> r."tailor key" >> 32
                    AS "tailor differs"
         FROM (SELECT b.*, %3$s AS "tailor said", %4$s AS "tailor nth", %5$s AS "tailor key"
               FROM (%2$s) b OFFSET 0) b
         FULL JOIN (SELECT "tailor person", "tailor key", "tailor nth" FROM %6$s) r
             ON (b."tailor person", b."tailor nth") = (r."tailor person", r."tailor nth")%7$s
         WHERE b."tailor person" IS NULL OR r."tailor person" IS NULL
            OR "tailor said" <> r."tailor key" >> 32 OR %8$s',
        copy, rows, said, nth, key, tailor.rows_of(shown),
        CASE WHEN NOT shown.keyed THEN ' AND b."tailor key" = r."tailor key"' END,
        CASE WHEN shown.subjects > 12000
             THEN format('b."tailor person" BETWEEN 0 AND %s',
                         trunc(6000.0 / shown.subjects * 18446744073709551616))
             ELSE 'true' END);
    EXECUTE format(
        'CREATE TABLE tailor_store.absent_%1$s AS
         SELECT "tailor shown person" AS "tailor person", "tailor shown key" AS "tailor key",
                "tailor shown nth" AS "tailor nth"
         FROM tailor_store.found_%1$s WHERE "tailor person" IS NULL', copy);
    EXECUTE format('ALTER TABLE tailor_store.absent_%s REPLICA IDENTITY FULL', copy);
    CALL tailor.keep_no_samples(format('tailor_store.absent_%s', copy)::regclass);
    EXECUTE format('DELETE FROM tailor_store.found_%s WHERE "tailor person" IS NULL', copy);
    EXECUTE format('ANALYZE tailor_store.absent_%1$s, tailor_store.found_%1$s', copy);
END $$;
COMMENT ON PROCEDURE tailor.find_differences IS 'compares a table with what is shown of it: '
    'absent_N names the rows that are shown and that the table lacks, found_N has the rows that '
    'are not shown or otherwise; for Tailor''s own routines only';

-- A hierarchy of codes is made over all codes of the table, not those of the newcomers; of a
-- measured one the ends are enough. Combinations that no row of the copy has hold them: the
-- nth values of all columns, those of short columns filled up with their first.
CREATE OR REPLACE FUNCTION tailor.other_values(
    policy jsonb, relation regclass, source text, copy integer) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH qids AS (
        SELECT c -> 'hierarchy' ->> 'kind' IN ('interval', 'date') AS measured, s.reading AS value,
               CASE WHEN t.typcollation <> 0 THEN ' COLLATE "C"' END AS bytes,
               row_number() OVER (ORDER BY q.borrowed, a.attnum) AS n
        FROM (SELECT false AS borrowed, c FROM jsonb_array_elements(policy -> 'columns') c
              WHERE c ->> 'class' = 'quasi_identifier'
            UNION ALL
              SELECT true, c FROM jsonb_array_elements(policy #> '{parent,columns}') c) q
        JOIN pg_attribute a ON a.attname = c ->> 'name' AND NOT a.attisdropped AND a.attnum > 0
            AND a.attrelid = CASE WHEN q.borrowed THEN tailor.lender(policy) ELSE relation END
        CROSS JOIN tailor.stored_type(a.atttypid, a.atttypmod,
            format('%s.%I', CASE WHEN q.borrowed THEN 'p' ELSE 'b' END, a.attname)) s
        JOIN pg_type t ON t.oid = s.stored)
    SELECT format(
        'SELECT ((SELECT count(*) FROM tailor_store.epoch_%s) + i - 1)::integer, 0, %s
         FROM (SELECT %s OFFSET 0) x, unnest(%s) WITH ORDINALITY u(%s, i)',
        copy, string_agg(format(
            '(CASE WHEN i <= cardinality(a%1$s) THEN v%1$s ELSE a%1$s[1] END)%2$s',
            n, CASE WHEN bytes IS NOT NULL THEN ' COLLATE pg_catalog."default"' END),
            ', ' ORDER BY n),
        string_agg(format(CASE WHEN measured
            THEN 'CASE WHEN m.n%2$s THEN array_append(m.a%2$s, NULL) ELSE m.a%2$s END AS a%2$s'
            ELSE 'ARRAY(SELECT DISTINCT (%1$s)%4$s FROM %3$s) AS a%2$s' END,
            value, n, source, bytes), ', ' ORDER BY n)
        || coalesce(' FROM (SELECT ' || string_agg(format(
            'ARRAY[min(%1$s), max(%1$s)] AS a%2$s, bool_or((%1$s) IS NULL) AS n%2$s', value, n),
            ', ') FILTER (WHERE measured) || ' FROM ' || source || ') m', ''),
        string_agg('x.a' || n, ', ' ORDER BY n), string_agg('v' || n, ', ' ORDER BY n))
    FROM qids HAVING count(*) > 0
$$;
COMMENT ON FUNCTION tailor.other_values
    IS 'a query for combinations of the values that a table has '
    'in its quasi-identifiers, to go with those of a copy; for Tailor''s own routines only';

-- Of the unchanged rows, too.
CREATE OR REPLACE PROCEDURE tailor.count_differences(
    shown tailor.chain, copy integer, single boolean, OUT total bigint, OUT subjects bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    copied bigint;
    gone   bigint;
    known  bigint;
BEGIN
    EXECUTE format('SELECT (SELECT count(*) FROM tailor_store.epoch_%1$s),
            (SELECT count(*) FROM tailor_store.absent_%1$s),
            (SELECT count(*) FROM tailor_store.found_%1$s
             WHERE "tailor differs" AND "tailor shown person" IS NOT NULL)', copy)
        INTO copied, gone, known;
    total := shown.rows - gone + copied - known;
    subjects := total;
    IF NOT single THEN
        EXECUTE format('SELECT count(*) FROM (
                SELECT "tailor person" FROM (
                    SELECT "tailor person", "tailor key", "tailor nth" FROM %2$s
                  EXCEPT SELECT * FROM tailor_store.absent_%1$s) r
              UNION
                SELECT "tailor person" FROM tailor_store.epoch_%1$s) q',
            copy, tailor.rows_of(shown)) INTO subjects;
    END IF;
    RAISE NOTICE 'table %: % rows are new or changed, % are gone', shown.relation, copied, gone;
END $$;
COMMENT ON PROCEDURE tailor.count_differences IS 'counts the rows and the subjects of a table from '
    'what is shown and what differs; for Tailor''s own routines only';

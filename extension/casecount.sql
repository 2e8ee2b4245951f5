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

-- share, where it is not NULL, is the expected share of the cluster's records that have a
-- code: publications of earlier versions have none.
DO $$
DECLARE
    earlier regclass;
BEGIN
    FOR earlier IN SELECT c.oid FROM pg_class c
                   WHERE c.relnamespace = 'tailor_store'::regnamespace
                       AND c.relname ~ '^place_[0-9]+$'
                     AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid
                                     AND a.attname = 'share') LOOP
        EXECUTE format('ALTER TABLE %s ADD COLUMN share double precision', earlier);
    END LOOP;
END $$;

CREATE OR REPLACE AGGREGATE tailor.product(double precision) (SFUNC = float8mul,
        STYPE = double precision, INITCOND = '1');

DROP FUNCTION IF EXISTS tailor.case_count(regclass, text[]); -- of earlier versions

-- The condition is, for each group of a joint publication, its number, the share of its
-- people who meet the condition by their values, whether all of them do by their labels (1),
-- and whether one may: the proxy has it in place of a condition on the parent's columns.
CREATE OR REPLACE FUNCTION tailor.case_count(relation regclass, codes text[],
                                             condition double precision[] DEFAULT NULL,
                                             OUT expected double precision, OUT lower bigint,
                                                 OUT upper bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
#variable_conflict use_column
DECLARE
    -- The name as text: an older snapshot may not show the view in pg_class.
    release integer := substring(relation::text
                                 FROM '^tailor_release\.chain_([0-9]+)(?:_g[0-9]+)?$')::integer;
    number  integer := (SELECT tailor.publication_of(c.relation) FROM tailor.chain c
        WHERE c.chain = release);
    wanted  integer[];
    stack   text;
    met     text := 'CROSS JOIN (SELECT 1::double precision AS met,
                                        true AS certain, true AS possible) m';
BEGIN
    IF release IS NULL THEN
        RAISE EXCEPTION 'tailor.case_count is answered through the proxy, for set-valued tables'
            USING ERRCODE = '42501',
            HINT = 'Connect to the proxy as a reader and name the table in quotes: '
                'tailor.case_count(''schema.table'', ARRAY[...]).';
    END IF;
    -- As tailor.admit has it of whoever reads a release, which a layout below 0 leaves to
    -- this function.
    GET DIAGNOSTICS stack = PG_CONTEXT;
    IF split_part(stack, E'\n', 2) !~ '^($|(unnamed portal|portal ".*") )' THEN
        RAISE EXCEPTION 'tailor.case_count is called by the statement itself, and by no function'
            USING ERRCODE = '42501', HINT = 'Name the table and the codes in the statement.';
    END IF;
    PERFORM tailor.admit(
        release, coalesce(substring(relation::text FROM '_g([0-9]+)$')::integer, 0),
        (SELECT -c.layout::integer FROM tailor.chain c WHERE c.chain = release));
    IF codes IS NULL OR array_position(codes, NULL) IS NOT NULL THEN
        RAISE EXCEPTION 'a code is NULL' USING ERRCODE = '22004';
    END IF;
    IF condition IS NOT NULL THEN
        met := format(
            'JOIN (SELECT p.cluster, $2[i][2] AS met,
                          $2[i][3] = 1 AS certain, $2[i][4] = 1 AS possible
                   FROM generate_subscripts($2, 1) i
                   JOIN (SELECT DISTINCT cluster, family FROM tailor_store.people_%s) p
                        ON p.family = $2[i][1]) m USING (cluster)', number);
    END IF;
    IF cardinality(codes) = 0 AND condition IS NOT NULL THEN
        EXECUTE format(
            'SELECT coalesce(sum(size * met), 0), coalesce(sum(size) FILTER (WHERE certain), 0),
                    coalesce(sum(size) FILTER (WHERE possible), 0)
             FROM (SELECT cluster, count(*) AS size FROM tailor_store.people_%s GROUP BY 1) c %s',
            number, met)
            INTO expected, lower, upper USING codes, condition;
        RETURN;
    END IF;
    IF cardinality(codes) = 0 THEN
        SELECT u.records, u.records, u.records INTO expected, lower, upper FROM tailor.publication u
            WHERE u.epoch = number;
        RETURN;
    END IF;
    -- A text that stands n times means its first n occurrences in a record.
    EXECUTE format(
        'SELECT array_agg(i.item ORDER BY i.item)
         FROM (SELECT c, row_number() OVER (PARTITION BY c) AS nth FROM unnest($1) c) q
         LEFT JOIN tailor_store.item_%s i ON i.code = q.c COLLATE "C" AND i.nth = q.nth', number)
             INTO wanted USING codes;
    IF array_position(wanted, NULL) IS NOT NULL THEN
        SELECT 0, 0, 0 INTO expected, lower, upper;
        RETURN;
    END IF;
    EXECUTE format($q$
        WITH whole AS (
            SELECT cluster FROM tailor_store.place_%1$s WHERE item = ANY ($1) GROUP BY cluster
                HAVING count(*) = cardinality($1)),
        parts AS MATERIALIZED (
            SELECT cluster, size, kind, chunk, slots, min(share) AS share, array_agg(item
                    ORDER BY item) AS items
            FROM tailor_store.place_%1$s JOIN whole USING (cluster) WHERE item = ANY ($1)
            GROUP BY cluster, size, kind, chunk, slots),
        supports AS MATERIALIZED (
            SELECT p.chunk, p.items, coalesce(sum(s.records) FILTER (WHERE s.items @> p.items), 0)
                AS n
            FROM (SELECT DISTINCT chunk, items FROM parts WHERE kind <> 'i') p
                JOIN tailor_store.subrecord_%1$s s USING (chunk)
            GROUP BY p.chunk, p.items),
        counted AS (
            SELECT p.*, CASE kind WHEN 'i' THEN 1 ELSE s.n END AS n,
                   CASE kind WHEN 'i' THEN 1 WHEN 's' THEN greatest(0, s.n - (slots - size))
                       ELSE s.n END AS least,
                   CASE kind WHEN 'i' THEN size WHEN 's' THEN least(s.n, size) ELSE s.n END AS most
            FROM parts p LEFT JOIN supports s ON s.chunk = p.chunk AND s.items = p.items),
        clusters AS (
            SELECT cluster, size, count(*) = 1 AND bool_and(kind = 's') AS shared,
                   size * tailor.product(coalesce(share, n::double precision / slots)) AS expected,
                   greatest(0, sum(least) - (count(*) - 1) * size) AS lower, min(most) AS upper,
                   -- The rarest shared chunk limits all clusters of its scope together.
                   (array_agg(chunk ORDER BY n, items) FILTER (WHERE kind = 's'))[1] AS chunk,
                   min(n) FILTER (WHERE kind = 's') AS n,
                   min(slots) FILTER (WHERE kind = 's') AS slots
            FROM counted GROUP BY cluster, size),
        -- What is counted for certain is in groups of which all meet the condition, and
        -- whatever is counted at most in those of which one may.
        under AS (
            SELECT cluster, size, expected, chunk, n, slots, shared, met,
                   CASE WHEN certain THEN size ELSE 0 END AS within,
                   CASE WHEN certain THEN lower ELSE 0 END AS lower,
                   CASE WHEN possible THEN size ELSE 0 END AS about,
                   CASE WHEN possible THEN upper ELSE 0 END AS upper
            FROM clusters %2$s),
        terms AS (
            SELECT expected * met AS expected, lower, upper FROM under WHERE chunk IS NULL
          UNION ALL
            SELECT sum(expected * met), sum(lower), least(sum(upper), min(n))
            FROM under WHERE chunk IS NOT NULL AND NOT shared GROUP BY chunk
          UNION ALL -- a shared chunk that holds all codes counts once for what is left of its scope
            SELECT CASE WHEN sum(size) = min(slots) AND sum(expected) > 0
                        THEN min(n) * (sum(expected * met) / sum(expected))
                        ELSE sum(expected * met) END,
                   greatest(0, min(n) - (min(slots) - sum(within))), least(min(n), sum(about))
            FROM under WHERE shared GROUP BY chunk)
        SELECT coalesce(sum(expected), 0), coalesce(sum(lower), 0), coalesce(sum(upper), 0)
            FROM terms
        $q$, number, met) INTO expected, lower, upper USING wanted, condition;
EXCEPTION WHEN undefined_table THEN
    RAISE EXCEPTION 'a release is newer than the snapshot of this transaction'
        USING ERRCODE = '40001', HINT = 'Start the transaction again.';
END $$;
COMMENT ON FUNCTION tailor.case_count IS
    'how many subjects of a set-valued table have all of some codes, and meet a condition: the '
    'expected number, and bounds for certain; through the proxy';

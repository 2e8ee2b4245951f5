-- Columns that tell sensitive ones ---------------------------------------------

-- A model looks at one column. What determines that column, or follows from it, is shown beside
-- it as it is: who is told the ward of everybody in a block is told that much of the diagnoses.
-- Values of built-in types alone are compared, with nothing of anybody's own making.
CREATE OR REPLACE FUNCTION tailor.telling_columns(
    relation regclass, sensitive name[], shown name[])
RETURNS TABLE (teller name, told name, exceptions float8)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    most CONSTANT integer := 20000;  -- rows that are looked at
    pair record;
    share float8;
BEGIN
    SELECT least(100, 200.0 * most / greatest(sum(greatest(c.reltuples, 0)), 1)) INTO share
        FROM pg_partition_tree(relation) f JOIN pg_class c ON c.oid = f.relid AND f.isleaf;
    FOR pair IN
        SELECT a.attname AS one, b.attname AS other
        FROM pg_attribute a JOIN pg_type s ON s.oid = a.atttypid
        JOIN pg_attribute b ON b.attrelid = a.attrelid JOIN pg_type t ON t.oid = b.atttypid
        JOIN pg_class c ON c.oid = a.attrelid AND c.relkind IN ('r', 'p', 'm')
        WHERE a.attrelid = relation AND a.attname = ANY (sensitive) AND b.attname = ANY (shown)
          AND s.typnamespace = 'pg_catalog'::regnamespace AND s.typtype = 'b'
          AND t.typnamespace = 'pg_catalog'::regnamespace AND t.typtype = 'b'
        ORDER BY a.attnum, b.attnum
    LOOP
        FOR teller, told IN VALUES (pair.other, pair.one), (pair.one, pair.other) LOOP
            EXECUTE format(
                'WITH s AS MATERIALIZED (
                     SELECT %1$I::text AS f, %2$I::text AS t
                     FROM %3$s TABLESAMPLE BERNOULLI (%4$s) REPEATABLE (1) LIMIT %5$s),
                 g AS (SELECT f, t, count(*) AS n FROM s GROUP BY 1, 2),
                 k AS (SELECT f, max(n) AS most, sum(n) AS n FROM g GROUP BY 1),
                 w AS (SELECT sum(n) AS n, 1 - sum(most) / sum(n) AS wrong,
                              coalesce(sum(n) FILTER (WHERE n = 1), 0) / sum(n) AS alone FROM k)
                 SELECT w.wrong FROM w CROSS JOIN (
                     SELECT 1 - max(n) / sum(n) AS guessed
                     FROM (SELECT t, sum(n) AS n FROM g GROUP BY 1) v) v
                 WHERE 2 * w.alone < 1 AND w.wrong <= 0.01 AND v.guessed > 0
                   AND 10 * w.wrong <= v.guessed',
                teller, told, relation, share, most)
                INTO exceptions;
            IF exceptions IS NOT NULL THEN
                RETURN NEXT;
                EXIT;
            END IF;
        END LOOP;
    END LOOP;
END $$;
COMMENT ON FUNCTION tailor.telling_columns IS 'the columns of a table that are shown as they are '
    'and determine a sensitive one, or are determined by it, but for a share of the rows';

-- Tables that answer with aggregates only --------------------------------------

CREATE OR REPLACE PROCEDURE tailor.rows(relation regclass, allowed boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    IF allowed IS NULL THEN
        RAISE EXCEPTION 'rows are either shown or not' USING ERRCODE = '22004',
            HINT = 'Pass true or false.';
    END IF;
    UPDATE tailor.protection p SET rows = allowed WHERE p.relation = rows.relation;
END $$;
COMMENT ON PROCEDURE tailor.rows IS 'says whether a release shows the payload of rows; false: '
    'averages of at least k subjects, and what else there is in no row of its own';

CREATE OR REPLACE PROCEDURE tailor.assert_rows(relation regclass, policy jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    IF policy -> 'rows' = 'false' AND policy ? 'set_valued' THEN
        RAISE EXCEPTION 'table % is set-valued and cannot answer with aggregates only', relation
            USING ERRCODE = '0A000',
            HINT = 'Its publication is safe to be shown; leave rows at true.';
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_rows
    IS 'fails where a policy without rows cannot be kept, as far as that does not depend on data';

-- The release of such a table is safe to be read in full, like any other, and shows no
-- payload as it is (docs/decisions/aggregates-only.md). A number is an average of its
-- *cell*: one or more whole blocks in which k subjects or more have a value, and none more
-- than a share of the sum of their amounts. Other payload stands in another order of the
-- block's rows, each column in its own, and only if k subjects of the release have the
-- value. So no row says what one subject's values are, nor which belong together.

CREATE OR REPLACE FUNCTION tailor.least_subjects(policy jsonb) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT greatest((policy ->> 'k')::bigint, (policy #>> '{parent,k}')::bigint,
        CASE WHEN policy #>> '{gate,measure}' IN ('highest', 'average')
             THEN ceil(1 / (policy #>> '{gate,max_risk}')::float8)::bigint END)
$$;
COMMENT ON FUNCTION tailor.least_subjects IS 'how many subjects a block has at least';

CREATE OR REPLACE FUNCTION tailor.is_averaged(payload jsonb) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT payload ->> 'type' ~ '^(smallint|integer|bigint|numeric|real|double precision)(\(|$)'
$$;
COMMENT ON FUNCTION tailor.is_averaged IS 'whether a release shows a column of the payload, as a '
    'policy has it, in averages';

-- What is no finite number counts as none, and so does what is too large for averages to be
-- numbers of the same type: one row would keep all others from being shown.
CREATE OR REPLACE FUNCTION tailor.amount_of(payload jsonb, of text DEFAULT '') RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('CASE WHEN abs(%1$s%2$I::numeric) < ''1e300'' THEN CASE
                       WHEN scale(%1$s%2$I::numeric) > 400 THEN round(%1$s%2$I::numeric, 400)
                       ELSE %1$s%2$I::numeric END END', of, payload ->> 'name')
$$;
COMMENT ON FUNCTION tailor.amount_of IS 'an expression for the amount of a column in averages';

-- The dimensions of a release, those with few labels first: blocks that come next to each other
-- in their order have most of these labels in common.
CREATE OR REPLACE FUNCTION tailor.order_of_blocks(stored regclass) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    counts text := (SELECT string_agg(format('(%L, (SELECT count(DISTINCT %1$I) FROM %s))',
                                             a.attname, stored), ', ')
                    FROM pg_attribute a
                    WHERE a.attrelid = stored AND a.attname ~ '^tailor number ');
    list   text := '';
BEGIN
    IF counts IS NOT NULL THEN
        EXECUTE format('SELECT string_agg(quote_ident(name) || $1, $2 ORDER BY n, name)
                        FROM (VALUES %s) v (name, n)', counts) INTO list USING ', ', ''::text;
    END IF;
    RETURN list || '"tailor block"';
END $$;
COMMENT ON FUNCTION tailor.order_of_blocks IS 'what the blocks of a release are sorted by to join '
    'cells; for Tailor''s own routines only';

-- Units (blocks, or cells that there are) join in the order of a query, until they are enough
-- for a cell. What is left over joins the cells before, until it is enough.
CREATE OR REPLACE FUNCTION tailor.join_units(units text, fewest bigint, share float8)
RETURNS TABLE (unit integer, cell integer)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    next     record;
    all_of   integer[] := '{}';
    firsts   integer[] := '{}'; -- of each cell: the place of its first unit,
    subjects bigint[] := '{}';  -- how many have a value,
    totals   numeric[] := '{}'; -- the sum of their amounts,
    largest  numeric[] := '{}'; -- and the largest that one has
    last     integer := 0;
BEGIN
    FOR next IN EXECUTE units LOOP
        all_of := array_append(all_of, next.unit);
        IF last = 0 OR subjects[last] >= fewest AND largest[last] <= share * totals[last] THEN
            last := last + 1;
            firsts[last] := cardinality(all_of);
            subjects[last] := next.n;
            totals[last] := next.total;
            largest[last] := next.largest;
        ELSE
            subjects[last] := subjects[last] + next.n;
            totals[last] := totals[last] + next.total;
            largest[last] := greatest(largest[last], next.largest);
        END IF;
    END LOOP;
    WHILE last > 1 AND NOT (subjects[last] >= fewest AND largest[last] <= share * totals[last]) LOOP
        last := last - 1;
        subjects[last] := subjects[last] + subjects[last + 1];
        totals[last] := totals[last] + totals[last + 1];
        largest[last] := greatest(largest[last], largest[last + 1]);
    END LOOP;
    RETURN QUERY
        SELECT u.unit, all_of[f.place]
        FROM (SELECT c.place, coalesce(lead(c.place) OVER (ORDER BY c.place) - 1,
                                       cardinality(all_of)) AS until
              FROM unnest(firsts[:last]) c (place)) f
        CROSS JOIN LATERAL unnest(all_of[f.place : f.until]) u (unit);
END $$;
COMMENT ON FUNCTION tailor.join_units IS
    'which units make up a cell; for Tailor''s own routines only';

CREATE OR REPLACE FUNCTION tailor.units_of(
    stored regclass, payload jsonb, unit text, condition text, sorted_by text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format(
        'WITH v AS MATERIALIZED (
             SELECT %1$s AS unit, "tailor person" AS person, %2$s AS x,
                    dense_rank() OVER (ORDER BY %3$s) AS place
             FROM %4$s WHERE %5$s)
         SELECT unit, count(part) AS n, coalesce(sum(part), 0) AS total,
                coalesce(max(part), 0) AS largest
         FROM (SELECT unit, person, min(place) AS place, sum(abs(x)) AS part FROM v GROUP BY 1, 2) p
         GROUP BY 1 ORDER BY min(place)',
        unit, tailor.amount_of(payload), sorted_by, stored, condition)
$$;
COMMENT ON FUNCTION tailor.units_of IS 'a query for the units that cells are joined of, in order; '
    'for Tailor''s own routines only';

-- Blocks that have a cell keep it, also for rows that have changed in place.
CREATE OR REPLACE FUNCTION tailor.join_cells(
    stored regclass, payload jsonb, fewest bigint, share float8, sorted_by text)
RETURNS TABLE (block integer, cell integer)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    cells  CONSTANT text := 'tailor cell ' || (payload ->> 'number');
    partly integer[]; -- blocks of which some rows have one
BEGIN
    EXECUTE format('SELECT ARRAY(SELECT "tailor block" FROM %1$s WHERE "tailor block" IN (
                        SELECT "tailor block" FROM %1$s WHERE %2$I IS NULL)
                    GROUP BY 1 HAVING count(%2$I) > 0)', stored, cells) INTO partly;
    RETURN QUERY EXECUTE format('SELECT "tailor block", max(%2$I) FROM %1$s
                                 WHERE "tailor block" = ANY ($1) GROUP BY 1',
                                stored, cells) USING partly;
    RETURN QUERY SELECT * FROM tailor.join_units(
        tailor.units_of(stored, payload, '"tailor block"',
                        format('%I IS NULL AND "tailor block" <> ALL (%L)', cells, partly),
                        sorted_by), fewest, share);
END $$;
COMMENT ON FUNCTION tailor.join_cells IS 'the cells of those blocks of a release that have none, '
    'for a column; for Tailor''s own routines only';

-- Under another policy cells join, and are never cut: two cells that overlap would tell, by
-- their difference, of blocks that are not enough by themselves. So would one that has been
-- shown and is then joined by one that has not.
CREATE OR REPLACE PROCEDURE tailor.renew_cells(stored regclass, policy jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    payload jsonb;
    cells   text;
    shown   text;
    joined  bigint;
    which   text;
BEGIN
    FOR payload IN SELECT c FROM jsonb_array_elements(policy -> 'columns') c
                   WHERE c ->> 'class' IN ('sensitive', 'non_sensitive') AND tailor.is_averaged(c)
    LOOP
        cells := 'tailor cell ' || (payload ->> 'number');
        shown := 'tailor shown ' || (payload ->> 'number');
        EXECUTE format('CREATE TABLE %1$s_joined AS
                            SELECT DISTINCT %2$I AS was, "tailor block" AS block, %2$I AS cell
                            FROM %1$s WHERE %2$I IS NOT NULL', stored, cells);
        LOOP -- cells of one block are one
            EXECUTE format(
                'UPDATE %1$s_joined j SET cell = l.least
                 FROM (SELECT was, min(b.least) AS least FROM %1$s_joined
                       JOIN (SELECT block, min(cell) AS least FROM %1$s_joined GROUP BY 1) b
                           USING (block) GROUP BY 1) l
                 WHERE l.was = j.was AND l.least < j.cell', stored);
            GET DIAGNOSTICS joined = ROW_COUNT;
            EXIT WHEN joined = 0;
        END LOOP;
        -- Of a cell that was shown and one that never was, what both have together would tell
        -- of the second: such a cell has a number below 0, and shows nothing from now on.
        EXECUTE format(
            'WITH kinds AS (
                 SELECT %2$I AS was, count(%3$I) > 0 AS shown, count(%4$s) > 0 AS has
                 FROM %1$s GROUP BY 1),
             becomes AS (
                 SELECT was, CASE WHEN cell >= 0 AND bool_or(k.shown) OVER (PARTITION BY cell)
                                   AND bool_or(k.has AND NOT k.shown) OVER (PARTITION BY cell)
                                  THEN -1 - cell ELSE cell END AS cell
                 FROM (SELECT DISTINCT was, cell FROM %1$s_joined) j JOIN kinds k USING (was))
             UPDATE %1$s r SET %2$I = b.cell FROM becomes b
             WHERE b.was = r.%2$I AND b.cell <> b.was',
            stored, cells, shown, tailor.amount_of(payload));
        EXECUTE format('DROP TABLE %s_joined', stored);
        shown := format('%I IN (SELECT %1$I FROM %s WHERE %I IS NOT NULL)', cells, stored, shown);
        FOREACH which IN ARRAY ARRAY['%2$I >= 0 AND (%1$s)', '%2$I >= 0 AND NOT (%1$s)'] LOOP
            EXECUTE format('UPDATE %1$s r SET %2$I = j.cell FROM tailor.join_units($1, $2, $3) j
                            WHERE j.unit = r.%2$I AND j.cell <> j.unit', stored, cells)
                USING tailor.units_of(stored, payload, quote_ident(cells),
                                      format(which, shown, cells), tailor.order_of_blocks(stored)),
                    tailor.least_subjects(policy), coalesce((policy ->> 'max_share')::float8, 0.5);
        END LOOP;
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.renew_cells IS 'joins the cells of a release until they meet another '
    'policy; for Tailor''s own routines only';

-- The averages of a cell add up to the sum of its values: in steps of the last digit that
-- these have, some rows show one step more than others. Which do, and which rows of a block
-- show NULL, follows from digests that nobody is shown, as does the order of other payload.
-- A cell that is not enough any more is shown as NULL.
CREATE OR REPLACE FUNCTION tailor.averages_of(
    stored regclass, payload jsonb, fewest bigint, share float8) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format(
        '(WITH v AS MATERIALIZED (
              SELECT r.ctid AS id, coalesce(r.%1$I, j.cell) AS cell, r."tailor block" AS block,
                     r."tailor person" AS person, r."tailor nth" AS nth,
                     hashint8extended(r."tailor person" # r."tailor nth", %2$s) AS chance,
                     %3$s AS x
              FROM %4$s r LEFT JOIN %5$s j ON j.block = r."tailor block"%6$s),
          enough AS (
              SELECT cell, sum(total) AS total, sum(n) AS n, least(max(digits), %11$s) AS digits
              FROM (SELECT cell, person, sum(x) AS total, sum(abs(x)) AS part, count(x) AS n,
                           max(scale(x)) AS digits FROM v WHERE x IS NOT NULL GROUP BY 1, 2) p
              GROUP BY cell HAVING cell >= 0 AND count(*) >= %7$s
                                 AND max(part) <= %8$s * sum(part)),
          showing AS (
              SELECT v.*, row_number() OVER (PARTITION BY block ORDER BY chance, nth)
                              <= count(x) OVER (PARTITION BY block) AS shows FROM v)
          SELECT p.id, p.cell, (CASE WHEN p.shows THEN %9$s END)::%10$s AS value
          FROM (SELECT *, row_number() OVER (PARTITION BY cell, shows
                                             ORDER BY chance, nth) AS place FROM showing) p
          LEFT JOIN (SELECT *, total * (''1e'' || digits)::numeric AS steps,
                            (''1e'' || -digits)::numeric AS step FROM enough) s USING (cell))',
        'tailor cell ' || (payload ->> 'number'), payload ->> 'number',
        tailor.amount_of(payload, 'r.'), stored, format('%s_%s', stored, payload ->> 'number'),
        CASE WHEN to_regclass(stored || '_touched') IS NOT NULL
             THEN format(' WHERE r.%1$I IS NULL OR r.%1$I IN (SELECT cell FROM %3$s_touched
                                                              WHERE number = %2$s)',
                         'tailor cell ' || (payload ->> 'number'), payload ->> 'number',
                         stored) END,
        fewest, share,
        -- What is nearer to zero than floating-point numbers go is zero.
        CASE payload ->> 'type'
             WHEN 'real' THEN 'CASE WHEN abs(s.total / s.n) > 1e-37 THEN s.total / s.n ELSE 0 END'
             WHEN 'double precision'
             THEN 'CASE WHEN abs(s.total / s.n) > 1e-307 THEN s.total / s.n ELSE 0 END'
             ELSE '(div(s.steps, s.n) - (mod(s.steps, s.n) < 0)::integer
                    + (p.place <= mod(mod(s.steps, s.n) + s.n, s.n))::integer) * s.step' END,
        payload ->> 'type',
        -- A type may have no digits before the point, either: numeric(2, -3).
        coalesce(substring(payload ->> 'type' from '^numeric\(\d+,(-\d+)\)'), '400'))
$$;
COMMENT ON FUNCTION tailor.averages_of IS 'a query for what rows are to show of a column in '
    'averages; for Tailor''s own routines only';

-- A copy that is taken in changes few cells: those are noted before their rows do, and the
-- others stay as they are. Without such notes all are computed.
CREATE OR REPLACE PROCEDURE tailor.touch_cells(stored regclass, policy jsonb, condition text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    payload jsonb;
BEGIN
    IF to_regclass(stored || '_touched') IS NULL THEN
        EXECUTE format('CREATE TABLE %s_touched (number integer, cell integer)', stored);
    END IF;
    FOR payload IN SELECT c FROM jsonb_array_elements(policy -> 'columns') c
                   WHERE c ->> 'class' IN ('sensitive', 'non_sensitive') AND tailor.is_averaged(c)
    LOOP
        EXECUTE format('INSERT INTO %1$s_touched SELECT DISTINCT %2$s, %3$I FROM %1$s r WHERE %4$s',
                       stored, payload ->> 'number', 'tailor cell ' || (payload ->> 'number'),
                       condition);
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.touch_cells IS 'notes the cells of rows that are about to change; for '
    'Tailor''s own routines only';

CREATE OR REPLACE FUNCTION tailor.exchanged(stored regclass, payload jsonb, fewest bigint)
RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format(
        '(WITH enough AS MATERIALIZED (
              SELECT %1$I::text COLLATE "C" AS value FROM %3$s WHERE %1$I IS NOT NULL
              GROUP BY 1 HAVING count(DISTINCT "tailor person") >= %4$s),
          touched AS (
              SELECT r."tailor block" AS block
              FROM %3$s r LEFT JOIN enough s ON s.value = r.%1$I::text COLLATE "C" GROUP BY 1
              HAVING coalesce(sum(hashtextextended(s.value, 0)), 0)
                  <> coalesce(sum(hashtextextended(r.%5$I::text COLLATE "C", 0)), 0)),
          v AS MATERIALIZED (
              SELECT ctid AS id, "tailor block" AS block, %1$I AS value,
                     row_number() OVER (PARTITION BY "tailor block"
                         ORDER BY hashint8extended("tailor person" # "tailor nth", %2$s)) AS place,
                     row_number() OVER (PARTITION BY "tailor block"
                         ORDER BY hashint8extended("tailor person" # "tailor nth", -%2$s)) AS other
              FROM %3$s WHERE "tailor block" IN (SELECT block FROM touched))
          SELECT a.id, CASE WHEN s.value IS NOT NULL THEN b.value END AS value
          FROM v a JOIN v b ON b.block = a.block AND b.other = a.place
          LEFT JOIN enough s ON s.value = b.value::text COLLATE "C")',
        payload ->> 'name', payload ->> 'number', stored, fewest,
        'tailor shown ' || (payload ->> 'number'))
$$;
COMMENT ON FUNCTION tailor.exchanged IS 'a query for what rows are to show of a column that is no '
    'number; for Tailor''s own routines only';

CREATE OR REPLACE FUNCTION tailor.show_averages(stored regclass, policy jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
SET enable_nestloop = off SET work_mem = '64MB' AS $$
DECLARE
    fewest  CONSTANT bigint := tailor.least_subjects(policy);
    share   CONSTANT float8 := coalesce((policy ->> 'max_share')::float8, 0.5);
    sorted_by CONSTANT text := tailor.order_of_blocks(stored);
    payload jsonb;
    number  text;
    queries text := '';
    sets    text := '';
    differs text := 'false';
    cells   text[] := '{}';
BEGIN
    FOR payload IN SELECT c FROM jsonb_array_elements(policy -> 'columns') c
                   WHERE c ->> 'class' IN ('sensitive', 'non_sensitive')
    LOOP
        number := payload ->> 'number';
        IF tailor.is_averaged(payload) THEN
            cells := cells || format('%s_%s', stored, number);
            EXECUTE format(
                'CREATE TABLE %s_%s AS SELECT * FROM tailor.join_cells($1, $2, $3, $4, $5)',
                stored, number) USING stored, payload, fewest, share, sorted_by;
            EXECUTE format('ANALYZE %s_%s', stored, number);
            queries := concat(queries, ' LEFT JOIN ',
                              tailor.averages_of(stored, payload, fewest, share));
            sets := sets || format(
                ', "tailor cell %1$s" = coalesce(s%1$s.cell, r."tailor cell %1$s")', number);
        ELSE
            queries := concat(queries, ' LEFT JOIN ', tailor.exchanged(stored, payload, fewest));
        END IF;
        queries := queries || format(' s%1$s ON s%1$s.id = x.ctid', number);
        sets := sets || format(', "tailor shown %1$s" = CASE WHEN s%1$s.id IS NULL
            THEN r."tailor shown %1$s" ELSE s%1$s.value END', number);
        differs := differs || format(' OR s%s.id IS NOT NULL', number);
    END LOOP;
    IF sets <> '' THEN
        EXECUTE format('UPDATE %1$s r SET %2$s FROM %1$s x%3$s WHERE x.ctid = r.ctid AND (%4$s)',
                       stored, substr(sets, 3), queries, differs);
    END IF;
    FOREACH number IN ARRAY cells || (stored || '_touched') LOOP
        EXECUTE 'DROP TABLE IF EXISTS ' || number;
    END LOOP;
END $$;
COMMENT ON FUNCTION tailor.show_averages IS 'writes what the rows of a release show of the payload '
    'of a table that answers with aggregates only; for Tailor''s own routines only';

-- What earlier versions had in place of this.
DROP FUNCTION IF EXISTS tailor.left_out(integer, bigint, numeric),
    tailor.left_out(integer, bigint, numeric, bigint), tailor.shows(integer, bigint, bigint[]),
    tailor.operators_of_others(), tailor.could_shadow(name);
DROP PROCEDURE IF EXISTS tailor.assert_one_row(regclass, jsonb, bigint, bigint);

-- What makes a hierarchy -----------------------------------------------------

CREATE OR REPLACE PROCEDURE tailor.assert_numbers(value jsonb, name text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    IF jsonb_typeof(value) IS DISTINCT FROM 'array'
       OR EXISTS (SELECT FROM jsonb_array_elements(value) e WHERE jsonb_typeof(e) <> 'number') THEN
        RAISE EXCEPTION '"%" must be a list of numbers', name USING ERRCODE = '22023';
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_numbers
    IS 'fails unless a key of a definition holds a list of numbers';

CREATE OR REPLACE PROCEDURE tailor.assert_interval(definition jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    width  numeric;
    before numeric;
BEGIN
    CALL tailor.assert_numbers(definition -> 'widths', 'widths');
    FOR width IN SELECT e::numeric FROM jsonb_array_elements_text(definition -> 'widths') WITH
        ORDINALITY w (e, n) ORDER BY n LOOP
        IF width <= 0 THEN
            RAISE EXCEPTION 'a width must be above 0' USING ERRCODE = '22023';
        END IF;
        IF before IS NOT NULL AND (width <= before OR width % before <> 0) THEN
            RAISE EXCEPTION 'width % is not a multiple of the width % before it', width, before
                USING ERRCODE = '22023',
                    HINT = 'Levels nest only where each range is made of whole ranges of the level '
                        'before.';
        END IF;
        before := width;
    END LOOP;
    IF jsonb_typeof(definition -> 'lower') IS DISTINCT FROM 'number'
        OR jsonb_typeof(definition -> 'upper') IS DISTINCT FROM 'number' THEN
        RAISE EXCEPTION 'a hierarchy of kind interval needs "lower" and "upper"'
            USING ERRCODE = '22023',
            HINT = 'Bounds come from the policy, so that no label tells an extreme value.';
    END IF;
    IF (definition ->> 'lower')::numeric >= (definition ->> 'upper')::numeric THEN
        RAISE EXCEPTION 'the lower bound must be below the upper bound' USING ERRCODE = '22023';
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_interval
    IS 'fails unless a definition makes a hierarchy of kind interval';

CREATE OR REPLACE PROCEDURE tailor.assert_prefix(definition jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    kept   numeric;
    before numeric;
BEGIN
    CALL tailor.assert_numbers(definition -> 'keep', 'keep');
    FOR kept IN SELECT e::numeric FROM jsonb_array_elements_text(definition -> 'keep') WITH
        ORDINALITY w (e, n) ORDER BY n LOOP
        IF kept < 0 OR kept <> trunc(kept) OR kept >= before THEN
            RAISE EXCEPTION 'kept characters must fall from level to level, not below 0'
                USING ERRCODE = '22023';
        END IF;
        before := kept;
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.assert_prefix
    IS 'fails unless a definition makes a hierarchy of kind prefix';

CREATE OR REPLACE PROCEDURE tailor.assert_dates(definition jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    units  CONSTANT text[] := ARRAY['hour', 'day', 'week', 'month', 'quarter', 'year', 'decade',
                                    'century'];
    unit   text;
    before text;
    bound  text;
BEGIN
    IF jsonb_typeof(definition -> 'levels') IS DISTINCT FROM 'array' THEN
        RAISE EXCEPTION 'a hierarchy of kind date needs "levels"' USING ERRCODE = '22023';
    END IF;
    FOR unit IN SELECT e FROM jsonb_array_elements_text(definition -> 'levels') WITH ORDINALITY w
        (e, n) ORDER BY n LOOP
        IF unit IS NULL OR unit <> ALL (units) THEN
            RAISE EXCEPTION 'unknown unit "%"', unit USING ERRCODE = '22023',
                HINT = format('Units are %s.', array_to_string(units, ', '));
        END IF;
        IF before = 'week' OR array_position(units, unit) <= array_position(units, before) THEN
            RAISE EXCEPTION '"%" does not nest in "%"', before, unit USING ERRCODE = '22023';
        END IF;
        before := unit;
    END LOOP;
    FOREACH bound IN ARRAY ARRAY['lower', 'upper'] LOOP
        IF definition ? bound AND coalesce(definition ->> bound, '') !~
            '^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$' THEN
            RAISE EXCEPTION 'the bound "%" is not a date', bound USING ERRCODE = '22023',
                HINT = 'Write it as 1900-01-01.';
        END IF;
    END LOOP;
    IF coalesce(definition ->> 'lower', '1900-01-01') >= coalesce(definition ->> 'upper',
            '2099-12-31') THEN
        RAISE EXCEPTION 'the lower bound must be below the upper bound' USING ERRCODE = '22023';
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_dates
    IS 'fails unless a definition makes a hierarchy of kind date';

CREATE OR REPLACE PROCEDURE tailor.assert_paths(definition jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    height integer;
    level  integer;
BEGIN
    IF jsonb_typeof(definition -> 'paths') IS DISTINCT FROM 'array' THEN
        RAISE EXCEPTION 'a hierarchy of kind table needs "source" and "columns", or "paths"'
            USING ERRCODE = '22023';
    END IF;
    IF EXISTS (SELECT FROM jsonb_array_elements(definition -> 'paths') p
               WHERE jsonb_typeof(p) <> 'array'
                  OR EXISTS (SELECT FROM jsonb_array_elements(CASE jsonb_typeof(p) WHEN 'array'
                          THEN p ELSE '[]' END) e WHERE jsonb_typeof(e) <> 'string')) THEN
        RAISE EXCEPTION 'each path of a hierarchy must be a list of texts' USING ERRCODE = '22023',
            HINT = 'The value, and its label at each level; a source must hold no NULL.';
    END IF;
    SELECT min(jsonb_array_length(p)), max(jsonb_array_length(p)) INTO level, height
        FROM jsonb_array_elements(definition -> 'paths') p;
    IF height IS NULL OR level < 1 OR level <> height THEN
        RAISE EXCEPTION 'the paths of a hierarchy must be as long as each other, and there must be '
            'one' USING ERRCODE = '22023';
    END IF;
    FOR level IN 0 .. height - 2 LOOP
        IF EXISTS (SELECT FROM jsonb_array_elements(definition -> 'paths') p
                   GROUP BY p ->> level HAVING count(DISTINCT p ->> (level + 1)) > 1) THEN
            RAISE EXCEPTION 'levels do not nest: a label of level % has two different parents',
                level USING ERRCODE = '22023';
        END IF;
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.assert_paths
    IS 'fails unless a definition makes a hierarchy of kind table';

CREATE OR REPLACE PROCEDURE tailor.assert_hierarchy(kind text, definition jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    known text[] := CASE kind WHEN 'interval' THEN ARRAY['widths', 'lower', 'upper'] WHEN 'prefix'
        THEN ARRAY['keep']
                              WHEN 'date' THEN ARRAY['levels', 'lower', 'upper'] WHEN 'table'
                              THEN ARRAY['source', 'columns', 'paths'] END;
    key   text;
BEGIN
    IF known IS NULL THEN
        RAISE EXCEPTION 'unknown kind of hierarchy "%"', kind
            USING ERRCODE = '22023', HINT = 'Kinds are interval, prefix, date and table.';
    END IF;
    IF jsonb_typeof(definition) IS DISTINCT FROM 'object' THEN
        RAISE EXCEPTION 'the definition of a hierarchy must be a JSON object'
            USING ERRCODE = '22023';
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
COMMENT ON PROCEDURE tailor.assert_hierarchy
    IS 'fails unless a definition makes a hierarchy of its kind';

-- Hierarchies for use by name. A policy keeps the definition that it was
-- activated with, so a version of Tailor may change them.
INSERT INTO tailor.hierarchy (name, kind, definition, owner) VALUES
    ('builtin.age', 'interval', '{"widths": [5, 10, 20], "lower": 0, "upper": 119}',
     'tailor_owner'),
    ('builtin.birth_date', 'date', '{"levels": ["month", "year", "decade"], "lower": "1900-01-01", '
        '"upper": "2029-12-31"}', 'tailor_owner'),
    ('builtin.event_date', 'date', '{"levels": ["month", "quarter", "year"]}', 'tailor_owner'),
    ('builtin.icd10', 'prefix', '{"keep": [3, 2, 1]}', 'tailor_owner'),
    ('builtin.icd9', 'prefix', '{"keep": [3, 2, 1]}', 'tailor_owner'),
    ('builtin.income', 'interval', '{"widths": [1000, 5000, 10000, 50000, 100000], "lower": 0, '
        '"upper": 9999999}', 'tailor_owner'),
    ('builtin.postal_code', 'prefix', '{"keep": [4, 3, 2, 1]}', 'tailor_owner')
ON CONFLICT (name) DO UPDATE SET kind = excluded.kind, definition = excluded.definition,
    owner = excluded.owner;

-- A value without a place in its hierarchy could never be shown. The message
-- counts such values and quotes none.
-- Where a copy stores a column of the table's parent. A table has far fewer
-- than 10000 columns.
CREATE OR REPLACE FUNCTION tailor.borrowed(parent_column jsonb) RETURNS name
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT 'tailor qid ' || 10000 + (parent_column ->> 'number')::integer
$$;
COMMENT ON FUNCTION tailor.borrowed
    IS 'the name, in a copy, of a quasi-identifier of the table''s parent';

CREATE OR REPLACE PROCEDURE tailor.assert_covers(policy jsonb, epoch integer)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off
    SET timezone = 'UTC' AS $$
DECLARE
    qid     record;
    outside text;
    missing bigint;
BEGIN
    FOR qid IN
        SELECT c ->> 'name' AS name, c ->> 'name' AS stored, c -> 'hierarchy' ->> 'name'
            AS hierarchy, c -> 'hierarchy' ->> 'kind' AS kind,
               c -> 'hierarchy' -> 'definition' AS definition
        FROM jsonb_array_elements(policy -> 'columns') c WHERE c ->> 'class' = 'quasi_identifier'
      UNION ALL
        SELECT c ->> 'name', tailor.borrowed(c), c -> 'hierarchy' ->> 'name',
            c -> 'hierarchy' ->> 'kind', c -> 'hierarchy' -> 'definition'
        FROM jsonb_array_elements(policy #> '{parent,columns}') c
    LOOP
        outside := CASE qid.kind
            WHEN 'interval' THEN '%1$I NOT BETWEEN ($1 ->> ''lower'')::numeric AND ($1 ->> '
                '''upper'')::numeric'
            WHEN 'date' THEN '%1$I < coalesce($1 ->> ''lower'', ''1900-01-01'')::date OR %1$I >= '
                'coalesce($1 ->> ''upper'', ''2099-12-31'')::date + 1'
            WHEN 'table' THEN '%1$I IS NOT NULL AND NOT EXISTS (SELECT FROM '
                'jsonb_array_elements($1 -> ''paths'') p WHERE p.value ->> 0 = t.%1$I::text)'
        END;
        CONTINUE WHEN outside IS NULL;
        EXECUTE format('SELECT count(*) FROM (SELECT DISTINCT %1$I FROM tailor_store.tuples_%2$s) '
            't WHERE ' || outside, qid.stored, epoch)
            INTO missing USING qid.definition;
        IF missing > 0 THEN
            RAISE EXCEPTION 'hierarchy "%" has no place for % of the values of column "%"',
                qid.hierarchy, missing, qid.name
                USING ERRCODE = '22023', HINT = CASE qid.kind WHEN 'table' THEN 'Complete its list.'
                    ELSE 'Widen its bounds.' END;
        END IF;
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.assert_covers
    IS 'fails unless the hierarchies of a policy have a place for every value of an epoch';


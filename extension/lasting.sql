-- What a policy may go on to show ----------------------------------------------

-- The columns of rows that a policy shows as they are, and those that the copy carries
-- for data sets, by what releases call them.
CREATE OR REPLACE FUNCTION tailor.shown_as_is(policy jsonb, OUT name text, OUT type text,
    OUT called text)
RETURNS SETOF record LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT c ->> 'name', c ->> 'type', format('column "%s"', c ->> 'name')
    FROM jsonb_array_elements(policy -> 'columns') c
    WHERE c ->> 'class' IN ('sensitive', 'non_sensitive')
       OR c ->> 'class' = 'direct_identifier' AND c ->> 'action' = 'pseudonym'
  UNION ALL
    SELECT s ->> 'member', 'boolean', format('data set %I.%I', s ->> 'schema', s ->> 'name')
    FROM jsonb_array_elements(policy -> 'data_sets') s
  UNION ALL
    SELECT c ->> 'name', c ->> 'type',
           format('column "%s" of data set %I.%I', c ->> 'of', s ->> 'schema', s ->> 'name')
    FROM jsonb_array_elements(policy -> 'data_sets') s
    CROSS JOIN jsonb_array_elements(s -> 'columns') c
$$;
COMMENT ON FUNCTION tailor.shown_as_is IS 'the columns that a policy has in releases beside the '
    'quasi-identifiers; for Tailor''s own routines only';

CREATE OR REPLACE FUNCTION tailor.widens(earlier text, present text) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT earlier = present
        OR array_position(w, earlier) < array_position(w, present)
        OR earlier ~ '^character varying(\(\d+\))?$' AND (present IN ('text', 'character varying')
            OR present ~ '^character varying\(\d+\)$' AND substring(earlier FROM '\d+')::integer
                                                       < substring(present FROM '\d+')::integer)
        OR earlier ~ '^numeric\(' AND (present = 'numeric' OR present ~ '^numeric\('
            AND substring(earlier FROM ',\d+') = substring(present FROM ',\d+')
            AND substring(earlier FROM '\d+')::integer < substring(present FROM '\d+')::integer)
    FROM (VALUES (ARRAY['smallint', 'integer', 'bigint'])) widths (w)
$$;
COMMENT ON FUNCTION tailor.widens
    IS 'whether a type has all values of another one, and writes them alike';

-- The versions of a policy that a chain has been shown by, and those that have been stored since.
CREATE OR REPLACE FUNCTION tailor.versions_since(chain integer)
RETURNS SETOF tailor.policy_version
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT v FROM tailor.chain c JOIN tailor.policy_version v USING (relation)
    WHERE c.chain = versions_since.chain AND v.version >= coalesce(c.first_version, 0)
$$;
COMMENT ON FUNCTION tailor.versions_since IS 'by what versions of its policy a chain may be shown; '
    'for Tailor''s own routines only';

CREATE OR REPLACE FUNCTION tailor.withholdable(chain integer) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT DISTINCT q ->> 'column'
    FROM tailor.versions_since(chain) v
    CROSS JOIN LATERAL (SELECT jsonb_array_elements(v.policy -> 'require')
                      UNION ALL
                        SELECT jsonb_array_elements(s -> 'require')
                        FROM jsonb_array_elements(v.policy -> 'data_sets') s) r (q)
    WHERE v.policy ->> 'cuts' = 'blind'
$$;
COMMENT ON FUNCTION tailor.withholdable
    IS 'columns whose values a chain may have withheld; for the proxy only';

-- Where a class fails the model of a column that was not shown when a chain began, nor later
-- without a model, nothing is shown of the column in its block (catalog/fresh.go).
CREATE OR REPLACE FUNCTION tailor.late_columns(chain integer) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH v AS MATERIALIZED (SELECT * FROM tailor.versions_since(chain)),
    required AS (
        SELECT v.version, q ->> 'column' AS name
        FROM v CROSS JOIN LATERAL (SELECT jsonb_array_elements(v.policy -> 'require')
                                 UNION ALL
                                   SELECT jsonb_array_elements(s -> 'require')
                                   FROM jsonb_array_elements(v.policy -> 'data_sets') s) r (q))
    SELECT DISTINCT name FROM required
    WHERE NOT EXISTS (
        SELECT FROM v CROSS JOIN tailor.shown_as_is(v.policy) s
        WHERE s.name = required.name
          AND (v.version = (SELECT min(version) FROM v)
               OR (v.version, s.name) NOT IN (SELECT version, name FROM required)))
$$;
COMMENT ON FUNCTION tailor.late_columns IS 'columns with models that readers were not shown when a '
    'chain began, nor without a model, which all of a block may lack; for Tailor''s own routines '
    'only';

-- A change of one person waits by comparison with what is shown of him. Of a column that is
-- shown no more nothing is left to compare: under its name or another one, whatever is shown
-- as new may be what it was, and would tell whose value has changed.
CREATE OR REPLACE PROCEDURE tailor.assert_goes_on(relation regclass, version integer)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    fresh text;
    gone  text;
BEGIN
    IF (SELECT v.policy ->> 'cuts' FROM tailor.policy_version v
        WHERE v.relation = assert_goes_on.relation AND v.version = assert_goes_on.version)
            IS DISTINCT FROM 'blind'
        AND EXISTS (SELECT FROM tailor.chain c CROSS JOIN tailor.withholdable(c.chain)
                    WHERE c.relation = assert_goes_on.relation)
    THEN
        RAISE EXCEPTION 'readers of table % have been shown it with values withheld, and its cuts '
            'would not be blind', relation USING ERRCODE = 'KA004',
            DETAIL = 'What was withheld stays so, and no model holds with it.',
            HINT = format('CALL tailor.cuts(%1$L, ''blind''); or CALL tailor.forget_chains(%1$L), '
                'which has the table shown anew, and gives up the guarantee over what was shown '
                'before.', relation);
    END IF;
    -- Rows without a key are found by what they say, and those whose values are withheld by the
    -- hash of what they said.
    IF EXISTS (
        SELECT FROM tailor.chain c JOIN tailor.policy_version v USING (relation, version)
        JOIN tailor.policy_version n ON n.relation = c.relation
            AND n.version = assert_goes_on.version
        WHERE c.relation = assert_goes_on.relation AND NOT c.keyed
          AND EXISTS (SELECT FROM tailor.withholdable(c.chain))
          AND (SELECT array_agg((s.name, s.type) ORDER BY s.name)
               FROM tailor.shown_as_is(v.policy) s)
            IS DISTINCT FROM (SELECT array_agg((s.name, s.type) ORDER BY s.name)
                              FROM tailor.shown_as_is(n.policy) s))
    THEN
        RAISE EXCEPTION 'table % has rows without a key, of which values are withheld, and would '
            'have other columns', relation USING ERRCODE = 'KA004',
            DETAIL = 'Which row is which could not be told.',
            HINT = format('Give it a primary key, and CALL tailor.forget_chains(%L), which has the '
                'table shown anew, and gives up the guarantee over what was shown before.',
                relation);
    END IF;
    WITH chains AS (
        SELECT c.chain, c.version FROM tailor.chain c WHERE c.relation = assert_goes_on.relation),
    shown AS (
        SELECT c.chain, v.version = c.version AS still, s.*
        FROM chains c JOIN tailor.versions_since(c.chain) v ON v.version <= c.version
        CROSS JOIN tailor.shown_as_is(v.policy) s),
    present AS (
        SELECT s.* FROM tailor.policy_version v CROSS JOIN tailor.shown_as_is(v.policy) s
        WHERE v.relation = assert_goes_on.relation AND v.version = assert_goes_on.version)
    SELECT n.called, e.called INTO fresh, gone
    FROM shown e JOIN chains c USING (chain) CROSS JOIN present n
    WHERE NOT EXISTS (SELECT FROM shown s WHERE s.chain = c.chain AND s.still
                      AND s.name = n.name AND tailor.widens(s.type, n.type))
      AND NOT (EXISTS (SELECT FROM shown s WHERE s.chain = c.chain AND s.still
                       AND s.name = e.name AND tailor.widens(e.type, s.type))
           AND EXISTS (SELECT FROM present s WHERE s.name = e.name
                       AND tailor.widens(e.type, s.type)))
    ORDER BY n.name = e.name DESC, 1, 2 LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'readers of table % may have been shown %, which is not shown now as it '
            'was, and % would be new', relation, gone, fresh USING ERRCODE = 'KA004',
            DETAIL = 'Compared with what they know, what is new may tell whose value has changed.',
            HINT = format('Show the one, or hide the other. CALL tailor.forget_chains(%L) has the '
                'table shown anew, and gives up the guarantee over what was shown before.',
                relation);
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_goes_on IS 'fails where a policy shows a column that is new, '
    'and not all that readers have been shown; for Tailor''s own routines only';

CREATE OR REPLACE FUNCTION tailor.dimensions(policy jsonb) RETURNS text[]
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT array_agg(format('%s %s', c ->> 'name', c ->> 'type')
                     ORDER BY borrowed, (c ->> 'number')::integer)
    FROM (SELECT false AS borrowed, jsonb_array_elements(policy -> 'columns') AS c
          UNION ALL
          SELECT true, jsonb_array_elements(policy #> '{parent,columns}')) q
    WHERE borrowed OR c ->> 'class' = 'quasi_identifier'
$$;
COMMENT ON FUNCTION tailor.dimensions IS 'the quasi-identifiers that a policy cuts by, with types: '
    'those of the table, then those of its parent; for Tailor''s own routines only';

CREATE OR REPLACE FUNCTION tailor.shown_by(relation regclass) RETURNS SETOF text[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT DISTINCT tailor.dimensions(v.policy)
    FROM tailor.chain c JOIN tailor.policy_version v USING (relation, version)
    WHERE c.relation = shown_by.relation
$$;
COMMENT ON FUNCTION tailor.shown_by IS 'the quasi-identifiers, with types, by which readers have '
    'been shown a table: its own, then those of its parent';

-- A proxy refuses to cut by others what has been shown (KA004).
CREATE OR REPLACE PROCEDURE tailor.warn_of_dimensions(relation regclass, policy jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    IF EXISTS (SELECT FROM tailor.shown_by(relation) s
               WHERE s IS DISTINCT FROM tailor.dimensions(policy)) THEN
        RAISE WARNING 'table % is refused to readers from now on (KA004): its quasi-identifiers% '
            'are not those by which they have been shown it', relation,
            CASE WHEN policy ? 'parent'
                 THEN format(', with those of table %s,', tailor.lender(policy)) ELSE '' END
            USING HINT = format('CALL tailor.forget_chains(%L) has it shown anew, and gives up the '
                'guarantee over what was shown before.', relation);
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.warn_of_dimensions IS 'warns where a policy cuts by other '
    'quasi-identifiers than have been shown; for Tailor''s own routines only';

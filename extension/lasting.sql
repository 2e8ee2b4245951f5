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
    FROM (VALUES (ARRAY['smallint', 'integer', 'bigint'])) widths (w)
$$;
COMMENT ON FUNCTION tailor.widens
    IS 'whether a type has all values of another one, and writes them alike';

-- A change of one person waits by comparison with what is shown of him. Of a column that is
-- shown no more nothing is left to compare: under its name or another one, whatever is shown
-- as new may be what it was, and would tell whose value has changed.
CREATE OR REPLACE PROCEDURE tailor.assert_goes_on(relation regclass, version integer)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    fresh text;
    gone  text;
BEGIN
    WITH chains AS (
        SELECT c.chain, c.version AS last, (
            SELECT coalesce(max(f.version), 0) FROM tailor.policy_version f
            WHERE f.relation = c.relation AND f.created <= c.created) AS first
        FROM tailor.chain c WHERE c.relation = assert_goes_on.relation),
    shown AS (
        SELECT c.chain, v.version = c.last AS still, s.*
        FROM chains c JOIN tailor.policy_version v ON v.relation = assert_goes_on.relation
            AND v.version BETWEEN c.first AND c.last
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
        RAISE EXCEPTION 'readers of table % have been shown %, which is not shown now as it was, '
            'and % would be new', relation, gone, fresh USING ERRCODE = 'KA004',
            DETAIL = 'Compared with what they know, what is new may tell whose value has changed.',
            HINT = format('Show the one, or hide the other. CALL tailor.forget_chains(%L) has the '
                'table shown anew, and gives up the guarantee over what was shown before.',
                relation);
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_goes_on IS 'fails where a policy shows a column that is new, '
    'and not all that readers have been shown; for Tailor''s own routines only';

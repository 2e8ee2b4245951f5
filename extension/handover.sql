-- Tables that are loaded anew --------------------------------------------------------
--
-- A nightly load drops a table and makes it again under its name. People are followed by
-- digests of their keys, so that what was shown goes on: the first refresh hands policy,
-- releases and all else that is kept of the table that is gone over to the new one.

CREATE OR REPLACE FUNCTION tailor.made_anew(relation regclass) RETURNS oid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT p.relation::oid
    FROM tailor.protection p JOIN tailor.shown_family f ON f.protection = p.identity
    JOIN pg_class c ON c.oid = made_anew.relation JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE p.active IS NOT NULL AND c.relkind IN ('r', 'p')
      AND f.names[cardinality(f.names)] = format('%I.%I', n.nspname, c.relname)
      AND NOT EXISTS (SELECT FROM pg_class o WHERE o.oid = p.relation)
      AND NOT EXISTS (SELECT FROM tailor.protection o WHERE o.relation = made_anew.relation)
      AND EXISTS (SELECT FROM pg_roles r
                  WHERE r.rolname = f.owner AND pg_has_role(c.relowner, r.oid, 'USAGE')
                    AND (pg_has_role(session_user, 'tailor_owner', 'MEMBER')
                         OR pg_has_role(session_user, r.oid, 'USAGE')))
    ORDER BY f.changed DESC LIMIT 1
$$;
COMMENT ON FUNCTION tailor.made_anew IS 'the table that is gone, whose policy a table without one '
    'goes on with: it had '
    'its name, and both the owner of the new one and the caller may act as its owner';

-- The schema research has a view under the bare name.
CREATE OR REPLACE PROCEDURE tailor.assert_name_is_free(relation regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    other regclass;
BEGIN
    SELECT p.relation INTO other FROM tailor.protection p
        JOIN pg_class o ON o.oid = p.relation
            JOIN pg_class c ON c.oid = assert_name_is_free.relation
        WHERE p.active IS NOT NULL AND o.oid <> c.oid AND o.relname = c.relname LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'table % has the name of the protected table %', relation, other
            USING ERRCODE = '42710',
                HINT = 'Rename it: the schema research can show one of them only.';
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_name_is_free IS
    'fails where another table with a policy in force has the name, in another schema';

-- Whatever names the table that is gone names the new one. Its columns may be others: then
-- the policy is stale, as after any change of them.
CREATE OR REPLACE PROCEDURE tailor.hand_over(relation regclass)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    gone    CONSTANT oid := tailor.made_anew(relation);
    columns text;
    part    record;
BEGIN
    CALL tailor.assert_owner(relation);
    IF gone IS NULL THEN
        RAISE EXCEPTION 'table % was not made anew', relation USING ERRCODE = '55000';
    END IF;
    CALL tailor.assert_name_is_free(relation);
    PERFORM FROM tailor.protection p WHERE p.relation = gone FOR UPDATE;
    SELECT string_agg(quote_ident(a.attname), ', ') INTO columns FROM pg_attribute a
        WHERE a.attrelid = 'tailor.protection'::regclass AND a.attnum > 0 AND NOT a.attisdropped
            AND a.attname <> 'relation';
    EXECUTE format('INSERT INTO tailor.protection (relation, %1$s) SELECT $1, %1$s
        FROM tailor.protection WHERE relation = $2', columns)
        USING relation, gone;
    FOR part IN
        SELECT c.oid::regclass AS name, a.attname AS column_name
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relnamespace = 'tailor'::regnamespace AND c.relkind = 'r'
          AND c.oid <> 'tailor.protection'::regclass
          AND a.atttypid = 'regclass'::regtype AND a.attnum > 0 AND NOT a.attisdropped
    LOOP
        EXECUTE format('UPDATE %s SET %2$I = $1 WHERE %2$I = $2', part.name, part.column_name)
            USING relation, gone;
    END LOOP;
    DELETE FROM tailor.protection p WHERE p.relation = gone;
    CALL tailor.assert_no_ways(relation);
    RAISE NOTICE 'table %: goes on with the policy, and the releases, of the table that had its '
        'name', relation;
END $$;
COMMENT ON PROCEDURE tailor.hand_over IS 'has a table that was made anew go on with what was kept '
    'of the one before; the part of tailor.refresh that writes';

-- Tables that answer with aggregates only --------------------------------------

CREATE OR REPLACE PROCEDURE tailor.rows(relation regclass, allowed boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    IF allowed IS NULL THEN
        RAISE EXCEPTION 'rows are either shown or not' USING ERRCODE = '22004', HINT = 'Pass true or false.';
    END IF;
    UPDATE tailor.protection p SET rows = allowed WHERE p.relation = rows.relation;
END $$;
COMMENT ON PROCEDURE tailor.rows IS 'says whether answers may show rows; false: only aggregates, each computed from at least k subjects';

CREATE OR REPLACE PROCEDURE tailor.assert_rows(relation regclass, policy jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF policy -> 'rows' = 'false' AND policy ? 'set_valued' THEN
        RAISE EXCEPTION 'table % is set-valued and cannot answer with aggregates only', relation USING ERRCODE = '0A000',
            HINT = 'Its publication is safe to be shown; leave rows at true.';
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_rows IS 'fails where a policy without rows cannot be kept, as far as that does not depend on data';

-- Cells are counted in rows, so that each subject must have one: a release
-- holds no key by which subjects could be told apart.
CREATE OR REPLACE PROCEDURE tailor.assert_one_row(relation regclass, policy jsonb, total bigint, subjects bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF policy -> 'rows' = 'false' AND total > subjects THEN
        RAISE EXCEPTION 'table % has several rows for a subject and cannot answer with aggregates only', relation USING ERRCODE = '0A000',
            HINT = format('Protect a table with one row for each subject, or CALL tailor.rows(%L, true).', relation);
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_one_row IS 'fails where a table without rows to show has several for a subject';

-- A cell may be shown that is computed from k subjects or more, and of which
-- fewer are left out of none of the sets that it is a part of: those are what
-- another cell of the same answer could be computed from.
CREATE OR REPLACE FUNCTION tailor.shows(k integer, seen bigint, VARIADIC whole bigint[]) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT seen >= k AND NOT EXISTS (SELECT FROM unnest(whole) w WHERE w - seen BETWEEN 1 AND k - 1)
$$;
COMMENT ON FUNCTION tailor.shows IS 'whether a cell computed from so many subjects, out of sets of so many, may be shown';

-- Operators that a statement could find in place of PostgreSQL's own. Those of
-- pg_temp are never found without their schema.
CREATE OR REPLACE FUNCTION tailor.operators_of_others() RETURNS boolean
LANGUAGE sql VOLATILE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (
        SELECT FROM pg_operator o JOIN pg_namespace n ON n.oid = o.oprnamespace JOIN pg_roles r ON r.oid = o.oprowner
        WHERE NOT r.rolsuper AND n.nspname <> 'pg_catalog' AND n.nspname !~ '^pg_temp'
          AND o.oprname IN ('=', '<>', '<', '<=', '>', '>=', '~~', '!~~', '~~*', '!~~*', '+', '-', '*', '/', '%', '^', '||'))
$$;
COMMENT ON FUNCTION tailor.operators_of_others IS 'whether somebody who is no superuser has made operators by the names of those that statements over aggregates use';

-- Part of every statement over a table that answers with aggregates only; where
-- it is false, there is no answer. The number of groups is told where they hold
-- k subjects or more between them: below that, it would be an answer about
-- fewer, and none left out looks alike. The subjects of other groups are none,
-- or k and more. A condition that is not true for fewer than k subjects, but for
-- some, would tell of them beside an answer without it.
DROP FUNCTION IF EXISTS tailor.left_out(integer, bigint, numeric);
CREATE OR REPLACE FUNCTION tailor.left_out(k integer, groups bigint, subjects numeric, missing bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    told boolean := coalesce(nullif(current_setting('tailor.notices', true), ''), 'on')::boolean;
BEGIN
    IF tailor.operators_of_others() THEN
        RAISE EXCEPTION 'somebody has made an operator that a statement over aggregates could call' USING ERRCODE = '42501',
            HINT = 'Drop operators that others than superusers have made.';
    END IF;
    IF missing BETWEEN 1 AND k - 1 THEN
        IF told THEN
            RAISE NOTICE 'nothing is shown: the condition leaves out fewer than % subjects', k;
        END IF;
        RETURN false;
    END IF;
    IF told THEN
        IF subjects >= k THEN
            RAISE NOTICE '% groups of fewer than % subjects are left out', groups, k;
        ELSE
            RAISE NOTICE 'groups of fewer than % subjects are left out: none, or some with fewer than % subjects in all', k, k;
        END IF;
    END IF;
    RETURN true;
END $$;
COMMENT ON FUNCTION tailor.left_out IS 'tells how many groups an answer leaves out; whether there is one';

-- The planner names the operators of a statement with their schema, wherever
-- they are called with the values of rows. Should one be overlooked, whoever can
-- make operators could have his called.
CREATE OR REPLACE FUNCTION tailor.could_shadow(principal name) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT tailor.operators_of_others() OR EXISTS (
        SELECT FROM pg_roles r
        WHERE pg_has_role(principal, r.oid, 'MEMBER')
          AND (r.rolsuper OR has_database_privilege(r.oid, current_database(), 'CREATE')
               OR EXISTS (SELECT FROM pg_namespace n WHERE n.nspname !~ '^pg_(temp|toast)' AND has_schema_privilege(r.oid, n.oid, 'CREATE'))
               OR EXISTS (SELECT FROM pg_operator o JOIN pg_namespace n ON n.oid = o.oprnamespace
                          WHERE o.oprowner = r.oid AND n.nspname !~ '^pg_temp')))
$$;
COMMENT ON FUNCTION tailor.could_shadow IS 'whether somebody has made operators, or the role can make or has made some, in a schema that statements look into; for the proxy';

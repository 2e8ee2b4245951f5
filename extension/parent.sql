-- Parents --------------------------------------------------------------------
--
-- A table that refers by its subject column to the subject of another protected
-- table borrows that table's quasi-identifiers: its copy holds them beside its
-- own, so that a join along the key is the child's own relation with more
-- columns (docs/decisions/joins.md). What each load of a proxy's catalog calls is PL/pgSQL,
-- which keeps its plans for the session.

CREATE OR REPLACE FUNCTION tailor.parents(relation regclass, subject name) RETURNS SETOF regclass
LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    IF NOT EXISTS (SELECT FROM pg_constraint f WHERE f.contype = 'f'
                   AND f.conrelid = parents.relation) THEN
        RETURN; -- most tables, which need no plan for the rest
    END IF;
    RETURN QUERY
    SELECT DISTINCT p.relation
    FROM pg_constraint f
    JOIN tailor.protection p ON p.relation = f.confrelid
    JOIN tailor.policy_version v ON v.relation = p.relation AND v.version = p.active
    JOIN pg_class c ON c.oid = f.confrelid
    JOIN pg_attribute here ON here.attrelid = f.conrelid AND here.attnum = f.conkey[1]
    JOIN pg_attribute there ON there.attrelid = f.confrelid AND there.attnum = f.confkey[1]
    WHERE f.contype = 'f' AND f.conrelid = parents.relation AND f.confrelid <> f.conrelid
        AND cardinality(f.conkey) = 1
      AND here.attname = coalesce(parents.subject, here.attname)
          AND there.attname = v.policy ->> 'subject'
      AND v.policy @? '$.columns[*] ? (@.class == "quasi_identifier")'
      -- Heirs of a table are rows that the key of the table does not cover.
      AND (c.relkind = 'p' OR NOT EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = c.oid));
END $$;
COMMENT ON FUNCTION tailor.parents
    IS 'the active tables with quasi-identifiers whose subject the table refers to by a column, '
        'NULL for any';

-- A pseudonym on a table with several rows a subject links them, which only a
-- table without quasi-identifiers can bear: it borrows none.
CREATE OR REPLACE FUNCTION tailor.parent_of(relation regclass, policy jsonb) RETURNS jsonb
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    found regclass[] := ARRAY(SELECT tailor.parents(parent_of.relation,
                                                    (parent_of.policy ->> 'subject')::name));
BEGIN
    IF cardinality(found) <> 1 THEN
        RETURN NULL;
    END IF;
    RETURN (SELECT jsonb_build_object(
        'schema', n.nspname, 'name', c.relname, 'subject', v.policy -> 'subject', 'scope',
        v.policy -> 'scope',
        'k', greatest((v.policy ->> 'k')::integer, CASE
                      WHEN v.policy #>> '{gate,measure}' = 'highest'
                      THEN least(ceil(1 / (v.policy #>> '{gate,max_risk}')::float8),
                                 2147483647)::integer END),
        'columns', (SELECT jsonb_agg(jsonb_build_object('name', q -> 'name', 'number',
                                                        q -> 'number', 'type', q -> 'type',
                                     'category', q -> 'category', 'hierarchy', q -> 'hierarchy')
                                     || jsonb_strip_nulls(jsonb_build_object('representative',
                                             q -> 'representative', 'margins', q -> 'margins'))
                                             ORDER BY (q ->> 'number')::integer)
                    FROM jsonb_array_elements(v.policy -> 'columns') q
                        WHERE q ->> 'class' = 'quasi_identifier'
                      AND (NOT parent_of.policy ? 'set_valued'
                           OR parent_of.policy #> '{set_valued,joint,columns}' ? (q ->> 'name'))))
    FROM tailor.protection o
    JOIN tailor.policy_version v ON v.relation = o.relation AND v.version = o.active
    JOIN pg_class c ON c.oid = o.relation JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE o.relation = found[1]
        AND v.policy ->> 'fingerprint' = tailor.fingerprint(o.relation)
        AND (NOT parent_of.policy ? 'set_valued' OR parent_of.policy @? '$.set_valued.joint')
      -- An earlier version showed the parent by means of blocks: labels over the
      -- child's blocks would tell parts of what those means are of.
      AND NOT EXISTS (SELECT FROM tailor.chain h JOIN tailor.epoch e USING (epoch)
                      JOIN tailor.policy_version m ON m.relation = e.relation
                          AND m.version = e.version
                      WHERE h.relation = o.relation
                          AND m.policy @? '$.columns[*] ? (@.representative == "mean")')
      AND (parent_of.policy @? '$.columns[*] ? (@.class == "quasi_identifier")'
           OR parent_of.policy ? 'set_valued'
               OR NOT parent_of.policy @? '$.columns[*] ? (@.action == "pseudonym")'));
END $$;
COMMENT ON FUNCTION tailor.parent_of
    IS 'the table whose quasi-identifiers a policy borrows, with them; NULL for none, and while '
        'that table is out of step with its policy';

-- Not by format: a planner that knows the policy would call it for a policy without a
-- parent in a branch that no row takes, and format refuses NULL for %I.
CREATE OR REPLACE FUNCTION tailor.lender(policy jsonb) RETURNS regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT to_regclass(quote_ident(policy #>> '{parent,schema}') || '.' || quote_ident(policy
            #>> '{parent,name}'))
$$;
COMMENT ON FUNCTION tailor.lender
    IS 'the table that a policy borrows quasi-identifiers from; NULL for none, and for one that is '
        'gone';

CREATE OR REPLACE FUNCTION tailor.in_step(relation regclass) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    RETURN (SELECT v.policy -> 'parent' IS NOT DISTINCT
                FROM tailor.parent_of(p.relation, v.policy - 'parent')
            FROM tailor.protection p JOIN tailor.policy_version v ON v.relation = p.relation
                AND v.version = p.active
            WHERE p.relation = in_step.relation);
END $$;
COMMENT ON FUNCTION tailor.in_step
    IS 'whether what an active table borrows is what its parent has; tailor.activate makes it so';

-- What a draft borrows. Whoever lends must be owned too: copies of one's
-- choice would show a parent's rows in partitions of one's choice.
CREATE OR REPLACE FUNCTION tailor.with_parent(relation regclass, policy jsonb) RETURNS jsonb
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT policy || coalesce(
        (SELECT jsonb_build_object('parent', p) FROM tailor.parent_of(relation, policy) p
         WHERE p IS NOT NULL AND tailor.owns(tailor.lender(jsonb_build_object('parent', p)))), '{}')
$$;
COMMENT ON FUNCTION tailor.with_parent
    IS 'a draft with what it borrows; for Tailor''s own routines only';

CREATE OR REPLACE PROCEDURE tailor.assert_lends(relation regclass, policy jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    parent  regclass := tailor.lender(policy);
    columns name[] := ARRAY(SELECT (c ->> 'name')::name
                            FROM jsonb_array_elements(policy #> '{parent,columns}') c);
BEGIN
    IF policy -> 'parent' IS DISTINCT FROM tailor.parent_of(relation, policy - 'parent') THEN
        RAISE EXCEPTION 'the quasi-identifiers that table % borrows have changed', relation
            USING ERRCODE = '55000', HINT = format('CALL tailor.activate(%L);', relation);
    END IF;
    CALL tailor.assert_owner(parent);
    CALL tailor.assert_inert(parent, columns || (policy #>> '{parent,subject}')::name);
END $$;
COMMENT ON PROCEDURE tailor.assert_lends
    IS 'fails unless the parent of a policy can be read for it as the policy says';

-- Two tables with quasi-identifiers may be linked along the key of their
-- subject; along anything else a join would be of another relation, which no
-- chain has a partition of.
CREATE OR REPLACE PROCEDURE tailor.assert_links(relation regclass, policy jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    found record;
BEGIN
    FOR found IN
        WITH subjects (relation, subject) AS (
            SELECT p.relation, coalesce(v.policy ->> 'subject', p.subject)
            FROM tailor.protection p JOIN tailor.policy_version v ON v.relation = p.relation
                AND v.version = p.active
            WHERE p.relation <> assert_links.relation
              AND EXISTS (SELECT FROM tailor.classification c WHERE c.relation = p.relation
                          AND c.class = 'quasi_identifier')
          UNION ALL
            SELECT assert_links.relation, assert_links.policy ->> 'subject'
            WHERE assert_links.policy @? '$.columns[*] ? (@.class == "quasi_identifier")')
        SELECT c.relation AS child, p.relation AS parent
        FROM pg_constraint f
        JOIN subjects c ON c.relation = f.conrelid JOIN subjects p ON p.relation = f.confrelid
        JOIN pg_attribute here ON here.attrelid = f.conrelid AND here.attnum = f.conkey[1]
        JOIN pg_attribute there ON there.attrelid = f.confrelid AND there.attnum = f.confkey[1]
        WHERE f.contype = 'f' AND assert_links.relation IN (f.conrelid, f.confrelid)
            AND f.conrelid <> f.confrelid
          AND (cardinality(f.conkey) > 1 OR here.attname <> c.subject OR there.attname <> p.subject)
    LOOP
        RAISE EXCEPTION 'table % is linked to the protected table %, which has quasi-identifiers '
            'too, by something else than the subject',
            found.child, found.parent USING ERRCODE = '0A000',
            HINT = 'Name the linking columns as the subjects of both, or classify the '
                'quasi-identifiers of one as direct_identifier, which hides them.';
    END LOOP;
    FOR found IN
        SELECT c ->> 'name' AS name, o ->> 'name' AS lent, assert_links.policy #>> '{parent,name}'
            AS parent
        FROM jsonb_array_elements(assert_links.policy -> 'columns') c,
            jsonb_array_elements(assert_links.policy #> '{parent,columns}') o
        WHERE c ->> 'name' = concat(assert_links.policy #>> '{parent,name}', '.', o ->> 'name')
    LOOP
        RAISE EXCEPTION 'column "%" of table % has the name of what it borrows from %', found.name,
            relation, found.parent
            USING ERRCODE = '42701', HINT = 'Rename it.';
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.assert_links
    IS 'fails where a foreign key links two tables with quasi-identifiers by anything but their '
        'subjects';

-- Tables are locked in the order of their numbers, wherever several are: an erasure, a refresh
-- and an activation of tables that refer to each other wait, and no two for each other.
CREATE OR REPLACE PROCEDURE tailor.hold_in_order(
    relations regclass[], referring boolean DEFAULT false)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    part regclass;
BEGIN
    FOR part IN
        WITH RECURSIVE held (oid) AS (
            SELECT r::oid FROM unnest(relations) r
          UNION
            SELECT f.conrelid FROM pg_constraint f JOIN held h
                ON referring AND f.contype = 'f' AND f.confrelid = h.oid)
        SELECT h.oid::regclass FROM held h WHERE tailor.owns(h.oid)
            OR h.oid = ANY (relations::oid[])
      UNION
        SELECT f FROM unnest(relations) r CROSS JOIN tailor.parents(r, NULL) f
        WHERE NOT referring AND tailor.owns(f) ORDER BY 1
    LOOP
        EXECUTE format('LOCK TABLE %s IN SHARE UPDATE EXCLUSIVE MODE', part);
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.hold_in_order IS 'locks tables, with those that they borrow from, or '
    'else those that refer to them, against changes of their making';

-- Called with the caller's rights: only an owner can lock. Whatever is not his
-- lends nothing.
DROP PROCEDURE IF EXISTS tailor.hold(regclass);
CREATE OR REPLACE PROCEDURE tailor.hold(relation regclass, filled boolean DEFAULT true)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    root   regclass := coalesce(tailor.data_set_parent(relation), relation);
    parent regclass;
BEGIN
    CALL tailor.hold_in_order(ARRAY[root]);
    IF NOT filled THEN
        RETURN;
    END IF;
    -- PostgreSQL fills them with their owners' rights. That locks them, too.
    FOR parent IN SELECT s FROM tailor.data_sets(root) s WHERE s <> relation LOOP
        EXECUTE format('REFRESH MATERIALIZED VIEW %s', parent);
    END LOOP;
    IF root <> relation THEN
        EXECUTE format('REFRESH MATERIALIZED VIEW %s', relation);
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.hold
    IS 'locks a table, and what it borrows from, against changes of their making until the '
        'transaction ends, and fills its data sets unless told otherwise';

CREATE OR REPLACE PROCEDURE tailor.assert_whole(relation regclass, policy jsonb, epoch integer)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    missing bigint;
BEGIN
    IF NOT policy ? 'parent' THEN
        RETURN;
    END IF;
    EXECUTE format('SELECT count(*) FROM tailor_store.epoch_%s WHERE "tailor qid 0"', epoch)
        INTO missing;
    IF missing > 0 THEN
        RAISE EXCEPTION '% rows of table % refer to no row of table %', missing, relation,
            policy #>> '{parent,name}'
            USING ERRCODE = '23503',
                HINT = 'They would be a class of their own. Validate the foreign key, or drop it '
                    'and give up joins.';
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_whole
    IS 'fails where rows of a new copy have no row of the parent';

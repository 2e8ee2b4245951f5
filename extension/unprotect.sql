-- Taking a policy away ---------------------------------------------------------

-- What readers have been shown, they keep, so that it happened is kept too, with
-- tailor.policy_version, tailor.epoch and the audit log.
CREATE TABLE IF NOT EXISTS tailor.unprotected (
    relation    regclass NOT NULL,
    name        text NOT NULL,
    version     integer NOT NULL,
    chains      jsonb NOT NULL,
    author      name NOT NULL DEFAULT session_user,
    created     timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE tailor.unprotected
    IS 'append-only: the policies that were taken away, and how finely each audience had been '
        'shown the table';
COMMENT ON COLUMN tailor.unprotected.name
    IS 'the table''s name then; its number where it was gone already';

-- chain_7_g2_row is of the edition 2 of chain 7, after its first, whose names have no
-- number of it; so have all that earlier versions have stored.
CREATE OR REPLACE FUNCTION tailor.is_of_a_chain(relation name) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (
        SELECT FROM tailor.chain h JOIN tailor.protection p USING (relation)
        WHERE h.chain = substring(is_of_a_chain.relation FROM '^chain_([0-9]{1,9})(?:_|$)')::integer
          AND (h.layout < 8 OR h.edition = coalesce(substring(is_of_a_chain.relation
                  FROM '^chain_[0-9]+_g([0-9]{1,9})(?:_|$)')::integer, 0)))
$$;
COMMENT ON FUNCTION tailor.is_of_a_chain
    IS 'whether a name is of the present edition of a chain; for Tailor''s own routines only';

-- Numbers in names are those of epochs and chains. A table that is gone keeps its
-- policy, and with it what is stored, until tailor.unprotect.
CREATE OR REPLACE FUNCTION tailor.orphans() RETURNS SETOF regclass
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT c.oid::regclass
    FROM pg_class c CROSS JOIN LATERAL substring(c.relname
                                                 FROM '^[a-z]+_([0-9]{1,9})(?:_[a-z0-9]+)*$') n
                                                     (number)
    WHERE c.relkind IN ('r', 'v') AND c.relowner = 'tailor_owner'::regrole
      AND CASE c.relnamespace
          WHEN 'research'::regnamespace THEN c.relkind = 'v'
          AND c.relname NOT IN ('tailor_margins', 'tailor_columns') AND NOT EXISTS (
              SELECT FROM tailor.protection p JOIN pg_class t ON t.oid = p.relation
                  WHERE p.active IS NOT NULL AND t.relname = c.relname)
          WHEN 'tailor_release'::regnamespace THEN NOT tailor.is_of_a_chain(c.relname)
          WHEN 'tailor_store'::regnamespace THEN n.number IS NOT NULL
          AND CASE WHEN starts_with(c.relname, 'chain_')
              THEN NOT tailor.is_of_a_chain(c.relname)
              ELSE NOT EXISTS (SELECT FROM tailor.epoch e
                  JOIN tailor.protection p USING (relation) WHERE e.epoch = n.number::integer
                                 -- of a publication that was given up
                                 AND (p.epoch = e.epoch OR c.relname !~
                                     '^(people|item|place|subrecord|member)_'
                                      OR EXISTS (SELECT FROM tailor.publication u
                                          WHERE u.epoch = e.epoch))) END
          ELSE false END
$$;
COMMENT ON FUNCTION tailor.orphans
    IS 'copies, releases and shapes that belong to no chain or policy any more';

CREATE OR REPLACE FUNCTION tailor.drop_earlier(chain integer) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    earlier record;
    gone    boolean := true;
BEGIN
    FOR earlier IN
        SELECT c.oid::regclass AS name, c.relkind FROM pg_class c
        WHERE c.relnamespace IN ('tailor_release'::regnamespace, 'tailor_store'::regnamespace)
            AND c.relkind IN ('r', 'v')
          AND c.relname ~ format('^chain_%s(_|$)', chain) AND NOT tailor.is_of_a_chain(c.relname)
        ORDER BY c.relkind DESC, c.oid
    LOOP
        gone := tailor.drop_unless_used(CASE earlier.relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END,
                                        ARRAY[earlier.name::text]) AND gone;
    END LOOP;
    RETURN gone;
END $$;
COMMENT ON FUNCTION tailor.drop_earlier
    IS 'drops what is stored of earlier editions of a chain and nobody uses; whether nothing is '
        'left; for the proxy only';

-- What is in use stays, closed to everybody, to be dropped another time.
CREATE OR REPLACE PROCEDURE tailor.drop_orphans()
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    orphan record;
    stay   integer := 0;
    closed name[] := ARRAY(SELECT c.relname FROM tailor.orphans() o JOIN pg_class c ON c.oid = o
                           WHERE c.relnamespace = 'tailor_release'::regnamespace);
BEGIN
    CALL tailor.close_views(closed);
    FOR orphan IN SELECT o AS name, c.relkind FROM tailor.orphans() o JOIN pg_class c ON c.oid = o
        ORDER BY c.relkind DESC, c.oid LOOP
        CONTINUE WHEN orphan.name::text ~ '^[0-9]+$'; -- somebody else has just dropped it
        -- Views first: they are over the tables.
        stay := stay + (NOT tailor.drop_unless_used(
            CASE orphan.relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END,
            ARRAY[orphan.name::text]))::integer;
    END LOOP;
    IF stay > 0 THEN
        RAISE WARNING '% relations of earlier chains or policies are in use and stay', stay
            USING HINT = 'CALL tailor.drop_orphans() when the transactions that use them have '
                'ended.';
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.drop_orphans
    IS 'drops copies, releases and shapes that belong to no chain or policy any more, and that '
        'nobody uses';

CREATE OR REPLACE PROCEDURE tailor.remove_policy(relation regclass)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    called text := (SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c
                    JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = relation);
    child  regclass;
    chains integer[];
    views  name[];
BEGIN
    IF NOT EXISTS (SELECT FROM tailor.protection p WHERE p.relation = remove_policy.relation) THEN
        RAISE EXCEPTION 'table % has no policy', relation USING ERRCODE = '55000',
            HINT = 'tailor.policies lists the tables that have one.';
    END IF;
    IF called IS NOT NULL THEN
        CALL tailor.assert_owner(relation);
        IF EXISTS (SELECT FROM tailor.protection p
                   WHERE p.relation = tailor.data_set_parent(remove_policy.relation)) THEN
            CALL tailor.take_turn(tailor.data_set_parent(relation));
        END IF;
        CALL tailor.take_turn(relation);
    ELSIF NOT (pg_has_role(session_user, 'tailor_owner', 'MEMBER') OR EXISTS (
        SELECT FROM tailor.protection p LEFT JOIN tailor.policy_version v ON v.relation = p.relation
            AND v.version = p.active
        LEFT JOIN pg_roles r ON r.rolname = v.author
        WHERE p.relation = remove_policy.relation AND (p.active IS NULL
                                                       OR pg_has_role(session_user, r.oid,
                                                               'USAGE')))) THEN
        RAISE EXCEPTION 'table % is gone, and its policy is somebody else''s', relation
            USING ERRCODE = '42501',
            HINT = 'Ask whoever activated it, or a superuser.';
    END IF;
    PERFORM FROM tailor.protection p WHERE p.relation = remove_policy.relation FOR UPDATE;
    SELECT p.relation INTO child
        FROM tailor.protection p JOIN tailor.policy_version v ON v.relation = p.relation
            AND v.version = p.active
        JOIN pg_class c ON c.oid = p.relation
        WHERE quote_ident(v.policy #>> '{parent,schema}') || '.' || quote_ident(v.policy
                #>> '{parent,name}') = called ORDER BY p.relation::text LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'table % borrows quasi-identifiers from table %', child, relation
            USING ERRCODE = '2BP01',
            HINT = format('CALL tailor.unprotect(%L) first, or drop its foreign key and CALL '
                'tailor.activate(%L).', child, child);
    END IF;
    SELECT d.relation INTO child FROM tailor.dataset d WHERE d.parent = remove_policy.relation
        ORDER BY d.number LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'data set % is of the subjects of table %', child, relation
            USING ERRCODE = '2BP01',
            HINT = format('CALL tailor.unprotect(%L) first.', child);
    END IF;
    -- In the order of the proxies: the policy's row, then the chains'. From here on
    -- nobody may read the releases, whatever becomes of them.
    chains := ARRAY(SELECT c.chain FROM tailor.chain c WHERE c.relation = remove_policy.relation
                    ORDER BY 1 FOR UPDATE);
    views := ARRAY(SELECT c.relname FROM pg_class c
                   WHERE c.relnamespace = 'tailor_release'::regnamespace
                   AND substring(c.relname FROM '^chain_([0-9]{1,9})(?:_|$)')::integer = ANY
                       (chains));
    CALL tailor.close_views(views);
    INSERT INTO tailor.unprotected (relation, name, version, chains)
        SELECT p.relation, coalesce(called, p.relation::oid::text), p.active,
               coalesce((SELECT jsonb_agg(jsonb_build_object('chain', c.chain, 'audience',
                       c.audience, 'epoch', c.epoch, 'generation', c.generation,
                                              'blocks', c.blocks, 'min_block', c.min_block,
                                              'created', c.created, 'changed', c.changed)
                                              ORDER BY c.chain)
                         FROM tailor.chain c WHERE c.relation = p.relation), '[]')
        FROM tailor.protection p WHERE p.relation = remove_policy.relation AND p.active IS NOT NULL;
    DELETE FROM tailor.chain c WHERE c.relation = remove_policy.relation;
    DELETE FROM tailor.publication u USING tailor.epoch e WHERE e.epoch = u.epoch
        AND e.relation = remove_policy.relation;
    DELETE FROM tailor.protection p WHERE p.relation = remove_policy.relation;
    CALL tailor.drop_orphans();
    PERFORM nextval('tailor.catalog_version');
    PERFORM pg_notify('tailor', 'policies');
END $$;
COMMENT ON PROCEDURE tailor.remove_policy IS 'the part of tailor.unprotect that writes';

CREATE OR REPLACE PROCEDURE tailor.unprotect(relation regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    parent regclass := tailor.data_set_parent(relation);
    copied boolean := relation IN (SELECT tailor.data_sets(parent))
                      AND EXISTS (SELECT FROM pg_class c WHERE c.oid = parent);
BEGIN
    IF copied THEN
        CALL tailor.hold(parent);
    END IF;
    CALL tailor.remove_policy(relation);
    IF copied THEN
        CALL tailor.read_data_sets_anew(parent);
    END IF;
    IF EXISTS (SELECT FROM pg_class c WHERE c.oid = relation) THEN
        EXECUTE format('REVOKE SELECT ON %s FROM tailor_owner', relation);
        RAISE NOTICE 'table % is as any other: readers get back no privilege on it, and what they '
            'were shown stays known', relation;
    END IF;
    IF copied AND EXISTS (SELECT FROM tailor.chains c WHERE c.relation = parent) THEN
        RAISE NOTICE 'table %: no column or data set that is new can be shown from here on', parent
            USING HINT = format('What is new might be what data set %s was, and tell whose value '
                'has changed. CALL tailor.forget_chains(%L) when one is needed: it gives up the '
                'guarantee over what was shown before.', relation, parent);
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.unprotect
    IS 'takes the policy of a table away, with its draft, releases and copies; readers get no '
        'privilege on the table';

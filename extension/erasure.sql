-- Erasure on request -------------------------------------------------------------
--
-- Erasure cannot wait until enough people of a block leave. A payload that vanishes
-- when a known person does is that person's, and stays so if the others of the block
-- are shown again later. So the whole block goes, and none of its rows is shown
-- again (departures 'with_block'); or the person's rows go alone, as an exception
-- that tells what they held (departures 'at_once').
--
-- Others of such a block are kept in chain_N_gone under copy 0, which no row comes
-- back from (catalog/arrivals.go); it ends with the chain. People who were erased are
-- kept in tailor.erased: no copy has them, whatever becomes of the chains.

CREATE TABLE IF NOT EXISTS tailor.erased (
    erasure     integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    protection  uuid NOT NULL,
    name        text NOT NULL,
    key         uuid NOT NULL,
    subject     uuid NOT NULL,
    departures  text NOT NULL CHECK (departures IN ('with_block', 'at_once')),
    others      bigint NOT NULL,
    author      name NOT NULL DEFAULT session_user,
    created     timestamptz NOT NULL DEFAULT now()
);
ALTER TABLE tailor.erased ADD COLUMN IF NOT EXISTS subject_column name;
COMMENT ON COLUMN tailor.erased.subject_column IS 'by which the table told people apart then';
COMMENT ON TABLE tailor.erased IS
    'people who were erased on request, by digest; copies leave them out';
COMMENT ON COLUMN tailor.erased.protection IS
    'the policy''s identity, as in tailor.shown_family: outlives the table and its policy';
COMMENT ON COLUMN tailor.erased.name IS 'the table''s name then';
COMMENT ON COLUMN tailor.erased.key IS 'the digest of nothing under the key of the others';
COMMENT ON COLUMN tailor.erased.others IS 'how many other people''s rows were taken along';

CREATE OR REPLACE VIEW tailor.erasures WITH (security_barrier = true) AS
    SELECT p.relation, e.name, e.created AS erased, e.departures, e.others, e.author
    FROM tailor.erased e LEFT JOIN tailor.protection p ON p.identity = e.protection
    WHERE tailor.owns(p.relation) OR pg_has_role(session_user, 'tailor_owner', 'MEMBER');
COMMENT ON VIEW tailor.erasures IS 'erasures on request from one''s own tables: when, how, and how '
    'many other people''s rows were taken along; whose, nobody is told';

CREATE OR REPLACE FUNCTION tailor.left_out_of_copies(relation regclass) RETURNS SETOF uuid
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT e.subject FROM tailor.erased e JOIN tailor.protection p ON p.identity = e.protection
    WHERE p.relation = left_out_of_copies.relation
$$;
COMMENT ON FUNCTION tailor.left_out_of_copies IS
    'digests of the people whom no copy of a table may have; for Tailor''s own routines only';

-- Nothing if nobody is to be left out: else each subject is hashed once more.
DROP FUNCTION IF EXISTS tailor.unless_erased(regclass, name);
CREATE OR REPLACE FUNCTION tailor.unless_erased(
    relation regclass, subject name, rows regclass DEFAULT NULL) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN EXISTS (SELECT FROM tailor.left_out_of_copies(relation)) THEN format(
        ' AND tailor.subject_digest(%s, (SELECT k.key FROM tailor.subject_key k))
              NOT IN (SELECT o FROM tailor.left_out_of_copies(%L) o)',
        tailor.called(coalesce(rows, relation), subject), relation) ELSE '' END
$$;
COMMENT ON FUNCTION tailor.unless_erased IS 'a further condition, on rows b of a table or of '
    'another one, that leaves out whom no copy of the table may have; for Tailor''s own routines '
    'only';

-- Whoever was erased from a table before one that refers to it had a policy is erased from both.
-- That is kept, since keys, policies and tables that it is seen by can go.
CREATE OR REPLACE PROCEDURE tailor.inherit_erasures(relation regclass, policy jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    WITH RECURSIVE in_force (relation, subject, identity) AS (
        SELECT p.relation, coalesce((v.policy ->> 'subject')::name, p.subject) COLLATE "C",
            p.identity
        FROM tailor.protection p LEFT JOIN tailor.policy_version v
            ON v.relation = p.relation AND v.version = p.active),
    about (relation, subject) AS (
        SELECT inherit_erasures.relation,
            (inherit_erasures.policy ->> 'subject')::name COLLATE "C"
      UNION
        SELECT p.relation, p.subject
        FROM about a
        JOIN pg_constraint f
            ON f.contype = 'f' AND f.conrelid = a.relation AND cardinality(f.conkey) = 1
        JOIN in_force p ON p.relation = f.confrelid
        JOIN pg_attribute here ON here.attrelid = f.conrelid AND here.attnum = f.conkey[1]
            AND here.attname = a.subject
        JOIN pg_attribute there ON there.attrelid = f.confrelid AND there.attnum = f.confkey[1]
            AND there.attname = p.subject)
    INSERT INTO tailor.erased (protection, name, key, subject, departures, others, author, created,
                               subject_column)
        SELECT DISTINCT ON (e.key, e.subject) own.identity, format('%I.%I', n.nspname, c.relname),
            e.key, e.subject, e.departures, 0, e.author, e.created,
            inherit_erasures.policy ->> 'subject'
        FROM about a JOIN in_force p USING (relation) JOIN tailor.erased e
            ON e.protection = p.identity, tailor.protection own
        JOIN pg_class c ON c.oid = own.relation JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE own.relation = inherit_erasures.relation AND p.identity <> own.identity
          AND NOT EXISTS (SELECT FROM tailor.erased k
                          WHERE (k.protection, k.key, k.subject) = (own.identity, e.key, e.subject))
        ORDER BY e.key, e.subject, e.departures DESC, e.erasure; -- with_block first
END $$;
COMMENT ON PROCEDURE tailor.inherit_erasures IS 'erases from a table whoever was erased from one '
    'that its subject refers to; for Tailor''s own routines only';

-- Digests under the key of another installation find nobody.
DROP PROCEDURE IF EXISTS tailor.assert_erased_known(regclass);
CREATE OR REPLACE PROCEDURE tailor.assert_erased_known(relation regclass, policy jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    IF EXISTS (SELECT FROM tailor.erased e JOIN tailor.protection p ON p.identity = e.protection
               WHERE p.relation = assert_erased_known.relation
                 AND e.subject_column <> (policy ->> 'subject')::name) THEN
        RAISE EXCEPTION 'people were erased from table % by another subject column', relation
            USING ERRCODE = '55000', DETAIL = 'By this one they would not be found, and be shown.',
            HINT = 'Keep the subject column; or take their rows out of the table, and delete them '
                'from tailor.erased.';
    END IF;
    IF EXISTS (
        SELECT FROM tailor.erased e JOIN tailor.protection p ON p.identity = e.protection,
            tailor.subject_key k
        WHERE p.relation = assert_erased_known.relation
          AND e.key <> tailor.subject_digest('', k.key)) THEN
        RAISE EXCEPTION 'people were erased from table % under another key of digests', relation
            USING ERRCODE = '55000',
            DETAIL = 'They would not be found in the table, and would be shown again.',
            HINT = 'Give tailor.subject_key the key of the installation that was dumped. '
                'Without it, delete what tailor.erased has under the other key, '
                'and erase them again.';
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_erased_known IS 'fails if people who were erased cannot be '
    'told from others any more; for Tailor''s own routines only';

-- A person's rows are in the table that was named, in all that refer to its subject by
-- theirs, and in data sets of these.
CREATE OR REPLACE FUNCTION tailor.tables_about(relation regclass)
RETURNS TABLE (part regclass, subject name)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE subjects (relation, subject) AS (
        SELECT p.relation, (v.policy ->> 'subject')::name
        FROM tailor.protection p
        JOIN tailor.policy_version v ON v.relation = p.relation AND v.version = p.active),
    about (relation, subject) AS (
        SELECT s.relation, s.subject FROM subjects s WHERE s.relation = tables_about.relation
      UNION
        SELECT s.relation, s.subject
        FROM about a
        JOIN pg_constraint f
            ON f.contype = 'f' AND f.confrelid = a.relation AND cardinality(f.conkey) = 1
        JOIN subjects s ON s.relation = f.conrelid
        JOIN pg_attribute here ON here.attrelid = f.conrelid AND here.attnum = f.conkey[1]
            AND here.attname = s.subject
        JOIN pg_attribute there ON there.attrelid = f.confrelid AND there.attnum = f.confkey[1]
            AND there.attname = a.subject)
    SELECT relation, subject FROM about
  UNION ALL
    SELECT s.relation, s.subject FROM about a JOIN tailor.dataset d ON d.parent = a.relation
    JOIN subjects s ON s.relation = d.relation
$$;
COMMENT ON FUNCTION tailor.tables_about IS 'a protected table and the protected ones whose '
    'subject refers to its subject, and their data sets, with the column of each';

-- What a release asks of a block (catalog/events.go), asked of the others' rows.
CREATE OR REPLACE FUNCTION tailor.blocks_short_of(
    release text, policy jsonb, person bigint, blocks integer[]) RETURNS integer[]
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    least  CONSTANT bigint := tailor.least_subjects(policy);
    stored CONSTANT text := format('tailor_store.%I', release || '_row');
    chain  CONSTANT integer := substring(release FROM '^chain_([0-9]+)')::integer;
    short  integer[];
    failed integer[];
BEGIN
    EXECUTE format(
        'WITH others AS MATERIALIZED (
             SELECT * FROM tailor_store.%1$I
             WHERE "tailor block" = ANY ($1) AND "tailor person" <> $2),
         kept AS (
             SELECT "tailor block" FROM others
             GROUP BY 1 HAVING count(DISTINCT "tailor person") >= %2$s
           INTERSECT
             SELECT "tailor block"
             FROM (SELECT "tailor block", count(*) AS n FROM others GROUP BY 1, "tailor person") o
             GROUP BY 1 HAVING max(n) <= greatest(1, %3$s * sum(n))
           -- Whoever knows earlier answers tells classes of a block apart.
           EXCEPT
             SELECT "tailor block" FROM others
             WHERE "tailor class" IN (SELECT "tailor class" FROM tailor_store.%1$I
                                      WHERE "tailor block" = ANY ($1) AND "tailor person" = $2)
             GROUP BY 1, "tailor class" HAVING count(DISTINCT "tailor person") < %2$s)
         SELECT ARRAY(SELECT unnest($1) EXCEPT SELECT "tailor block" FROM kept)',
        release || '_row', least, coalesce((policy ->> 'max_share')::float8, 0.5))
        INTO short USING blocks, person;
    EXECUTE format('SELECT ARRAY(SELECT DISTINCT "tailor block" FROM %s
                                 WHERE "tailor class" = ANY ($1))', stored)
        INTO failed USING tailor.failing_blocks(
            stored, policy, chain,
            format('"tailor person" <> %1$s AND "tailor class" IN (SELECT "tailor class" FROM %2$s
                       WHERE "tailor block" = ANY (%3$L) AND "tailor person" = %1$s)',
                   person, stored, blocks),
            told_apart_by => '"tailor class"');
    RETURN short || failed || tailor.failing_blocks(
        stored, policy, chain,
        format('"tailor block" = ANY (%L) AND "tailor person" <> %s', blocks, person));
END $$;
COMMENT ON FUNCTION tailor.blocks_short_of IS 'those blocks that do not meet the policy without '
    'a person; for Tailor''s own routines only';

-- to_regclass may still know a table that has been dropped while a lock was waited for; the
-- snapshot of a statement does not.
CREATE OR REPLACE FUNCTION tailor.is_stored(name text) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM pg_class c
                   WHERE c.relnamespace = 'tailor_store'::regnamespace AND c.relname = name::name)
$$;
COMMENT ON FUNCTION tailor.is_stored IS 'whether a table of a copy or a release is there, as the '
    'statement that asks sees it; for Tailor''s own routines only';

-- Earlier editions are read by statements that were planned a moment ago.
CREATE OR REPLACE PROCEDURE tailor.erase_from_earlier(chain integer, person bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    earlier record;
BEGIN
    FOR earlier IN
        SELECT c.oid::regclass AS name, c.relname ~ '_row$' AS shown FROM pg_class c
        WHERE c.relnamespace = 'tailor_store'::regnamespace AND c.relkind = 'r'
          AND c.relname ~ format('^chain_%s(_g[0-9]+)?_(row|gone|past)$', chain)
          AND NOT tailor.is_of_a_chain(c.relname)
          AND EXISTS (SELECT FROM pg_attribute a
                      WHERE a.attrelid = c.oid AND a.attname = 'tailor person')
    LOOP
        BEGIN
            EXECUTE format(CASE WHEN earlier.shown
                    THEN 'DELETE FROM %1$s WHERE "tailor block" IN (
                              SELECT "tailor block" FROM %1$s WHERE "tailor person" = $1)'
                    ELSE 'DELETE FROM %s WHERE "tailor person" = $1' END, earlier.name)
                USING person;
        EXCEPTION WHEN undefined_table THEN -- the proxy has dropped it meanwhile
            NULL;
        END;
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.erase_from_earlier IS 'takes a person''s blocks out of what is left '
    'of earlier editions of a release; for Tailor''s own routines only';

CREATE OR REPLACE PROCEDURE tailor.erase_from_release(
    chain integer, release text, person bigint, whole integer[], departures text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    rows CONSTANT text := format('tailor_store.%I', release || '_row');
    gone CONSTANT text := format('tailor_store.%I', release || '_gone');
    past CONSTANT text := format('tailor_store.%I', release || '_past');
BEGIN
    CALL tailor.erase_from_data_sets(chain, release, person);
    EXECUTE format(
        'WITH taken AS (
             DELETE FROM %1$s WHERE "tailor block" = ANY ($1) AND "tailor person" <> $2
             RETURNING "tailor person", "tailor key", "tailor nth", "tailor block", "tailor class")
         INSERT INTO %2$s ("tailor person", "tailor key", "tailor nth",
                           "tailor block", "tailor class", epoch)
         SELECT *, 0 FROM taken', rows, gone) USING whole, person;
    EXECUTE format('DELETE FROM %s WHERE "tailor person" = $1', rows) USING person;
    -- What a row was shown as is remembered of those that may be shown again.
    EXECUTE format(
        'DELETE FROM %1$s p WHERE "tailor person" = $1 OR EXISTS (
             SELECT FROM %2$s g WHERE g.epoch = 0
               AND (g."tailor person", g."tailor nth") = (p."tailor person", p."tailor nth"))',
        past, gone) USING person;
    -- Those who left together come back when all do, or enough: with one among them who
    -- never does, when enough stay away.
    EXECUTE format(CASE WHEN departures = 'with_block'
            THEN 'UPDATE %s SET "tailor key" = 0 WHERE "tailor person" = $1'
            ELSE 'DELETE FROM %s WHERE "tailor person" = $1' END, gone)
        USING person;
    CALL tailor.erase_from_earlier(chain, person);
    -- What goes now does not come back, and a copy that waits differs as before from what is
    -- left. But where rows have numbers, those that only it lacks would be taken for others.
    EXECUTE format(
        'UPDATE tailor.epoch e SET generation = e.generation + 1 FROM tailor.chain c
         WHERE c.chain = $1 AND (e.chain, e.generation) = (c.chain, c.generation)
           AND NOT (c.keyed AND EXISTS (SELECT FROM %s WHERE "tailor nth" <> 0
                                        UNION ALL SELECT FROM %s WHERE "tailor nth" <> 0))',
        rows, gone) USING chain;
    EXECUTE format(
        'UPDATE tailor.chain SET generation = generation + 1, changed = now(),
             (blocks, min_block, rows) = (
                 SELECT count(*), coalesce(min(n), 0), coalesce(sum(r), 0)
                 FROM (SELECT count(DISTINCT "tailor person") AS n, count(*) AS r
                       FROM %1$s GROUP BY "tailor block") b),
             subjects = (SELECT count(DISTINCT "tailor person") FROM %1$s)
         WHERE chain = $1', rows) USING chain;
    CALL tailor.forget_waiting(chain, person, rows);
END $$;
COMMENT ON PROCEDURE tailor.erase_from_release IS 'takes a person out of a release, and blocks as '
    'a whole; for Tailor''s own routines only';

CREATE OR REPLACE FUNCTION tailor.erase_from_releases(
    relation regclass, person bigint, departures text, acting boolean) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    chain   record;
    release text;
    called  text;
    blocks  integer[];
    whole   integer[]; -- those that go with all their rows
    along   bigint;
    others  bigint := 0;
BEGIN
    FOR chain IN
        SELECT c.chain AS number, c.audience, c.edition, v.policy FROM tailor.chain c
        JOIN tailor.policy_version v ON v.relation = c.relation AND v.version = c.version
        WHERE c.relation = erase_from_releases.relation ORDER BY 1 FOR UPDATE OF c
    LOOP
        release := concat('chain_', chain.number,
                          CASE WHEN chain.edition > 0 THEN '_g' || chain.edition END);
        -- What an earlier version has shown, nobody is shown any more.
        CONTINUE WHEN NOT tailor.is_stored(release || '_past');
        EXECUTE format('SELECT ARRAY(SELECT DISTINCT "tailor block" FROM tailor_store.%I
                                     WHERE "tailor person" = $1)', release || '_row')
            INTO blocks USING person;
        whole := blocks;
        IF departures = 'at_once' THEN
            whole := tailor.blocks_short_of(release, chain.policy, person, blocks);
        END IF;
        EXECUTE format('SELECT count(DISTINCT "tailor person") FROM tailor_store.%I
                        WHERE "tailor block" = ANY ($1) AND "tailor person" <> $2',
                       release || '_row') INTO along USING whole, person;
        others := others + along;
        IF acting THEN
            IF chain.policy -> 'rows' = 'false' THEN
                CALL tailor.touch_cells(
                    format('tailor_store.%I', release || '_row')::regclass, chain.policy,
                    format('"tailor block" = ANY (%L)', blocks));
            END IF;
            CALL tailor.erase_from_release(chain.number, release, person, whole, departures);
            IF chain.policy -> 'rows' = 'false' THEN
                PERFORM tailor.show_averages(
                    format('tailor_store.%I', release || '_row')::regclass, chain.policy);
            END IF;
            CONTINUE;
        END IF;
        called := concat('table ', relation,
                         CASE WHEN chain.audience <> 'table' THEN ', ' || chain.audience END);
        IF cardinality(blocks) = 0 THEN
            RAISE NOTICE '%: this person is not shown, and will not be', called;
        ELSIF departures = 'with_block' THEN
            RAISE NOTICE '%: takes % other people''s rows along, which nobody will be shown again',
                called, along;
        ELSE
            RAISE NOTICE '%: whoever compares answers from before and after sees '
                'what this person''s row held', called;
            IF along > 0 THEN
                RAISE NOTICE '%: takes % other people''s rows along, who without this person '
                    'would be fewer than the policy allows', called, along;
            END IF;
        END IF;
    END LOOP;
    RETURN others;
END $$;
COMMENT ON FUNCTION tailor.erase_from_releases IS 'says what goes with a person, or takes it out '
    'of all releases of a table; for Tailor''s own routines only';

-- Numbers of combinations have no gaps: one that only this person had becomes another's. So
-- do those of a copy of what differs that no row has: a value of theirs may be this person's.
CREATE OR REPLACE PROCEDURE tailor.erase_from_copies(relation regclass, person bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    copy    integer;
    partial boolean; -- it has what differs from a release
    holds   boolean; -- and does so still
    shown   regclass; -- the rows of that
    columns text;
    erased  bigint;
BEGIN
    FOR copy, partial, holds, shown IN
        SELECT e.epoch, e.chain IS NOT NULL, c.generation = e.generation,
               to_regclass(tailor.rows_of(c))
        FROM tailor.epoch e LEFT JOIN tailor.chain c USING (chain)
        WHERE e.relation = erase_from_copies.relation
          AND tailor.is_stored('tuples_' || e.epoch)
    LOOP
        EXECUTE format('DELETE FROM tailor_store.epoch_%s WHERE "tailor person" = $1', copy)
            USING person;
        GET DIAGNOSTICS erased = ROW_COUNT;
        IF partial AND shown IS NOT NULL THEN
            EXECUTE format(
                'DELETE FROM tailor_store.absent_%s
                 WHERE ("tailor person", "tailor key", "tailor nth") NOT IN (
                     SELECT "tailor person", "tailor key", "tailor nth" FROM %s)', copy, shown);
        END IF;
        IF partial AND holds IS NOT TRUE THEN
            RAISE NOTICE 'table %: the copy that waits to be taken in never will be', relation
                USING HINT = format('CALL tailor.refresh(%L);', relation);
        END IF;
        CONTINUE WHEN erased = 0 AND NOT partial;
        SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) INTO columns
            FROM pg_attribute a
            WHERE a.attrelid = format('tailor_store.tuples_%s', copy)::regclass
              AND a.attnum > 0 AND NOT a.attisdropped
              AND a.attname NOT IN ('tailor tuple', 'tailor rows');
        IF columns IS NOT NULL THEN
            EXECUTE format(
                'UPDATE tailor_store.tuples_%1$s t
                 SET (%2$s) = (
                     SELECT %2$s FROM tailor_store.tuples_%1$s o WHERE o."tailor tuple" = (
                         SELECT min(e."tailor tuple") FROM tailor_store.epoch_%1$s e))
                 WHERE NOT EXISTS (SELECT FROM tailor_store.epoch_%1$s e
                                   WHERE e."tailor tuple" = t."tailor tuple")', copy, columns);
        END IF;
        IF partial THEN
            UPDATE tailor.epoch e SET rows = e.rows - erased, subjects = e.subjects - least(erased,
                    1)
                WHERE e.epoch = copy;
            CONTINUE;
        END IF;
        EXECUTE format(
            'UPDATE tailor.epoch SET (rows, subjects) = (
                 SELECT count(*), count(DISTINCT "tailor person") FROM tailor_store.epoch_%1$s)
             WHERE epoch = %1$s', copy);
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.erase_from_copies IS 'takes a person out of the copies that are not '
    'taken in yet; for Tailor''s own routines only';

-- A record of codes is in a cluster, which goes as a whole. A copy that waits goes on
-- without the person.
CREATE OR REPLACE FUNCTION tailor.erase_from_publications(
    relation regclass, digest uuid, departures text, acting boolean) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    shown   CONSTANT integer := tailor.publication_of(relation);
    known   CONSTANT boolean := tailor.is_stored('member_' || shown);
    there   integer; -- the person's cluster
    along   bigint := 0;
    copy    integer;
    part    text;
    views   name[];
BEGIN
    PERFORM FROM tailor.chain c WHERE c.relation = erase_from_publications.relation
        ORDER BY c.chain FOR UPDATE;
    IF known THEN
        EXECUTE format('SELECT cluster FROM tailor_store.member_%s WHERE "tailor key" = $1', shown)
            INTO there USING digest;
    END IF;
    IF there IS NOT NULL THEN
        EXECUTE format('SELECT count(*) - 1 FROM tailor_store.member_%s WHERE cluster = $1', shown)
            INTO along USING there;
    END IF;
    IF NOT acting THEN
        IF there IS NOT NULL THEN
            RAISE NOTICE 'table %: takes % other people''s codes along, which will not be '
                'published again', relation, along;
        ELSIF shown IS NOT NULL AND NOT known THEN
            RAISE NOTICE 'table %: the publication of codes, which an earlier version has made, '
                'is withdrawn', relation
                USING HINT = format('CALL tailor.forget_chains(%L);', relation);
        ELSE
            RAISE NOTICE 'table %: no codes of this person are published, and none will be',
                relation;
        END IF;
        RETURN along;
    END IF;
    FOR copy IN SELECT e.epoch FROM tailor.epoch e
                WHERE e.relation = erase_from_publications.relation
                  AND tailor.is_stored('records_' || e.epoch) LOOP
        FOREACH part IN ARRAY ARRAY['records', 'digest', 'demographics', 'differs'] LOOP
            part := format('%s_%s', part, copy);
            IF tailor.is_stored(part) THEN
                EXECUTE format('DELETE FROM tailor_store.%s WHERE "tailor key" = $1', part)
                    USING digest;
            END IF;
        END LOOP;
        EXECUTE format(
            'UPDATE tailor.epoch SET (rows, subjects) = (
                 SELECT count(*), count(DISTINCT "tailor subject")
                 FROM tailor_store.records_%1$s)
             WHERE epoch = %1$s', copy);
    END LOOP;
    IF shown IS NOT NULL AND NOT known THEN
        DELETE FROM tailor.publication u WHERE u.epoch = shown;
        FOREACH part IN ARRAY ARRAY['epoch', 'people', 'item', 'place', 'subrecord', 'digest'] LOOP
            part := format('%s_%s', part, shown);
            IF tailor.is_stored(part) THEN
                EXECUTE 'DELETE FROM tailor_store.' || part;
            END IF;
        END LOOP;
        -- Whatever was planned over a release of layout 0 is refused, and planned again.
        UPDATE tailor.chain c
            SET generation = c.generation + 1, edition = greatest(c.edition, c.generation) + 1,
                layout = 0, changed = now(), rows = 0, subjects = 0
            WHERE c.relation = erase_from_publications.relation;
        views := ARRAY(SELECT unnest(tailor.views_of(c.chain)) FROM tailor.chain c
                       WHERE c.relation = erase_from_publications.relation);
        CALL tailor.close_views(views);
    ELSIF known THEN
        CALL tailor.withdraw_clusters(shown, array_remove(ARRAY[there], NULL));
        DELETE FROM tailor.waiting w USING tailor.chain c
            WHERE c.relation = erase_from_publications.relation AND w.chain = c.chain
              AND w.person = tailor.person_of(digest);
        EXECUTE format('DELETE FROM tailor_store.member_%s WHERE "tailor key" = $1', shown)
            USING digest;
        CALL tailor.count_published(relation);
        UPDATE tailor.chain c SET generation = c.generation + 1, changed = now()
            WHERE c.relation = erase_from_publications.relation AND there IS NOT NULL;
    END IF;
    RETURN along;
END $$;
COMMENT ON FUNCTION tailor.erase_from_publications IS 'says what goes with a person, or takes the '
    'person''s cluster out of the publication of codes; for Tailor''s own routines only';

-- The digests of tailor.subject_digest and tailor.person_digest are of one hash.
CREATE OR REPLACE FUNCTION tailor.person_of(digest uuid) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT ('x' || left(translate(digest::text, '-', ''), 16))::bit(64)::int8
$$;
COMMENT ON FUNCTION tailor.person_of IS 'the digest of 64 bits, by which rows of releases are '
    'followed, of somebody by the one of 128';

CREATE OR REPLACE FUNCTION tailor.follows(relation regclass, digest uuid) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    stored record;
    there  boolean;
BEGIN
    IF digest IN (SELECT tailor.left_out_of_copies(relation)) OR EXISTS (
        SELECT FROM tailor.shown_family f JOIN tailor.protection p ON p.identity = f.protection
        WHERE p.relation = follows.relation AND digest = ANY (f.subjects)) THEN
        RETURN true;
    END IF;
    FOR stored IN
        SELECT c.oid::regclass AS name
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tailor person'
        WHERE c.relnamespace = 'tailor_store'::regnamespace AND c.relkind = 'r'
          AND (substring(c.relname FROM '^chain_([0-9]{1,9})(?:_g[0-9]+)?_(?:row|gone)$')::integer
                   IN (SELECT h.chain FROM tailor.chain h WHERE h.relation = follows.relation)
               OR substring(c.relname FROM '^epoch_([0-9]{1,9})$')::integer
                   IN (SELECT e.epoch FROM tailor.epoch e WHERE e.relation = follows.relation))
    LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE "tailor person" = $1)', stored.name)
            INTO there USING tailor.person_of(digest);
        IF there THEN
            RETURN true;
        END IF;
    END LOOP;
    FOR stored IN SELECT format('tailor_store.member_%s', e.epoch) AS name FROM tailor.epoch e
                  WHERE e.relation = follows.relation AND tailor.is_stored('member_' || e.epoch)
    LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE "tailor key" = $1)', stored.name)
            INTO there USING digest;
        IF there THEN
            RETURN true;
        END IF;
    END LOOP;
    RETURN false;
END $$;
COMMENT ON FUNCTION tailor.follows IS 'whether a table has, or has had, somebody by a digest, '
    'as far as is remembered; for Tailor''s own routines only';

-- Under an older snapshot, rows that were shown since would stay; and a refresh with an
-- older one than this has to fail.
CREATE OR REPLACE PROCEDURE tailor.begin_erasure(relations regclass[])
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    nothing CONSTANT uuid := (SELECT tailor.subject_digest('', k.key) FROM tailor.subject_key k);
    part    regclass;
BEGIN
    FOR part IN SELECT r FROM unnest(relations) r ORDER BY 1 LOOP
        CALL tailor.assert_owner(part);
        CALL tailor.assert_protected(part);
        CALL tailor.take_turn(part);
        UPDATE tailor.protection p SET identity = p.identity WHERE p.relation = part;
        IF EXISTS (SELECT FROM tailor.shown_family f
                   JOIN tailor.protection p ON p.identity = f.protection
                   WHERE p.relation = part AND f.key <> nothing) THEN
            RAISE EXCEPTION 'what is shown of table % was made under another key of digests', part
                USING ERRCODE = '55000', HINT = format(
                    'Give tailor.subject_key the key of the installation that was dumped. '
                    'Or CALL tailor.forget_chains(%L), and erase then.', part);
        END IF;
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.begin_erasure IS 'fails unless the caller may erase from tables, and '
    'has nothing happen to them meanwhile; for Tailor''s own routines only';

-- subjects has the key as each of the tables has it. there: the table that was named
-- has it now, in whatever copy or none.
CREATE OR REPLACE PROCEDURE tailor.write_erasure(
    relations regclass[], subjects text[], departures text, there boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    own_key CONSTANT bytea := (SELECT k.key FROM tailor.subject_key k);
    digests CONSTANT uuid[] := ARRAY(SELECT tailor.subject_digest(s, own_key)
        FROM unnest(subjects) WITH ORDINALITY u (s, nth) ORDER BY nth);
    about   record;
    along   bigint;
BEGIN
    CALL tailor.begin_erasure(relations);
    IF NOT there AND NOT EXISTS (SELECT FROM unnest(relations, digests) u (relation, digest)
                                 WHERE tailor.follows(u.relation, u.digest)) THEN
        RAISE EXCEPTION 'table % has nobody by this key, and no copy of it is known to have had',
            relations[1] USING ERRCODE = 'P0002',
            HINT = format('Pass the subject''s key, as column "%s" has it.',
                (SELECT p.subject FROM tailor.protection p WHERE p.relation = relations[1]));
    END IF;
    -- First what would happen is said of all tables, then it happens.
    FOR about IN
        SELECT u.relation, u.digest, acting, v.policy ? 'set_valued' AS codes, p.identity,
               v.policy ->> 'subject' AS subject,
               format('%I.%I', n.nspname, c.relname) AS name
        FROM unnest(relations, digests) WITH ORDINALITY u (relation, digest, nth)
        JOIN tailor.protection p ON p.relation = u.relation
        JOIN tailor.policy_version v ON v.relation = p.relation AND v.version = p.active
        JOIN pg_class c ON c.oid = u.relation JOIN pg_namespace n ON n.oid = c.relnamespace
        CROSS JOIN (VALUES (false), (true)) a (acting) ORDER BY acting, nth
    LOOP
        IF about.codes THEN
            along := tailor.erase_from_publications(
                about.relation, about.digest, departures, about.acting);
        ELSE
            along := tailor.erase_from_releases(
                about.relation, tailor.person_of(about.digest), departures, about.acting);
        END IF;
        CONTINUE WHEN NOT about.acting;
        IF NOT about.codes THEN
            CALL tailor.erase_from_copies(about.relation, tailor.person_of(about.digest));
        END IF;
        UPDATE tailor.shown_fact f SET (subjects, facts, coarse) = (
                SELECT coalesce(array_agg(u.subject), '{}'), coalesce(array_agg(u.fact), '{}'),
                       coalesce(array_agg(u.coarse), '{}')
                FROM unnest(f.subjects, f.facts, f.coarse) u (subject, fact, coarse)
                WHERE u.subject <> about.digest)
            WHERE f.protection = about.identity AND about.digest = ANY (f.subjects);
        INSERT INTO tailor.erased (protection, name, key, subject, departures, others,
                                   subject_column)
            VALUES (about.identity, about.name, tailor.subject_digest('', own_key), about.digest,
                    departures, along, about.subject);
    END LOOP;
    PERFORM nextval('tailor.catalog_version');
    PERFORM pg_notify('tailor', 'policies');
END $$;
COMMENT ON PROCEDURE tailor.write_erasure IS 'the part of tailor.erase that writes';

CREATE OR REPLACE FUNCTION tailor.shown_of(relation regclass, digests uuid[]) RETURNS uuid[]
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    stored text;
    more   uuid[];
    shown  uuid[] := '{}';
BEGIN
    FOR stored IN SELECT tailor.rows_of(c) FROM tailor.chain c
                  WHERE c.relation = shown_of.relation
                      AND to_regclass(tailor.rows_of(c)) IS NOT NULL
    LOOP
        EXECUTE format('SELECT ARRAY(SELECT o FROM unnest($1) o WHERE tailor.person_of(o) IN (
                            SELECT "tailor person" FROM %s))', stored) INTO more USING digests;
        shown := shown || more;
    END LOOP;
    stored := 'member_' || tailor.publication_of(relation);
    IF tailor.is_stored(stored) THEN
        EXECUTE format('SELECT ARRAY(SELECT "tailor key" FROM tailor_store.%I
                                     WHERE "tailor key" = ANY ($1))', stored)
            INTO more USING digests;
        shown := shown || more;
    END IF;
    RETURN ARRAY(SELECT DISTINCT unnest(shown));
END $$;
COMMENT ON FUNCTION tailor.shown_of IS 'those of some people of whom a table shows rows or codes; '
    'for Tailor''s own routines only';

-- A table that was not known to be about the erased is seen to when it is next copied.
CREATE OR REPLACE PROCEDURE tailor.erase_again(relation regclass, policy jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    erased uuid[];
    person record;
    along  bigint;
BEGIN
    CALL tailor.inherit_erasures(relation, policy);
    CALL tailor.assert_erased_known(relation, policy);
    erased := ARRAY(SELECT tailor.left_out_of_copies(relation));
    IF cardinality(erased) = 0 THEN
        RETURN;
    END IF;
    FOR person IN
        SELECT DISTINCT ON (e.subject) e.erasure, e.subject AS digest, e.departures
        FROM tailor.erased e JOIN tailor.protection p ON p.identity = e.protection
        WHERE p.relation = erase_again.relation
          AND e.subject = ANY (tailor.shown_of(erase_again.relation, erased))
        ORDER BY e.subject, e.departures DESC, e.erasure -- with_block first
    LOOP
        IF policy ? 'set_valued' THEN
            along := tailor.erase_from_publications(relation, person.digest, person.departures,
                                                    true);
        ELSE
            along := tailor.erase_from_releases(relation, tailor.person_of(person.digest),
                                                person.departures, true);
        END IF;
        UPDATE tailor.erased e SET others = e.others + along WHERE e.erasure = person.erasure;
        RAISE WARNING 'table % showed somebody who has been erased: taken out, with % other people',
            relation, along USING DETAIL = 'It was not known to be about the person then.';
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.erase_again IS 'takes out of what is shown of a table whom no copy of '
    'it may have; for Tailor''s own routines only';

-- The key is read as the type that copies have for the column's, and the table asked, with
-- the caller's rights: a domain of whoever owns a table that refers to this one would run
-- its constraints with them.
-- Settings are those of tailor.build_epoch: a key is followed by how it is written.
CREATE OR REPLACE PROCEDURE tailor.erase(
    relation regclass, subject text, departures text DEFAULT 'with_block')
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off SET datestyle = 'ISO, YMD'
SET extra_float_digits = 1 SET timezone = 'UTC' SET intervalstyle = 'iso_8601'
SET bytea_output = 'hex' SET lock_timeout = '1min' AS $$
DECLARE
    about     record;
    called    text;
    relations regclass[];
    subjects  text[];
    there     boolean;
BEGIN
    CALL tailor.assert_owner(relation);
    IF departures IS NULL OR departures NOT IN ('with_block', 'at_once') THEN
        RAISE EXCEPTION 'unknown departures "%"', departures USING ERRCODE = '22023',
            HINT = 'with_block: the person''s block goes with the person. at_once: the person '
                'alone, which tells whoever compares answers what the row held.';
    END IF;
    IF subject IS NULL THEN
        RAISE EXCEPTION 'the subject to erase is NULL' USING ERRCODE = '22004';
    END IF;
    IF tailor.data_set_parent(relation) IS NOT NULL THEN
        RAISE EXCEPTION 'a person is erased from data set % with table %', relation,
            tailor.data_set_parent(relation) USING ERRCODE = '0A000', HINT = format(
                'CALL tailor.erase(%L, ...);', tailor.data_set_parent(relation));
    END IF;
    -- A table that refers to this one, and which is being activated, is then known.
    CALL tailor.hold_in_order(ARRAY[relation], referring => true);
    FOR about IN
        SELECT t.part, t.subject, format_type(s.stored, s.stored_modifier) AS type,
               tailor.text_of(s.stored, s.stored_modifier,
                              format('$1::%s', format_type(s.stored, s.stored_modifier))) AS called,
               o.rolsuper AS inert
        FROM tailor.tables_about(erase.relation) t JOIN pg_attribute a
            ON a.attrelid = t.part AND a.attname = t.subject AND a.attnum > 0 AND NOT a.attisdropped
        CROSS JOIN tailor.stored_type(a.atttypid, a.atttypmod, '') s
        JOIN pg_type k ON k.oid = s.stored JOIN pg_roles o ON o.oid = k.typowner
        ORDER BY t.part <> erase.relation, t.part
    LOOP
        CALL tailor.assert_owner(about.part);
        IF NOT about.inert THEN
            RAISE EXCEPTION 'column "%" of table % is of type %, which is not a superuser''s',
                about.subject, about.part, about.type USING ERRCODE = '42501',
                HINT = 'Reading a value of it may run functions of the type.';
        END IF;
        BEGIN
            EXECUTE 'SELECT ' || about.called INTO called USING erase.subject;
        EXCEPTION WHEN data_exception OR integrity_constraint_violation THEN
            RAISE EXCEPTION 'the key is no value of column "%" of table %, whose type is %',
                about.subject, about.part, about.type
                USING ERRCODE = '22023', HINT = 'Pass the key as text, as the column has it.';
        END;
        IF about.part = erase.relation THEN
            EXECUTE format('SELECT EXISTS (SELECT FROM %s b WHERE %s = $1)',
                           about.part, tailor.called(about.part, about.subject))
                INTO there USING called;
        END IF;
        relations := relations || about.part;
        subjects := subjects || called;
    END LOOP;
    IF relations[1] IS DISTINCT FROM relation THEN
        CALL tailor.assert_protected(relation);
        RAISE EXCEPTION 'the policy of table % is not active, or its subject column is gone',
            relation USING ERRCODE = '55000', HINT = format('CALL tailor.activate(%L);', relation);
    END IF;
    CALL tailor.write_erasure(relations, subjects, departures, there);
END $$;
COMMENT ON PROCEDURE tailor.erase IS 'erases a person for good from all that is shown of a table, '
    'and of those that refer to it: with the whole block, or at once and alone; the table itself '
    'stays as it is';

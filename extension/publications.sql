-- Publications of codes over time --------------------------------------------------
--
-- A publication of codes lives on (docs/decisions/set-valued.md). Whoever is published
-- keeps the record; newcomers are published as a cohort, by themselves; a cluster of
-- which nobody is left, or of which somebody was erased, goes as a whole. member_N says
-- who is in which cluster of publication N: NULL in one that is gone, which nobody comes
-- back from.

-- Publications of earlier versions have no member_N: they stay as they are.
CREATE OR REPLACE FUNCTION tailor.publication_of(relation regclass) RETURNS integer
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT max(u.epoch) FROM tailor.publication u JOIN tailor.epoch e USING (epoch)
    WHERE e.relation = publication_of.relation
$$;
COMMENT ON FUNCTION tailor.publication_of IS 'the publication of a set-valued table, by the number '
    'of the copy that it began with; NULL for none; for Tailor''s own routines only';

-- Of a copy stays what is not published: newcomers in records_N, and in differs_N who is
-- published and has left, or has other codes or columns now.
CREATE OR REPLACE PROCEDURE tailor.keep_unpublished(relation regclass, copy integer)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    shown CONSTANT integer := tailor.publication_of(relation);
    part  text;
BEGIN
    IF shown IS NULL AND NOT EXISTS (
            SELECT FROM tailor.chain c WHERE c.relation = keep_unpublished.relation) THEN
        RETURN;
    END IF;
    IF shown IS NULL OR NOT tailor.is_stored('member_' || shown) THEN
        RAISE EXCEPTION 'the codes of table % were published by an earlier version of Tailor, '
            'which followed nobody from one copy to the next', relation
            USING ERRCODE = '55000', HINT = format('CALL tailor.forget_chains(%L), which gives up '
                'the guarantee over what was shown before, publishes them as they are now.',
                relation);
    END IF;
    EXECUTE format(
        'CREATE TABLE tailor_store.differs_%1$s AS
         SELECT m."tailor key", d."tailor key" IS NULL AS gone
         FROM tailor_store.member_%2$s m LEFT JOIN tailor_store.digest_%1$s d USING ("tailor key")
         WHERE m.cluster IS NOT NULL
           AND d."tailor codes" IS DISTINCT FROM m."tailor codes"', copy, shown);
    EXECUTE format('ALTER TABLE tailor_store.differs_%s REPLICA IDENTITY FULL', copy);
    FOREACH part IN ARRAY ARRAY['records', 'digest', 'demographics'] LOOP
        IF tailor.is_stored(format('%s_%s', part, copy)) THEN
            EXECUTE format('DELETE FROM tailor_store.%s_%s c USING tailor_store.member_%s m
                WHERE m."tailor key" = c."tailor key"', part, copy, shown);
        END IF;
    END LOOP;
    CALL tailor.assert_old_keys(relation, copy);
END $$;
COMMENT ON PROCEDURE tailor.keep_unpublished IS 'leaves of a copy of codes what is not published '
    'yet, and who differs from what is; for Tailor''s own routines only';

-- People who have got other keys would be published twice. Many newcomers have what only
-- somebody had who is gone; or half of all are gone at once, and newcomers have the same.
CREATE OR REPLACE PROCEDURE tailor.assert_old_keys(relation regclass, copy integer)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    shown CONSTANT integer := tailor.publication_of(relation);
    k     CONSTANT integer := (SELECT u.k FROM tailor.publication u WHERE u.epoch = shown);
    seen  record;
    alike bigint;
BEGIN
    EXECUTE format(
        'WITH members AS MATERIALIZED (
             SELECT m."tailor codes" AS codes, coalesce(d.gone, false) AS now,
                    m.cluster IS NULL OR coalesce(d.gone, false) AS gone
             FROM tailor_store.member_%2$s m
             LEFT JOIN tailor_store.differs_%1$s d USING ("tailor key")),
         kinds AS (
             SELECT codes, count(*) AS n, bool_and(gone) AS gone,
                    count(*) FILTER (WHERE now) AS now
             FROM members GROUP BY 1),
         coming AS (
             SELECT "tailor codes" AS codes, count(*) AS n
             FROM tailor_store.digest_%1$s GROUP BY 1)
         SELECT (SELECT coalesce(sum(n), 0) FROM coming) AS newcomers,
                (SELECT count(*) FROM coming c JOIN kinds k USING (codes)
                 WHERE (c.n, k.n, k.gone) = (1, 1, true)) AS alone,
                (SELECT coalesce(sum(least(c.n, k.now)), 0)
                 FROM coming c JOIN kinds k USING (codes)) AS alike,
                (SELECT 2 * count(*) FILTER (WHERE now)
                        >= count(*) FILTER (WHERE now OR NOT gone) FROM members) AS most',
        copy, shown) INTO seen;
    alike := greatest(seen.alone, CASE WHEN seen.most THEN seen.alike END);
    IF alike >= greatest(k, seen.newcomers / 2.0) THEN
        RAISE EXCEPTION 'newcomers of table % seem to be people whose codes have been published '
            'by other keys', relation USING ERRCODE = '55000',
            DETAIL = format('Of %s, %s have what people had who are gone.', seen.newcomers, alike),
            HINT = format('Give them their keys back. Or CALL tailor.forget_chains(%L), which '
                'gives up the guarantee over what was shown before.', relation);
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_old_keys IS 'fails if many newcomers seem to be published '
    'already, by other keys; for Tailor''s own routines only';

-- A shared chunk stays, since its sub-records are not of single clusters: what it says of
-- those that are left is bounded as before (tailor.case_count).
CREATE OR REPLACE PROCEDURE tailor.withdraw_clusters(publication integer, clusters integer[])
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    cleared CONSTANT jsonb := '{"record_chunks": [], "item_chunk": []}';
    gone    bigint;
BEGIN
    IF coalesce(cardinality(clusters), 0) = 0 THEN
        RETURN;
    END IF;
    EXECUTE format(
        'DELETE FROM tailor.waiting w USING tailor_store.member_%s m, tailor.chain c, tailor.epoch e
         WHERE m.cluster = ANY ($1) AND w.person = tailor.person_of(m."tailor key")
           AND e.epoch = $2 AND c.relation = e.relation AND w.chain = c.chain', publication)
        USING clusters, publication;
    EXECUTE format('UPDATE tailor_store.member_%s SET cluster = NULL
        WHERE cluster = ANY ($1)', publication) USING clusters;
    GET DIAGNOSTICS gone = ROW_COUNT;
    EXECUTE format('DELETE FROM tailor_store.epoch_%s
        WHERE "tailor tuple" = ANY ($1)', publication) USING clusters;
    EXECUTE format('DELETE FROM tailor_store.place_%s
        WHERE cluster = ANY ($1)', publication) USING clusters;
    EXECUTE format('DELETE FROM tailor_store.subrecord_%1$s s WHERE NOT EXISTS (
        SELECT FROM tailor_store.place_%1$s p WHERE p.chunk = s.chunk)', publication);
    IF tailor.is_stored('people_' || publication) THEN
        EXECUTE format('DELETE FROM tailor_store.people_%s
            WHERE cluster = ANY ($1)', publication) USING clusters;
    END IF;
    UPDATE tailor.publication u SET records = u.records - gone WHERE u.epoch = publication;
    UPDATE tailor.publication u
    SET form = jsonb_set(u.form::jsonb, '{clusters}', (
        SELECT jsonb_agg(CASE WHEN nth - 1 = ANY (withdraw_clusters.clusters)
                              THEN c || cleared ELSE c END
                         ORDER BY nth)
        FROM jsonb_array_elements(u.form::jsonb -> 'clusters') WITH ORDINALITY e (c, nth)))::text
    WHERE u.epoch = publication;
END $$;
COMMENT ON PROCEDURE tailor.withdraw_clusters IS 'takes clusters out of a publication, for good; '
    'for Tailor''s own routines only';

-- Newcomers are in digest_N of a copy, others who differ in differs_N.
CREATE OR REPLACE PROCEDURE tailor.note_unpublished(relation regclass, copy integer, cohort integer)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    shown  CONSTANT integer := tailor.publication_of(relation);
    number integer;
    found  record;
    noted  jsonb;
BEGIN
    EXECUTE format(
        'SELECT (SELECT array_agg(tailor.person_of("tailor key")) FROM tailor_store.digest_%1$s d
                 WHERE NOT EXISTS (SELECT FROM tailor_store.member_%2$s m
                     WHERE m."tailor key" = d."tailor key")) AS arrivals,
                array_agg(tailor.person_of("tailor key")) FILTER (WHERE d.gone) AS departures,
                array_agg(tailor.person_of("tailor key")) FILTER (WHERE NOT d.gone) AS changes
         FROM tailor_store.differs_%1$s d JOIN tailor_store.member_%2$s m USING ("tailor key")
         WHERE m.cluster IS NOT NULL', copy, shown) INTO found;
    EXECUTE format(
        'SELECT jsonb_build_object(''codes'', true, ''cohort'', $1, ''leaving'', count(*),
            ''lacking'', min(stay))
         FROM (SELECT count(*) - count(*) FILTER (WHERE d.gone) AS stay
               FROM tailor_store.member_%2$s m
               LEFT JOIN tailor_store.differs_%1$s d USING ("tailor key")
               WHERE m.cluster IS NOT NULL GROUP BY m.cluster HAVING bool_or(d.gone)) c',
        copy, shown) INTO noted USING cohort;
    FOR number IN
        SELECT c.chain FROM tailor.chain c WHERE c.relation = note_unpublished.relation
    LOOP
        CALL tailor.note_waiting(number, 'a', found.arrivals, copy);
        CALL tailor.note_waiting(number, 'd', found.departures, copy);
        CALL tailor.note_waiting(number, 'c', found.changes, copy);
        DELETE FROM tailor.waiting w WHERE w.chain = number AND w.epoch <> copy;
        UPDATE tailor.chain c SET next = noted WHERE c.chain = number;
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.note_unpublished IS 'notes who waits after a copy of codes is taken '
    'in; for the proxy only';

-- What is published, and who waits, is the same for all audiences.
CREATE OR REPLACE PROCEDURE tailor.count_published(relation regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    shown CONSTANT integer := tailor.publication_of(relation);
    first CONSTANT integer := (SELECT min(c.chain) FROM tailor.chain c
        WHERE c.relation = count_published.relation);
    n     bigint;
BEGIN
    EXECUTE format('SELECT count(*) FROM tailor_store.epoch_%s', shown) INTO n;
    INSERT INTO tailor.waiting (chain, person, what, since, epoch)
        SELECT c.chain, w.person, w.what, w.since, w.epoch FROM tailor.waiting w, tailor.chain c
        WHERE w.chain = first AND c.relation = count_published.relation
        ON CONFLICT DO NOTHING;
    UPDATE tailor.chain c
    SET rows = n, subjects = u.records, next = (SELECT f.next FROM tailor.chain f
        WHERE f.chain = first),
        (arrivals, departures, changes) = (
            SELECT count(*) FILTER (WHERE what = 'a'), count(*) FILTER (WHERE what = 'd'),
                count(*) FILTER (WHERE what = 'c')
            FROM tailor.waiting w WHERE w.chain = first)
    FROM tailor.publication u WHERE u.epoch = shown AND c.relation = count_published.relation;
END $$;
COMMENT ON PROCEDURE tailor.count_published IS 'notes how much is published and how many wait; '
    'for Tailor''s own routines only';

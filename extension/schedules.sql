-- Schedules, and what copies take ---------------------------------------------

CREATE TABLE IF NOT EXISTS tailor.schedule (
    relation    regclass PRIMARY KEY REFERENCES tailor.protection ON DELETE CASCADE,
    every       interval NOT NULL,
    due         timestamptz NOT NULL,
    tried       timestamptz,
    failed      integer NOT NULL DEFAULT 0,
    failure     text
);
ALTER TABLE tailor.schedule ADD COLUMN IF NOT EXISTS on_change boolean NOT NULL DEFAULT false,
    ADD COLUMN IF NOT EXISTS seen text;
COMMENT ON COLUMN tailor.schedule.on_change IS 'a refresh that is due waits until the table has '
    'changed';
COMMENT ON COLUMN tailor.schedule.seen IS 'tailor.change_sign before the last copy that the '
    'schedule has made';
COMMENT ON TABLE tailor.schedule IS 'tables that a proxy refreshes by itself';
COMMENT ON COLUMN tailor.schedule.failed
    IS 'how often in a row; failure has the reason of the last time';

CREATE OR REPLACE VIEW tailor.schedules AS
    SELECT s.relation, s.every, s.due, s.tried, s.failed, s.failure, e.created AS refreshed,
        s.on_change
    FROM tailor.schedule s JOIN tailor.protection p USING (relation) LEFT
        JOIN tailor.epoch e ON e.epoch = p.epoch;
COMMENT ON VIEW tailor.schedules
    IS 'tables that a proxy refreshes by itself: how often, when next, and what went wrong';

DROP PROCEDURE IF EXISTS tailor.schedule(regclass, interval);
CREATE OR REPLACE PROCEDURE tailor.schedule(
    relation regclass, every interval DEFAULT '0 minutes', on_change boolean DEFAULT false)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    IF tailor.data_set_parent(relation) IS NOT NULL THEN
        RAISE EXCEPTION 'data set % is refreshed with table %', relation,
            tailor.data_set_parent(relation) USING ERRCODE = '0A000', HINT = 'Schedule that.';
    END IF;
    IF every IS NULL THEN
        DELETE FROM tailor.schedule s WHERE s.relation = schedule.relation;
        RETURN;
    END IF;
    IF every = '0 minutes' AND on_change THEN
        every := '1 minute';
    END IF;
    IF every < '1 minute' THEN
        RAISE EXCEPTION 'a refresh can be scheduled every minute at most' USING ERRCODE = '22023',
            HINT = 'For example: every => ''24 hours''; NULL ends the schedule.';
    END IF;
    IF on_change IS NULL THEN
        RAISE EXCEPTION 'on_change is NULL' USING ERRCODE = '22004';
    END IF;
    INSERT INTO tailor.schedule AS kept (relation, every, on_change, due)
        VALUES (relation, every, on_change, coalesce((SELECT e.created FROM tailor.protection p
            JOIN tailor.epoch e ON e.epoch = p.epoch
                                           WHERE p.relation = schedule.relation), now()) + every)
        ON CONFLICT ON CONSTRAINT schedule_pkey DO UPDATE
        SET every = excluded.every, on_change = excluded.on_change, due = excluded.due,
            failed = 0, failure = NULL, seen = NULL
        WHERE (kept.every, kept.on_change) <> (excluded.every, excluded.on_change);
END $$;
COMMENT ON PROCEDURE tailor.schedule IS 'has a proxy refresh the table, so often, counted from '
    'its last copy, or so often at '
    'most, by default every minute, and once it has changed (on_change); NULL ends that';

-- PostgreSQL counts the rows that transactions write, and gives a table that is truncated
-- or written anew another file. Counts come after the commit, so that a sign that was read
-- before a copy was begun differs from later ones where there is something that the copy has
-- not. It can miss a change all the same: counts are reset by crashes and by whoever may, are
-- not kept without track_counts, and a view or a foreign table has none.
CREATE OR REPLACE FUNCTION tailor.change_sign(relation regclass) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (SELECT string_agg(concat_ws(' ', q.part::oid, pg_relation_filenode(q.part),
        pg_stat_get_tuples_inserted(q.part),
               pg_stat_get_tuples_updated(q.part), pg_stat_get_tuples_deleted(q.part)), ',' ORDER
                   BY q.part::oid)
    FROM (
        SELECT f AS part FROM tailor.family(relation) f
      UNION
        SELECT f FROM tailor.protection p JOIN tailor.policy_version v ON v.relation = p.relation
            AND v.version = p.active,
            tailor.family(tailor.lender(v.policy)) f
        WHERE p.relation = change_sign.relation AND v.policy ? 'parent'
      UNION -- what data sets read
        SELECT f FROM (SELECT d.refobjid AS oid FROM tailor.data_sets(relation) s
                       JOIN pg_rewrite w ON w.ev_class = s
        JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
            AND d.refclassid = 'pg_class'::regclass
            AND d.refobjid <> s) d, tailor.family(d.oid) f) q);
END $$;
COMMENT ON FUNCTION tailor.change_sign IS 'what is another once a table, or what is read with it, '
    'has changed, but for changes that PostgreSQL does not count; for Tailor''s own routines only';

-- Who asks is tailor_owner, who may read the table and not lock it. Belongs to
-- the role that installed: a superuser, or a member of the owners of tables.
CREATE OR REPLACE PROCEDURE tailor.lock_scheduled(relation regclass)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    part  regclass;
    owner name;
BEGIN
    IF NOT EXISTS (SELECT FROM tailor.schedule s WHERE s.relation = lock_scheduled.relation) THEN
        RAISE EXCEPTION 'table % has no schedule', relation USING ERRCODE = '55000';
    END IF;
    -- What the table borrows from is read with it.
    FOR part IN
        SELECT relation
      UNION ALL
        SELECT tailor.lender(v.policy)
        FROM tailor.protection p JOIN tailor.policy_version v ON v.relation = p.relation
            AND v.version = p.active
        WHERE p.relation = lock_scheduled.relation AND v.policy ? 'parent'
      UNION ALL
        SELECT tailor.data_sets(lock_scheduled.relation)
    LOOP
        CONTINUE WHEN part IS NULL;
        SELECT pg_get_userbyid(c.relowner) INTO owner FROM pg_class c WHERE c.oid = part;
        IF NOT pg_has_role(current_user, owner, 'USAGE') THEN
            RAISE EXCEPTION 'the role "%" that installed Tailor may not lock table %', current_user,
                part
                USING ERRCODE = '42501', HINT = format('GRANT %I TO %I;', owner, current_user);
        END IF;
        EXECUTE format(CASE WHEN tailor.data_set_parent(part) IS NULL
            THEN 'LOCK TABLE %s IN SHARE UPDATE EXCLUSIVE MODE' ELSE 'REFRESH MATERIALIZED VIEW %s'
            END, part);
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.lock_scheduled
    IS 'keeps a table as it is for a scheduled refresh; for the proxy only';

CREATE OR REPLACE FUNCTION tailor.due_schedules() RETURNS SETOF regclass
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT s.relation FROM tailor.schedule s JOIN tailor.protection p USING (relation)
        JOIN pg_class c ON c.oid = s.relation
        LEFT JOIN tailor.epoch e ON e.epoch = p.epoch
        WHERE s.due <= now() AND p.active IS NOT NULL AND NOT tailor.restored()
          AND (NOT s.on_change OR e.created <= now() - interval '1 day'
               OR s.seen IS DISTINCT FROM tailor.change_sign(s.relation)) ORDER BY s.due;
END $$;
COMMENT ON FUNCTION tailor.due_schedules
    IS 'tables that are to be refreshed now, the longest overdue first; for the proxy only';

CREATE OR REPLACE PROCEDURE tailor.refresh_scheduled(relation regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    sign CONSTANT text := tailor.change_sign(relation);
BEGIN
    CALL tailor.lock_scheduled(relation);
    -- What is due is asked for again under the lock: somebody may have been faster.
    IF relation IN (SELECT tailor.due_schedules()) THEN
        CALL tailor.renew_copy(relation);
        UPDATE tailor.schedule s SET seen = sign WHERE s.relation = refresh_scheduled.relation;
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.refresh_scheduled
    IS 'what tailor.refresh does, where a schedule says so; for the proxy only';

CREATE OR REPLACE PROCEDURE tailor.note_failure(relation regclass, reason text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    UPDATE tailor.schedule s
    SET tried = clock_timestamp(), failed = s.failed + 1, failure = reason, due = clock_timestamp()
        + least(s.every, interval '15 minutes')
    WHERE s.relation = note_failure.relation;
END $$;
COMMENT ON PROCEDURE tailor.note_failure
    IS 'says why a scheduled refresh failed, to be tried again soon; for the proxy only';

-- Runs that were missed are made up for by one.
CREATE OR REPLACE PROCEDURE tailor.settle(relation regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    UPDATE tailor.schedule s
    SET tried = now(), failed = 0, failure = NULL,
        due = s.due + s.every * greatest(0, floor(extract(epoch FROM now() - s.due) / extract(epoch
                FROM s.every)) + 1)
    WHERE s.relation = settle.relation;
    CALL tailor.drop_unused(relation);
END $$;
COMMENT ON PROCEDURE tailor.settle
    IS 'what follows a new copy: the schedule counts on, old copies go; for Tailor''s own routines '
        'only';

-- A copy that has not been taken in when the next one is made never will be. Publications of
-- codes have the number of the copy that they began with, and live on.
CREATE OR REPLACE PROCEDURE tailor.drop_unused(relation regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    old integer;
BEGIN
    FOR old IN
        SELECT e.epoch FROM tailor.epoch e
        WHERE e.relation = drop_unused.relation AND e.epoch <> (SELECT p.epoch
                FROM tailor.protection p WHERE p.relation = drop_unused.relation)
          AND NOT EXISTS (SELECT FROM tailor.publication u WHERE u.epoch = e.epoch)
          AND to_regclass(format('tailor_store.epoch_%s', e.epoch)) IS NOT NULL
    LOOP
        PERFORM tailor.drop_unless_used('TABLE', ARRAY[format('tailor_store.epoch_%s', old),
                                                       format('tailor_store.tuples_%s', old),
                                                       format('tailor_store.absent_%s', old)]);
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.drop_unused IS 'drops copies that no proxy will take in any more; for '
    'Tailor''s own routines only';

CREATE OR REPLACE FUNCTION tailor.drop_copy(epoch integer) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    IF EXISTS (
        SELECT FROM tailor.epoch e JOIN tailor.protection p USING (relation)
            JOIN tailor.policy_version v ON v.relation = p.relation AND v.version = p.active
        WHERE e.epoch = drop_copy.epoch AND p.epoch = e.epoch
          AND CASE v.policy ->> 'scope' WHEN 'project'
              THEN EXISTS (SELECT FROM tailor.project j WHERE j.relation = p.relation
                           AND NOT EXISTS (
                  SELECT FROM tailor.chain c WHERE c.relation = p.relation
                      AND c.audience = 'project ' || j.name AND c.epoch = e.epoch
                          AND c.version = p.active))
              ELSE false END) THEN
        RETURN false;
    END IF;
    RETURN tailor.drop_unless_used('TABLE', ARRAY[format('tailor_store.epoch_%s', epoch),
                                                  format('tailor_store.tuples_%s', epoch),
                                                       format('tailor_store.absent_%s', epoch)]);
END $$;
COMMENT ON FUNCTION tailor.drop_copy
    IS 'drops a copy that all audiences are brought up to date with; for the proxy only';

DROP VIEW IF EXISTS tailor.storage;
CREATE OR REPLACE VIEW tailor.storage AS
    SELECT p.relation,
           (SELECT sum(pg_total_relation_size(f))::bigint FROM tailor.family(p.relation) f)
               AS table_bytes,
           (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
            WHERE c.relnamespace = 'tailor_store'::regnamespace AND c.relkind = 'r'
                AND c.relname NOT LIKE 'chain%'
              AND substring(c.relname FROM '^[a-z]+_([0-9]+)$')::integer IN (SELECT e.epoch
                      FROM tailor.epoch e WHERE e.relation = p.relation)) AS copy_bytes,
           (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
            WHERE c.relnamespace = 'tailor_store'::regnamespace AND c.relkind = 'r'
              AND substring(c.relname FROM '^chain_([0-9]+)_')::integer IN (SELECT h.chain
                      FROM tailor.chain h WHERE h.relation = p.relation)) AS chain_bytes,
           (SELECT count(*) FROM tailor.chain h WHERE h.relation = p.relation
            AND h.epoch <> p.epoch) AS behind,
           (SELECT count(*) FROM tailor.chain h WHERE h.relation = p.relation) AS chains
    FROM tailor.protection p JOIN pg_class t ON t.oid = p.relation WHERE p.epoch IS NOT NULL;
COMMENT ON VIEW tailor.storage
    IS 'bytes on disk of each protected table, of its copies that are not taken in yet and '
        'publications, and of its chains; how many chains are behind the last copy';

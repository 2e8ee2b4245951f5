-- Locks -----------------------------------------------------------------------
--
-- What one does at a time is done under a lock of one of these tables, which hold
-- nothing. Readers have no right to them; an advisory lock could be anybody's.

CREATE TABLE IF NOT EXISTS tailor.lock_schedules ();
COMMENT ON TABLE tailor.lock_schedules IS 'locked by the proxy that makes scheduled refreshes';

CREATE TABLE IF NOT EXISTS tailor.lock_apply ();
COMMENT ON TABLE tailor.lock_apply IS 'locked while a policy file is applied';

CREATE TABLE IF NOT EXISTS tailor.lock_name (name name PRIMARY KEY);
COMMENT ON TABLE tailor.lock_name
    IS 'names of tables that are being activated: each is added and taken away again by one '
        'transaction, for which others wait';

CREATE OR REPLACE FUNCTION tailor.apply_alone() RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    LOCK TABLE tailor.lock_apply IN EXCLUSIVE MODE NOWAIT;
    RETURN true;
EXCEPTION WHEN lock_not_available THEN
    RETURN false;
END $$;
COMMENT ON FUNCTION tailor.apply_alone
    IS 'whether nobody else applies a policy file, which holds until the transaction ends';

CREATE OR REPLACE PROCEDURE tailor.take_turn(relation regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '1min' AS $$
DECLARE
    called name := (SELECT c.relname FROM pg_class c WHERE c.oid = relation);
BEGIN
    PERFORM FROM tailor.protection p WHERE p.relation = take_turn.relation FOR UPDATE;
    INSERT INTO tailor.lock_name VALUES (called);
    DELETE FROM tailor.lock_name l WHERE l.name = called;
EXCEPTION WHEN lock_not_available THEN
    RAISE EXCEPTION 'table %, or another of its name, is being activated or refreshed', relation
        USING ERRCODE = '55P03',
            HINT = 'Try again when that is done; pg_blocking_pids says who it is.';
END $$;
COMMENT ON PROCEDURE tailor.take_turn
    IS 'lets one activation or refresh of a table happen at a time, and one of a name; for '
        'Tailor''s own routines only';

-- Readers may keep transactions open on what they read, and whoever may see a name
-- may lock it. So nobody waits for them: what is in use is dropped another time.
CREATE OR REPLACE FUNCTION tailor.drop_unless_used(kind text, names text[]) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '100ms'
    SET client_min_messages = warning AS $$
BEGIN
    EXECUTE format('DROP %s IF EXISTS %s', kind, array_to_string(names, ', '));
    RETURN true;
EXCEPTION WHEN lock_not_available OR dependent_objects_still_exist THEN
    RETURN false;
END $$;
COMMENT ON FUNCTION tailor.drop_unless_used
    IS 'drops all of the relations or, where one is in use, none; says whether it has; for '
        'Tailor''s own routines only';

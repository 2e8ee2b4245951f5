-- Locks -----------------------------------------------------------------------
--
-- What one does at a time is done under a lock of one of these tables, which hold
-- nothing. Readers have no right to them; an advisory lock could be anybody's.

CREATE TABLE IF NOT EXISTS tailor.lock_schedules ();
COMMENT ON TABLE tailor.lock_schedules IS 'locked by the proxy that makes scheduled refreshes';

CREATE TABLE IF NOT EXISTS tailor.lock_apply ();
COMMENT ON TABLE tailor.lock_apply IS 'locked while a policy file is applied';

CREATE TABLE IF NOT EXISTS tailor.lock_readers ();
COMMENT ON TABLE tailor.lock_readers IS 'locked while a role becomes a reader, and shared by '
    'activations, which look at who is one';

CREATE OR REPLACE PROCEDURE tailor.hold_readers() LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET lock_timeout = '1min' AS $$
BEGIN
    LOCK TABLE tailor.lock_readers IN SHARE MODE;
END $$;
COMMENT ON PROCEDURE tailor.hold_readers
    IS 'keeps roles from becoming readers until the transaction ends';

CREATE OR REPLACE PROCEDURE tailor.let_nobody_activate() LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp SET lock_timeout = '1min' AS $$
BEGIN
    LOCK TABLE tailor.lock_readers IN EXCLUSIVE MODE;
EXCEPTION WHEN lock_not_available THEN
    RAISE EXCEPTION 'a table is being activated, or another role made a reader'
        USING ERRCODE = '55P03', HINT = 'Try again when that is done.';
END $$;
COMMENT ON PROCEDURE tailor.let_nobody_activate
    IS 'lets one role at a time become a reader, and no table be activated meanwhile, until the '
        'transaction ends; for Tailor''s own routines only';

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

CREATE TABLE IF NOT EXISTS tailor.lock_facts (relation oid PRIMARY KEY, seen bigint NOT NULL);
INSERT INTO tailor.lock_facts VALUES (0, 0) ON CONFLICT DO NOTHING;
COMMENT ON TABLE tailor.lock_facts IS 'for 0, how often facts of tables have been compared and '
    'committed; for a table, what that was when its facts were last compared (extension/facts.sql)';

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

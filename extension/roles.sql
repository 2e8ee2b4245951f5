-- Tailor, SQL side. Idempotent: safe to run again over an existing
-- installation. Runs as a superuser or as a role that may create roles and
-- schemas; without superuser passwords are set with tailor password (logins.sql).

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'tailor_owner') THEN
        CREATE ROLE tailor_owner LOGIN;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'tailor_reader') THEN
        CREATE ROLE tailor_reader NOLOGIN;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'tailor_admin') THEN
        CREATE ROLE tailor_admin NOLOGIN;
    END IF;
    -- Whoever is no superuser acts as tailor_owner by being a member, which since version 16
    -- whoever has made the role may become, and before whoever may make roles.
    IF NOT (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user)
       AND NOT pg_catalog.pg_has_role('tailor_owner', 'USAGE') THEN
        GRANT tailor_owner TO CURRENT_USER;
    END IF;
END $$;

COMMENT ON ROLE tailor_owner
    IS 'owns Tailor''s schemas, stored copies and releases; the proxy''s service account';
COMMENT ON ROLE tailor_reader IS 'members read protected tables through releases only';
COMMENT ON ROLE tailor_admin IS 'members attach policies to the tables they own';

CREATE SCHEMA IF NOT EXISTS tailor AUTHORIZATION tailor_owner;
CREATE SCHEMA IF NOT EXISTS tailor_store AUTHORIZATION tailor_owner;
CREATE SCHEMA IF NOT EXISTS tailor_release AUTHORIZATION tailor_owner;
CREATE SCHEMA IF NOT EXISTS research AUTHORIZATION tailor_owner;
COMMENT ON SCHEMA research IS 'what readers are shown, in the shape of the tables';
COMMENT ON SCHEMA tailor_release IS
    'Tailor''s own: the releases that queries of tables are answered from; tools look into '
    'research';
COMMENT ON SCHEMA tailor_store IS 'Tailor''s own: stored copies, which no reader may read';
COMMENT ON SCHEMA tailor IS 'policies and procedures, for administrators';
GRANT USAGE ON SCHEMA tailor_release, research TO tailor_reader;
GRANT USAGE ON SCHEMA tailor TO tailor_admin, tailor_reader;

SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL client_min_messages = warning;
SET LOCAL check_function_bodies = on;


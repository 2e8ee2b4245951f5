-- Version and place of this installation ------------------------------------

CREATE OR REPLACE FUNCTION tailor.restored() RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT NOT EXISTS (SELECT FROM tailor.installation)
        OR EXISTS (SELECT FROM tailor.installation i
                   WHERE i.chain_table <> 'tailor.chain'::regclass::oid::bigint OR i.written <> i.xmin::text)
$$;
COMMENT ON FUNCTION tailor.restored IS 'whether the chains came from a dump and nobody has said yet that they are the latest';

CREATE OR REPLACE FUNCTION tailor.protocol() RETURNS integer
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN current_setting('server_version_num')::integer >= 180000 THEN 2 ELSE 0 END
$$;
COMMENT ON FUNCTION tailor.protocol IS 'the newest version 3.x of the wire protocol that this server speaks, and so the proxy';

CREATE OR REPLACE PROCEDURE tailor.write_installation(version text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM tailor.installation;
    INSERT INTO tailor.installation (version, chain_table, written)
        VALUES (version, 'tailor.chain'::regclass::oid::bigint, '');
    -- The new state of the row is written by the transaction of the old one.
    UPDATE tailor.installation i SET written = i.xmin::text;
END $$;
COMMENT ON PROCEDURE tailor.write_installation IS 'says that this is the place and the version; for Tailor''s own routines only';

CREATE OR REPLACE PROCEDURE tailor.accept_restore()
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    latest text := (SELECT i.version FROM tailor.installation i ORDER BY i.installed DESC LIMIT 1);
BEGIN
    CALL tailor.write_installation(latest);
    -- Roles have other numbers here.
    UPDATE tailor.chain c SET role = (SELECT r.oid FROM pg_roles r WHERE c.audience IN ('principal ' || r.rolname, 'role ' || r.rolname));
    PERFORM nextval('tailor.catalog_version');
    PERFORM pg_notify('tailor', 'policies');
    RAISE WARNING 'what was shown after the dump was taken may be combined with what will be shown: the guarantee holds from the dump on';
END $$;
COMMENT ON PROCEDURE tailor.accept_restore IS 'lets the proxy serve chains that came from a dump; what was shown since the dump is not part of them';

DO $$
BEGIN
    -- Of a restored installation nothing is known: tailor.accept_restore decides.
    IF NOT EXISTS (SELECT FROM tailor.installation) OR NOT tailor.restored() THEN
        CALL tailor.write_installation('@VERSION@');
    END IF;
END $$;


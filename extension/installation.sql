-- Version and place of this installation ------------------------------------

CREATE OR REPLACE FUNCTION tailor.timeline() RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF pg_is_in_recovery() THEN
        RETURN NULL;
    END IF;
    RETURN ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint;
-- a service that keeps the log to itself
EXCEPTION WHEN feature_not_supported OR insufficient_privilege THEN
    RETURN NULL;
END $$;
COMMENT ON FUNCTION tailor.timeline
    IS 'the timeline that the server writes; NULL on a standby and where it is not told';

CREATE OR REPLACE FUNCTION tailor.restored() RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT NOT EXISTS (SELECT FROM tailor.installation)
        OR EXISTS (SELECT FROM tailor.installation i
                   WHERE i.chain_table <> 'tailor.chain'::regclass::oid::bigint
                       OR i.written <> i.xmin::text OR i.timeline <> tailor.timeline())
$$;
COMMENT ON FUNCTION tailor.restored
    IS 'whether the chains came from a dump, a copy or a standby and nobody has said yet that they '
        'are the latest';

CREATE OR REPLACE PROCEDURE tailor.count_as_restored()
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    UPDATE tailor.installation SET written = '';
    PERFORM nextval('tailor.catalog_version');
    PERFORM pg_notify('tailor', 'policies');
END $$;
COMMENT ON PROCEDURE tailor.count_as_restored
    IS 'stops the proxies until tailor.accept_restore: the database has lost commits; for the '
        'proxy only';

-- What a proxy has recorded durably, it has committed before. A chain that is not
-- there may also have been forgotten since: only of lines that are the next ones
-- for the database (recent) is it known to be lost.
CREATE OR REPLACE FUNCTION tailor.note_loss(lines text[], recent boolean) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM unnest(note_loss.lines) line, jsonb_each_text(line::jsonb -> 'generations')
            shown (chain, generation)
        LEFT JOIN tailor.chain c ON c.chain = shown.chain::integer
        WHERE (line::jsonb ->> 'time')::timestamptz > coalesce((SELECT max(i.accepted)
                FROM tailor.installation i), '-infinity')
          AND (c.generation < shown.generation::integer OR c.chain IS NULL
               AND note_loss.recent)) THEN
        RETURN false;
    END IF;
    CALL tailor.count_as_restored();
    RETURN true;
END $$;
COMMENT ON FUNCTION tailor.note_loss
    IS 'says, and notes as a restore, that lines of the audit log tell of more than the chains '
        'have; for the proxy only';

CREATE OR REPLACE FUNCTION tailor.protocol() RETURNS integer
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN current_setting('server_version_num')::integer >= 180000 THEN 2 ELSE 0 END
$$;
COMMENT ON FUNCTION tailor.protocol
    IS 'the newest version 3.x of the wire protocol that this server speaks, and so the proxy';

CREATE OR REPLACE PROCEDURE tailor.write_installation(version text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    accepted timestamptz;
BEGIN
    SELECT max(i.accepted) INTO accepted FROM tailor.installation i;
    DELETE FROM tailor.installation;
    INSERT INTO tailor.installation (version, chain_table, timeline, accepted, written)
        VALUES (version, 'tailor.chain'::regclass::oid::bigint, tailor.timeline(), accepted, '');
    -- The new state of the row is written by the transaction of the old one.
    UPDATE tailor.installation i SET written = i.xmin::text;
END $$;
COMMENT ON PROCEDURE tailor.write_installation
    IS 'says that this is the place and the version; for Tailor''s own routines only';

CREATE OR REPLACE PROCEDURE tailor.accept_restore()
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    latest text := (SELECT i.version FROM tailor.installation i ORDER BY i.installed DESC LIMIT 1);
    known  tailor.project_reader[] := ARRAY(SELECT p FROM tailor.project_reader p);
BEGIN
    -- Roles have other numbers in another cluster.
    DELETE FROM tailor.project_reader;
    INSERT INTO tailor.project_reader (reader, project, name)
        SELECT r.oid, k.project, k.name FROM unnest(known) k JOIN pg_roles r ON r.rolname = k.name;
    -- A dump has columns without those that were dropped, and types by other numbers.
    IF tailor.restored() THEN
        UPDATE tailor.policy_version v
        SET policy = v.policy || jsonb_build_object('fingerprint', tailor.fingerprint(p.relation))
        FROM tailor.protection p
        WHERE (p.relation, p.active) = (v.relation, v.version)
          AND substr(v.policy ->> 'fingerprint', 33) = substr(tailor.fingerprint(p.relation), 33)
          AND (SELECT jsonb_agg(jsonb_build_array(c ->> 'name', c ->> 'type') ORDER BY n)
               FROM jsonb_array_elements(v.policy -> 'columns') WITH ORDINALITY e (c, n))
            = (SELECT jsonb_agg(jsonb_build_array(a.attname, format_type(s.stored,
                          s.stored_modifier)) ORDER BY a.attnum)
               FROM pg_attribute a CROSS JOIN tailor.stored_type(a.atttypid, a.atttypmod, '') s
               WHERE a.attrelid = p.relation AND a.attnum > 0 AND NOT a.attisdropped);
    END IF;
    CALL tailor.write_installation(latest);
    UPDATE tailor.installation SET accepted = clock_timestamp();
    UPDATE tailor.installation i SET written = i.xmin::text;
    PERFORM nextval('tailor.catalog_version');
    PERFORM pg_notify('tailor', 'policies');
    RAISE WARNING 'what was shown after the dump or the copy was taken may be combined with what '
        'will be shown: the guarantee holds from there on';
END $$;
COMMENT ON PROCEDURE tailor.accept_restore
    IS 'lets the proxy serve chains that came from a dump, a copy or a standby; what was shown '
        'since is not part of them';

-- A publication of all tables, or of these schemas, would keep rows without a key
-- from being changed.
DO $$
DECLARE
    keyless record;
BEGIN
    FOR keyless IN
        SELECT c.oid::regclass AS name FROM pg_class c
        WHERE c.relkind = 'r' AND c.relreplident = 'd' AND NOT EXISTS (SELECT FROM pg_index i
                WHERE i.indrelid = c.oid AND i.indisprimary)
          AND (c.relnamespace = 'tailor'::regnamespace
               OR c.relnamespace = 'tailor_store'::regnamespace
                   AND c.relname ~ '^(chain_[0-9]+_row|'
                       '(epoch|tuples|records|digest|subrecord)_[0-9]+)$')
    LOOP
        EXECUTE format('ALTER TABLE %s REPLICA IDENTITY FULL', keyless.name);
    END LOOP;
END $$;

DO $$
BEGIN
    -- Of a restored installation nothing is known: tailor.accept_restore decides.
    IF NOT EXISTS (SELECT FROM tailor.installation) OR NOT tailor.restored() THEN
        CALL tailor.write_installation('@VERSION@');
    END IF;
END $$;


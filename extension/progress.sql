-- Progress --------------------------------------------------------------------
--
-- Others see what a transaction has written once it ends, but for sequences,
-- which no transaction takes back, and for locks. A copy that is being made
-- takes one of four slots by locking its table, which ends with the transaction
-- whatever becomes of it, and writes into the sequences of the slot. A fifth
-- copy at the same time is made without being seen.

DO $$
DECLARE
    part text;
BEGIN
    FOR slot IN 1 .. 4 LOOP
        EXECUTE format('CREATE TABLE IF NOT EXISTS tailor.lock_progress_%s ()', slot);
        -- Numbers are taken a thousand at a time: a number a row costs next to nothing.
        EXECUTE format('CREATE SEQUENCE IF NOT EXISTS tailor.progress_%s_rows CACHE 1000', slot);
        EXECUTE format('CREATE SEQUENCE IF NOT EXISTS tailor.progress_%s_stored INCREMENT 1000 '
            'START 1000', slot);
        FOREACH part IN ARRAY ARRAY['what', 'of', 'since'] LOOP
            EXECUTE format('CREATE SEQUENCE IF NOT EXISTS tailor.progress_%s_%s MINVALUE 0', slot,
                           part);
        END LOOP;
        FOREACH part IN ARRAY ARRAY['rows', 'stored', 'what', 'of', 'since'] LOOP
            EXECUTE format('ALTER SEQUENCE tailor.progress_%s_%s OWNER TO tailor_owner', slot,
                           part);
        END LOOP;
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION tailor.phases() RETURNS text[]
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT ARRAY['counting rows', 'copying rows', 'collecting combinations', 'checking hierarchies',
                 'leaving quasi-identifiers out',
                 'counting subjects', 'publishing', 'collecting codes', 'making blocks',
                 'writing the release']
$$;
COMMENT ON FUNCTION tailor.phases IS 'what tailor.progress calls the phases of a copy';

CREATE OR REPLACE FUNCTION tailor.start_progress(relation regclass) RETURNS integer
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    FOR slot IN 1 .. 4 LOOP
        BEGIN
            EXECUTE format('LOCK TABLE tailor.lock_progress_%s IN EXCLUSIVE MODE NOWAIT', slot);
            PERFORM setval(format('tailor.progress_%s_since', slot)::regclass, floor(extract(epoch
                    FROM clock_timestamp()))::bigint);
            -- Twice: nobody sees the number of no rows beside a phase of the copy before.
            CALL tailor.note_progress(slot, relation, 1);
            CALL tailor.note_progress(slot, relation, 1, 0);
            RETURN slot;
        EXCEPTION WHEN lock_not_available THEN
            CONTINUE;
        END;
    END LOOP;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION tailor.start_progress
    IS 'takes a slot of tailor.progress until the transaction ends, NULL if there is none; for '
        'Tailor''s own routines only';

CREATE OR REPLACE PROCEDURE tailor.note_progress(slot integer, relation regclass, phase integer,
                                                 total bigint DEFAULT NULL)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    IF slot IS NULL THEN
        RETURN;
    END IF;
    -- Others look in between: what belongs to the next phase comes before it, and
    -- what belongs to this one goes after it.
    IF total IS NOT NULL THEN
        PERFORM setval(format('tailor.progress_%s_of', slot)::regclass, total);
    END IF;
    PERFORM setval(format('tailor.progress_%s_what', slot)::regclass, relation::oid::bigint * 16
                   + phase);
    PERFORM setval(format('tailor.progress_%s_rows', slot)::regclass, 1, false);
    PERFORM setval(format('tailor.progress_%s_stored', slot)::regclass, 1000, false);
END $$;
COMMENT ON PROCEDURE tailor.note_progress
    IS 'says in which phase a copy is, and of how many rows; for Tailor''s own routines only';

-- A copy of a table reads each row and later stores it. What is read is counted
-- row by row; rows that are stored have numbers, and each thousandth counts.
-- Some of the numbers are told to the client.
CREATE OR REPLACE FUNCTION tailor.step(slot integer, relation regclass, total bigint,
                                       stored boolean) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN slot IS NULL THEN 'true'
                ELSE format('(%snextval(%L::regclass) %% %s <> 0 OR tailor.tell_progress(%s, %L, '
                    '%s, %L))',
                            CASE WHEN stored THEN '"tailor row" % 1000 <> 0 OR ' END,
                            format('tailor.progress_%s_%s', slot, CASE WHEN stored THEN 'stored'
                                   ELSE 'rows' END),
                            greatest(100000, total / 5000 * 1000), slot, relation, total,
                            stored) END
$$;
COMMENT ON FUNCTION tailor.step
    IS 'a condition that is true and counts rows that a copy has read or stored; for Tailor''s own '
        'routines only';

CREATE OR REPLACE FUNCTION tailor.tell_progress(slot integer, relation regclass, total bigint,
                                                stored boolean) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF stored THEN
        RAISE NOTICE 'table %: stored % of % rows', relation,
            currval(format('tailor.progress_%s_stored', slot)::regclass), total;
    ELSE
        RAISE NOTICE 'table %: read % of % rows', relation,
            currval(format('tailor.progress_%s_rows', slot)::regclass), total;
    END IF;
    RETURN true;
END $$;
COMMENT ON FUNCTION tailor.tell_progress
    IS 'tells the client how far a copy is; for Tailor''s own routines only';

DO $$
BEGIN
    EXECUTE 'CREATE OR REPLACE VIEW tailor.progress AS
        SELECT (s.what / 16)::oid::regclass AS relation,
               CASE WHEN s.what % 16 = 2 THEN CASE WHEN s.stored = 0 THEN ''reading rows''
                   ELSE ''storing rows'' END
                    ELSE (tailor.phases())[s.what % 16] END AS phase,
               CASE s.what % 16 WHEN 2 THEN least(CASE WHEN s.stored = 0 THEN s.rows
                   ELSE s.stored END, s.total)
                                WHEN 9 THEN least(s.rows, s.total) END AS rows,
               nullif(s.total, 0) AS of_rows, to_timestamp(s.since) AS since, l.pid, a.usename
               AS role
        FROM (' || (SELECT string_agg(format('SELECT ''tailor.lock_progress_%1$s''::regclass::oid '
            'AS slot, w.last_value AS what, o.last_value AS total, s.last_value AS since,
                                                     CASE WHEN r.is_called THEN r.last_value ELSE 0
                                                         END AS rows, CASE WHEN d.is_called
                                                             THEN d.last_value ELSE 0 END AS stored
                                              FROM tailor.progress_%1$s_what w,
                                                  tailor.progress_%1$s_of o,
                                                  tailor.progress_%1$s_since s,
                                                  tailor.progress_%1$s_rows r,
                                                  tailor.progress_%1$s_stored d', n), ' UNION ALL ')
                    FROM generate_series(1, 4) n) || ') s
        JOIN pg_locks l ON l.locktype = ''relation'' AND l.granted AND l.relation = s.slot
            AND l.mode = ''ExclusiveLock''
             AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
        LEFT JOIN pg_stat_activity a ON a.pid = l.pid';
END $$;
COMMENT ON VIEW tailor.progress
    IS 'copies that are being made by activations and refreshes, and releases that are brought up '
        'to date with them: phase, rows read or stored, of how many, since when';

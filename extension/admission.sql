-- What the proxy asks -------------------------------------------------------

-- What tells this session from all others, also from one whose process has the
-- same number later. The statistics show the start of other roles' processes to
-- superusers only, hence the rights of whoever installs; without them the number
-- must do. It is asked where pg_backend_pid can be: never in a parallel worker, to which
-- PostgreSQL since version 17 would give whatever is marked as safe there.
CREATE OR REPLACE FUNCTION tailor.session() RETURNS text
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN (SELECT concat(pg_backend_pid(), ' ', encode(timestamptz_send(a.backend_start), 'hex'))
            FROM pg_stat_get_activity(pg_backend_pid()) a);
END $$;
COMMENT ON FUNCTION tailor.session
    IS 'number and start of the session''s process: what tickets are bound to';

-- What tells whether a standby has what a proxy has read at the primary: a position in the
-- write-ahead log says that on one timeline only, and the row is of the one that the primary
-- wrote when it was last accepted.
CREATE OR REPLACE FUNCTION tailor.replayed() RETURNS text
LANGUAGE plpgsql VOLATILE PARALLEL RESTRICTED SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    RETURN (SELECT concat_ws(' ', pg_last_wal_replay_lsn() - '0/0', (SELECT i.timeline
            FROM tailor.installation i))
            WHERE pg_is_in_recovery());
END $$;
COMMENT ON FUNCTION tailor.replayed
    IS 'how many bytes of the write-ahead log a standby has replayed, and the timeline of the '
        'installation; NULL where the server is none';

-- Not what is on disk: a commit with synchronous_commit = off is seen before it is there. The
-- next record of a page that has none would begin behind the page's header (40 bytes where the
-- page is a segment's first, else 24), of which nothing is replayed before there is one.
CREATE OR REPLACE FUNCTION tailor.written() RETURNS numeric
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    at numeric;
BEGIN
    IF pg_is_in_recovery() THEN
        RETURN pg_last_wal_replay_lsn() - '0/0';
    END IF;
    at := pg_current_wal_insert_lsn() - '0/0';
    RETURN CASE WHEN at % pg_size_bytes(current_setting('wal_segment_size')) = 40 THEN at - 40
                WHEN at % current_setting('wal_block_size')::integer = 24 THEN at - 24
                ELSE at END;
EXCEPTION WHEN feature_not_supported OR insufficient_privilege THEN
    RETURN NULL; -- a service that keeps the log to itself
END $$;
COMMENT ON FUNCTION tailor.written IS
    'how many bytes the log has, with all commits that can be seen; NULL where that is not told';

-- tailor.session(), asked once in a session: PL/pgSQL puts what an IMMUTABLE function
-- returns into its plans as a constant, and these are the process's own. Nobody can
-- set it, and it ends with the process.
CREATE OR REPLACE FUNCTION tailor.own_session() RETURNS text
LANGUAGE plpgsql IMMUTABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN tailor.session();
END $$;
COMMENT ON FUNCTION tailor.own_session
    IS 'tailor.session() as a constant of the plans that hold it: PL/pgSQL''s only; for Tailor''s '
        'own routines only';

-- The chains that the ticket at the end of a text is for; NULL where the proxy
-- made none for this text in this session. The key is a column of a query here and no
-- variable: plans show values of variables, and readers can have plans shown.
CREATE OR REPLACE FUNCTION tailor.ticket(query text) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    lead   CONSTANT text := E'\n/* tailor ';
    -- What stands behind the last lead; a regular expression would cost ten times as much.
    size   integer := greatest(strpos(reverse(query), reverse(lead)) - 1, 0);
    ticket text := right(query, size);
    chains text := split_part(ticket, ' ', 1);
    session CONSTANT text := tailor.own_session();
BEGIN
    RETURN (SELECT chains FROM tailor.admission_key WHERE ticket = format('%s %s */', chains,
            encode(sha256(key || sha256(key || convert_to(
        format(E'%s %s\n%s', session, chains, left(query, -size - length(lead))),
        pg_client_encoding()))), 'hex')));
END $$;
COMMENT ON FUNCTION tailor.ticket
    IS 'the chains that a text may read, by the ticket that the proxy has put behind it; for '
        'Tailor''s own routines only';

-- A release answers only statements that the proxy has planned and recorded:
-- their text, as the client's session sent it, ends in a ticket that the proxy
-- made for this text, this session and these chains, each with the edition that the
-- text was planned on. SQL in a string, EXECUTE, FETCH and a connection past the
-- proxy have no ticket. Each query of PL/pgSQL takes longer than all the rest, so one
-- reads what every statement needs; what few need stands behind a condition that
-- needs none, in an IF of its own: a query in the same IF is set up in any case.
--
-- A view tells the edition that it is of and the layout that it reads. This function is
-- STABLE, so it sees the chain by the snapshot of the statement, which reads the rows and
-- the chain's row by the same: older than the view, it would find one of them empty.
-- A parallel worker has another number than its session, no cursors, and knows nothing of
-- the functions that have called its query.
DO $$
DECLARE
    earlier record;
BEGIN -- and with it the views of earlier versions, which are not read any more
    FOR earlier IN SELECT p.oid::regprocedure AS name FROM pg_proc p
                   WHERE p.pronamespace = 'tailor'::regnamespace AND p.proname = 'admit'
                       AND p.proargnames IS DISTINCT FROM ARRAY['chain', 'edition', 'layout']
    LOOP
        EXECUTE format('DROP FUNCTION %s CASCADE', earlier.name);
    END LOOP;
END $$;
CREATE OR REPLACE FUNCTION tailor.admit(chain integer, edition integer, layout integer)
    RETURNS boolean
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
DECLARE
    seen   integer; -- the chain's edition, if it is in the view's layout
    holds  boolean;
    chains text;
    stack  text;
BEGIN
    -- In these encodings a byte that looks like a quote or a backslash can be half
    -- of a character, so that a text reads otherwise than it was planned.
    IF pg_client_encoding() IN ('SJIS', 'SHIFT_JIS_2004', 'BIG5', 'GBK', 'UHC', 'GB18030', 'JOHAB')
        THEN
        RAISE EXCEPTION 'releases are not read in client encoding %', pg_client_encoding()
            USING ERRCODE = '0A000', HINT = 'SET client_encoding = ''UTF8''.';
    END IF;
    -- When a transaction ends, the server reads its cursors WITH HOLD, whatever text
    -- ends it. Those of earlier transactions have been read, but only a statement that
    -- has begun the present one by itself knows which these are: a transaction that a DO
    -- block begins is stamped later than the block, and than the cursors it opens there.
    -- A cursor of this very statement is what functions of PostgreSQL's own read SQL in a
    -- string by (ts_rewrite, ts_stat), whatever calls them: a domain's CHECK, a view.
    SELECT (SELECT c.edition FROM tailor.chain c WHERE c.chain = abs(admit.chain)
            AND c.layout = abs(admit.layout)),
        EXISTS (SELECT FROM pg_cursor() c
                WHERE c.creation_time >= statement_timestamp() OR c.is_holdable
                    AND transaction_timestamp() <> statement_timestamp())
        INTO seen, holds;
    -- an earlier edition's is answered as it was planned, while it is there
    IF (seen >= edition) IS NOT TRUE THEN
        RAISE EXCEPTION 'a release is newer than the snapshot of this transaction'
            USING ERRCODE = '40001', HINT = 'Start the transaction again.';
    END IF;
    chains := tailor.ticket(current_query());
    IF (strpos(',' || chains, format(',%s:', chain)) > 0) IS NOT TRUE THEN
        RAISE EXCEPTION 'a release is read through the proxy, in place of its table'
            USING ERRCODE = '42501',
                HINT = 'Connect to the proxy and name the protected table itself.';
    END IF;
    IF format('%s:%s', chain, edition) <> ALL (string_to_array(chains, ',')) THEN
        RAISE EXCEPTION 'the policy or the copy of a table has just changed'
            USING ERRCODE = '40001', HINT = 'Send the statement again.';
    END IF;
    -- Behind this function's own line is whatever called the query that reads the
    -- release: nothing, or the parameters of the statement where they are logged.
    -- tailor.case_count, which has a query of its own, has looked for itself.
    IF layout > 0 THEN
        GET DIAGNOSTICS stack = PG_CONTEXT;
        IF split_part(stack, E'\n', 2) !~ '^($|(unnamed portal|portal ".*") )' THEN
            RAISE EXCEPTION 'a release is read by the statement itself, and by no function that it '
                'calls'
                USING ERRCODE = '42501', HINT = 'Name the protected table in the statement.';
        END IF;
    END IF;
    IF holds THEN
        IF EXISTS (SELECT FROM pg_cursor() c
                   WHERE (c.creation_time >= statement_timestamp() OR c.is_holdable
                          AND transaction_timestamp() <> statement_timestamp())
                     AND tailor.ticket(c.statement) IS NULL) THEN
            RAISE EXCEPTION 'a release is not read through or beside a cursor over anything else'
                USING ERRCODE = '42501', HINT = 'Close the cursor first.';
        END IF;
    END IF;
    RETURN true;
END $$;
COMMENT ON FUNCTION tailor.admit(integer, integer, integer)
    IS 'lets a statement read a release that the proxy has planned and recorded, and no other';

-- Chains of several audiences read a publication of codes, or what it shows of the parent, and
-- its tables ask whether a ticket names any of them: tailor.admit sees to the rest. Where the
-- statement's snapshot does not show the chain yet, all is NULL but the edition, which
-- tailor.admit refuses as a release that is newer than the snapshot (40001).
CREATE OR REPLACE FUNCTION tailor.asked(publication integer, parent boolean, OUT chain integer,
                                        OUT edition integer, OUT layout integer)
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
#variable_conflict use_column
BEGIN
    SELECT CASE WHEN parent THEN -c.chain ELSE c.chain END, split_part(t, ':', 2), c.layout
    INTO chain, edition, layout
    FROM unnest(string_to_array(tailor.ticket(current_query()), ',')) t
    LEFT JOIN tailor.chain c ON c.chain = abs(split_part(t, ':', 1)::integer)
    WHERE (t ~ '^-') = parent AND (c.relation IS NULL OR c.relation = (
            SELECT e.relation FROM tailor.epoch e WHERE e.epoch = publication))
    ORDER BY c.chain LIMIT 1;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'a release is read through the proxy, in place of its table'
            USING ERRCODE = '42501',
                HINT = 'Connect to the proxy and name the protected table itself.';
    END IF;
END $$;
COMMENT ON FUNCTION tailor.asked IS 'the chain of a publication that a statement''s ticket names, '
    'for tailor.admit; fails where it names none';

-- Tells the proxies that names have changed: a view made a moment ago may read
-- a protected table. Event triggers are for superusers; without one the proxies
-- look by themselves every few seconds.
CREATE OR REPLACE FUNCTION tailor.announce_ddl() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    IF tg_tag LIKE 'DROP %' OR EXISTS (
        SELECT FROM pg_event_trigger_ddl_commands() c
        WHERE coalesce(c.schema_name, '') NOT IN ('pg_temp', 'tailor', 'tailor_store',
                                                  'tailor_release')) THEN
        PERFORM pg_notify('tailor', 'ddl');
    END IF;
END $$;
DO $$
BEGIN
    IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        DROP EVENT TRIGGER IF EXISTS tailor_ddl;
        CREATE EVENT TRIGGER tailor_ddl ON ddl_command_end EXECUTE FUNCTION tailor.announce_ddl();
    END IF;
END $$;

-- PostgreSQL shows the values that it sampled to the operators of a query while
-- it plans, before anything is admitted, and an operator can be a reader's own. (Not
-- so of a table with row-level security, as that of a release.)
CREATE OR REPLACE PROCEDURE tailor.keep_no_samples(stored regclass) LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    changes text := (SELECT string_agg(format('ALTER %I SET STATISTICS 0', a.attname), ', ')
                     FROM pg_attribute a WHERE a.attrelid = stored AND a.attnum > 0
                         AND NOT a.attisdropped
                       AND a.attname !~ '^tailor (row|tuple|person|key|nth|subject|block)$');
BEGIN
    IF changes IS NOT NULL THEN
        EXECUTE format('ALTER TABLE %s %s', stored, changes);
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.keep_no_samples
    IS 'lets ANALYZE sample no column of a copy; for Tailor''s own routines only';

DROP PROCEDURE IF EXISTS tailor.expect_few(regclass);

-- Who waits --------------------------------------------------------------------------
--
-- A release is behind its table in those who wait (docs/decisions/epochs.md): newcomers
-- who are too few, rows of people who have left, payloads that are shown as they were.
-- tailor.epochs says how many, since when, and what comes next.

CREATE TABLE IF NOT EXISTS tailor.waiting (
    chain   integer NOT NULL REFERENCES tailor.chain ON DELETE CASCADE,
    person  bigint NOT NULL,
    what    "char" NOT NULL CHECK (what IN ('a', 'd', 'c')),
    since   timestamptz NOT NULL,
    epoch   integer NOT NULL,
    PRIMARY KEY (chain, person, what)
);
COMMENT ON TABLE tailor.waiting IS 'people, by digest, of whom a release shows something else '
    'than the copy that it took in last';
COMMENT ON COLUMN tailor.waiting.what IS 'a: arrival, d: departure, c: changed payload';
COMMENT ON COLUMN tailor.waiting.since IS 'when the first copy was made that said so, and all '
    'since';
COMMENT ON COLUMN tailor.waiting.epoch IS 'the last copy that said so';

ALTER TABLE tailor.chain ADD COLUMN IF NOT EXISTS next jsonb NOT NULL DEFAULT '{}';
COMMENT ON COLUMN tailor.chain.next IS 'what those who wait wait for: the size of a cohort, in '
    'how many blocks, '
    'and how many have to leave in addition where fewest do';

-- people waits for the copy that was taken in with the transaction.
CREATE OR REPLACE PROCEDURE tailor.note_waiting(chain integer, what "char", people bigint[],
    epoch integer)
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO tailor.waiting (chain, person, what, since, epoch)
        SELECT note_waiting.chain, p, note_waiting.what, e.created, e.epoch
        FROM (SELECT DISTINCT unnest(people) AS p) q, tailor.epoch e
        WHERE e.epoch = note_waiting.epoch
        ON CONFLICT ON CONSTRAINT waiting_pkey DO UPDATE SET epoch = excluded.epoch;
$$;
COMMENT ON PROCEDURE tailor.note_waiting IS 'notes who waits; for the proxy only';

-- Who was erased, or whose block went with somebody who was, waits no more.
CREATE OR REPLACE PROCEDURE tailor.forget_waiting(chain integer, person bigint, rows text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    EXECUTE format(
        'DELETE FROM tailor.waiting w
         WHERE w.chain = $1 AND (w.person = $2 OR w.what <> ''a'' AND NOT EXISTS (
             SELECT FROM %s r WHERE r."tailor person" = w.person))', rows) USING chain, person;
    UPDATE tailor.chain c
    SET (arrivals, departures, changes) = (
        SELECT count(*) FILTER (WHERE what = 'a'), count(*) FILTER (WHERE what = 'd'),
               count(*) FILTER (WHERE what = 'c')
        FROM tailor.waiting w WHERE w.chain = c.chain)
    WHERE c.chain = forget_waiting.chain;
END $$;
COMMENT ON PROCEDURE tailor.forget_waiting IS 'counts anew who waits, after an erasure; for '
    'Tailor''s own routines only';

-- Of all tables: for the console.
CREATE OR REPLACE VIEW tailor.all_epochs AS
    SELECT c.relation, c.chain, c.audience, e.created AS copied,
           c.epoch <> p.epoch OR c.version <> p.active AS behind,
           c.rows, c.subjects, c.blocks, c.min_block, c.arrivals, c.departures, c.changes,
           w.arrivals_since, w.departures_since, w.changes_since,
           c.departures::float8 / nullif(c.subjects, 0) AS stale,
           CASE WHEN c.arrivals + c.departures + c.changes > 0 AND c.next ? 'of' THEN
               'who waits is shown, or goes, with the table whose data set it is'
           ELSE concat_ws('; ',
               CASE WHEN c.arrivals > 0 AND (c.next ->> 'unmet')::boolean
                    THEN 'newcomers are shown when more have come with whom they meet the policy'
                    WHEN c.arrivals > 0
                    THEN format('newcomers are shown with a cohort of %s', c.next ->> 'cohort') END,
               CASE WHEN c.departures > 0 AND c.next ? 'codes'
                    THEN format('who left goes when all of a cluster have: %s clusters, '
                                'the nearest lacks %s more',
                                c.next ->> 'leaving', c.next ->> 'lacking')
                    WHEN c.departures > 0
                    THEN format('who left goes when those of a block who leave, and those who '
                                'stay, are enough or none: %s blocks, the nearest lacks %s more',
                                c.next ->> 'leaving', c.next ->> 'lacking') END,
               CASE WHEN c.changes > 0 AND c.next ? 'codes' THEN 'codes stay as they were published'
                    WHEN c.changes > 0
                    THEN format('changes are shown when enough of a block have changed: %s blocks',
                                c.next ->> 'changing') END) END AS next
    FROM tailor.chain c JOIN tailor.protection p USING (relation)
    JOIN tailor.epoch e ON e.epoch = c.epoch
    LEFT JOIN LATERAL (
        SELECT min(since) FILTER (WHERE what = 'a') AS arrivals_since,
               min(since) FILTER (WHERE what = 'd') AS departures_since,
               min(since) FILTER (WHERE what = 'c') AS changes_since
        FROM tailor.waiting w WHERE w.chain = c.chain) w ON true;
COMMENT ON VIEW tailor.all_epochs IS 'tailor.epochs of all tables; for Tailor itself only';

CREATE OR REPLACE VIEW tailor.epochs WITH (security_barrier = true) AS
    SELECT * FROM tailor.all_epochs WHERE tailor.owns(relation);
COMMENT ON VIEW tailor.epochs IS 'what is shown of each of one''s own tables: how it was at a '
    'time (copied), how many subjects, and how many wait since when: to be shown (arrivals), to '
    'go (departures), to be shown with what has changed (changes); which share is of people who '
    'have left (stale), and what comes next';

-- What a proxy could not show, and would find out no better by trying again.
CREATE TABLE IF NOT EXISTS tailor.unmade (
    relation    regclass PRIMARY KEY REFERENCES tailor.protection ON DELETE CASCADE,
    version     integer NOT NULL,
    epoch       integer NOT NULL,
    reason      text NOT NULL,
    hint        text NOT NULL,
    tried       timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE tailor.unmade IS 'why a proxy could not bring a release up to date with a version '
    'of the policy and a copy';

CREATE OR REPLACE PROCEDURE tailor.note_unmade(relation oid, version integer, epoch integer,
    reason text, hint text)
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO tailor.unmade (relation, version, epoch, reason, hint)
        SELECT p.relation, note_unmade.version, note_unmade.epoch, note_unmade.reason,
               note_unmade.hint
        FROM tailor.protection p WHERE p.relation = note_unmade.relation
        ON CONFLICT ON CONSTRAINT unmade_pkey DO UPDATE
        SET (version, epoch, reason, hint, tried) = (excluded.version, excluded.epoch,
            excluded.reason, excluded.hint, excluded.tried);
$$;
COMMENT ON PROCEDURE tailor.note_unmade
    IS 'says why a release could not be brought up to date; for the proxy only';

CREATE OR REPLACE VIEW tailor.failures WITH (security_barrier = true) AS
    SELECT u.relation, u.reason, u.hint, u.tried
    FROM tailor.unmade u JOIN tailor.protection p USING (relation)
    WHERE u.version = p.active AND u.epoch = p.epoch AND tailor.owns(u.relation)
      AND EXISTS (SELECT FROM (SELECT) one LEFT JOIN tailor.chain c ON c.relation = u.relation
                  WHERE c.version IS DISTINCT FROM p.active OR c.epoch IS DISTINCT FROM p.epoch);
COMMENT ON VIEW tailor.failures IS 'which of one''s own tables no proxy could bring up to date as '
    'they are now, and why';

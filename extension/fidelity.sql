-- How far off answers are ------------------------------------------------------

CREATE TABLE IF NOT EXISTS tailor.fidelity (
    relation    regclass PRIMARY KEY REFERENCES tailor.protection ON DELETE CASCADE,
    version     integer NOT NULL,
    measured    timestamptz NOT NULL,
    author      text NOT NULL,
    summary     jsonb NOT NULL
);
COMMENT ON TABLE tailor.fidelity IS 'what tailor fidelity --keep has measured of each table last: '
    'errors over many cells, and no true figure';
COMMENT ON COLUMN tailor.fidelity.version IS 'the policy''s that was in force';

CREATE OR REPLACE PROCEDURE tailor.keep_fidelity(relation regclass, summary jsonb)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    version integer;
BEGIN
    CALL tailor.assert_owner(relation);
    SELECT p.active INTO version FROM tailor.protection p
        WHERE p.relation = keep_fidelity.relation;
    IF version IS NULL THEN
        RAISE EXCEPTION 'table % has no policy in force', relation USING ERRCODE = '55000';
    END IF;
    IF jsonb_typeof(summary) IS DISTINCT FROM 'object' OR length(summary::text) > 1000000 THEN
        RAISE EXCEPTION 'a summary is an object of at most a megabyte' USING ERRCODE = '22023',
            HINT = 'tailor fidelity --keep writes one.';
    END IF;
    INSERT INTO tailor.fidelity AS kept VALUES (relation, version, now(), session_user, summary)
        ON CONFLICT ON CONSTRAINT fidelity_pkey DO UPDATE
        SET (version, measured, author, summary) =
            (excluded.version, excluded.measured, excluded.author, excluded.summary);
END $$;
COMMENT ON PROCEDURE tailor.keep_fidelity IS 'keeps what tailor fidelity has measured of one''s '
    'own table, for the console';

-- Values and margins ---------------------------------------------------------
--
-- In place of what a label covers, a row shows a value drawn from it, in proportions
-- raked to the margin of its cohort, which is published (docs/decisions/values.md).

ALTER TABLE tailor.classification
    ADD COLUMN IF NOT EXISTS shown_as text NOT NULL DEFAULT 'raked' CHECK (shown_as IN ('raked', 'middle')),
    ADD COLUMN IF NOT EXISTS margins boolean NOT NULL DEFAULT true;
COMMENT ON COLUMN tailor.classification.shown_as IS
    'the value of a row of a quasi-identifier: drawn from what its label covers, or its middle';
COMMENT ON COLUMN tailor.classification.margins IS
    'whether the distribution of a quasi-identifier is published; else values are spread evenly';

DROP PROCEDURE IF EXISTS tailor.represent(regclass, name, text);
CREATE OR REPLACE PROCEDURE tailor.represent(
    relation regclass, column_name name, representative text DEFAULT 'raked', margins boolean DEFAULT true)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    CALL tailor.assert_column(relation, column_name);
    IF representative = 'mean' THEN
        RAISE EXCEPTION 'representative: mean is gone' USING ERRCODE = '0A000',
            DETAIL = 'Values raked to published margins replace means of blocks, and lose less.',
            HINT = 'Leave it out: values are then raked.';
    END IF;
    IF representative IS NULL OR representative NOT IN ('raked', 'middle') THEN
        RAISE EXCEPTION 'unknown representative "%"', representative
            USING ERRCODE = '22023', HINT = 'Representatives are raked and middle.';
    END IF;
    IF margins IS NULL THEN
        RAISE EXCEPTION 'margins are published or not' USING ERRCODE = '22023', HINT = 'Say true or false.';
    END IF;
    UPDATE tailor.classification c SET shown_as = representative, margins = represent.margins
        WHERE c.relation = represent.relation AND c.column_name = represent.column_name
          AND c.class = 'quasi_identifier';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'column "%" of table % is not classified as quasi_identifier', column_name, relation
            USING ERRCODE = '22023', HINT = 'Only what is generalized has a representative; call tailor.classify first.';
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.represent IS
    'says which value rows of a quasi-identifier show, and whether its distribution is published';

CREATE TABLE IF NOT EXISTS tailor.margin (
    chain       integer NOT NULL REFERENCES tailor.chain ON DELETE CASCADE,
    cohort      integer NOT NULL,
    dimension   integer NOT NULL,
    column_name text NOT NULL,
    label       text,
    subjects    bigint NOT NULL,
    rows        bigint NOT NULL
);
CREATE INDEX IF NOT EXISTS margin_chain ON tailor.margin (chain, dimension);
COMMENT ON TABLE tailor.margin IS 'how many subjects of a cohort have which value of one quasi-identifier';
COMMENT ON COLUMN tailor.margin.cohort IS 'the copy that the cohort came with';
COMMENT ON COLUMN tailor.margin.dimension IS 'the number of the column, as in the tables of the release';
COMMENT ON COLUMN tailor.margin.label IS
    'a value, or a label: each value counts under the narrowest label that covers it; NULL for NULL';

-- What the asking role may read of releases.
CREATE OR REPLACE VIEW research.tailor_margins AS
    SELECT n.nspname::text AS table_schema, c.relname::text AS table_name, m.column_name, m.cohort, m.label,
           m.subjects, m.rows
    FROM tailor.margin m JOIN tailor.chain h USING (chain)
    JOIN pg_class c ON c.oid = h.relation JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_class v ON v.relnamespace = 'tailor_release'::regnamespace
         AND v.relname = concat('chain_', h.chain, CASE WHEN h.edition > 0 THEN '_g' || h.edition END)
    WHERE has_table_privilege(current_user, v.oid, 'SELECT');
COMMENT ON VIEW research.tailor_margins IS
    'how many subjects have which value of a quasi-identifier: each value counts under the narrowest label listed that covers it';
ALTER VIEW research.tailor_margins OWNER TO tailor_owner;
GRANT SELECT ON research.tailor_margins TO tailor_reader;

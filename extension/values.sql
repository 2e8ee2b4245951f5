-- Values and margins ---------------------------------------------------------
--
-- In place of what a label covers, a row shows a value drawn from it, in proportions
-- raked to the margin of its cohort, which is published (docs/decisions/values.md).

ALTER TABLE tailor.classification
    ADD COLUMN IF NOT EXISTS shown_as text NOT NULL DEFAULT 'raked'
        CHECK (shown_as IN ('raked', 'middle')),
    ADD COLUMN IF NOT EXISTS margins boolean NOT NULL DEFAULT true;
COMMENT ON COLUMN tailor.classification.shown_as IS
    'the value of a row of a quasi-identifier: drawn from what its label covers, or its middle';
COMMENT ON COLUMN tailor.classification.margins IS
    'whether the distribution of a quasi-identifier is published; else values are spread evenly';

DROP PROCEDURE IF EXISTS tailor.represent(regclass, name, text);
CREATE OR REPLACE PROCEDURE tailor.represent(
    relation regclass, column_name name, representative text DEFAULT 'raked', margins boolean
        DEFAULT true)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
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
        RAISE EXCEPTION 'margins are published or not' USING ERRCODE = '22023',
            HINT = 'Say true or false.';
    END IF;
    UPDATE tailor.classification c SET shown_as = representative, margins = represent.margins
        WHERE c.relation = represent.relation AND c.column_name = represent.column_name
          AND c.class = 'quasi_identifier';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'column "%" of table % is not classified as quasi_identifier', column_name,
            relation
            USING ERRCODE = '22023',
                HINT = 'Only what is generalized has a representative; call tailor.classify first.';
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
ALTER TABLE tailor.margin ADD COLUMN IF NOT EXISTS part integer NOT NULL DEFAULT 0;
CREATE INDEX IF NOT EXISTS margin_chain ON tailor.margin (chain, dimension);
COMMENT ON TABLE tailor.margin
    IS 'how many subjects of a cohort have which value of one quasi-identifier';
COMMENT ON COLUMN tailor.margin.cohort IS 'the copy that the cohort came with';
COMMENT ON COLUMN tailor.margin.part
    IS 'of a table of many rows, which is partitioned in parts';
COMMENT ON COLUMN tailor.margin.dimension
    IS 'the number of the column, as in the tables of the release';
COMMENT ON COLUMN tailor.margin.label IS
    'a value, or a label: each value counts under the narrowest label that covers it; NULL for '
    'NULL';

-- Names of releases that the asking role may read.
CREATE OR REPLACE VIEW tailor.readable AS
    SELECT h.chain, h.relation, n.nspname::text AS table_schema, c.relname::text AS table_name,
        h.columns, h.version
    FROM tailor.chain h JOIN pg_class c ON c.oid = h.relation
        JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_class v ON v.relnamespace = 'tailor_release'::regnamespace
         AND v.relname = concat('chain_', h.chain, CASE WHEN h.edition > 0 THEN '_g' || h.edition
                                END)
    WHERE has_table_privilege(current_user, v.oid, 'SELECT');
COMMENT ON VIEW tailor.readable IS 'for Tailor''s own views only';

-- A function of a reader's own is shown nothing of what another audience reads.
CREATE OR REPLACE VIEW research.tailor_margins WITH (security_barrier = true) AS
    SELECT r.table_schema, r.table_name, m.column_name, m.cohort, m.label, m.subjects, m.rows,
           m.part
    FROM tailor.margin m JOIN tailor.readable r USING (chain);
COMMENT ON VIEW research.tailor_margins IS
    'how many subjects have which value of a quasi-identifier: each counts under the narrowest '
    'label listed for its cohort and part that covers it';

CREATE OR REPLACE VIEW research.tailor_columns WITH (security_barrier = true) AS
    SELECT r.table_schema, r.table_name, c ->> 'name' AS column_name, c ->> 'type' AS data_type,
           CASE c ->> 'class' WHEN 'direct_identifier' THEN 'pseudonym' ELSE c ->> 'class' END
               AS class,
           c #>> '{hierarchy,name}' AS hierarchy, coalesce(c ->> 'representative', CASE
                   WHEN c ? 'hierarchy' THEN 'raked' END) AS value_is,
           coalesce((r.columns #>> ARRAY[c ->> 'number', 'exact'])::float8, 1) AS exact,
           coalesce((r.columns #>> ARRAY[c ->> 'number', 'loss'])::float8, 0) AS loss
    FROM tailor.readable r JOIN tailor.policy_version v USING (relation, version)
    CROSS JOIN LATERAL jsonb_array_elements(v.policy -> 'columns') c
    WHERE c ->> 'class' IN ('quasi_identifier', 'sensitive', 'non_sensitive')
       OR (c ->> 'class' = 'direct_identifier' AND c ->> 'action' = 'pseudonym');
COMMENT ON VIEW research.tailor_columns
    IS 'the columns that a reader is shown, and how exact they are';
COMMENT ON COLUMN research.tailor_columns.value_is IS
    'raked: drawn from what the label covers, so that all values together meet the margin; middle: '
    'the middle of the label';
COMMENT ON COLUMN research.tailor_columns.exact IS
    'the share of rows whose value is the one that the table has; of one that may be withheld, of '
    'those that have one';
COMMENT ON COLUMN research.tailor_columns.loss
    IS 'the mean share of the domain that a label covers';
ALTER VIEW research.tailor_margins OWNER TO tailor_owner;
ALTER VIEW research.tailor_columns OWNER TO tailor_owner;
GRANT SELECT ON research.tailor_margins, research.tailor_columns TO tailor_reader;

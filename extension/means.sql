-- Columns that are shown by means ----------------------------------------------
--
-- A quasi-identifier of numbers can be shown by the means of groups of blocks in
-- place of the middles of its labels. The proxy guards them
-- (docs/decisions/block-means.md); here is the policy.

CREATE OR REPLACE PROCEDURE tailor.represent(relation regclass, column_name name, representative text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    CALL tailor.assert_column(relation, column_name);
    IF representative IS NULL OR representative NOT IN ('middle', 'mean') THEN
        RAISE EXCEPTION 'unknown representative "%"', representative USING ERRCODE = '22023', HINT = 'Representatives are middle and mean.';
    END IF;
    UPDATE tailor.classification c SET representative = represent.representative
        WHERE c.relation = represent.relation AND c.column_name = represent.column_name AND c.class = 'quasi_identifier';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'column "%" of table % is not classified as quasi_identifier', column_name, relation USING ERRCODE = '22023',
            HINT = 'A representative is what stands for a label; call tailor.classify first.';
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.represent IS 'says which value stands for a label of a quasi-identifier: the middle of the label, or the mean of those who share it';

CREATE OR REPLACE PROCEDURE tailor.assert_means(relation regclass, policy jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found record;
BEGIN
    FOR found IN
        SELECT c ->> 'name' AS name, c ->> 'class' AS class, c #>> '{hierarchy,kind}' AS kind
        FROM jsonb_array_elements(policy -> 'columns') c WHERE c ->> 'representative' = 'mean'
    LOOP
        IF found.class IS DISTINCT FROM 'quasi_identifier' OR found.kind IS DISTINCT FROM 'interval' THEN
            RAISE EXCEPTION 'column "%" cannot be shown by means', found.name USING ERRCODE = '0A000',
                HINT = 'Means are of quasi-identifiers that are numbers, with a hierarchy of kind interval: its widths bound what a mean may tell.';
        END IF;
        -- Joins have shown labels of it over other blocks than those of the means.
        IF EXISTS (SELECT FROM tailor.chain c JOIN tailor.epoch e USING (epoch)
                   JOIN tailor.policy_version v ON v.relation = e.relation AND v.version = e.version
                   WHERE v.policy ? 'parent' AND (
                       -- The name is of the time when the child was activated.
                       coalesce(to_regclass(quote_ident(v.policy #>> '{parent,schema}') || '.' || quote_ident(v.policy #>> '{parent,name}')),
                                assert_means.relation) = assert_means.relation
                       OR EXISTS (SELECT FROM pg_constraint f WHERE f.contype = 'f' AND f.conrelid = c.relation AND f.confrelid = assert_means.relation))) THEN
            RAISE EXCEPTION 'column "%" cannot be shown by means: joins with table % have shown its labels', found.name, relation
                USING ERRCODE = '55000', HINT = 'Start the chains of the tables that refer to it anew with tailor.forget_chains, which gives up the guarantee over what was shown before.';
        END IF;
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.assert_means IS 'fails where a policy asks for means that nothing would guard, as far as that does not depend on data';

-- The guard weighs the values of people; of several rows it could not tell which
-- are one person's.
CREATE OR REPLACE PROCEDURE tailor.assert_one_value(relation regclass, policy jsonb, total bigint, subjects bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF total > subjects AND policy @? '$.columns[*] ? (@.representative == "mean")' THEN
        RAISE EXCEPTION 'table % has several rows for a subject and cannot be shown by means', relation USING ERRCODE = '0A000',
            HINT = 'Protect a table with one row for each subject, or leave representative at middle.';
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_one_value IS 'fails where a table that is shown by means has several rows for a subject';

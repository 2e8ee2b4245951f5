-- What takes effect at once ------------------------------------------------------
--
-- Departures and changed payloads wait until enough of a block leave or change, because
-- whoever knows that a person did would see what the person's row held. If nobody but the
-- table's owner knows, they may take effect with the next copy (catalog/atonce.go).

ALTER TABLE tailor.protection
    ADD COLUMN IF NOT EXISTS departures text NOT NULL DEFAULT 'batch'
        CHECK (departures IN ('batch', 'at_once')),
    ADD COLUMN IF NOT EXISTS changes text NOT NULL DEFAULT 'batch'
        CHECK (changes IN ('batch', 'at_once'));
COMMENT ON COLUMN tailor.protection.departures IS
    'whether who leaves is shown until enough of the block leave (batch), or goes at once';
COMMENT ON COLUMN tailor.protection.changes IS
    'whether changed payloads wait until enough of the block change (batch), or are shown at once';

ALTER TABLE tailor.protection
    ADD COLUMN IF NOT EXISTS cuts text NOT NULL DEFAULT 'by_models'
        CHECK (cuts IN ('by_models', 'blind'));
COMMENT ON COLUMN tailor.protection.cuts IS
    'whether blocks are cut so that they meet the models, or by k alone: sensitive values are then '
    'withheld where a block fails one';

ALTER TABLE tailor.protection
    ADD COLUMN IF NOT EXISTS indexed name[] NOT NULL DEFAULT '{}',
    ADD COLUMN IF NOT EXISTS unindexed name[] NOT NULL DEFAULT '{}';
COMMENT ON COLUMN tailor.protection.indexed IS
    'columns that releases have an index on although the table has none';
COMMENT ON COLUMN tailor.protection.unindexed IS
    'columns that releases have no index on although the table has one';

CREATE OR REPLACE PROCEDURE tailor.indexes(
    relation regclass, add name[] DEFAULT '{}', "drop" name[] DEFAULT '{}')
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    column_name name;
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    IF add && "drop" THEN
        RAISE EXCEPTION 'a column is both in add and in drop' USING ERRCODE = '22023',
            HINT = 'Name it in one of them.';
    END IF;
    FOREACH column_name IN ARRAY coalesce(add, '{}') || coalesce("drop", '{}') LOOP
        CALL tailor.assert_column(relation, column_name);
    END LOOP;
    UPDATE tailor.protection p SET indexed = coalesce(add, '{}'), unindexed = coalesce("drop", '{}')
        WHERE p.relation = indexes.relation;
END $$;
COMMENT ON PROCEDURE tailor.indexes IS
    'says which columns of releases are indexed besides, or in spite of, those of the table';

CREATE OR REPLACE PROCEDURE tailor.write_setting(
    relation regclass, setting name, value text, allowed text[])
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    IF value IS NULL OR value <> ALL (allowed) THEN
        RAISE EXCEPTION '% cannot be "%"', setting, value USING ERRCODE = '22023',
            HINT = 'It is ' || array_to_string(allowed, ' or ') || '.';
    END IF;
    EXECUTE format('UPDATE tailor.protection p SET %I = $2 WHERE p.relation = $1', setting)
        USING relation, value;
END $$;
COMMENT ON PROCEDURE tailor.write_setting IS
    'writes a setting of a draft that has one of some values; for Tailor''s own routines only';

CREATE OR REPLACE PROCEDURE tailor.departures(relation regclass, effect text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    CALL tailor.write_setting(relation, 'departures', effect, '{batch,at_once}');
END $$;
COMMENT ON PROCEDURE tailor.departures IS
    'says when who leaves is not shown any more: with enough of the block (batch), or at once';

CREATE OR REPLACE PROCEDURE tailor.changes(relation regclass, effect text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    CALL tailor.write_setting(relation, 'changes', effect, '{batch,at_once}');
END $$;
COMMENT ON PROCEDURE tailor.changes IS
    'says when changed payloads are shown: with enough of the block (batch), or at once';

CREATE OR REPLACE PROCEDURE tailor.cuts(relation regclass, cuts text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    CALL tailor.write_setting(relation, 'cuts', cuts, '{by_models,blind}');
END $$;
COMMENT ON PROCEDURE tailor.cuts IS
    'says whether cuts may look at sensitive values (by_models), or values are withheld (blind)';

CREATE OR REPLACE FUNCTION tailor.draft_effects(relation regclass) RETURNS jsonb
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT jsonb_strip_nulls(jsonb_build_object(
        'departures', nullif(p.departures, 'batch'), 'changes', nullif(p.changes, 'batch'),
        'cuts', nullif(p.cuts, 'by_models'),
        'indexes', CASE WHEN p.indexed || p.unindexed <> '{}'
                        THEN jsonb_build_object('add', to_jsonb(p.indexed), 'drop',
                                                to_jsonb(p.unindexed)) END))
    FROM tailor.protection p WHERE p.relation = draft_effects.relation
$$;
COMMENT ON FUNCTION tailor.draft_effects IS
    'what tailor.draft says of departures, changes, cuts and indexes that are not as they are by '
    'default';

CREATE OR REPLACE PROCEDURE tailor.assert_effects(relation regclass, policy jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    IF policy ? 'set_valued' AND policy ?| ARRAY['departures', 'changes'] THEN
        RAISE EXCEPTION 'the set-valued table % shows no departures or changes at once', relation
            USING ERRCODE = '0A000', HINT = 'Records are published in clusters there, '
                'and each as it was when its cohort was published.';
    END IF;
    IF EXISTS (SELECT FROM jsonb_array_elements_text(policy #> '{indexes,add}') i
               WHERE NOT policy -> 'columns' @? format('$[*] ? (@.name == %s && @.class != '
                   '"direct_identifier")', to_json(i))::jsonpath) THEN
        RAISE EXCEPTION 'an index of table % is on a column that no release has', relation
            USING ERRCODE = '22023', HINT = 'CALL tailor.indexes for columns that are shown.';
    END IF;
    IF policy ? 'departures' THEN
        RAISE NOTICE 'table %: who leaves is not shown from the next copy on; this assumes '
            'that nobody but the table''s owner knows who leaves', relation
            USING HINT = 'Whoever knows it sees, by comparing answers, what the row held.';
    END IF;
    IF policy ? 'changes' THEN
        RAISE NOTICE 'table %: changed payloads are shown from the next copy on; this assumes '
            'that nobody but the table''s owner knows whose change', relation
            USING HINT = 'Whoever knows it sees, by comparing answers, '
                'what the row held and what it holds.';
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_effects IS
    'says what departures and changes at once assume, and fails where they cannot be';

-- What chains are prepared for, and which risk decides ------------------------

CREATE OR REPLACE PROCEDURE tailor.assert_combinations(relation regclass, combinations jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    combination jsonb;
    member      jsonb;
BEGIN
    IF jsonb_typeof(combinations) IS DISTINCT FROM 'array' THEN
        RAISE EXCEPTION 'a workload is a list of lists of columns' USING ERRCODE = '22023', HINT = 'For example: [["age", "zip"], ["sex"]].';
    END IF;
    FOR combination IN SELECT * FROM jsonb_array_elements(combinations) LOOP
        IF jsonb_typeof(combination) <> 'array' OR jsonb_array_length(combination) = 0 THEN
            RAISE EXCEPTION 'a workload is a list of lists of columns' USING ERRCODE = '22023', HINT = 'For example: [["age", "zip"], ["sex"]].';
        END IF;
        FOR member IN SELECT * FROM jsonb_array_elements(combination) LOOP
            IF jsonb_typeof(member) <> 'string' OR NOT EXISTS (
                SELECT FROM tailor.classification c
                WHERE c.relation = assert_combinations.relation AND c.class = 'quasi_identifier' AND c.column_name = member #>> '{}') THEN
                RAISE EXCEPTION '% is no quasi-identifier of table %', member, relation
                    USING ERRCODE = '42703', HINT = 'Classify the quasi-identifiers first, with tailor.classify.';
            END IF;
        END LOOP;
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.assert_combinations IS 'fails unless a workload names quasi-identifiers only';

CREATE OR REPLACE PROCEDURE tailor.seed(relation regclass, combinations jsonb)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    CALL tailor.assert_combinations(relation, combinations);
    UPDATE tailor.protection p SET seed = combinations WHERE p.relation = seed.relation;
END $$;
COMMENT ON PROCEDURE tailor.seed IS 'says which combinations of quasi-identifiers every chain of a table is prepared for, from the next activation on';

CREATE OR REPLACE PROCEDURE tailor.project(name text, relation regclass, combinations jsonb)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    IF coalesce(name, '') = '' THEN
        RAISE EXCEPTION 'a project needs a name' USING ERRCODE = '22023';
    END IF;
    IF combinations IS NULL THEN
        DELETE FROM tailor.project j WHERE j.name = project.name AND j.relation = project.relation;
    ELSE
        CALL tailor.assert_combinations(relation, combinations);
        INSERT INTO tailor.project (name, relation, combinations) VALUES (name, relation, combinations)
            ON CONFLICT ON CONSTRAINT project_pkey DO UPDATE SET combinations = excluded.combinations;
    END IF;
    PERFORM nextval('tailor.catalog_version');
    PERFORM pg_notify('tailor', 'policies');
END $$;
COMMENT ON PROCEDURE tailor.project IS 'declares the workload of a project on a table, NULL to drop it; SET tailor.project prepares a chain for it';

CREATE OR REPLACE PROCEDURE tailor.gate(relation regclass, measure text, max_risk double precision)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    IF measure IS NULL OR measure NOT IN ('highest', 'average', 'below_k', 'unique') THEN
        RAISE EXCEPTION '"%" cannot gate: it does not grow with every refinement', measure USING ERRCODE = '22023',
            DETAIL = 'A chain could pass the gate after it had been above it, and what was shown in between stays shown.',
            HINT = 'Measures are highest, average, below_k and unique.';
    END IF;
    IF max_risk IS NULL OR NOT (max_risk > 0 AND max_risk <= 1) THEN
        RAISE EXCEPTION 'max_risk must be above 0 and at most 1' USING ERRCODE = '22023';
    END IF;
    UPDATE tailor.protection p SET gate = measure, max_risk = gate.max_risk WHERE p.relation = gate.relation;
END $$;
COMMENT ON PROCEDURE tailor.gate IS 'chooses the measure of risk that decides whether a stage is de-identified; whatever it is, no block has fewer than k subjects';


-- What roots are made for, and which risk decides ------------------------

CREATE OR REPLACE PROCEDURE tailor.assert_combinations(relation regclass, combinations jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    combination jsonb;
    member      jsonb;
BEGIN
    IF jsonb_typeof(combinations) IS DISTINCT FROM 'array' THEN
        RAISE EXCEPTION 'a workload is a list of lists of columns' USING ERRCODE = '22023',
            HINT = 'For example: [["age", "zip"], ["sex"]].';
    END IF;
    FOR combination IN SELECT * FROM jsonb_array_elements(combinations) LOOP
        IF jsonb_typeof(combination) <> 'array' OR jsonb_array_length(combination) = 0 THEN
            RAISE EXCEPTION 'a workload is a list of lists of columns' USING ERRCODE = '22023',
                HINT = 'For example: [["age", "zip"], ["sex"]].';
        END IF;
        FOR member IN SELECT * FROM jsonb_array_elements(combination) LOOP
            IF jsonb_typeof(member) <> 'string' OR NOT EXISTS (
                SELECT FROM tailor.classification c
                WHERE c.relation = assert_combinations.relation AND c.class = 'quasi_identifier'
                    AND c.column_name = member #>> '{}') THEN
                RAISE EXCEPTION '% is no quasi-identifier of table %', member, relation
                    USING ERRCODE = '42703',
                        HINT = 'Classify the quasi-identifiers first, with tailor.classify.';
            END IF;
        END LOOP;
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.assert_combinations
    IS 'fails unless a workload names quasi-identifiers only';

CREATE OR REPLACE PROCEDURE tailor.seed(relation regclass, combinations jsonb)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    CALL tailor.assert_combinations(relation, combinations);
    UPDATE tailor.protection p SET seed = combinations WHERE p.relation = seed.relation;
END $$;
COMMENT ON PROCEDURE tailor.seed
    IS 'says for which combinations of quasi-identifiers the root of a table is made, from the '
        'next activation on';

CREATE OR REPLACE PROCEDURE tailor.project(name text, relation regclass, combinations jsonb)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    IF coalesce(name, '') = '' THEN
        RAISE EXCEPTION 'a project needs a name' USING ERRCODE = '22023';
    END IF;
    IF EXISTS (SELECT FROM tailor.project j WHERE j.name = project.name) THEN
        CALL tailor.assert_project(name);
    END IF;
    IF combinations IS NULL THEN
        DELETE FROM tailor.project j WHERE j.name = project.name AND j.relation = project.relation;
    ELSE
        CALL tailor.assert_combinations(relation, combinations);
        INSERT INTO tailor.project (name, relation, combinations)
            VALUES (name, relation, combinations)
            ON CONFLICT ON CONSTRAINT project_pkey DO UPDATE
                SET combinations = excluded.combinations;
    END IF;
    PERFORM nextval('tailor.catalog_version');
    PERFORM pg_notify('tailor', 'policies');
END $$;
COMMENT ON PROCEDURE tailor.project
    IS 'declares the workload of a project on a table, NULL to drop it; with scope project its '
        'readers have a root of their own';

-- A project is its owner's: who reads for it reads all of its tables.
CREATE OR REPLACE PROCEDURE tailor.assert_project(name text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    other regclass;
BEGIN
    IF NOT EXISTS (SELECT FROM tailor.project j WHERE j.name = assert_project.name) THEN
        RAISE EXCEPTION 'there is no project "%"', name USING ERRCODE = '42704',
            HINT = 'CALL tailor.project(...) declares one.';
    END IF;
    SELECT j.relation INTO other FROM tailor.project j WHERE j.name = assert_project.name
        AND NOT tailor.owns(j.relation) ORDER BY 1 LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'project "%" has table %, which is not yours', name, other
            USING ERRCODE = '42501',
            HINT = 'Who owns all tables of a project says who reads for it.';
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_project
    IS 'fails unless a project exists and the caller owns all of its tables; for Tailor''s own '
        'routines only';

-- Two roots of the same people, laid beside each other, tell more than either: a
-- role reads for one project. Roles are kept by number.
CREATE OR REPLACE PROCEDURE tailor.join_project(name text, reader name)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    number oid := (SELECT r.oid FROM pg_roles r WHERE r.rolname = join_project.reader);
    other  text;
BEGIN
    IF number IS NULL THEN
        RAISE EXCEPTION 'role "%" does not exist', reader USING ERRCODE = '42704';
    END IF;
    CALL tailor.assert_project(name);
    SELECT p.project INTO other FROM tailor.project_reader p WHERE p.reader = number
        AND p.project <> join_project.name;
    IF other IS NOT NULL THEN
        RAISE EXCEPTION 'role "%" reads for project "%"', reader, other USING ERRCODE = '55000',
            HINT = 'Who reads for two projects can lay two roots of the same people beside each '
                'other. CALL tailor.leave_project(...) first, if what was shown to it is '
                'forgotten.';
    END IF;
    INSERT INTO tailor.project_reader AS p VALUES (number, name, reader)
        ON CONFLICT ON CONSTRAINT project_reader_pkey DO UPDATE SET name = excluded.name;
    PERFORM nextval('tailor.catalog_version');
    PERFORM pg_notify('tailor', 'policies');
END $$;
COMMENT ON PROCEDURE tailor.join_project
    IS 'lets a role, and who is a member of it, read for a project';

CREATE OR REPLACE PROCEDURE tailor.leave_project(name text, reader name)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    CALL tailor.assert_project(name);
    DELETE FROM tailor.project_reader p USING pg_roles r
        WHERE p.reader = r.oid AND r.rolname = leave_project.reader
            AND p.project = leave_project.name;
    PERFORM nextval('tailor.catalog_version');
    PERFORM pg_notify('tailor', 'policies');
END $$;
COMMENT ON PROCEDURE tailor.leave_project IS 'ends that a role reads for a project';

CREATE OR REPLACE PROCEDURE tailor.max_share(relation regclass, share double precision)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    IF share IS NULL OR NOT (share > 0 AND share <= 1) THEN
        RAISE EXCEPTION 'a share must be above 0 and at most 1' USING ERRCODE = '22023',
            HINT = 'With 0.5, nobody owns more than half of the rows of a block.';
    END IF;
    UPDATE tailor.protection p SET max_share = share WHERE p.relation = max_share.relation;
END $$;
COMMENT ON PROCEDURE tailor.max_share
    IS 'says which share of the rows of a block one subject may own at most, where subjects have '
        'several; 0.5 without it';

CREATE OR REPLACE PROCEDURE tailor.cohort(relation regclass, subjects integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    IF subjects < 1 THEN
        RAISE EXCEPTION 'a cohort has at least one subject' USING ERRCODE = '22023',
            HINT = 'It never has fewer than k. The more there are, the less each of them loses, '
                'and the longer the first of them waits.';
    END IF;
    UPDATE tailor.protection p SET cohort = subjects WHERE p.relation = cohort.relation;
END $$;
COMMENT ON PROCEDURE tailor.cohort
    IS 'says how many subjects that nobody has been shown before are shown together; NULL: the '
        'larger of 100 and 20 k';

CREATE OR REPLACE PROCEDURE tailor.gate(relation regclass, measure text, max_risk double precision)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    IF measure IS NULL OR measure NOT IN ('highest', 'average', 'below_k', 'unique') THEN
        RAISE EXCEPTION '"%" cannot gate: it does not grow with every refinement', measure
            USING ERRCODE = '22023',
            DETAIL = 'A finer partition could be below it where a coarser one is above.',
            HINT = 'Measures are highest, average, below_k and unique.';
    END IF;
    IF max_risk IS NULL OR NOT (max_risk > 0 AND max_risk <= 1) THEN
        RAISE EXCEPTION 'max_risk must be above 0 and at most 1' USING ERRCODE = '22023';
    END IF;
    UPDATE tailor.protection p SET gate = measure, max_risk = gate.max_risk
        WHERE p.relation = gate.relation;
END $$;
COMMENT ON PROCEDURE tailor.gate
    IS 'chooses the measure of risk that decides whether a stage is de-identified; whatever it is, '
        'no block has fewer than k subjects';


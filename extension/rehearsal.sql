-- Rehearsals -------------------------------------------------------------------
--
-- `tailor policy plan` asks what `tailor policy apply` would be told by running all of it but
-- the copies, in a transaction that it rolls back, and that nobody can commit.

CREATE TABLE IF NOT EXISTS tailor.rehearsal (relation oid NOT NULL);
COMMENT ON TABLE tailor.rehearsal IS 'empty: what is rehearsed is rolled back';

CREATE OR REPLACE FUNCTION tailor.refuse_rehearsal() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION 'what was rehearsed cannot be committed' USING ERRCODE = '55000',
        HINT = 'ROLLBACK; to put a policy in force, call tailor.activate.';
END $$;
COMMENT ON FUNCTION tailor.refuse_rehearsal IS 'keeps a rehearsal from being committed';

DROP TRIGGER IF EXISTS uncommitted ON tailor.rehearsal;
CREATE CONSTRAINT TRIGGER uncommitted AFTER INSERT ON tailor.rehearsal
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION tailor.refuse_rehearsal();

ALTER TABLE tailor.rehearsal ENABLE ALWAYS TRIGGER uncommitted;

CREATE OR REPLACE PROCEDURE tailor.write_rehearsal(relation regclass)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    draft  jsonb := tailor.accepted_draft(relation);
    parent regclass := tailor.data_set_parent(relation);
    number integer;
BEGIN
    INSERT INTO tailor.rehearsal VALUES (relation);
    IF parent IS NOT NULL THEN
        number := 1 + coalesce((SELECT max(v.version) FROM tailor.policy_version v
                                WHERE v.relation = write_rehearsal.relation), 0);
        INSERT INTO tailor.policy_version (relation, version, policy)
            VALUES (write_rehearsal.relation, number, draft);
        UPDATE tailor.protection p SET active = number
            WHERE p.relation = write_rehearsal.relation;
        SELECT tailor.with_data_sets(parent, v.policy) INTO draft
            FROM tailor.protection p JOIN tailor.policy_version v
                ON v.relation = p.relation AND v.version = p.active
            WHERE p.relation = parent;
        number := tailor.add_version(parent, draft);
        UPDATE tailor.protection p SET active = number WHERE p.relation = parent;
    ELSE
        CALL tailor.assert_readable(relation, draft);
        CALL tailor.assert_erased_known(relation, draft);
        CALL tailor.assert_goes_on_by_name(relation, draft);
        number := tailor.add_version(relation, draft);
        UPDATE tailor.protection p SET active = number
            WHERE p.relation = write_rehearsal.relation;
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.write_rehearsal IS 'the part of tailor.rehearse that writes';

CREATE OR REPLACE PROCEDURE tailor.rehearse(relation regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.hold(relation, filled => false);
    CALL tailor.take_privileges(relation);
    CALL tailor.write_rehearsal(relation);
END $$;
COMMENT ON PROCEDURE tailor.rehearse IS 'fails where tailor.activate would, but for what depends '
    'on the rows; makes no copy, and its transaction can only be rolled back';

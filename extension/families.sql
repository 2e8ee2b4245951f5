-- What was shown of people whose table is gone -----------------------------------
--
-- Readers keep what they have been shown of a table that is dropped. A partition
-- of the same people that knows nothing of the first gives, with the first, a
-- common refinement of blocks of any size. So the people of a table are
-- remembered, by digests under a key of this installation, for as long as it
-- exists: under whichever name they come back, the administrator is asked first.

CREATE TABLE IF NOT EXISTS tailor.subject_key (
    single      boolean PRIMARY KEY DEFAULT true CHECK (single),
    key         bytea NOT NULL
);
COMMENT ON TABLE tailor.subject_key
    IS 'the key of the digests by which subjects are followed; for tailor_owner only, and in no '
        'dump of the extension';
INSERT INTO tailor.subject_key (key)
    SELECT sha256(convert_to(gen_random_uuid()::text || gen_random_uuid() || gen_random_uuid(),
                             'UTF8'))
    ON CONFLICT DO NOTHING;
ANALYZE tailor.subject_key (single); -- there is one row, and no sample of the key is kept

-- Without settings of its own, and STABLE as convert_to is, so that PostgreSQL puts the
-- body in place of calls, which takes half of the time. Whatever type a key has, concat writes it
-- by its output function: a cast could be anybody's.
CREATE OR REPLACE FUNCTION tailor.subject_digest(subject text, key bytea) RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT pg_catalog.encode(pg_catalog.substring(pg_catalog.sha256(
        key OPERATOR(pg_catalog.||) pg_catalog.convert_to(subject, 'UTF8')), 1, 16),
            'hex')::pg_catalog.uuid
$$;
COMMENT ON FUNCTION tailor.subject_digest
    IS 'by what a subject is followed from one copy to the next, given its key as text: 128 bits; '
        'for Tailor''s own routines only';

CREATE OR REPLACE FUNCTION tailor.person_digest(subject text, key bytea) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT ('x' OPERATOR(pg_catalog.||) pg_catalog.substr(pg_catalog.sha256(
        key OPERATOR(pg_catalog.||) pg_catalog.convert_to(subject, 'UTF8'))::pg_catalog.text, 3,
            16))::pg_catalog.bit(64)::pg_catalog.int8
$$;
COMMENT ON FUNCTION tailor.person_digest
    IS 'the same in 64 bits, by which rows of releases are followed; for Tailor''s own routines '
        'only';

ALTER TABLE tailor.protection ADD COLUMN IF NOT EXISTS identity uuid NOT NULL
    DEFAULT gen_random_uuid();
ALTER TABLE tailor.protection ADD COLUMN IF NOT EXISTS starts_anew boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN tailor.protection.identity
    IS 'what no other policy has or will have: by it tailor.shown_family knows whether what was '
        'shown goes on';
ALTER TABLE tailor.protection ADD COLUMN IF NOT EXISTS forgotten integer NOT NULL DEFAULT 0;
ALTER TABLE tailor.protection ADD COLUMN IF NOT EXISTS forgotten_last timestamptz;
COMMENT ON COLUMN tailor.protection.starts_anew
    IS 'whether the administrator has said so, for the next copy';
COMMENT ON COLUMN tailor.protection.forgotten
    IS 'how often tailor.forget_chains had readers shown it anew';
COMMENT ON COLUMN tailor.protection.forgotten_last IS 'when that was last';

CREATE OR REPLACE VIEW tailor.fresh_starts AS
    SELECT relation, forgotten AS times, forgotten_last AS latest
        FROM tailor.protection WHERE forgotten > 0
  UNION ALL SELECT NULL, NULL, accepted FROM tailor.installation WHERE accepted IS NOT NULL;
COMMENT ON VIEW tailor.fresh_starts IS 'where the guarantee over what was shown before was given '
    'up, how often and when last: by tailor.forget_chains, and for all tables, as NULL, by '
    'accepting a restore';

-- No foreign key: a row outlives the policy that it is about, by design.
CREATE TABLE IF NOT EXISTS tailor.shown_family (
    protection  uuid PRIMARY KEY,
    names       text[] NOT NULL,
    owner       name NOT NULL,
    key         uuid NOT NULL,
    subjects    uuid[],
    exact       name[],
    changed     timestamptz NOT NULL DEFAULT now()
);
ALTER TABLE tailor.shown_family ALTER COLUMN subjects SET STORAGE EXTERNAL; -- cannot be compressed
COMMENT ON TABLE tailor.shown_family
    IS 'of whom each policy has had copies: outlives the table and its policy';
COMMENT ON COLUMN tailor.shown_family.key
    IS 'the digest of nothing under the key of the others: they compare under the same key only';
COMMENT ON COLUMN tailor.shown_family.subjects
    IS 'the lowest digests of all subjects that copies have had, in order: all up to '
        'tailor.most_digests(), beyond that a sample by which any two families can be compared; '
        'NULL where an earlier version made the copies';
COMMENT ON COLUMN tailor.shown_family.exact
    IS 'the columns that the last copy shows exact, for tailor.shown_fact; NULL for sets of codes, '
        'which are not compared';

CREATE OR REPLACE FUNCTION tailor.most_digests() RETURNS integer
    LANGUAGE sql IMMUTABLE AS 'SELECT 262144';
COMMENT ON FUNCTION tailor.most_digests IS 'how many digests of a family are kept: 4 MB';

-- Earlier versions have kept no digests. The next copy adds them.
INSERT INTO tailor.shown_family (protection, names, owner, key)
    SELECT p.identity, ARRAY[format('%I.%I', n.nspname, c.relname)], pg_get_userbyid(c.relowner),
        tailor.subject_digest('', k.key)
    FROM tailor.protection p JOIN pg_class c ON c.oid = p.relation
        JOIN pg_namespace n ON n.oid = c.relnamespace, tailor.subject_key k
    WHERE p.active IS NOT NULL
    ON CONFLICT DO NOTHING;

CREATE OR REPLACE FUNCTION tailor.lowest_digests(VARIADIC digests uuid[]) RETURNS uuid[]
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(array_agg(d), '{}') FROM (SELECT DISTINCT d FROM unnest(digests) d
                                              ORDER BY d LIMIT tailor.most_digests()) q
$$;
COMMENT ON FUNCTION tailor.lowest_digests IS 'the digests as tailor.shown_family keeps them';

-- Below the highest digest of a sample, all of its family are known: digests up
-- to there are compared.
CREATE OR REPLACE FUNCTION tailor.digests_in_common(one uuid[], other uuid[], OUT common bigint,
                                                    OUT smaller bigint, OUT larger bigint)
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
    WITH bound AS MATERIALIZED (SELECT least(one[tailor.most_digests()],
                                             other[tailor.most_digests()]) AS highest),
    a AS (SELECT d FROM unnest(one) d, bound WHERE d <= highest OR highest IS NULL),
    b AS (SELECT d FROM unnest(other) d, bound WHERE d <= highest OR highest IS NULL)
    SELECT count(*) FILTER (WHERE a.d = b.d), least(count(a.d), count(b.d)), greatest(count(a.d),
            count(b.d)) FROM a FULL JOIN b ON a.d = b.d
$$;
COMMENT ON FUNCTION tailor.digests_in_common
    IS 'how many subjects two families have in common, of those that are compared, and how many '
        'each has of these';

CREATE OR REPLACE FUNCTION tailor.same_subjects(one uuid, other uuid) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce((SELECT c.common > 0 AND c.common >= c.smaller / 10.0
                     FROM tailor.shown_family a JOIN tailor.shown_family b ON b.key = a.key,
                         tailor.digests_in_common(a.subjects, b.subjects) c
                     WHERE a.protection = one AND b.protection = other), false)
$$;
COMMENT ON FUNCTION tailor.same_subjects
    IS 'whether two families have a tenth of the smaller one in common';

-- Readers do not ask which table it is that has a name.
CREATE OR REPLACE PROCEDURE tailor.assert_goes_on_by_name(relation regclass, policy jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM tailor.protection p JOIN pg_class c ON c.oid = p.relation
        JOIN pg_namespace n ON n.oid = c.relnamespace JOIN tailor.shown_family f
            ON f.protection <> p.identity AND format('%I.%I', n.nspname, c.relname) = ANY (f.names)
        WHERE p.relation = assert_goes_on_by_name.relation AND NOT p.starts_anew
          AND NOT EXISTS (SELECT FROM tailor.shown_family o WHERE o.protection = p.identity))
    THEN
        RETURN;
    ELSIF EXISTS (SELECT FROM tailor.unprotected u
                  WHERE u.relation = assert_goes_on_by_name.relation) THEN
        RAISE EXCEPTION 'readers have been shown table % under the policy that was taken away',
            relation USING ERRCODE = '55000',
            DETAIL = 'What they were shown of it may be combined with what they will be shown.',
            HINT = format('CALL tailor.forget_chains(%1$L) gives up the guarantee over '
                'that, and starts anew, as tailor policy apply --forget-chains does. Where the '
                'table has no draft, CALL tailor.protect(%1$L, subject => %2$L, k => %3$s) comes '
                'first.', relation, policy ->> 'subject', policy ->> 'k');
    END IF;
    RAISE EXCEPTION 'readers have been shown another table by the name of %', relation
        USING ERRCODE = '55000',
        DETAIL = 'What they were shown of it may be combined with what they will be shown.',
        HINT = format('To load a table anew, TRUNCATE it, or DROP it and make it anew, and '
            'CALL tailor.refresh before a policy is written for it: that keeps the '
            'guarantee. CALL tailor.forget_chains(%1$L), or tailor policy apply --forget-chains, '
            'gives it up, and starts anew; '
            'where the table has no draft, CALL tailor.protect(%1$L, subject => %2$L, '
            'k => %3$s) comes first.', relation, policy ->> 'subject', policy ->> 'k');
END $$;
COMMENT ON PROCEDURE tailor.assert_goes_on_by_name IS 'fails where readers have been shown a table '
    'under another policy, or another table by its name, and the administrator has not said that '
    'it starts anew; for Tailor''s own routines only';

-- Called with each copy, when the table is locked and known to run nobody's code. Who
-- has been in the table before is shown on as before; newcomers are asked about. A
-- tenth of the smaller family is too many. Of tables whose owner the owner of this
-- one cannot be, half of the larger: else who makes tables of guesses would be told
-- whether people were in a table that is not his. A copy of what differs says who may be
-- new: of whoever is shown, the table has had copies.
DROP PROCEDURE IF EXISTS tailor.follow_subjects(regclass, jsonb);
CREATE OR REPLACE PROCEDURE tailor.follow_subjects(relation regclass, policy jsonb, copy integer
                                                   DEFAULT NULL)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    own     tailor.protection;
    kept    tailor.shown_family; -- of this policy's earlier copies
    called  text;
    holder  oid;
    digests uuid[];
    comers  uuid[];
    highest uuid; -- of those that are kept
    looked  text := 'SELECT coalesce(array_agg(d), ''{}'') FROM (
                        SELECT DISTINCT tailor.subject_digest(%s, k.key) AS d
                            FROM %s b, tailor.subject_key k
                        ORDER BY d LIMIT tailor.most_digests()) q';
    other   record;
    common  bigint;
    sizes   record;
BEGIN
    CALL tailor.assert_goes_on_by_name(relation, policy);
    SELECT * INTO own FROM tailor.protection p WHERE p.relation = follow_subjects.relation;
    SELECT format('%I.%I', n.nspname, c.relname), c.relowner INTO called, holder
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = relation;
    EXECUTE format(looked, tailor.called(relation, (policy ->> 'subject')::name),
                   coalesce('tailor_store.found_' || copy,
            relation::text)) INTO digests;
    SELECT * INTO kept FROM tailor.shown_family f WHERE f.protection = own.identity;
    highest := kept.subjects[tailor.most_digests()];
    comers := CASE WHEN kept.protection IS NULL THEN digests
                   WHEN kept.subjects IS NOT NULL THEN ARRAY(SELECT d FROM unnest(digests) d
                           WHERE d <= highest OR highest IS NULL EXCEPT
                               SELECT unnest(kept.subjects)) END;
    INSERT INTO tailor.shown_family AS f (protection, names, owner, key, subjects, exact)
        SELECT own.identity, ARRAY[called], pg_get_userbyid(holder), tailor.subject_digest('',
                k.key), digests,
               CASE WHEN NOT policy ? 'set_valued' OR policy @? '$.set_valued.joint'
                   THEN ARRAY(SELECT e.name FROM tailor.exact_columns(policy) e) END
        FROM tailor.subject_key k
        ON CONFLICT (protection) DO UPDATE SET
            names = array_remove(f.names, called) || called, owner = excluded.owner,
            key = excluded.key, exact = excluded.exact, changed = now(),
            subjects = CASE WHEN f.key <> excluded.key OR f.subjects IS NULL THEN excluded.subjects
                            WHEN cardinality(comers) = 0 THEN f.subjects
                            ELSE tailor.lowest_digests(VARIADIC f.subjects || comers) END;
    CALL tailor.keep_facts(own.identity, relation, policy, digests, copy);
    FOR other IN
        SELECT f.*, kept.protection IS NULL AND called = ANY (f.names) AS named,
            f.key = tailor.subject_digest('', k.key) AS comparable,
               EXISTS (SELECT FROM tailor.protection p JOIN pg_class c ON c.oid = p.relation
                       WHERE p.identity = f.protection) AS goes_on,
               coalesce((SELECT pg_has_role(holder, r.oid, 'USAGE') FROM pg_roles r
                         WHERE r.rolname = f.owner), true) AS owned
        FROM tailor.shown_family f, tailor.subject_key k WHERE f.protection <> own.identity
        ORDER BY named DESC, f.changed DESC
    LOOP
        IF NOT other.named THEN
            CONTINUE WHEN other.goes_on OR NOT other.comparable;
            SELECT c.common INTO common FROM tailor.digests_in_common(comers, other.subjects) c;
            CONTINUE WHEN common = 0;
            IF copy IS NOT NULL THEN
                EXECUTE format(looked, tailor.called(relation, (policy ->> 'subject')::name),
                               relation) INTO digests;
            END IF;
            sizes := tailor.digests_in_common(digests, other.subjects);
            CONTINUE WHEN common < CASE WHEN other.owned THEN sizes.smaller / 10.0
                ELSE sizes.larger / 2.0 END
                       OR tailor.unlike(own.identity, other.protection);
        END IF;
        IF NOT own.starts_anew AND NOT other.named THEN
            RAISE EXCEPTION 'readers have been shown subjects of table % in table %, which is gone',
                relation, other.names[cardinality(other.names)]
                USING ERRCODE = '55000',
                DETAIL = format('Of %s subjects that were compared, %s have the same keys.',
                                sizes.smaller, common),
                HINT = format('CALL tailor.forget_chains(%L) gives up the guarantee over what was '
                    'shown before, and starts anew.', relation);
        END IF;
        IF other.goes_on THEN
            UPDATE tailor.shown_family f SET names = array_remove(f.names, called)
                WHERE f.protection = other.protection;
        ELSE
            UPDATE tailor.shown_family f
                SET names = other.names || f.names, subjects = tailor.lowest_digests(VARIADIC
                        f.subjects || CASE WHEN other.comparable THEN other.subjects END)
                WHERE f.protection = own.identity;
            UPDATE tailor.erased e SET protection = own.identity
                WHERE e.protection = other.protection;
            DELETE FROM tailor.shown_family f WHERE f.protection = other.protection;
        END IF;
    END LOOP;
    UPDATE tailor.protection p SET starts_anew = false WHERE p.identity = own.identity
        AND p.starts_anew;
END $$;
COMMENT ON PROCEDURE tailor.follow_subjects
    IS 'fails where what was shown of the subjects of a table, or under its name, does not go on '
        'with it and the administrator has not said so; remembers them';

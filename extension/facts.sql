-- The same fact in two releases ---------------------------------------------------
--
-- Two tables of the same people are two partitions of them. What both show exact
-- puts these together: of the rows of a person's block in one, those go whose value
-- the person's block in the other lacks. So activation looks for such columns.
--
-- The values of some subjects are kept for that, as digests, beside those of the
-- subjects: samples of two tables are of the same subjects, may be compared without
-- a lock of either, and outlive them (tailor.follow_subjects).

ALTER TABLE tailor.classification ADD COLUMN IF NOT EXISTS shared_fact text NOT NULL
    DEFAULT 'refused' CHECK (shared_fact IN ('refused', 'accepted'));
COMMENT ON COLUMN tailor.classification.shared_fact
    IS 'whether the column may be shown although another table of the same subjects tells what it '
        'tells';

CREATE TABLE IF NOT EXISTS tailor.shown_fact (
    protection  uuid NOT NULL REFERENCES tailor.shown_family ON DELETE CASCADE,
    column_name name NOT NULL,
    subjects    uuid[] NOT NULL,
    facts       uuid[] NOT NULL,
    coarse      uuid[] NOT NULL,
    PRIMARY KEY (protection, column_name)
);
COMMENT ON TABLE tailor.shown_fact
    IS 'what columns that are shown exact say of a sample of subjects: digests of values, side by '
        'side with those of the subjects';
COMMENT ON COLUMN tailor.shown_fact.coarse
    IS 'of numbers and dates the twentieth of the sample that they are in, which follows them '
        'through units and rounding; of others the value';

CREATE OR REPLACE PROCEDURE tailor.shared_fact(relation regclass, column_name name,
                                               shared_fact text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    CALL tailor.assert_owner(relation);
    CALL tailor.assert_protected(relation);
    CALL tailor.assert_column(relation, column_name);
    IF shared_fact IS NULL OR shared_fact NOT IN ('refused', 'accepted') THEN
        RAISE EXCEPTION 'a shared fact cannot be "%"', shared_fact USING ERRCODE = '22023',
            HINT = 'It is refused or accepted.';
    END IF;
    UPDATE tailor.classification c SET shared_fact = shared_fact.shared_fact
        WHERE c.relation = shared_fact.relation AND c.column_name = shared_fact.column_name
            AND c.class IN ('sensitive', 'non_sensitive');
    IF NOT FOUND THEN
        RAISE EXCEPTION 'column "%" of table % is classified as neither sensitive nor '
            'non_sensitive', column_name, relation
            USING ERRCODE = '22023',
                HINT = 'Others are not shown exact; call tailor.classify first.';
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.shared_fact
    IS 'says whether a column may tell what a column of another table tells of the same subjects: '
        'refused or accepted';

CREATE OR REPLACE FUNCTION tailor.exact_columns(policy jsonb)
    RETURNS TABLE (name name, accepted boolean)
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT c ->> 'name', c ->> 'shared_fact' IS NOT DISTINCT FROM 'accepted'
    FROM jsonb_array_elements(policy -> 'columns') c
    WHERE c ->> 'class' IN ('sensitive', 'non_sensitive') AND (NOT policy ? 'set_valued'
            OR policy @? '$.set_valued.joint')
$$;
COMMENT ON FUNCTION tailor.exact_columns
    IS 'the columns that a policy shows as they are. The codes of a set-valued table are not, '
        'unless they are shown beside columns of the parent: k^m-anonymity counts them among what '
        'is known';

CREATE OR REPLACE FUNCTION tailor.own_quasi_identifiers(policy jsonb) RETURNS SETOF name
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT (c ->> 'name')::name FROM jsonb_array_elements(policy -> 'columns') c
    WHERE c ->> 'class' = 'quasi_identifier' AND NOT policy ? 'set_valued'
$$;
COMMENT ON FUNCTION tailor.own_quasi_identifiers IS
    'the quasi-identifiers that a policy does not borrow; of a set-valued table none';

-- Called as tailor.follow_subjects is. A cast is made only between PostgreSQL's own types.
DROP PROCEDURE IF EXISTS tailor.keep_facts(uuid, regclass, jsonb, uuid[]);
CREATE OR REPLACE PROCEDURE tailor.keep_facts(identity uuid, relation regclass, policy jsonb,
                                              digests uuid[], copy integer)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off SET enable_mergejoin = off
    AS $$
DECLARE
    read  text;
    ranks text;
    facts text;
BEGIN
    DELETE FROM tailor.shown_fact f WHERE f.protection = identity;
    SELECT string_agg(format(CASE kind
               WHEN 'number' THEN ', trim_scale(b.%1$I::numeric) AS v%2$s'
               WHEN 'date' THEN ', b.%1$I::date AS v%2$s'
               -- A document is compared with nothing.
               ELSE ', CASE WHEN pg_column_size(b.%1$I) <= 1000 THEN lower(btrim(concat(b.%1$I))) '
                   'END AS v%2$s' END, name, number), ''),
           string_agg(CASE kind WHEN 'text' THEN ''
                      ELSE format(', (20 * percent_rank() OVER (ORDER BY v%1$s))::integer::text AS '
                          'r%1$s', number) END, ''),
           string_agg(format(CASE kind
               WHEN 'number' THEN '(%1$L, v%2$s::text, r%2$s)'
               WHEN 'date' THEN '(%1$L, to_char(v%2$s, ''YYYY-MM-DD''), r%2$s)'
               ELSE '(%1$L, v%2$s, v%2$s)' END,
               name, number), ', ')
        INTO read, ranks, facts
        FROM (SELECT a.attname AS name, a.attnum AS number,
                     CASE WHEN a.atttypid IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype,
                                              'numeric'::regtype, 'float4'::regtype,
                                              'float8'::regtype) THEN 'number'
                          WHEN a.atttypid IN ('date'::regtype, 'timestamp'::regtype,
                                              'timestamptz'::regtype) THEN 'date' ELSE 'text' END
                                              AS kind
              FROM (SELECT x.name FROM tailor.exact_columns(policy) x
                  UNION SELECT tailor.own_quasi_identifiers(policy)) e
              JOIN pg_attribute a ON a.attrelid = relation AND a.attname = e.name AND a.attnum > 0
                  AND NOT a.attisdropped) c;
    IF facts IS NULL OR cardinality(digests) = 0 THEN
        RETURN;
    END IF;
    -- Of a subject with many rows, eight are looked at. Most values are said by many, and two are
    -- one if their bytes are, whatever the collation of a column.
    EXECUTE format(
        'WITH said AS MATERIALIZED (
             SELECT r."tailor subject" AS subject, v.name, v.fact COLLATE "C" AS fact,
                    v.coarse COLLATE "C" AS coarse, row_number() OVER () AS place
             FROM (SELECT *%2$s
                   FROM (SELECT b."tailor subject", row_number() OVER (
                                    PARTITION BY b."tailor subject"
                                    ORDER BY md5(b."tailor place"::text)) AS nth%1$s
                         FROM (SELECT b.*, b.ctid AS "tailor place",
                                      tailor.subject_digest(%3$s, k.key)
                                          AS "tailor subject"
                               FROM %4$s b, tailor.subject_key k WHERE true%6$s OFFSET 0) b
                         WHERE b."tailor subject" <= $2) q
                   WHERE nth <= 8) r
             CROSS JOIN LATERAL (VALUES %5$s) v (name, fact, coarse)
             WHERE v.fact COLLATE "C" <> ''''),
         digests AS MATERIALIZED ( -- of a number in text, as that of a number
             SELECT v, tailor.subject_digest(''value '' || v, k.key) AS coarse,
                    tailor.subject_digest(''value '' || CASE
                        WHEN v ~ ''^[+-]?[0-9]{1,100}([.][0-9]{1,100})?$''
                        THEN trim_scale(v::numeric)::text ELSE v END, k.key) AS fact
             FROM (SELECT fact FROM said UNION SELECT coarse FROM said) q (v), tailor.subject_key k)
         INSERT INTO tailor.shown_fact (protection, column_name, subjects, facts, coarse)
         SELECT $1, s.name, array_agg(s.subject ORDER BY s.place),
                array_agg(f.fact ORDER BY s.place), array_agg(c.coarse ORDER BY s.place)
         FROM said s JOIN digests f ON f.v = s.fact JOIN digests c ON c.v = s.coarse
         GROUP BY s.name', read, ranks, tailor.called(relation, (policy ->> 'subject')::name),
             coalesce('tailor_store.found_' || copy, relation::text), facts,
        tailor.unless_erased(relation, (policy ->> 'subject')::name))
        USING identity, digests[least(5000, cardinality(digests))];
END $$;
COMMENT ON PROCEDURE tailor.keep_facts
    IS 'keeps what columns that are shown exact, and quasi-identifiers, say of the subjects with '
        'the 5000 lowest digests; for Tailor''s own routines only';

-- What is shown of a data set goes on with its parent, so that nobody is asked about.
CREATE OR REPLACE PROCEDURE tailor.note_facts(relation regclass, policy jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    own     uuid := (SELECT p.identity FROM tailor.protection p
                     WHERE p.relation = note_facts.relation);
    digests uuid[];
BEGIN
    EXECUTE format('SELECT coalesce(array_agg(d), ''{}'') FROM (
                        SELECT DISTINCT tailor.subject_digest(%s, k.key) AS d
                        FROM %s b, tailor.subject_key k ORDER BY d LIMIT tailor.most_digests()) q',
                   tailor.called(relation, (policy ->> 'subject')::name), relation)
        INTO digests;
    INSERT INTO tailor.shown_family AS f (protection, names, owner, key, subjects, exact)
        SELECT p.identity, ARRAY[format('%I.%I', n.nspname, c.relname)],
               pg_get_userbyid(c.relowner), tailor.subject_digest('', k.key), digests,
               ARRAY(SELECT e.name FROM tailor.exact_columns(policy) e)
        FROM tailor.protection p JOIN pg_class c ON c.oid = p.relation
        JOIN pg_namespace n ON n.oid = c.relnamespace, tailor.subject_key k
        WHERE p.relation = note_facts.relation
        ON CONFLICT (protection) DO UPDATE SET
            names = array_remove(f.names, excluded.names[1]) || excluded.names,
            owner = excluded.owner, key = excluded.key, exact = excluded.exact, changed = now(),
            subjects = tailor.lowest_digests(VARIADIC excluded.subjects
                || CASE WHEN f.key = excluded.key THEN f.subjects END);
    CALL tailor.keep_facts(own, relation, policy, digests, NULL);
END $$;
COMMENT ON PROCEDURE tailor.note_facts IS 'remembers of whom a data set is, and what it says of '
    'some; for Tailor''s own routines only';

-- Two measures, of 2,000 subjects at most. Both are shares of subjects, beside the
-- share that chance gives.
--
--   agreement   those of whom both tables say the same in some row; by chance, of
--               whom one says what the other says of somebody else
--   told        those whose value in one row is guessed right from the value in the
--               other table, by others with the same value there (Goodman and
--               Kruskal's tau, each left out of what it is guessed from), whichever
--               table tells more of the other; by chance, guessed from nothing
--
-- Far beyond chance is a quarter of the way from chance to certainty for what is
-- the same, half of it for what follows, and four standard deviations for both.
CREATE OR REPLACE FUNCTION tailor.far_beyond(seen float8, chance float8, subjects float8,
                                             share float8) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(subjects >= 20 AND chance < 1 AND seen - chance >= share * (1 - chance)
                    AND seen - chance > 4 * sqrt(chance * (1 - chance) / subjects), false)
$$;
COMMENT ON FUNCTION tailor.far_beyond
    IS 'whether a share of subjects goes a share of the way from chance to certainty, and not by '
        'chance';

CREATE OR REPLACE FUNCTION tailor.compare_facts(one uuid, here name, other uuid, there name,
    OUT subjects bigint, OUT agreement float8, OUT agreement_by_chance float8, OUT told float8,
        OUT told_by_chance float8, OUT alike boolean)
-- How long an array is, the planner does not know.
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET jit = off SET enable_nestloop = off
    AS $$
    WITH a AS MATERIALIZED (
        SELECT u.* FROM tailor.shown_fact f, unnest(f.subjects, f.facts, f.coarse) WITH ORDINALITY u
            (subject, fact, coarse, nth)
        WHERE f.protection = one AND f.column_name = here),
    b AS MATERIALIZED (
        SELECT u.* FROM tailor.shown_fact f, unnest(f.subjects, f.facts, f.coarse) WITH ORDINALITY u
            (subject, fact, coarse, nth)
        WHERE f.protection = other AND f.column_name = there),
    people AS MATERIALIZED (
        SELECT subject, row_number() OVER (ORDER BY subject) - 1 AS i, count(*) OVER () AS n
        FROM (SELECT subject FROM a INTERSECT SELECT subject FROM b ORDER BY subject LIMIT 2000) q),
    agreed AS (
        SELECT count(DISTINCT p.subject)::float8 AS n FROM people p JOIN a USING (subject) JOIN b
            USING (subject, fact)),
    by_chance AS ( -- digests are in no order of anything: the next ones are anybody's
        SELECT count(DISTINCT (p.subject, shift)) / 5.0::float8 AS n
        FROM generate_series(1, 5) shift CROSS JOIN people p
            JOIN people q ON q.i = (p.i + shift) % p.n
        JOIN a ON a.subject = p.subject JOIN b ON b.subject = q.subject AND b.fact = a.fact),
    singles AS (
        SELECT DISTINCT ON (p.subject) a.coarse AS va, b.coarse AS vb
        FROM people p JOIN a USING (subject) JOIN b USING (subject) ORDER BY p.subject, a.nth,
            b.nth),
    pairs AS (
        SELECT count(*)::float8 AS c, sum(count(*)) OVER (PARTITION BY va)::float8 AS ca,
            sum(count(*)) OVER (PARTITION BY vb)::float8 AS cb,
               sum(count(*)) OVER ()::float8 AS n
        FROM singles GROUP BY va, vb),
    guessed AS (
        SELECT sum(c) AS n, sum(c * (c - 1) / (ca - 1)) / sum(c) AS told,
            sum(c * (cb - 1) / (n - 1)) / sum(c) AS chance FROM pairs WHERE ca > 1
      UNION ALL
        SELECT sum(c), sum(c * (c - 1) / (cb - 1)) / sum(c), sum(c * (ca - 1) / (n - 1)) / sum(c)
            FROM pairs WHERE cb > 1)
    SELECT p.n, a.seen, a.chance, t.told, t.chance,
           tailor.far_beyond(a.seen, a.chance, p.n, 0.25)
           OR coalesce((SELECT bool_or(tailor.far_beyond(g.told, g.chance, g.n, 0.5))
                        FROM guessed g), false)
    FROM (SELECT count(*) AS n FROM people) p
    CROSS JOIN LATERAL (SELECT agreed.n / nullif(p.n, 0) AS seen, by_chance.n / nullif(p.n, 0)
                        AS chance FROM agreed, by_chance) a
    LEFT JOIN LATERAL (SELECT g.told, g.chance FROM guessed g WHERE g.n IS NOT NULL
                       ORDER BY (g.told - g.chance) / nullif(1 - g.chance, 0) DESC NULLS LAST LIMIT
                           1) t ON true
$$;
COMMENT ON FUNCTION tailor.compare_facts
    IS 'whether two columns of the same subjects tell of each other, how many subjects were looked '
        'at and what was seen; for Tailor''s own routines only';

-- The codes of a joint publication are told by another column where subjects with one
-- value have a code in common that few others have. Of values of fewer than 20 subjects
-- nothing is said.
CREATE OR REPLACE FUNCTION tailor.compare_codes(one uuid, codes name, other uuid, there name,
    OUT subjects bigint, OUT agreement float8, OUT agreement_by_chance float8, OUT told float8,
        OUT told_by_chance float8, OUT alike boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET jit = off SET enable_nestloop = off
    AS $$
    WITH a AS MATERIALIZED (
        SELECT DISTINCT u.subject, u.fact FROM tailor.shown_fact f, unnest(f.subjects, f.facts) u
            (subject, fact)
        WHERE f.protection = one AND f.column_name = codes),
    b AS MATERIALIZED (
        SELECT DISTINCT ON (u.subject) u.subject, u.coarse
        FROM tailor.shown_fact f, unnest(f.subjects, f.coarse) WITH ORDINALITY u (subject, coarse,
                nth)
        WHERE f.protection = other AND f.column_name = there ORDER BY u.subject, u.nth),
    people AS MATERIALIZED (
        SELECT b.*, count(*) OVER (PARTITION BY b.coarse)::float8 AS nv, count(*) OVER ()::float8
            AS n
        FROM b WHERE EXISTS (SELECT FROM a WHERE a.subject = b.subject)),
    pairs AS (
        SELECT p.coarse, min(p.nv) AS nv, count(*) / min(p.nv) AS seen,
            sum(count(*)) OVER (PARTITION BY a.fact) / min(p.n) AS chance
        FROM people p JOIN a USING (subject) GROUP BY p.coarse, a.fact),
    best AS (
        SELECT DISTINCT ON (coarse) nv, seen, chance FROM pairs WHERE nv >= 20
            ORDER BY coarse, seen - chance DESC),
    measured AS (SELECT sum(nv) AS n, sum(nv * seen) / sum(nv) AS seen, sum(nv * chance) / sum(nv)
                 AS chance FROM best)
    SELECT (SELECT count(*) FROM people), NULL::float8, NULL::float8, m.seen, m.chance,
        tailor.far_beyond(m.seen, m.chance, m.n, 0.5) FROM measured m
$$;
COMMENT ON FUNCTION tailor.compare_codes
    IS 'whether a column of the same subjects tells which codes they have, as '
        'tailor.compare_facts; for Tailor''s own routines only';

-- Keys that are given in sequence agree with those of anybody. Two tables of the
-- same people are sound together where neither tells what the other one tells.
CREATE OR REPLACE FUNCTION tailor.unlike(one uuid, other uuid) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT NOT EXISTS (
        SELECT FROM tailor.shown_family a CROSS JOIN tailor.shown_family b
        LEFT JOIN LATERAL unnest(a.exact) here ON true LEFT JOIN LATERAL unnest(b.exact) there
            ON true
        LEFT JOIN LATERAL tailor.compare_facts(one, here, other, there) c ON here IS NOT NULL
            AND there IS NOT NULL
        WHERE a.protection = one AND b.protection = other AND (a.exact IS NULL OR b.exact IS NULL
                OR c.alike OR c.subjects < 20))
$$;
COMMENT ON FUNCTION tailor.unlike
    IS 'whether what two families show exact has been compared, and no column of one tells of one '
        'of the other';

-- A data set has its parent's root; so whatever it shows beside that is sound.
CREATE OR REPLACE FUNCTION tailor.root_of(relation regclass) RETURNS regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(tailor.data_set_parent(relation), relation)
$$;
COMMENT ON FUNCTION tailor.root_of IS 'the table whose root a table''s release is of';

-- With a data set whatever tells of a quasi-identifier of another root is compared, too: of
-- what it computes from other tables nobody has looked at the columns.
CREATE OR REPLACE FUNCTION tailor.compared_columns(policy jsonb, other regclass)
RETURNS TABLE (name name, accepted boolean, exact boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT x.name, x.accepted, true FROM tailor.exact_columns(policy) x
  UNION ALL
    SELECT q, false, false FROM tailor.own_quasi_identifiers(policy) q
    WHERE tailor.data_set_parent(other) IS NOT NULL AND NOT policy ? 'data_set_of'
$$;

-- What is computed from a quasi-identifier of the parent would be shown as it is. Much of
-- what is worth asking depends on an age, and is no more refused than a diagnosis would be:
-- what is looked for goes three quarters of the way to certainty.
CREATE OR REPLACE PROCEDURE tailor.assert_tells_no_identifier(relation regclass, policy jsonb,
        parent regclass)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    telling record;
BEGIN
    SELECT e.name, q AS of, c.* INTO telling
        FROM tailor.protection d, tailor.protection p
        JOIN tailor.policy_version v ON v.relation = p.relation AND v.version = p.active,
            tailor.exact_columns(assert_tells_no_identifier.policy) e,
            tailor.own_quasi_identifiers(v.policy) q,
            tailor.compare_facts(d.identity, e.name, p.identity, q) c
        WHERE d.relation = assert_tells_no_identifier.relation
          AND p.relation = assert_tells_no_identifier.parent AND NOT e.accepted
          AND (tailor.far_beyond(c.agreement, c.agreement_by_chance, c.subjects, 0.25)
               OR tailor.far_beyond(c.told, c.told_by_chance, c.subjects, 0.75))
        ORDER BY 1, 2 LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'column "%" of data set % tells of the quasi-identifier "%" of table %',
            telling.name, relation, telling.of, parent USING ERRCODE = '0A000',
            DETAIL = format('%s subjects looked at; the same is said of %s %% (by chance %s %%), '
                '%s %% are '
                'guessed right from each other (by chance %s %%).', telling.subjects,
                round(100 * telling.agreement), round(100 * telling.agreement_by_chance),
                coalesce(round(100 * telling.told), 0),
                coalesce(round(100 * telling.told_by_chance), 0)),
            HINT = format('Hide it, or say that it may be shown as it is: CALL '
                'tailor.shared_fact(%L, %L, ''accepted'').', relation, telling.name);
    END IF;
END $$;
COMMENT ON PROCEDURE tailor.assert_tells_no_identifier
    IS 'fails where a data set shows as it is what its parent shows by labels; for Tailor''s own '
        'routines only';

CREATE OR REPLACE PROCEDURE tailor.compare_with_others(relation regclass, policy jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    other record;
    found record;
BEGIN
    FOR other IN
        SELECT p.relation, p.identity, own.identity AS here, v.policy, tailor.root_of(p.relation) IN
            (SELECT tailor.root_kin(compare_with_others.relation)) AS tied,
               pg_has_role(c.relowner, o.relowner, 'USAGE') AS owned
        FROM tailor.protection own CROSS JOIN tailor.protection p JOIN tailor.policy_version v
            ON v.relation = p.relation AND v.version = p.active
        JOIN pg_class c ON c.oid = own.relation JOIN pg_class o ON o.oid = p.relation
        WHERE own.relation = compare_with_others.relation
            AND tailor.root_of(p.relation) <> tailor.root_of(own.relation)
        ORDER BY p.relation
    LOOP
        CONTINUE WHEN NOT other.tied AND NOT (other.owned
                                              AND tailor.same_subjects(other.here, other.identity));
        SELECT count(*) AS pairs, min(format('%I and %I', f.here, f.there)) AS first,
               string_agg(format('%I and %I: ', f.here, f.there) || concat_ws(' ',
                   CASE WHEN f.here = f.there THEN 'one name.' END,
                   CASE WHEN f.alike THEN format('%s subjects looked at;%s %s %% are guessed right '
                       'from each other (by chance %s %%).',
                       f.subjects, CASE WHEN f.agreement IS NOT NULL
                       THEN format(' the same is said of %s %% (by chance %s %%),',
                                   round(100 * f.agreement), round(100 * f.agreement_by_chance))
                                   END,
                       coalesce(round(100 * f.told), 0), coalesce(round(100 * f.told_by_chance),
                               0)) END), ' ' ORDER BY f.alike DESC, f.here, f.there) AS detail
            INTO found
            FROM (SELECT a.name AS here, b.name AS there, a.exact AND b.exact AS exact, l.*
                  FROM tailor.compared_columns(policy, other.relation) a CROSS
                      JOIN tailor.compared_columns(other.policy, relation) b
                  CROSS JOIN LATERAL (
                      SELECT * FROM tailor.compare_facts(other.here, a.name, other.identity, b.name)
                          WHERE policy ? 'set_valued' = (other.policy ? 'set_valued')
                    UNION ALL SELECT * FROM tailor.compare_codes(other.here, a.name, other.identity,
                            b.name)
                          WHERE policy ? 'set_valued' AND NOT other.policy ? 'set_valued'
                    UNION ALL SELECT * FROM tailor.compare_codes(other.identity, b.name, other.here,
                            a.name)
                          WHERE NOT policy ? 'set_valued' AND other.policy ? 'set_valued') l
                  WHERE NOT a.accepted AND NOT b.accepted AND (a.exact OR b.exact)) f
            WHERE f.here = f.there AND f.exact AND other.tied OR f.alike AND other.owned;
        IF found.pairs > 0 THEN
            RAISE EXCEPTION 'tables % and % show the same fact in columns %', relation,
                other.relation, found.first USING ERRCODE = '0A000',
                DETAIL = found.detail,
                HINT = format('Hide one of each, make it a quasi-identifier, or say that releases '
                    'may be put together by it: CALL tailor.shared_fact(%L, ..., ''accepted'').',
                    relation);
        END IF;
    END LOOP;
END $$;
COMMENT ON PROCEDURE tailor.compare_with_others
    IS 'fails where another table of the same subjects shows exact what a table is to show exact, '
        'unless a policy accepts that; for Tailor''s own routines only';

CREATE OR REPLACE PROCEDURE tailor.assert_no_shared_facts(relation regclass, policy jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    INSERT INTO tailor.lock_facts
        SELECT assert_no_shared_facts.relation, l.seen FROM tailor.lock_facts l
        WHERE l.relation = 0
        ON CONFLICT ON CONSTRAINT lock_facts_pkey DO UPDATE SET seen = excluded.seen;
    CALL tailor.compare_with_others(relation, policy);
END $$;
COMMENT ON PROCEDURE tailor.assert_no_shared_facts
    IS 'does so now and, where facts of another table are committed meanwhile, again when the '
        'transaction is; for Tailor''s own routines only';

-- The first row is locked by one transaction at a time, which is about to end.
CREATE OR REPLACE FUNCTION tailor.compare_again() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off
SET lock_timeout = '1min' AS $$
DECLARE
    before bigint;
    policy jsonb;
BEGIN
    UPDATE tailor.lock_facts l SET seen = l.seen + 1 WHERE l.relation = 0
        RETURNING l.seen - 1 INTO before;
    SELECT v.policy INTO policy FROM tailor.protection p
        JOIN tailor.policy_version v ON v.relation = p.relation AND v.version = p.active
        WHERE p.relation = NEW.relation;
    IF before > NEW.seen AND policy IS NOT NULL THEN
        CALL tailor.compare_with_others(NEW.relation, policy);
    END IF;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION tailor.compare_again IS 'lets no two tables be committed at once that show the '
    'same fact';

DROP TRIGGER IF EXISTS comparing ON tailor.lock_facts;
CREATE CONSTRAINT TRIGGER comparing AFTER INSERT OR UPDATE ON tailor.lock_facts
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.relation <> 0)
    EXECUTE FUNCTION tailor.compare_again();
ALTER TABLE tailor.lock_facts ENABLE ALWAYS TRIGGER comparing;

CREATE OR REPLACE FUNCTION tailor.key_columns(relation regclass, subject name)
    RETURNS TABLE (relation regclass, number smallint)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE keys (relation, number) AS (
        SELECT a.attrelid, a.attnum FROM pg_attribute a WHERE a.attrelid = key_columns.relation
            AND a.attname = subject AND a.attnum > 0 AND NOT a.attisdropped
      UNION
        SELECT x.relation, x.number
        FROM keys JOIN (SELECT f.conrelid, f.confrelid, u.here, u.there
                        FROM pg_constraint f, unnest(f.conkey, f.confkey) u (here, there)
                            WHERE f.contype = 'f') f
             ON (f.conrelid, f.here) = (keys.relation, keys.number)
             OR (f.confrelid, f.there) = (keys.relation, keys.number)
        CROSS JOIN LATERAL (VALUES (f.conrelid, f.here), (f.confrelid, f.there)) x (relation,
                number))
    SELECT k.relation::regclass, k.number FROM keys k
$$;
COMMENT ON FUNCTION tailor.key_columns
    IS 'the columns that foreign keys tie to a key, directly or by way of any others, and itself';

CREATE OR REPLACE FUNCTION tailor.kin(relation regclass, subject name) RETURNS SETOF regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT DISTINCT p.relation
    FROM tailor.key_columns(kin.relation, kin.subject) k
        JOIN tailor.protection p ON p.relation = k.relation
    JOIN tailor.policy_version v ON v.relation = p.relation AND v.version = p.active
    JOIN pg_attribute a ON a.attrelid = k.relation AND a.attnum = k.number
        AND a.attname = v.policy ->> 'subject'
    WHERE p.relation <> kin.relation
$$;
COMMENT ON FUNCTION tailor.kin
    IS 'the active tables whose subjects foreign keys tie to those of a table';

CREATE OR REPLACE FUNCTION tailor.root_kin(relation regclass) RETURNS SETOF regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT tailor.kin(p.relation, p.subject) FROM tailor.protection p
    WHERE p.relation = tailor.root_of(root_kin.relation)
$$;
COMMENT ON FUNCTION tailor.root_kin
    IS 'those whose subjects foreign keys tie to those of a table, or of a data set''s parent';

-- What reports tell of the past -----------------------------------------------------
--
-- tailor report is made by a member of tailor_admin. What policies were, what was copied
-- and how exact releases are, the owners of the tables may know, and Tailor's own role.

CREATE OR REPLACE VIEW tailor.policy_history WITH (security_barrier = true) AS
    SELECT v.relation, v.version, v.version IS NOT DISTINCT FROM p.active AS active,
           v.author, v.created, v.policy
    FROM tailor.policy_version v LEFT JOIN tailor.protection p USING (relation)
    WHERE tailor.owns(v.relation) OR pg_has_role(session_user, 'tailor_owner', 'MEMBER');
COMMENT ON VIEW tailor.policy_history IS 'all versions of the policies of one''s own tables: by '
    'whom, since when, and which is in force';

CREATE OR REPLACE VIEW tailor.copies WITH (security_barrier = true) AS
    SELECT e.epoch, e.relation, e.version, e.created, e.rows, e.subjects
    FROM tailor.epoch e
    WHERE tailor.owns(e.relation) OR pg_has_role(session_user, 'tailor_owner', 'MEMBER');
COMMENT ON VIEW tailor.copies IS 'the copies of one''s own tables that were made for releases: '
    'when, and of how many rows and subjects';

CREATE OR REPLACE VIEW tailor.released_columns WITH (security_barrier = true) AS
    SELECT h.chain, h.relation, h.audience, c ->> 'name' AS column_name,
           (c ->> 'number')::integer AS number, c ->> 'class' AS class,
           coalesce((h.columns #>> ARRAY[c ->> 'number', 'exact'])::float8, 1) AS exact,
           coalesce((h.columns #>> ARRAY[c ->> 'number', 'loss'])::float8, 0) AS loss
    FROM tailor.chain h JOIN tailor.policy_version v USING (relation, version)
    CROSS JOIN LATERAL jsonb_array_elements(v.policy -> 'columns') c
    WHERE (c ->> 'class' IN ('quasi_identifier', 'sensitive', 'non_sensitive')
           OR c ->> 'action' = 'pseudonym')
      AND (tailor.owns(h.relation) OR pg_has_role(session_user, 'tailor_owner', 'MEMBER'));
COMMENT ON VIEW tailor.released_columns IS 'how exact the columns of one''s own tables are in '
    'each release: research.tailor_columns has what a reader may know of it';

CREATE OR REPLACE VIEW tailor.projects WITH (security_barrier = true) AS
    SELECT p.name AS project, p.relation, p.combinations,
           ARRAY(SELECT r.rolname FROM tailor.project_reader m JOIN pg_roles r
                     ON (r.oid, r.rolname) = (m.reader, m.name)
                 WHERE m.project = p.name ORDER BY 1) AS readers
    FROM tailor.project p
    WHERE tailor.owns(p.relation) OR pg_has_role(session_user, 'tailor_owner', 'MEMBER');
COMMENT ON VIEW tailor.projects IS 'the projects that read one''s own tables, what they were '
    'declared to ask, and the roles that read for them';

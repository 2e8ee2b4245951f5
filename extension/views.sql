-- Views ---------------------------------------------------------------------

CREATE OR REPLACE VIEW tailor.policies AS
    SELECT p.relation, p.subject, p.k, p.recoding, p.scope, p.active AS version, v.author,
        v.created, p.epoch, v.policy
    FROM tailor.protection p
    LEFT JOIN tailor.policy_version v ON v.relation = p.relation AND v.version = p.active;
COMMENT ON VIEW tailor.policies IS 'protected tables and the policy version in force';

CREATE OR REPLACE VIEW tailor.hierarchies AS
    SELECT name, kind, owner FROM tailor.hierarchy;
COMMENT ON VIEW tailor.hierarchies
    IS 'names for use in tailor.classify; definitions may quote data and are left out';

CREATE OR REPLACE VIEW tailor.chains AS
    SELECT chain, relation, audience, epoch, generation, blocks, min_block, created, changed
        FROM tailor.chain;
COMMENT ON VIEW tailor.chains IS 'what each audience is shown: the root of the epoch';

CREATE OR REPLACE VIEW tailor.audit AS
    SELECT e.time, l.id, e.principal, e.database, e.verdict, e.sqlstate,
           l.record ->> 'sql' AS sql, e.relations, e.risk AS aggregate_risk, e.loss
           AS aggregate_loss, e.min_block,
           e.rows, e.duration_ms, (l.record ->> 'plan_ms')::float8 AS plan_ms,
           l.record ->> 'session' AS session, l.record ->> 'client' AS client,
           l.record ->> 'fingerprint' AS fingerprint,
           (l.record ->> 'epoch')::integer AS epoch, (l.record ->> 'policy_version')::integer
           AS policy_version,
           e.chain, l.record -> 'stages' AS stages, l.record ->> 'recoding' AS recoding,
           coalesce(l.record ->> 'event', 'statement') AS event,
           l.record ->> 'previous_hash' AS previous_hash, l.record ->> 'hash' AS hash, e.position,
           l.record
    FROM tailor.audit_entry e LEFT JOIN tailor.audit_log l USING (position);
COMMENT ON VIEW tailor.audit
    IS 'one row a statement that came through the proxy, or login that it refused; ORDER BY '
        'position or time';

-- What has been asked, in the order of asking: the combinations of a principal's
-- statements, each stage with the risk and the loss of what it was shown.
CREATE OR REPLACE VIEW tailor.graphs AS
    SELECT e.chain, c.relation, e.principal, e.position, s.ordinality::integer AS stage_number,
           s.node ->> 'stage' AS stage, s.node ->> 'place' AS place,
           ARRAY(SELECT jsonb_array_elements_text(s.node -> 'qids')) AS qids, s.node ->> 'condition'
           AS condition,
           s.node ->> 'action' AS action, (s.node ->> 'risk_before')::float8 AS risk_before,
           (s.node ->> 'risk_after')::float8 AS risk_after, (s.node ->> 'loss')::float8 AS loss,
           s.node
    FROM tailor.audit_entry e JOIN tailor.audit_log l USING (position)
        JOIN tailor.chain c ON c.chain = e.chain
    CROSS JOIN LATERAL jsonb_array_elements((l.record -> 'stages')::jsonb) WITH ORDINALITY s (node,
            ordinality)
    WHERE e.verdict = 'released';
COMMENT ON VIEW tailor.graphs
    IS 'the Execution Chain Graph: one row a stage of an answered statement, in the order of '
        'asking';

CREATE OR REPLACE VIEW tailor.audit_lines AS
    SELECT l.position, l.log, l.sequence, l.record::text AS line, e.principal, e.verdict,
        e.sqlstate, e.relations, e.risk, e.loss,
           e.min_block, e.rows
    FROM tailor.audit_log l LEFT JOIN tailor.audit_entry e USING (position);
COMMENT ON VIEW tailor.audit_lines
    IS 'what tailor audit --verify reads: lines as they were written, and what lists show of them';

CREATE OR REPLACE VIEW tailor.audit_heads AS
    SELECT log, sequence, hash, changed FROM tailor.audit_head;
COMMENT ON VIEW tailor.audit_heads IS 'the last line of each chain of the audit log';


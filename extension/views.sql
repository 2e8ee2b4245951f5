-- Views ---------------------------------------------------------------------

CREATE OR REPLACE VIEW tailor.policies AS
    SELECT p.relation, p.subject, p.k, p.recoding, p.scope, p.active AS version, v.author, v.created, p.epoch, v.policy
    FROM tailor.protection p
    LEFT JOIN tailor.policy_version v ON v.relation = p.relation AND v.version = p.active;
COMMENT ON VIEW tailor.policies IS 'protected tables and the policy version in force';

CREATE OR REPLACE VIEW tailor.hierarchies AS
    SELECT name, kind, owner FROM tailor.hierarchy;
COMMENT ON VIEW tailor.hierarchies IS 'names for use in tailor.classify; definitions may quote data and are left out';

CREATE OR REPLACE VIEW tailor.chains AS
    SELECT chain, relation, audience, epoch, generation, blocks, min_block, created, changed, score, seeds FROM tailor.chain;
COMMENT ON VIEW tailor.chains IS 'how fine the partition of each audience is by now';

CREATE OR REPLACE VIEW tailor.graphs AS
    SELECT n.chain, c.relation, c.audience, n.generation, n.position,
           n.node ->> 'stage' AS stage, n.node ->> 'place' AS place,
           ARRAY(SELECT jsonb_array_elements_text(n.node -> 'qids')) AS qids, n.node ->> 'condition' AS condition,
           n.node ->> 'action' AS action, (n.node ->> 'risk_before')::float8 AS risk_before,
           (n.node ->> 'risk_after')::float8 AS risk_after, (n.node ->> 'loss')::float8 AS loss, n.node
    FROM tailor.chain_node n JOIN tailor.chain c USING (chain);
COMMENT ON VIEW tailor.graphs IS 'the Execution Chain Graph of each chain: one row a stage that refined it';

CREATE OR REPLACE VIEW tailor.audit AS
    SELECT (record ->> 'time')::timestamptz AS time, id,
           record ->> 'principal' AS principal, record ->> 'database' AS database,
           record ->> 'verdict' AS verdict, record ->> 'sqlstate' AS sqlstate,
           record ->> 'sql' AS sql, record -> 'relations' AS relations,
           (record ->> 'aggregate_risk')::float8 AS aggregate_risk,
           (record ->> 'aggregate_loss')::float8 AS aggregate_loss,
           (record ->> 'min_block')::integer AS min_block, record
    FROM tailor.audit_log;
COMMENT ON VIEW tailor.audit IS 'one row a statement that came through the proxy';


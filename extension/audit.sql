-- Writing audit lines ----------------------------------------------------------

-- Writes lines in their order. A line that is there already stays as it is, so
-- that what a crash has taken can be written again.
CREATE OR REPLACE FUNCTION tailor.record(lines text[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO tailor.audit_log (id, log, sequence, record)
        SELECT j ->> 'id', j ->> 'log', (j ->> 'sequence')::bigint, line::json
        FROM unnest(record.lines) WITH ORDINALITY u (line, number), LATERAL (SELECT line::jsonb
                AS j) p
        ORDER BY number
        ON CONFLICT (log, sequence) DO NOTHING;
    INSERT INTO tailor.audit_entry
        SELECT l.position, (j ->> 'time')::timestamptz, j ->> 'principal', j ->> 'database',
            j ->> 'verdict', j ->> 'sqlstate',
               ARRAY(SELECT jsonb_array_elements_text(j -> 'relations')), (j ->> 'chain')::integer,
               (j ->> 'aggregate_risk')::float8, (j ->> 'aggregate_loss')::float8,
               (j ->> 'min_block')::integer,
               (j ->> 'rows')::bigint, (j ->> 'duration_ms')::float8
        FROM unnest(record.lines) line, LATERAL (SELECT line::jsonb AS j OFFSET 0) p
        JOIN tailor.audit_log l ON l.id = j ->> 'id'
        WHERE NOT j ? 'completes'
        ORDER BY l.position
        ON CONFLICT DO NOTHING;
    -- A completion counts once: it moves the head, and those behind it are old.
    UPDATE tailor.audit_entry e
        SET rows = coalesce(e.rows, 0) + c.rows, duration_ms = e.duration_ms + c.duration_ms,
            verdict = coalesce(c.verdict, e.verdict), sqlstate = CASE WHEN c.verdict IS NULL
            THEN e.sqlstate ELSE c.sqlstate END
        FROM (SELECT l.position, sum((j ->> 'rows')::bigint)::bigint AS rows,
              sum((j ->> 'duration_ms')::float8) AS duration_ms,
                     max(j ->> 'verdict') AS verdict, max(j ->> 'sqlstate') AS sqlstate
              FROM unnest(record.lines) line, LATERAL (SELECT line::jsonb AS j OFFSET 0) p
              JOIN tailor.audit_log l ON l.id = j ->> 'completes'
              WHERE j ? 'completes' AND (j ->> 'sequence')::bigint > coalesce(
                  (SELECT h.sequence FROM tailor.audit_head h WHERE h.log = j ->> 'log'), 0)
              GROUP BY l.position) c
        WHERE e.position = c.position;
    INSERT INTO tailor.audit_head (log, sequence, hash)
        SELECT DISTINCT ON (j ->> 'log') j ->> 'log', (j ->> 'sequence')::bigint, j ->> 'hash'
        FROM unnest(record.lines) line, LATERAL (SELECT line::jsonb AS j OFFSET 0) p
        ORDER BY j ->> 'log', (j ->> 'sequence')::bigint DESC
        ON CONFLICT (log) DO UPDATE SET sequence = excluded.sequence, hash = excluded.hash,
            changed = now()
            WHERE excluded.sequence > audit_head.sequence;
END $$;
COMMENT ON FUNCTION tailor.record IS 'the sink of the audit log; for tailor_owner only';

-- Records of versions before there were entries.
INSERT INTO tailor.audit_entry
    SELECT l.position, (j ->> 'time')::timestamptz, j ->> 'principal', j ->> 'database',
        j ->> 'verdict', j ->> 'sqlstate',
           ARRAY(SELECT jsonb_array_elements_text(j -> 'relations')), (j ->> 'chain')::integer,
           (j ->> 'aggregate_risk')::float8, (j ->> 'aggregate_loss')::float8,
           (j ->> 'min_block')::integer,
           (j ->> 'rows')::bigint, (j ->> 'duration_ms')::float8
    FROM tailor.audit_log l, LATERAL (SELECT l.record::jsonb AS j OFFSET 0) p
    WHERE l.log IS NULL
    ON CONFLICT DO NOTHING;


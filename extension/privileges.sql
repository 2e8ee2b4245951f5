-- Ownership and privileges --------------------------------------------------

DO $$
DECLARE
    object record;
BEGIN
    FOR object IN SELECT c.oid::regclass AS name, c.relkind FROM pg_class c
                  WHERE c.relnamespace = 'tailor'::regnamespace AND c.relkind IN ('r', 'v')
    LOOP
        EXECUTE format('ALTER %s %s OWNER TO tailor_owner', CASE object.relkind WHEN 'r'
                       THEN 'TABLE' ELSE 'VIEW' END, object.name);
    END LOOP;
    ALTER SEQUENCE tailor.catalog_version OWNER TO tailor_owner;
    -- Upgrades take what earlier versions granted.
    REVOKE ALL ON ALL TABLES IN SCHEMA tailor FROM PUBLIC, tailor_admin, tailor_reader;
    REVOKE ALL ON ALL SEQUENCES IN SCHEMA tailor FROM PUBLIC, tailor_admin, tailor_reader;
    -- Members of tailor_reader may call nothing that writes.
    FOR object IN SELECT p.oid::regprocedure AS name, p.proname, p.prosecdef FROM pg_proc p
                  WHERE p.pronamespace = 'tailor'::regnamespace
    LOOP
        EXECUTE format('REVOKE ALL ON ROUTINE %s FROM PUBLIC, tailor_admin, tailor_reader',
                       object.name);
        IF object.prosecdef AND object.proname NOT IN ('verifier', 'grant_reader', 'announce_ddl',
                                                       'lock_scheduled', 'session') THEN
            EXECUTE format('ALTER ROUTINE %s OWNER TO tailor_owner', object.name);
        END IF;
        EXECUTE format('GRANT EXECUTE ON ROUTINE %s TO tailor_owner', object.name);
        -- The procedures of an administrator, and what they call with his rights.
        IF object.proname IN (
            'protect', 'define_dataset', 'write_data_set', 'data_set_parent', 'data_sets',
            'read_data_sets_anew', 'assert_column', 'define_hierarchy', 'classify', 'require',
            'set_valued', 'joint', 'chain_scope', 'seed', 'project', 'join_project',
            'leave_project', 'max_share', 'cohort', 'departures', 'changes', 'cuts', 'indexes',
            'erase', 'write_erasure', 'tables_about', 'text_of', 'called', 'gate', 'recode', 'rows',
            'represent',
            'shared_fact', 'schedule', 'clear_draft',
            'draft', 'grant_reader', 'activate', 'rehearse', 'write_rehearsal', 'take_privileges',
                'hold_readers', 'hold_in_order', 'assert_read_committed', 'made_anew', 'hand_over',
                'unprotect', 'keep_fidelity', 'remove_policy', 'orphans', 'drop_orphans', 'refresh',
                'forget_chains', 'restored', 'fingerprint',
            'computed_columns', 'telling_columns', 'stored_type', 'phases', 'key_columns',
            'write_protection', 'write_hierarchy', 'put_in_force', 'renew_copy', 'begin_anew',
            'apply_alone',
            'owns', 'assert_owner', 'parents', 'in_step', 'shown_by', 'hold', 'family', 'ancestors',
            'lineage', 'members', 'reader_roles', 'ways', 'view_ways', 'unreachable') THEN
            EXECUTE format('GRANT EXECUTE ON ROUTINE %s TO tailor_admin', object.name);
        END IF;
    END LOOP;
END $$;
GRANT EXECUTE ON FUNCTION tailor.admit(integer, integer, integer),
    tailor.asked(integer, boolean), tailor.session(), tailor.replayed(), tailor.unreachable(text),
    tailor.case_count(regclass, text[], double precision[]) TO tailor_reader;
GRANT SELECT ON tailor.policies, tailor.fresh_starts, tailor.hierarchies, tailor.chains,
    tailor.graphs, tailor.progress, tailor.schedules, tailor.epochs, tailor.failures,
    tailor.erasures, tailor.storage,
    tailor.unprotected, tailor.audit, tailor.audit_lines,
    tailor.policy_history, tailor.copies, tailor.released_columns, tailor.projects,
    tailor.audit_heads TO tailor_admin;

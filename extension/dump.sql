-- What pg_dump saves of an extension's tables: all but the keys of tickets and
-- of digests, of which each installation has its own, verifiers of passwords,
-- what is about the moment, and what the script makes anew.

DO $$
DECLARE
    part record;
BEGIN
    FOR part IN SELECT c.oid::regclass AS name FROM pg_class c
                WHERE c.relnamespace = 'tailor'::regnamespace AND c.relkind IN ('r', 'S')
                    AND c.relname NOT IN ('admission_key', 'subject_key', 'login')
                        AND c.relname NOT LIKE ALL (ARRAY['progress\_%', 'lock\_%'])
    LOOP
        PERFORM pg_extension_config_dump(part.name, CASE part.name WHEN 'tailor.hierarchy'::regclass
                                         THEN 'WHERE name NOT LIKE ''builtin.%''' ELSE '' END);
    END LOOP;
END $$;

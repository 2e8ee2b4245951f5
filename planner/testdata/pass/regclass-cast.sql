SELECT 'patients'::regclass::oid

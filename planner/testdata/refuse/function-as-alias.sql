SELECT q.ts_stat FROM patients, unnest(ARRAY['SELECT 1']) AS q

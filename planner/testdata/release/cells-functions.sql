SELECT round(avg(pay), 2)::text, coalesce(sum(pay), 0)::int, CASE WHEN count(*) > 9 THEN 'many' ELSE upper('few') END, pg_catalog.count(pay), greatest(1, nullif(count(*), 0)) FROM staff

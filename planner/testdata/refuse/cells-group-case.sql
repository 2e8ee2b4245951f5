SELECT count(*) FROM staff GROUP BY CASE WHEN unit = 'icu' THEN 1 ELSE 2 END

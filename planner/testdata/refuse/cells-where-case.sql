SELECT count(*) FROM staff WHERE CASE WHEN unit = 'icu' THEN pay > 3 ELSE true END

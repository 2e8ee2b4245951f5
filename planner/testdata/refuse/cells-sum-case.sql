SELECT sum(CASE WHEN unit = 'icu' THEN pay ELSE 0 END) FROM staff

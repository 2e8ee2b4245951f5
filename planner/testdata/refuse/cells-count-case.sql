SELECT count(CASE WHEN unit = 'icu' THEN 1 END) FROM staff

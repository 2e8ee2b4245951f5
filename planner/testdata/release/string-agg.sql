SELECT sex, string_agg(diagnosis, ', ' ORDER BY cost DESC) FROM patients GROUP BY sex

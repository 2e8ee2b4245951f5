SELECT count(DISTINCT age), array_agg(DISTINCT sex) FROM patients

SELECT count(DISTINCT id) OVER () FROM patients

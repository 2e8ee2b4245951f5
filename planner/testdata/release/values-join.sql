SELECT v.label, count(*) FROM patients JOIN (VALUES ('male', 'm'), ('female', 'f')) AS v (sex, label) ON v.sex = patients.sex GROUP BY v.label

SELECT sex, percentile_cont(0.5) WITHIN GROUP (ORDER BY age) FROM patients GROUP BY sex

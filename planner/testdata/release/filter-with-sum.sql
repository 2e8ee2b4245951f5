SELECT sex, sum(cost) FILTER (WHERE diagnosis = 'flu') AS flu FROM patients GROUP BY sex

SELECT sex, count(*) AS n, round(avg(age), 1) AS mean_age, round(stddev(age), 1) AS sd_age,
       percentile_cont(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY age) AS quartiles,
       count(*) FILTER (WHERE diagnosis = 'gout') AS diabetics,
       round(100.0 * count(*) FILTER (WHERE diagnosis = 'gout') / count(*), 2) AS pct
FROM patients GROUP BY sex ORDER BY sex

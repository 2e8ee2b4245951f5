SELECT sex, 100.0 * count(*) FILTER (WHERE unit = 'icu' AND staff.hired < '2020-01-01'::date) / count(*) AS share FROM staff GROUP BY sex
